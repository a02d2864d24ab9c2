//! Reports with their vehicles, photos and prices, and the example reports.

use std::collections::{HashMap, HashSet};

use chrono::Duration;
use partner_api_domain::plate::Plate;

use super::{DATA, count};
use crate::catalog::places;
use crate::data::{Inspection, Opened};
use crate::random::vin_check_digit;

#[test]
fn there_are_many_reports_in_every_status() {
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
fn more_than_a_page_of_reports_was_opened_at_the_same_time() {
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
fn most_plates_are_from_the_province_of_the_branch() {
    let local = count(|inspection| {
        let province = format!("{:02}", DATA.branches[inspection.branch].province);
        DATA.vehicles[inspection.vehicle].plate.starts_with(&province)
    });
    assert!(local * 100 / DATA.inspections.len() > 70);
}

#[test]
fn some_reports_are_open_and_some_were_open_until_recently() {
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
fn the_open_example_is_a_draft_with_an_empty_test_line_form_and_a_unique_plate() {
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
fn the_final_price_is_the_base_price_minus_the_discount() {
    for inspection in &DATA.inspections {
        let hundred = rust_decimal::Decimal::ONE_HUNDRED;
        let discounted = inspection.base_price * (hundred - inspection.discount_percent) / hundred;
        assert_eq!(inspection.final_price, discounted);
    }
}

#[test]
fn some_photos_are_of_hidden_kinds_or_not_shown_in_the_report() {
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
