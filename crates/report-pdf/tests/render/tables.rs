//! Tables over several pages, and the values of the test line with their limits.

use report_pdf::{Form, Point, Report, Source};

use crate::{pages, render, report, small, squeeze, text};

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
        not_inspected: Vec::new(),
        is_test_line: false,
        computed: Vec::new(),
        devices: Vec::new(),
    }
}

/// Tables that begin at any position of a page.
#[test]
fn no_table_has_fewer_than_four_rows_on_a_page() {
    let mut were_split = 0;
    // Fillers of more than a page, so that some tables begin near its end. The longest tables never fit on a page.
    let nines = (0..36).step_by(2).map(|filler| (filler, 9));
    for (filler, count) in nines.chain([(26, 5), (28, 5), (12, 40), (19, 40), (23, 40)]) {
        let mut report = small();
        // The filler moves the table down line by line.
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
        // The heading and the table's header are above the first row.
        let first = pages.iter().find(|page| page.contains("Satır00")).expect("a page");
        assert!(first.contains("TabloKontrolnoktası"), "{filler} and {count}: {first}");
    }
    assert!(were_split > 2, "{were_split}");
}

#[test]
fn every_page_has_content_and_the_small_print_once() {
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
fn every_value_has_its_limits_and_as_many_decimals_as_were_measured() {
    let mut report = report();
    report.forms[2].points[0].numeric_value = Some(rust_decimal::Decimal::from(3));
    report.forms[2].points[2].numeric_value = Some(rust_decimal::Decimal::new(1853, 3));
    let text = text(&render(&report));
    for expected in [
        // 3 has the usual decimals of its unit, also beside the more precise 1,853.
        "3,00 kN",
        "3,28 kN",
        "1,853 kN",
        "iyi: en az 2,50",
        "sınırda: en az 2,00",
        "iyi: en çok 20,0",
        "iyi: ±7,0",
        "Ön fren toplamı",
        "6,70 kN",
        "Arka fren sol–sağ farkı",
        "%22,9",
        "Toplam: akstaki iki tekerleğin toplam fren kuvveti.",
        "Arka süspansiyon sol–sağ farkı",
        "elle girildi",
    ] {
        assert!(text.contains(&squeeze(expected)), "{expected} in {text}");
    }
}

#[test]
fn a_single_side_stays_in_the_table_of_its_kind() {
    let header = squeeze("Ölçüm Değer Ölçek Limitler Durum");
    let tables = |report: &Report| text(&render(report)).matches(&header).count();
    let mut report = report();
    let whole = tables(&report);
    report.forms[2].points.retain(|point| point.code != "HANDBRAKE_RIGHT");
    report.forms[2]
        .computed
        .retain(|point| !point.code.starts_with("HANDBRAKE"));
    assert!(text(&render(&report)).contains(&squeeze("El freni sol")));
    // A table that continues on the next page repeats its header.
    assert!(tables(&report) <= whole, "{} of {whole}", tables(&report));
}

#[test]
fn a_power_has_a_ratio_or_a_reason_for_its_absence() {
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
