//! Inspectors' texts must agree with their findings and readings.

use std::collections::{HashMap, HashSet};

use partner_api_domain::scrub::scrub;

use super::DATA;
use crate::data::{Inspection, Opened};

#[test]
fn scrubbing_removes_personal_data_and_keeps_prices() {
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

/// Returns the texts of a report, its forms and its photos.
fn texts(inspection: &Inspection) -> Vec<&str> {
    let forms = inspection.forms.iter().flat_map(|form| {
        let notes = form.answers.iter().map(|answer| answer.note.as_str());
        notes.chain([form.general_note.as_str()])
    });
    let captions = inspection.photos.iter().filter_map(|photo| photo.caption.as_deref());
    let own = [inspection.summary.as_str(), inspection.recommendation.as_str()];
    own.into_iter().chain(forms).chain(captions).collect()
}

/// Returns the number between `after` and ` km` in a text, if there is one.
fn kilometers(text: &str, after: &str) -> Option<i32> {
    let (_, rest) = text.split_once(after)?;
    let (number, _) = rest.split_once(" km")?;
    number.replace('.', "").parse().ok()
}

#[test]
fn mileages_in_texts_agree_with_the_reading() {
    let (mut readings, mut services) = (0, 0);
    for inspection in &DATA.inspections {
        let read = inspection.snapshot_mileage_km;
        assert!(
            DATA.vehicles[inspection.vehicle].mileage_km <= read,
            "{}",
            inspection.report_number
        );
        for text in texts(inspection) {
            for before in ["Gösterge ", "kalibreli cihazla, ", "sınırlar içinde; ", "göstergede "] {
                if let Some(km) = kilometers(text, before) {
                    assert_eq!(km, read, "{}: {text}", inspection.report_number);
                    readings += 1;
                }
            }
            if let Some(last) = kilometers(text, "son bakım ") {
                assert!(last < read.max(1_001), "{}: {text}, {read}", inspection.report_number);
                services += 1;
            }
            if let Some(next) = kilometers(text, "sonraki bakımın ") {
                assert!(next > read, "{}: {text}, {read}", inspection.report_number);
                services += 1;
            }
            // No other sentence contains a mileage.
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
    assert!(readings > 50 && services > 50, "{readings}, {services}");
}

#[test]
fn the_mileage_of_a_vehicle_never_decreases() {
    let mut last: HashMap<usize, i32> = HashMap::new();
    for inspection in &DATA.inspections {
        let before = last.insert(inspection.vehicle, inspection.snapshot_mileage_km);
        if let (Some(before), false) = (before, matches!(inspection.opened, Opened::Before(_))) {
            assert!(before <= inspection.snapshot_mileage_km, "{}", inspection.report_number);
        }
    }
}

#[test]
fn texts_agree_with_the_findings() {
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
