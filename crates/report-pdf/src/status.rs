//! The status of a point: its label, its tone, and its importance.

use serde::Serialize;

use crate::Point;

/// A status with its tone, which determines its color.
#[derive(Serialize)]
pub(crate) struct Status {
    label: String,
    tone: &'static str,
}

/// The tone of a device value's status.
pub(crate) fn tone_of_status(code: &str) -> &'static str {
    match code {
        "GOOD" => "good",
        "BORDERLINE" => "warn",
        "OUT_OF_LIMIT" => "bad",
        _ => "plain",
    }
}

impl Status {
    /// The status of `point`. Without a label it shows the code, and without a code a dash.
    pub(crate) fn new(point: &Point) -> Status {
        let label = [&point.status_label, &point.status_code]
            .into_iter()
            .find(|text| !text.trim().is_empty());
        Status {
            label: label.map_or_else(|| "—".to_owned(), Clone::clone),
            tone: Importance::of(point).tone(),
        }
    }
}

/// The importance of a point for the reader, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Importance {
    NotAssessed,
    Good,
    Low,
    Medium,
    High,
}

impl Importance {
    /// Determined by the status of a device value, and by the severity of any other status.
    pub(crate) fn of(point: &Point) -> Importance {
        match (point.status_code.as_str(), point.severity.as_str()) {
            _ if !point.is_inspected() => Importance::NotAssessed,
            ("GOOD", _) => Importance::Good,
            ("BORDERLINE", _) => Importance::Medium,
            ("OUT_OF_LIMIT", _) => Importance::High,
            (_, "HIGH") => Importance::High,
            (_, "MEDIUM") => Importance::Medium,
            (_, "LOW") => Importance::Low,
            _ => Importance::Good,
        }
    }

    pub(crate) fn tone(self) -> &'static str {
        match self {
            Importance::NotAssessed => "plain",
            Importance::Good => "good",
            Importance::Low => "low",
            Importance::Medium => "warn",
            Importance::High => "bad",
        }
    }
}
