//! What the data promises, whatever is drawn.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use chrono::Duration;
use partner_api::rules::branch_code;
use partner_api::rules::plate::Plate;
use partner_api::rules::scrub::scrub;

use super::*;
use crate::catalogue::places::{BETA_CODES, BRANCHES};
use crate::data::Branch;
use crate::random::vin_check_digit;

static DATA: LazyLock<Dataset> = LazyLock::new(|| dataset(SEED));

fn count(wanted: impl Fn(&Inspection) -> bool) -> usize {
    DATA.inspections.iter().filter(|inspection| wanted(inspection)).count()
}

fn branch(code: &str) -> Vec<&'static Branch> {
    DATA.branches.iter().filter(|branch| branch.code == code).collect()
}

#[test]
fn the_same_seed_makes_the_same_data() {
    assert!(*DATA == dataset(SEED));
}

#[test]
fn another_seed_makes_other_ids() {
    assert_ne!(DATA.organizations[0].id, dataset(SEED + 1).organizations[0].id);
}

#[test]
fn there_is_one_organisation_for_each_privacy_mode() {
    let modes: HashSet<_> = DATA
        .organizations
        .iter()
        .map(|organization| organization.pii_mode)
        .collect();
    assert_eq!(modes, HashSet::from(["NONE", "MASKED", "FULL"]));
    assert_eq!(DATA.organizations.len(), 3);
}

#[test]
fn branches_are_many_one_is_closed_and_one_code_is_ambiguous() {
    assert!(DATA.branches.len() >= 12);
    assert_eq!(DATA.branches.iter().filter(|branch| !branch.is_active).count(), 1);
    let closed = branch(DATA.examples.inactive_branch_code);
    assert!(closed.len() == 1 && !closed[0].is_active);
    let twins = branch(DATA.examples.ambiguous_branch_code);
    assert_eq!(twins.len(), 2);
    assert_ne!(twins[0].organization, twins[1].organization);
    let folded: HashSet<_> = BRANCHES.iter().map(|branch| branch_code::folded(branch.code)).collect();
    assert_eq!(
        folded.len(),
        DATA.branches.len() - 1,
        "no other code names two branches"
    );
}

#[test]
fn the_code_out_of_betas_scope_is_of_another_organisation() {
    let beta: HashSet<_> = BETA_CODES
        .iter()
        .flat_map(|code| branch(code))
        .map(|branch| branch.organization)
        .collect();
    assert_eq!(beta.len(), 1);
    let outside = branch(DATA.examples.not_granted_branch_code);
    assert!(outside.len() == 1 && outside[0].is_active && !beta.contains(&outside[0].organization));
}

#[test]
fn reports_are_many_in_every_status() {
    assert!(DATA.inspections.len() >= 600);
    let statuses = [
        "DRAFT",
        "IN_REVIEW",
        "REVISION_REQUESTED",
        "CANCEL_REQUESTED",
        "PUBLISHED",
        "ARCHIVED",
        "CANCELLED",
    ];
    for status in statuses {
        assert!(count(|inspection| inspection.status == status) >= 30, "{status}");
    }
    assert_eq!(count(|inspection| !statuses.contains(&inspection.status)), 0);
}

#[test]
fn more_than_a_page_of_reports_was_opened_at_one_time() {
    let mut times: HashMap<_, usize> = HashMap::new();
    for inspection in &DATA.inspections {
        if let Opened::At(time) = inspection.opened {
            *times.entry(time).or_default() += 1;
        }
    }
    assert!(times.values().any(|count| *count > 50));
    assert!(times.values().filter(|count| **count == 2).count() > 3);
}

#[test]
fn every_vehicle_has_a_valid_vin_and_plate() {
    for vehicle in &DATA.vehicles {
        assert_eq!(
            vin_check_digit(&vehicle.vin),
            vehicle.vin.chars().nth(8),
            "{}",
            vehicle.vin
        );
        assert_eq!(Plate::parse(&vehicle.plate).expect("a plate").as_str(), vehicle.plate);
    }
    let vins: HashSet<_> = DATA.vehicles.iter().map(|vehicle| &vehicle.vin).collect();
    assert_eq!(vins.len(), DATA.vehicles.len());
    assert!(DATA.vehicles.iter().any(|vehicle| vehicle.factory_power_hp.is_none()));
}

