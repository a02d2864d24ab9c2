//! The rendered PDF: what is on the pages, what is in its structure, and what no input may break.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod sample;

use std::sync::LazyLock;

use lopdf::{Document, Object};
use report_pdf::{Form, Photo, Renderer, Report};

static RENDERER: LazyLock<Renderer> = LazyLock::new(Renderer::new);
static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(|| render(&report()));

fn render(report: &Report) -> Vec<u8> {
    RENDERER.render(report).expect("the report renders")
}

/// The sample with small photos.
fn report() -> Report {
    sample::report(160)
}

/// A report without forms and photos, for tests that add their own.
fn small() -> Report {
    Report {
        forms: Vec::new(),
        photos: Vec::new(),
        ..report()
    }
}

/// All text, white space and break opportunities removed: line breaks are the layout's business.
fn text(pdf: &[u8]) -> String {
    let document = Document::load_mem(pdf).expect("a PDF");
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    squeeze(&document.extract_text(&pages).expect("text"))
}

fn squeeze(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '\u{200b}')
        .collect()
}

fn metadata(pdf: &[u8]) -> String {
    let document = Document::load_mem(pdf).expect("a PDF");
    let catalog = document.catalog().expect("a catalog");
    let reference = catalog
        .get(b"Metadata")
        .and_then(Object::as_reference)
        .expect("metadata");
    let stream = document
        .get_object(reference)
        .and_then(Object::as_stream)
        .expect("a stream");
    let bytes = stream.decompressed_content().unwrap_or_else(|_| stream.content.clone());
    String::from_utf8(bytes).expect("XMP in UTF-8")
}

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
fn the_metadata_declares_pdf_ua_title_author_and_the_date_of_publication() {
    let metadata = metadata(&SAMPLE);
    assert!(metadata.contains("<pdfuaid:part>1</pdfuaid:part>"), "{metadata}");
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
        "Kaporta ve boya",
        "Sağ ön aks körüğü yırtık, gres kaçırıyor.",
        "Kontrol edilemedi",
        "Test hattı ölçümleri",
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
fn markup_in_the_text_prints_literally() {
    let hostile = [
        "#panic(1)",
        "*kalın*",
        "_eğik_",
        "$x^2$",
        r"\ \u{41} \n",
        "= Başlık",
        "- madde",
        "<etiket>",
        "@kaynak",
        "`kod`",
        "#import \"/x.typ\"",
        "</script>",
        "\"tırnak\" 'tek'",
        "// yorum",
        "[x](y)",
        "~~~",
        "https://ornek.example",
    ];
    let mut report = report();
    report.summary = hostile.join(" ");
    report.forms[0].general_note = hostile.join(" ");
    report.forms[0].points[0].note = hostile.join(" ");
    let pdf = render(&report);
    let text = text(&pdf);
    for part in hostile {
        assert!(text.matches(&squeeze(part)).count() >= 3, "{part} in {text}");
    }
    assert!(metadata(&pdf).contains("pdfuaid:part"));
}

#[test]
fn odd_characters_keep_neither_the_report_nor_its_accessibility_back() {
    let odd = "emoji 😀🚗 漢字 עברית العربية \u{0}\u{7}\u{1b} \u{202e}ters\u{202c} \u{e000} \u{fdd0} g\u{306} a\u{200d}b\u{ad}c \r\n son";
    let mut report = small();
    report.summary = odd.to_owned();
    report.report_number = odd.to_owned();
    report.organization_name = odd.to_owned();
    report.vehicle.plate = odd.to_owned();
    let pdf = render(&report);
    assert!(metadata(&pdf).contains("pdfuaid:part"));
    assert!(text(&pdf).contains("son"));
}

#[test]
fn a_malformed_photo_becomes_a_placeholder() {
    let good = sample::jpeg(1, 64, 48);
    let truncated = good[..good.len() / 3].to_vec();
    let photo = |jpeg: Vec<u8>| Photo {
        caption: Some("Bozuk".to_owned()),
        kind: "DAMAGE".to_owned(),
        jpeg,
    };
    let mut report = small();
    report.photos = vec![
        photo(b"no picture".to_vec()),
        photo(Vec::new()),
        photo(good),
        photo(truncated),
    ];
    let pdf = render(&report);
    let text = text(&pdf);
    assert!(
        (2..=3).contains(&text.matches(&squeeze("Fotoğraf görüntülenemiyor")).count()),
        "{text}"
    );
    assert_eq!(text.matches("Bozuk").count(), 4);
    assert!(metadata(&pdf).contains("pdfuaid:part"));
}

#[test]
fn an_empty_report_renders() {
    let mut report = small();
    report.summary.clear();
    report.recommendation.clear();
    report.report_number.clear();
    report.organization_name.clear();
    report.vehicle.model.clear();
    report.verification_url = None;
    report.forms = [true, false]
        .map(|is_test_line| Form {
            name: String::new(),
            score_category: String::new(),
            general_note: String::new(),
            points: Vec::new(),
            is_test_line,
        })
        .to_vec();
    render(&report);
}

#[test]
fn extreme_values_render() {
    let mut report = report();
    report.overall_score = i32::MAX;
    report.snapshot_mileage_km = i32::MIN;
    report.pricing.final_price = rust_decimal::Decimal::MAX;
    report.summary = "sözcük ".repeat(3000);
    for point in &mut report.forms[2].points {
        point.numeric_value = Some(rust_decimal::Decimal::MIN);
        point.name = "x".repeat(300);
    }
    report.forms[0].points[0].note = "ğ".repeat(5000);
    render(&report);
}

#[test]
fn an_address_that_is_no_link_is_printed_as_text() {
    let mut report = small();
    report.verification_url = Some("javascript:alert(1)".to_owned());
    let pdf = render(&report);
    assert!(text(&pdf).contains("javascript:alert(1)"));
    assert!(!pdf.windows(4).any(|bytes| bytes == b"/URI"));
}
