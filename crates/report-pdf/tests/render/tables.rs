//! Tables over several pages.

use report_pdf::{Form, Point, Source};

use crate::{pages, render, small, squeeze};

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