#[test]
fn most_plates_are_of_the_branchs_province() {
    let local = count(|inspection| {
        let province = format!("{:02}", DATA.branches[inspection.branch].province);
        DATA.vehicles[inspection.vehicle].plate.starts_with(&province)
    });
    assert!(local * 100 / DATA.inspections.len() > 70);
}

#[test]
fn some_reports_are_open_and_some_were_until_just_now() {
    let day = Duration::hours(24);
    let age = |inspection: &Inspection| match inspection.opened {
        Opened::Before(age) => Some(age),
        Opened::At(_) => None,
    };
    assert!(count(|inspection| age(inspection).is_some_and(|age| age < day)) >= 20);
    assert!(count(|inspection| age(inspection).is_some_and(|age| age > day && age < day + Duration::hours(2))) >= 5);
    for inspection in DATA.inspections.iter().filter(|inspection| age(inspection).is_some()) {
        assert!(DATA.branches[inspection.branch].is_active);
        assert!(matches!(inspection.status, "DRAFT" | "REVISION_REQUESTED"));
        let organization = DATA.branches[inspection.branch].organization;
        let templates: Vec<_> = DATA
            .templates
            .iter()
            .filter(|row| row.organization == organization)
            .collect();
        assert!(
            inspection
                .forms
                .iter()
                .all(|form| templates.iter().any(|template| template.id == form.template))
        );
    }
}

#[test]
fn two_open_reports_of_a_branch_share_their_vehicle() {
    let mut seen = HashSet::new();
    let open = DATA
        .inspections
        .iter()
        .filter(|row| matches!(row.opened, Opened::Before(age) if age < Duration::hours(24)));
    assert_eq!(
        open.filter(|inspection| !seen.insert((inspection.branch, inspection.vehicle)))
            .count(),
        1
    );
}

#[test]
fn the_open_example_is_a_draft_with_an_empty_test_line_form_and_a_plate_of_its_own() {
    let example = &DATA.inspections[DATA.examples.open_report];
    assert_eq!(example.status, "DRAFT");
    assert_eq!(DATA.branches[example.branch].code, places::OPEN_REPORT_CODE);
    let template = DATA
        .templates
        .iter()
        .find(|row| row.is_test_line && row.organization == places::MASKED);
    let form = example
        .forms
        .iter()
        .find(|form| Some(form.template) == template.map(|template| template.id));
    assert!(form.expect("its test-line form").answers.is_empty());
    let vehicle = &DATA.vehicles[example.vehicle];
    assert!(vehicle.factory_power_hp.is_some());
    assert_eq!(
        DATA.vehicles
            .iter()
            .filter(|other| other.plate == vehicle.plate)
            .count(),
        1
    );
}

#[test]
fn the_published_example_shows_everything() {
    let example = &DATA.inspections[DATA.examples.published];
    assert_eq!(
        (example.status, example.public_slug.is_some(), example.forms.len()),
        ("PUBLISHED", true, 5)
    );
    for kind in ["REGISTRATION", "OTOSICIL_PDF"] {
        assert!(example.photos.iter().any(|photo| photo.kind == kind));
    }
    assert!(example.photos.iter().any(|photo| !photo.show_in_report));
    assert_eq!(DATA.inspections[DATA.examples.archived].status, "ARCHIVED");
    assert_eq!(DATA.inspections[DATA.examples.cancelled].status, "CANCELLED");
}

#[test]
fn a_few_published_reports_have_no_public_page() {
    let without = count(|inspection| inspection.status == "PUBLISHED" && inspection.public_slug.is_none());
    assert!((3..10).contains(&without), "{without}");
    assert_eq!(
        count(|inspection| inspection.published_at.is_none() && inspection.public_slug.is_some()),
        0
    );
}

