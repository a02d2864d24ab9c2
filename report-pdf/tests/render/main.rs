//! The rendered PDF: what is on the pages, what is in its structure, and what no input may break.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod sample;

use std::sync::LazyLock;

use lopdf::{Document, Object};
use report_pdf::{Form, Photo, PhotoFormat, Point, Renderer, Report, Source};

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

/// The text of each page, squeezed.
fn pages(pdf: &[u8]) -> Vec<String> {
    let document = Document::load_mem(pdf).expect("a PDF");
    let numbers: Vec<u32> = document.get_pages().into_keys().collect();
    numbers
        .iter()
        .map(|page| squeeze(&document.extract_text(&[*page]).expect("text")))
        .collect()
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
    let photo = |data: Vec<u8>| Photo {
        caption: Some("Bozuk".to_owned()),
        kind: "DAMAGE".to_owned(),
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
fn an_address_that_is_no_link_is_printed_as_text() {
    let mut report = small();
    report.verification_url = Some("javascript:alert(1)".to_owned());
    let pdf = render(&report);
    assert!(text(&pdf).contains("javascript:alert(1)"));
    assert!(!pdf.windows(4).any(|bytes| bytes == b"/URI"));
}

fn row(number: usize, note: &str) -> Point {
    Point {
        code: format!("P{number:02}"),
        name: format!("Satır{number:02}"),
        status_code: "GOOD".to_owned(),
        status_label: "İyi".to_owned(),
        severity: "NONE".to_owned(),
        numeric_value: None,
        unit: None,
        note: note.to_owned(),
        limits: None,
        source: Source::Inspector,
    }
}

fn form(name: &str, points: Vec<Point>) -> Form {
    Form {
        name: name.to_owned(),
        score_category: name.to_owned(),
        general_note: String::new(),
        points,
        is_test_line: false,
        computed: Vec::new(),
        devices: Vec::new(),
    }
}

/// Wherever on a page a table begins: not at its end with one to three rows, and it does not end so on top of the next one.
#[test]
fn no_table_begins_or_ends_on_a_page_with_less_than_four_rows() {
    let mut were_split = 0;
    // Over more than a page, so that some begin near its end; the longest never fits on one.
    let nines = (0..36).step_by(2).map(|filler| (filler, 9));
    for (filler, count) in nines.chain([(26, 5), (28, 5), (12, 40), (19, 40), (23, 40)]) {
        let mut report = small();
        // What stands before it moves it down line by line.
        report.forms = vec![
            form("Dolgu", (0..filler).map(|number| row(number + 50, "")).collect()),
            form(
                "Tablo",
                (0..count)
                    .map(|number| row(number, if number % 4 == 0 { "Bir not." } else { "" }))
                    .collect(),
            ),
        ];
        let pages = pages(&render(&report));
        let rows = |page: &str| {
            (0..count)
                .filter(|number| page.contains(&format!("Satır{number:02}")))
                .count()
        };
        let on_pages: Vec<usize> = pages.iter().map(|page| rows(page)).filter(|rows| *rows > 0).collect();
        assert_eq!(on_pages.iter().sum::<usize>(), count);
        assert!(
            on_pages.iter().all(|rows| *rows >= 4),
            "{filler} and {count}: {on_pages:?}"
        );
        were_split += usize::from(on_pages.len() > 1);
        // Its heading and its header stand above its first row.
        let first = pages.iter().find(|page| page.contains("Satır00")).expect("a page");
        assert!(first.contains("TabloKontrolnoktası"), "{filler} and {count}: {first}");
    }
    assert!(were_split > 2, "{were_split}");
}

#[test]
fn every_page_has_what_it_says_and_no_page_only_the_small_print() {
    let small_print = squeeze("sonradan oluşan değişiklikleri kapsamaz");
    for filler in [0, 13, 21, 29] {
        let mut report = small();
        report.forms = vec![form("Dolgu", (0..filler).map(|number| row(number, "")).collect())];
        for (index, page) in pages(&render(&report)).iter().enumerate() {
            assert_eq!(page.matches(&small_print).count(), 1);
            assert!(index == 0 || page.contains("Satır"), "{filler}: {page}");
        }
    }
}

/// REP-21
#[test]
fn photos_of_damages_are_named_by_their_point_and_what_is_not_shown_is_counted() {
    let mut report = report();
    assert!(!text(&render(&report)).contains("basılıdır"));
    report.photos_in_all = 9;
    let text = text(&render(&report));
    for expected in [
        "6 / 9 fotoğraf",
        "raporun 9 fotoğrafından 6 tanesi basılıdır",
        "Hasar · Aks körükleri",
    ] {
        assert!(text.contains(&squeeze(expected)), "{expected} in {text}");
    }
}

#[test]
fn photos_of_every_usual_format_are_drawn() {
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
        // One that a browser may show, and paper not.
        (None, b"<svg/>".to_vec()),
    ]
    .map(|(format, data)| Photo {
        caption: None,
        kind: "EXTERIOR".to_owned(),
        point: None,
        format,
        data,
    })
    .to_vec();
    let text = text(&render(&report));
    assert_eq!(text.matches(&squeeze("Fotoğraf görüntülenemiyor")).count(), 1, "{text}");
}

/// REP-21
#[test]
fn every_value_has_its_limits_and_values_of_a_kind_have_the_same_decimals() {
    let mut report = report();
    report.forms[2].points[0].numeric_value = Some(rust_decimal::Decimal::from(3));
    let text = text(&render(&report));
    for expected in [
        // Three beside 3,28.
        "3,00 kN",
        "3,28 kN",
        "iyi: en az 2,50",
        "sınırda: en az 2,00",
        "iyi: en çok 20,0",
        "iyi: ±7,0",
        "Ön fren toplamı",
        "6,70 kN",
        "Arka fren sol–sağ farkı",
        "%22,9",
        "Toplam: aksın iki tekerleğinin kuvveti birlikte.",
        "Arka süspansiyon sol–sağ farkı",
        "elle girildi",
    ] {
        assert!(text.contains(&squeeze(expected)), "{expected} in {text}");
    }
}

#[test]
fn a_lone_side_stays_in_the_table_of_its_kind() {
    let header = squeeze("Ölçüm Değer Ölçek Sınırlar Durum");
    let tables = |report: &Report| text(&render(report)).matches(&header).count();
    let mut report = report();
    let whole = tables(&report);
    report.forms[2].points.retain(|point| point.code != "HANDBRAKE_RIGHT");
    report.forms[2]
        .computed
        .retain(|point| !point.code.starts_with("HANDBRAKE"));
    assert!(text(&render(&report)).contains(&squeeze("El freni sol")));
    // A table may be continued on the next page, under its header.
    assert!(tables(&report) <= whole, "{} of {whole}", tables(&report));
}

#[test]
fn a_power_is_never_without_its_ratio_or_why_there_is_none() {
    let mut report = report();
    let ratio = squeeze("Güç oranı");
    assert!(text(&render(&report)).contains(&ratio));
    report.forms[2].points.retain(|point| point.code != "DYNO_RATIO");
    let text = text(&render(&report));
    assert!(
        text.contains(&ratio) && text.contains(&squeeze("hesaplanamadı: fabrika gücü kayıtlı değil")),
        "{text}"
    );
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
