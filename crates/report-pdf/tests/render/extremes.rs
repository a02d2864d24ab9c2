//! Reports at the ends of what inspectors write: everything out of limits, hundreds of points, dozens of photos, long texts.

use lopdf::{Document, Object};
use report_pdf::{Form, Photo, PhotoFormat, Point, Source};

use crate::{pages, render, report, sample, small, squeeze, text};

fn point(code: &str, status: (&str, &str, &str)) -> Point {
    Point {
        code: code.to_owned(),
        name: format!("Nokta {code}"),
        status_code: status.0.to_owned(),
        status_label: status.1.to_owned(),
        severity: status.2.to_owned(),
        numeric_value: None,
        unit: None,
        note: String::new(),
        limits: None,
        source: Source::Inspector,
    }
}

fn form(name: &str, category: &str, points: Vec<Point>) -> Form {
    Form {
        name: name.to_owned(),
        score_category: category.to_owned(),
        general_note: String::new(),
        points,
        not_inspected: Vec::new(),
        is_test_line: false,
        computed: Vec::new(),
        devices: Vec::new(),
    }
}

#[test]
fn with_everything_out_of_limits_the_first_page_counts_all_points_and_lists_eight() {
    let mut report = report();
    report.overall_score = 30;
    let mut all = 0;
    for form in &mut report.forms {
        for point in form.points.iter_mut().chain(&mut form.computed) {
            "OUT_OF_LIMIT".clone_into(&mut point.status_code);
            "Limit dışı".clone_into(&mut point.status_label);
            "HIGH".clone_into(&mut point.severity);
            all += 1;
        }
    }
    let first = pages(&render(&report)).join("");
    for expected in [
        "30 Genel puan".to_owned(),
        "0 uygun 0 hafif tespit 0 orta ya da sınırda".to_owned(),
        format!("{all} ağır ya da limit dışı"),
        format!("ve {} tespit daha", all - 8),
    ] {
        assert!(first.contains(&squeeze(&expected)), "{expected} in {first}");
    }
}

#[test]
fn three_hundred_points_are_each_printed_once_on_pages_of_bounded_number() {
    let mut report = small();
    report.forms = (0..6)
        .map(|form_number| {
            let points = (0..50).map(|number| point(&format!("{form_number}-{number:02}."), ("GOOD", "İyi", "NONE")));
            form(
                &format!("Form {form_number}"),
                &format!("CATEGORY_{form_number}"),
                points.collect(),
            )
        })
        .collect();
    let pdf = render(&report);
    let text = text(&pdf);
    for form_number in 0..6 {
        for number in 0..50 {
            let name = format!("Nokta{form_number}-{number:02}.");
            assert_eq!(text.matches(&name).count(), 1, "{name}");
        }
    }
    assert!(text.contains(&squeeze("300 uygun")), "{text}");
    assert!((8..=14).contains(&pages(&pdf).len()), "{} pages", pages(&pdf).len());
}

#[test]
fn sixty_photos_are_each_printed_once_with_their_captions() {
    let mut report = small();
    report.photos = (0..60)
        .map(|number| Photo {
            caption: Some(format!("Resim-{number:02}.")),
            kind: "EXTERIOR".to_owned(),
            point: None,
            format: Some(PhotoFormat::Jpeg),
            // Of different widths, because equal images are embedded once.
            data: sample::jpeg(number % 6, 64 + number, 48),
        })
        .collect();
    report.photos_in_all = 60;
    let pdf = render(&report);
    let text = text(&pdf);
    for number in 0..60 {
        assert_eq!(text.matches(&format!("Resim-{number:02}.")).count(), 1, "{number}");
    }
    assert!(!text.contains("basılmıştır"), "{text}");
    let document = Document::load_mem(&pdf).expect("a PDF");
    let is_image = |object: &&Object| {
        let kind = object.as_stream().and_then(|stream| stream.dict.get(b"Subtype"));
        kind.and_then(Object::as_name).is_ok_and(|name| name == b"Image")
    };
    let images = document.objects.values().filter(is_image);
    assert_eq!(images.count(), 60);
}

#[test]
fn a_form_with_its_sections_name_keeps_its_heading_behind_another_form() {
    let mut report = small();
    report.forms = vec![
        form("Camlar", "BODY", vec![point("A", ("ORIGINAL", "Orijinal", "NONE"))]),
        form(
            "Kaporta ve Boya",
            "BODY",
            vec![point("B", ("ORIGINAL", "Orijinal", "NONE"))],
        ),
    ];
    let text = text(&render(&report));
    assert!(text.contains("KaportaveBoyaKontrolnoktası"), "{text}");
}

#[test]
fn long_report_numbers_and_addresses_are_found_and_copied_whole() {
    let number = "EKSPERTIZ-MERKEZI-2026-00000042171";
    let address = "https://rapor.example.com/araclar/ekspertiz/raporlari/7f3kq2m9xw5c";
    let mut report = report();
    report.report_number = number.to_owned();
    report.verification_url = Some(address.to_owned());
    let pdf = render(&report);
    let document = Document::load_mem(&pdf).expect("a PDF");
    let numbers: Vec<u32> = document.get_pages().into_keys().collect();
    let text = document.extract_text(&numbers).expect("text");
    assert!(text.matches(number).count() > 2 && text.contains(address), "{text}");
    let metadata = crate::metadata(&pdf);
    assert!(metadata.contains(number), "{metadata}");
}

#[test]
fn long_texts_do_not_push_the_findings_behind_the_second_page() {
    let mut report = report();
    report.summary = "Araç genel olarak bakımlıdır. ".repeat(130);
    report.recommendation = "Satın almadan önce kontrol edilmesini öneririz. ".repeat(80);
    let pages = pages(&render(&report));
    let found = pages.iter().position(|page| page.contains("Öneçıkantespitler"));
    assert!(found.is_some_and(|page| page < 2), "{found:?}");
}

#[test]
fn pictographs_leave_no_marks() {
    let mut report = small();
    report.summary = "Boya 👍🏽 iyi 🚗🚗".to_owned();
    let text = text(&render(&report));
    assert!(text.contains("Boyaiyi") && !text.contains('\u{fffd}'), "{text}");
}
