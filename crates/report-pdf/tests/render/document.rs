//! The report as a document: its structure, its metadata, its texts, and that it is the same each time.

use lopdf::Document;
use report_pdf::Renderer;

use crate::{SAMPLE, metadata, render, report, small, squeeze, text};

#[test]
fn the_sample_is_a_tagged_turkish_pdf_of_several_pages() {
    assert!(SAMPLE.starts_with(b"%PDF-1.7"));
    let document = Document::load_mem(&SAMPLE).unwrap();
    let catalog = document.catalog().unwrap();
    assert!(catalog.has(b"StructTreeRoot"));
    assert!(catalog.get(b"Lang").unwrap().as_str().unwrap().starts_with(b"tr"));
    assert!(document.get_pages().len() > 2);
}

#[test]
fn the_metadata_declares_pdf_ua_and_pdf_a_title_author_and_the_date_of_publication() {
    let metadata = metadata(&SAMPLE);
    for part in [
        "<pdfuaid:part>1</pdfuaid:part>",
        "<pdfaid:part>2</pdfaid:part>",
        "<pdfaid:conformance>A</pdfaid:conformance>",
    ] {
        assert!(metadata.contains(part), "{part} in {metadata}");
    }
    for part in [
        "Araç Ekspertiz Raporu EKS-2026-004217",
        "Güneş Oto Ekspertiz A.Ş.",
        "2026-05-05T11:03:00",
    ] {
        assert!(metadata.contains(part), "{part} in {metadata}");
    }
}

#[test]
fn the_pages_carry_the_report_in_turkish() {
    let text = text(&SAMPLE);
    for expected in [
        "Araç Ekspertiz Raporu",
        "EKS-2026-004217",
        "5 Mayıs 2026",
        "05.05.2026 14:03",
        "34 ABC 123",
        "WVWZZZ3CZKE012345",
        "Yarı otomatik",
        "128.450 km",
        "1.450,00 TL",
        "%12,5 · Bahar kampanyası",
        "1.268,75 TL",
        "100 üzerinden",
        "Şule Yıldız",
        "Rasimpaşa Mah. Uzunhafız Sok. No: 48, Kadıköy / İstanbul",
        "0216 555 01 01",
        "Kaporta kontrolü",
        "Sağ ön aks körüğü yırtık, gres kaçırıyor.",
        "Kontrol edilemedi",
        "Test hattı kontrolleri",
        "BRK2000-A",
        "05.05.2026 11:41",
        "05.05.2026 11:44",
        "3,42 kN",
        "%61,5",
        "-4,1 m/km",
        "Kaliper sıkışıklığı olabilir.",
        "Sağ ön aks körüğündeki yırtık",
        "Kilometre göstergesi",
        "https://rapor.example.com/r/7f3kq2m9",
        "Sayfa 1 / ",
    ] {
        assert!(text.contains(&squeeze(expected)), "{expected} in {text}");
    }
}

#[test]
fn a_heading_stands_once_for_all_forms_of_a_category() {
    let mut report = report();
    report
        .forms
        .iter_mut()
        .for_each(|form| form.score_category = "PAINT_CHECK".to_owned());
    assert_eq!(text(&render(&report)).matches("Paintcheck").count(), 1);
}

#[test]
fn equal_reports_give_equal_bytes() {
    assert!(render(&report()) == *SAMPLE);
    assert!(Renderer::new().render(&report()).unwrap() == *SAMPLE);
}

#[test]
fn renderers_work_side_by_side() {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| render(&report()))).collect();
        for thread in threads {
            assert!(thread.join().unwrap() == *SAMPLE);
        }
    });
}

#[test]
fn no_ligature_swallows_the_dot_that_tells_i_from_dotless_i() {
    let mut report = small();
    report.summary = "Hafif fiyat farkı, fişi fırlatma.".to_owned();
    let document = Document::load_mem(&render(&report)).unwrap();
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    let text = document.extract_text(&pages).unwrap();
    assert!(text.contains("Hafif fiyat farkı, fişi fırlatma."), "{text}");
    assert!(!text.contains(['\u{fb00}', '\u{fb01}', '\u{fb03}']));
}

#[test]
fn what_is_hidden_reads_as_a_mark() {
    let mut report = small();
    report.summary = "Sahibi arandı: [gizlendi], 132.450 km.".to_owned();
    assert!(text(&render(&report)).contains(&squeeze("Sahibi arandı: [gizlendi], 132.450 km.")));
}
