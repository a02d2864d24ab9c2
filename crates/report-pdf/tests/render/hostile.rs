//! Hostile and extreme input.

use report_pdf::{Form, Photo, PhotoFormat};

use crate::{metadata, render, report, sample, small, squeeze, text};

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
fn odd_characters_prevent_neither_the_report_nor_its_accessibility() {
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
    let photo = |data: Vec<u8>| Photo {
        caption: Some("Bozuk".to_owned()),
        kind: "Hasar".to_owned(),
        point: None,
        format: Some(PhotoFormat::Jpeg),
        data,
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
            not_inspected: Vec::new(),
            is_test_line,
            computed: Vec::new(),
            devices: Vec::new(),
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
fn an_address_that_is_not_a_web_address_is_printed_as_text() {
    let mut report = small();
    report.verification_url = Some("javascript:alert(1)".to_owned());
    let pdf = render(&report);
    assert!(text(&pdf).contains("javascript:alert(1)"));
    assert!(!pdf.windows(4).any(|bytes| bytes == b"/URI"));
}
