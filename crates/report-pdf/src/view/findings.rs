//! What the reader should know first: how many points are how bad, and the worst of them.

use serde::Serialize;

use super::status::{Status, Weight};
use super::value;
use crate::test_line::TestLine;
use crate::{Form, Point};

/// How many points are how bad.
#[derive(Serialize, Default, Debug, PartialEq)]
pub(super) struct Counts {
    good: usize,
    low: usize,
    medium: usize,
    high: usize,
    /// Points that nobody could look at.
    unseen: usize,
}

#[derive(Serialize)]
pub(super) struct Finding {
    form: String,
    point: String,
    value: String,
    status: Status,
}

/// Everything that was judged: the points, and what follows from a test line's values.
fn judged(forms: &[Form]) -> impl Iterator<Item = (&Form, &Point)> {
    forms.iter().flat_map(|form| {
        let computed = form.computed.iter().filter(|point| !point.status_code.is_empty());
        form.points.iter().chain(computed).map(move |point| (form, point))
    })
}

pub(super) fn counts(forms: &[Form]) -> Counts {
    let mut counts = Counts::default();
    for (_, point) in judged(forms) {
        *match Weight::of(point) {
            Weight::Unseen => &mut counts.unseen,
            Weight::Good => &mut counts.good,
            Weight::Low => &mut counts.low,
            Weight::Medium => &mut counts.medium,
            Weight::High => &mut counts.high,
        } += 1;
    }
    counts
}

/// Points that need the reader's attention, the worst first, otherwise in the order of the report.
pub(super) fn findings(forms: &[Form]) -> Vec<Finding> {
    let mut found: Vec<(Weight, Finding)> = judged(forms)
        .map(|(form, point)| (Weight::of(point), form, point))
        .filter(|(weight, ..)| *weight >= Weight::Medium)
        .map(|(weight, form, point)| {
            let finding = Finding {
                form: form.name.clone(),
                point: TestLine::name_of(point),
                value: value(form, point),
                status: Status::new(point),
            };
            (weight, finding)
        })
        .collect();
    found.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
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
    fn what_is_as_the_maker_left_it_is_no_finding() {
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
            unseen: 1,
        };
        assert_eq!(counts(&forms), expected);
        assert_eq!(findings(&forms).len(), 4);
    }
}