#[test]
fn prices_follow_from_their_discounts() {
    for inspection in &DATA.inspections {
        let hundred = rust_decimal::Decimal::ONE_HUNDRED;
        let discounted = inspection.base_price * (hundred - inspection.discount_percent) / hundred;
        assert_eq!(inspection.final_price, discounted);
    }
}

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

#[test]
fn measurements_are_in_every_state_with_every_outcome() {
    for (status, least) in [("APPLIED", 50), ("PENDING", 30), ("DISCARDED", 10)] {
        let found = DATA
            .measurements
            .iter()
            .filter(|measurement| measurement.status == status)
            .count();
        assert!(found >= least, "{found} {status}");
    }
    let points = || DATA.measurements.iter().flat_map(|measurement| &measurement.points);
    for outcome in ["applied", "unknown_point", "no_status"] {
        assert!(points().any(|point| point.outcome == Some(outcome)), "{outcome}");
    }
    for measurement in &DATA.measurements {
        assert_eq!(measurement.status == "APPLIED", measurement.inspection.is_some());
        assert_eq!(measurement.status == "PENDING", measurement.settled_at.is_none());
        if let Some(inspection) = measurement.inspection {
            let inspection = &DATA.inspections[inspection];
            assert_eq!(measurement.plate, DATA.vehicles[inspection.vehicle].plate);
            assert_eq!(measurement.branch, inspection.branch);
            let device = format!("device:{}", measurement.id);
            assert!(
                inspection
                    .forms
                    .iter()
                    .flat_map(|form| &form.answers)
                    .any(|answer| answer.written_by == device)
            );
        }
    }
}

#[test]
fn a_raw_package_says_what_was_recorded() {
    for measurement in &DATA.measurements {
        let raw: serde_json::Value = serde_json::from_slice(&measurement.raw).expect("JSON");
        let plate = Plate::parse(raw["plate"].as_str().expect("a plate")).expect("a plate");
        assert_eq!(plate.as_str(), measurement.plate);
        assert_eq!(raw["branch_code"], DATA.branches[measurement.branch].code);
        assert_eq!(raw["external_id"], measurement.external_id.as_str());
        assert_eq!(
            raw["measurements"].as_object().expect("values").len(),
            measurement.points.len()
        );
    }
    let ids: HashSet<_> = DATA
        .measurements
        .iter()
        .map(|measurement| &measurement.external_id)
        .collect();
    assert_eq!(ids.len(), DATA.measurements.len());
}

#[test]
fn photos_of_hidden_kinds_and_flags_are_among_the_others() {
    let photos = || DATA.inspections.iter().flat_map(|inspection| &inspection.photos);
    for kind in [
        "EXTERIOR",
        "INTERIOR",
        "ENGINE",
        "UNDERBODY",
        "DAMAGE",
        "ODOMETER",
        "REGISTRATION",
        "OTOSICIL_PDF",
    ] {
        assert!(photos().filter(|photo| photo.kind == kind).count() > 20, "{kind}");
    }
    assert!(photos().filter(|photo| !photo.show_in_report).count() > 50);
    assert!(count(|inspection| inspection.status == "PUBLISHED" && inspection.photos.is_empty()) > 0);
}

#[test]
fn every_id_is_its_own() {
    let mut ids = HashSet::new();
    let data = &*DATA;
    let all = (data.organizations.iter().map(|row| row.id))
        .chain(data.branches.iter().map(|row| row.id))
        .chain(data.vehicles.iter().map(|row| row.id))
        .chain(data.measurements.iter().map(|row| row.id))
        .chain(data.inspections.iter().flat_map(|row| {
            let forms = row.forms.iter().map(|form| form.id);
            forms.chain(row.photos.iter().map(|photo| photo.id)).chain([row.id])
        }));
    for id in all {
        assert_eq!(id.get_version_num(), 7);
        assert!(ids.insert(id));
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
