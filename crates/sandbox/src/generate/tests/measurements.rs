//! Measurements and their states.

use std::collections::HashSet;

use partner_api_domain::plate::Plate;

use super::DATA;
use crate::data::Writer;

#[test]
fn measurements_are_in_every_state_with_every_outcome() {
    for (status, min) in [("APPLIED", 50), ("PENDING", 30), ("DISCARDED", 10)] {
        let found = DATA
            .measurements
            .iter()
            .filter(|measurement| measurement.status == status)
            .count();
        assert!(found >= min, "{found} {status}");
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
            let device = Writer::Device(measurement.id);
            assert!(
                inspection
                    .forms
                    .iter()
                    .flat_map(|form| &form.answers)
                    .any(|answer| answer.writer == device)
            );
        }
    }
}

#[test]
fn a_raw_package_agrees_with_the_recorded_measurement() {
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
