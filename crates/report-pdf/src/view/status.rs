//! How good a point is: its status in words, and the tone that it is printed in.

use serde::Serialize;

use crate::Point;

/// A status with the tone it is printed in.
#[derive(Serialize)]
pub(crate) struct Status {
    label: String,
    tone: &'static str,
}

/// The tone of a status that device values have.
pub(crate) fn tone_of_status(code: &str) -> &'static str {
    match code {
        "GOOD" => "good",
        "BORDERLINE" => "warn",
        "OUT_OF_LIMIT" => "bad",
        _ => "plain",
    }
}

impl Status {
    /// The status of `point`; one without a label shows its code, one without either a dash.
    pub(crate) fn new(point: &Point) -> Status {
        let label = [&point.status_label, &point.status_code]
            .into_iter()
            .find(|text| !text.trim().is_empty());
        Status {
            label: label.map_or_else(|| "—".to_owned(), Clone::clone),
            tone: Weight::of(point).tone(),
        }
    }
}

/// How much a point weighs with the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    Unseen,
    Good,
    Low,
    Medium,
    High,
}

impl Weight {
    /// A status of device values says it itself, any other by its severity: what is as the maker left it is no finding.
    pub(super) fn of(point: &Point) -> Weight {
        match (point.status_code.as_str(), point.severity.as_str()) {
            ("GOOD", _) => Weight::Good,
            ("BORDERLINE", _) => Weight::Medium,
            ("OUT_OF_LIMIT", _) => Weight::High,
            (_, "HIGH") => Weight::High,
            (_, "MEDIUM") => Weight::Medium,
            (_, "LOW") => Weight::Low,
            (code, _) if code.is_empty() || code.starts_with("NOT_") => Weight::Unseen,
            _ => Weight::Good,
        }
    }

    pub(super) fn tone(self) -> &'static str {
        match self {
            Weight::Unseen => "plain",
            Weight::Good => "good",
            Weight::Low => "low",
            Weight::Medium => "warn",
            Weight::High => "bad",
        }
    }
}
