//! The summary on the first page: the number of points by severity, and the worst findings.

use serde::Serialize;

use super::value;
use crate::status::{Importance, Status};
use crate::test_line::TestLine;
use crate::{Form, Point};

/// The number of inspected points by importance.
#[derive(Serialize, Default, Debug, PartialEq)]
pub(super) struct Counts {
    good: usize,
    low: usize,
    medium: usize,
    high: usize,
}

#[derive(Serialize)]
pub(super) struct Finding {
    form: String,
    point: String,
    value: String,
    status: Status,
}

/// All points with a status, including those computed from a test line's values.
fn points_with_status(forms: &[Form]) -> impl Iterator<Item = (&Form, &Point)> {
    forms.iter().flat_map(|form| {
        let computed = form.computed.iter().filter(|point| !point.status_code.is_empty());
        form.points.iter().chain(computed).map(move |point| (form, point))
    })
}

pub(super) fn counts(forms: &[Form]) -> Counts {
    let mut counts = Counts::default();
    for (_, point) in points_with_status(forms) {
        *match Importance::of(point) {
            Importance::NotAssessed => continue,
            Importance::Good => &mut counts.good,
            Importance::Low => &mut counts.low,
            Importance::Medium => &mut counts.medium,
            Importance::High => &mut counts.high,
        } += 1;
    }
    counts
}

/// The points that need the reader's attention: the worst first, otherwise in the order of the report.
pub(super) fn findings(forms: &[Form]) -> Vec<Finding> {
    let mut found: Vec<(Importance, Finding)> = points_with_status(forms)
        .map(|(form, point)| (Importance::of(point), form, point))
        .filter(|(importance, ..)| *importance >= Importance::Medium)
        .map(|(importance, form, point)| {
            let finding = Finding {
                form: form.name.clone(),
                point: TestLine::name_of(point),
                value: value(point),
                status: Status::new(point),
            };
            (importance, finding)
        })
        .collect();
    found.sort_by_key(|(importance, _)| std::cmp::Reverse(*importance));
    found.into_iter().map(|(_, finding)| finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::form;
    use super::*;

    fn point(status_code: &str, severity: &str) -> Point {
        Point {
            code: "X".to_owned(),
            name: "Nokta".to_owned(),
            status_code: status_code.to_owned(),
            status_label: String::new(),
            severity: severity.to_owned(),
            numeric_value: None,
            unit: None,
            note: String::new(),
            limits: None,
            source: crate::Source::Inspector,
        }
    }

    #[test]
    fn an_original_part_is_not_a_finding() {
        let points = vec![
            point("ORIGINAL", "NONE"),
            point("ORIGINAL", "NONE"),
            point("LOCAL_PAINT", "LOW"),
            point("PAINTED", "MEDIUM"),
            point("REPLACED", "HIGH"),
            point("BORDERLINE", "LOW"),
            point("OUT_OF_LIMIT", "HIGH"),
            point("NOT_CHECKED", "NONE"),
        ];
        let forms = [form("Kaporta", "BODY", points)];
        let expected = Counts {
            good: 2,
            low: 1,
            medium: 2,
            high: 2,
        };
        assert_eq!(counts(&forms), expected);
        assert_eq!(findings(&forms).len(), 4);
    }
}
