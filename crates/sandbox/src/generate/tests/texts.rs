//! What inspectors write, beside what they found and read.

use std::collections::{HashMap, HashSet};

use partner_api_domain::scrub::scrub;

use super::DATA;
use crate::data::{Inspection, Opened};

#[test]
fn texts_hold_personal_data_that_scrubbing_finds_and_prices_that_it_leaves() {
    let texts: Vec<_> = DATA
        .inspections
        .iter()
        .flat_map(|inspection| {
            let notes = inspection.forms.iter().flat_map(|form| {
                form.answers
                    .iter()
                    .map(|answer| &answer.note)
                    .chain([&form.general_note])
            });
            let captions = inspection.photos.iter().filter_map(|photo| photo.caption.as_ref());
            notes
                .chain(captions)
                .chain([&inspection.summary, &inspection.recommendation])
        })
        .collect();
    let changed = texts.iter().filter(|text| scrub(text) != ***text).count();
    assert!(changed > 200, "{changed}");
    for text in texts.iter().filter(|text| text.contains(" TL") || text.contains(" km")) {
        let scrubbed = scrub(text);
        assert_eq!(scrubbed.matches(" TL").count(), text.matches(" TL").count(), "{text}");
    }
}

/// The texts of a report: its own and its forms'.
fn texts(inspection: &Inspection) -> Vec<&str> {
    let forms = inspection.forms.iter().flat_map(|form| {
        let notes = form.answers.iter().map(|answer| answer.note.as_str());
        notes.chain([form.general_note.as_str()])
    });
    let captions = inspection.photos.iter().filter_map(|photo| photo.caption.as_deref());
    let own = [inspection.summary.as_str(), inspection.recommendation.as_str()];
    own.into_iter().chain(forms).chain(captions).collect()
}

/// The number before ` km` that follows these words, where a text has them.
fn kilometres(text: &str, after: &str) -> Option<i32> {
    let (_, rest) = text.split_once(after)?;
    let (number, _) = rest.split_once(" km")?;
    number.replace('.', "").parse().ok()
}

#[test]
fn no_text_says_another_mileage_than_was_read() {
    let (mut told, mut services) = (0, 0);
    for inspection in &DATA.inspections {
        let read = inspection.snapshot_mileage_km;
        assert!(
            DATA.vehicles[inspection.vehicle].mileage_km <= read,
            "{}",
            inspection.report_number
        );
        for text in texts(inspection) {
            for before in ["Gösterge ", "kalibreli cihazla, ", "sınırlar içinde; ", "göstergede "] {
                if let Some(km) = kilometres(text, before) {
                    assert_eq!(km, read, "{}: {text}", inspection.report_number);
                    told += 1;
                }
            }
            if let Some(last) = kilometres(text, "son bakım ") {
                assert!(last < read.max(1_001), "{}: {text}, {read}", inspection.report_number);
                services += 1;
            }
            if let Some(next) = kilometres(text, "sonraki bakımın ") {
                assert!(next > read, "{}: {text}, {read}", inspection.report_number);
                services += 1;
            }
            // Whatever else has a mileage in it is one of these.
            let known = [
                "Gösterge ",
                "kalibreli",
                "sınırlar içinde",
                "göstergede",
                "son bakım",
                "sonraki bakımın",
            ];
            assert!(
                !text.contains(" km") || known.iter().any(|word| text.contains(word)),
                "{text}"
            );
        }
    }
    assert!(told > 50 && services > 50, "{told}, {services}");
}

#[test]
fn what_is_read_never_goes_back() {
    let mut last: HashMap<usize, i32> = HashMap::new();
    for inspection in &DATA.inspections {
        let before = last.insert(inspection.vehicle, inspection.snapshot_mileage_km);
        if let (Some(before), false) = (before, matches!(inspection.opened, Opened::Before(_))) {
            assert!(before <= inspection.snapshot_mileage_km, "{}", inspection.report_number);
        }
    }
}

#[test]
fn what_inspectors_write_is_what_they_found() {
    let mut checked = 0;
    for inspection in &DATA.inspections {
        let statuses: HashSet<&str> = inspection
            .forms
            .iter()
            .flat_map(|form| form.answers.iter().map(|answer| answer.status_code))
            .collect();
        let is_bad = inspection
            .forms
            .iter()
            .flat_map(|form| &form.answers)
            .any(|answer| matches!(answer.severity, "MEDIUM" | "HIGH"));
        let is_electric = DATA.vehicles[inspection.vehicle].fuel == "ELECTRIC";
        for text in texts(inspection) {
            for (words, status) in [
                ("değişen parça", "REPLACED"),
                ("boyalı ve lokal boyalı", "PAINTED"),
                ("motorda kaçak", "LEAKING"),
                ("Alt takımda boşluklar", "LOOSE"),
            ] {
                if text.contains(words) {
                    assert!(statuses.contains(status), "{}: {text}", inspection.report_number);
                    checked += 1;
                }
            }
            for words in [
                "sakınca görülmemiştir",
                "olumsuzluk görülmedi",
                "dışında işlem gerektirmez",
            ] {
                if text.contains(words) {
                    assert!(!is_bad, "{}: {text}", inspection.report_number);
                    checked += 1;
                }
            }
            // An electric car has neither oil nor a clutch.
            for words in ["Motor ve şanzıman", "motorda", "yağ ", "Yağ ", "Egzoz"] {
                assert!(
                    !(is_electric && text.contains(words)),
                    "{}: {text}",
                    inspection.report_number
                );
            }
        }
    }
    assert!(checked > 40, "{checked}");
}
