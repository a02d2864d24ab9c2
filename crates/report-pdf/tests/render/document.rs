//! The document's structure, metadata, texts and photos, and that a changed appearance has a new version.

use lopdf::Document;
use partner_api_domain::pdf_key::RENDERER_VERSION;
use report_pdf::{Photo, PhotoFormat, Renderer};
use sha2::{Digest, Sha256};

use crate::{SAMPLE, metadata, render, report, sample, small, squeeze, text};

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
fn a_category_has_one_heading_for_all_its_forms() {
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
fn renderers_work_in_parallel() {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| render(&report()))).collect();
        for thread in threads {
            assert!(thread.join().unwrap() == *SAMPLE);
        }
    });
}

#[test]
fn no_ligature_hides_the_dot_of_an_i() {
    let mut report = small();
    report.summary = "Hafif fiyat farkı, fişi fırlatma.".to_owned();
    let document = Document::load_mem(&render(&report)).unwrap();
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    let text = document.extract_text(&pages).unwrap();
    assert!(text.contains("Hafif fiyat farkı, fişi fırlatma."), "{text}");
    assert!(!text.contains(['\u{fb00}', '\u{fb01}', '\u{fb03}']));
}

#[test]
fn hidden_text_is_printed_as_a_mark() {
    let mut report = small();
    report.summary = "Sahibi arandı: [gizlendi], 132.450 km.".to_owned();
    assert!(text(&render(&report)).contains(&squeeze("Sahibi arandı: [gizlendi], 132.450 km.")));
}

/// The version, and the digest of the sample's pages.
const RENDERED: (i32, &str) = (7, "f990bc8b7aab295072ebac6a19dbd737eaf4825d9fbb98a52965fed622859538");

#[test]
fn a_change_of_the_pages_requires_a_new_version() {
    let pdf = render(&report());
    let document = Document::load_mem(&pdf).unwrap();
    let mut pages = Sha256::new();
    for page in document.get_pages().into_values() {
        pages.update(document.get_page_content(page));
    }
    let digest = format!("{:x}", pages.finalize());
    assert_eq!(
        (RENDERER_VERSION, digest.as_str()),
        RENDERED,
        "the sample's pages have changed: raise RENDERER_VERSION, so that stored PDFs are rendered again, and update RENDERED"
    );
}

#[test]
fn a_report_without_an_inspection_has_no_score_and_names_what_was_not_inspected() {
    let mut report = report();
    report.overall_score = 100;
    for form in &mut report.forms {
        form.not_inspected = form.points.drain(..).map(|point| point.name).collect();
        form.computed.clear();
    }
    let printed = text(&render(&report));
    assert!(printed.contains(&squeeze("noktanın hiçbiri incelenmedi")), "{printed}");
    assert!(!printed.contains(&squeeze("100 üzerinden")), "{printed}");
    let mut half = crate::report();
    let left = half.forms[0].points.pop().map(|point| point.name).unwrap_or_default();
    half.forms[0].not_inspected.push(left.clone());
    let printed = text(&render(&half));
    assert!(
        printed.contains(&squeeze(&format!("İncelenmeyen noktalar (1): {left}."))),
        "{printed}"
    );
    assert!(
        // The other one has the status NOT_CHECKED.
        printed.contains(&squeeze("2 tanesi incelenmedi. Puan, incelenen noktalara göredir.")),
        "{printed}"
    );
}

/// REP-21
#[test]
fn damage_photos_name_their_point_and_omitted_photos_are_counted() {
    let mut report = report();
    assert!(!text(&render(&report)).contains("basılmıştır"));
    report.photos_in_all = 9;
    let text = text(&render(&report));
    for expected in ["Rapordaki 9 fotoğraftan 6 tanesi basılmıştır", "Hasar · Aks körükleri"] {
        assert!(text.contains(&squeeze(expected)), "{expected} in {text}");
    }
}

#[test]
fn photos_of_all_supported_formats_are_drawn() {
    let encoded = |format: image::ImageFormat| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image::DynamicImage::new_rgb8(40, 30)
            .write_to(&mut bytes, format)
            .map(|()| bytes.into_inner())
    };
    let mut report = small();
    report.photos = [
        (Some(PhotoFormat::Jpeg), sample::jpeg(1, 40, 30)),
        (Some(PhotoFormat::Png), encoded(image::ImageFormat::Png).unwrap()),
        (Some(PhotoFormat::WebP), encoded(image::ImageFormat::WebP).unwrap()),
        // A format that browsers show but that cannot be printed.
        (None, b"<svg/>".to_vec()),
    ]
    .map(|(format, data)| Photo {
        caption: None,
        kind: "Dış görünüm".to_owned(),
        point: None,
        format,
        data,
    })
    .to_vec();
    let text = text(&render(&report));
    assert_eq!(text.matches(&squeeze("Fotoğraf görüntülenemiyor")).count(), 1, "{text}");
}
