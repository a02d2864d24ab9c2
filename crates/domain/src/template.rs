//! The lists of a form's template: the statuses of its points, and the kinds of its photos.

use serde::{Deserialize, Serialize};

use crate::threshold::PointStatus;

/// The severities of statuses, the least severe first. A score is reduced by all but the first (INS-8).
pub const SEVERITIES: &[&str] = &["NONE", "LOW", "MEDIUM", "HIGH"];

/// The kinds of photos that partners and customers never see (REP-7).
pub const NEVER_SHOWN: &[&str] = &["REGISTRATION", "OTOSICIL_PDF"];

/// The panels of a car that a point can be about, from front to rear. The database accepts no others.
pub const PLACES: &[&str] = &[
    "BUMPER_FRONT",
    "HOOD",
    "ROOF",
    "TRUNK_LID",
    "BUMPER_REAR",
    "FENDER_FRONT_LEFT",
    "FENDER_FRONT_RIGHT",
    "DOOR_FRONT_LEFT",
    "DOOR_FRONT_RIGHT",
    "DOOR_REAR_LEFT",
    "DOOR_REAR_RIGHT",
    "FENDER_REAR_LEFT",
    "FENDER_REAR_RIGHT",
];

/// A status that a point can have.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The answer's `status_code`.
    pub code: String,
    /// The answer's `status_label`, in the language of the reports.
    pub label: String,
    /// The label in English, for the page; without it, the page shows `label`.
    #[serde(default)]
    pub label_en: Option<String>,
    /// One of [`SEVERITIES`].
    pub severity: String,
    /// Whether it is chosen often, so that the page shows it as a button.
    #[serde(default)]
    pub is_common: bool,
}

impl From<PointStatus> for Status {
    fn from(status: PointStatus) -> Self {
        Status {
            code: status.code().to_owned(),
            label: status.label().to_owned(),
            label_en: Some(status.label_en().to_owned()),
            severity: status.severity().to_owned(),
            is_common: true,
        }
    }
}

/// Returns the statuses of a form. On the test line they are those of thresholds (MEA-12), whatever its template has.
pub fn statuses(is_test_line: bool, of_template: Vec<Status>) -> Vec<Status> {
    match is_test_line {
        true => PointStatus::ALL.into_iter().map(Status::from).collect(),
        false => of_template,
    }
}

/// A kind of photo.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PhotoKind {
    /// The photo's `kind`.
    pub code: String,
    /// The label in the language of the reports.
    pub label: String,
    /// The label in English, for the page; without it, the page shows `label`.
    #[serde(default)]
    pub label_en: Option<String>,
    /// The number of photos of the kind that a report is expected to have.
    #[serde(default)]
    pub expected: u8,
}

/// Merges the kinds of an organization's templates, in their order. Of kinds with the same code the first one counts, with the
/// largest expected number.
pub fn merged(kinds: impl IntoIterator<Item = PhotoKind>) -> Vec<PhotoKind> {
    let mut merged: Vec<PhotoKind> = Vec::new();
    for kind in kinds {
        match merged.iter_mut().find(|known| known.code == kind.code) {
            Some(known) => known.expected = known.expected.max(kind.expected),
            None => merged.push(kind),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_several_templates_appear_once_with_the_largest_expected_number() {
        let kind = |code: &str, expected| PhotoKind {
            code: code.to_owned(),
            label: code.to_lowercase(),
            label_en: None,
            expected,
        };
        let kinds = merged([
            kind("EXTERIOR", 4),
            kind("ENGINE", 0),
            kind("EXTERIOR", 2),
            kind("ENGINE", 1),
        ]);
        assert_eq!(kinds, [kind("EXTERIOR", 4), kind("ENGINE", 1)]);
    }

    /// MEA-12
    #[test]
    fn the_test_line_has_the_statuses_of_thresholds() {
        let codes: Vec<_> = statuses(true, Vec::new())
            .into_iter()
            .map(|status| status.code)
            .collect();
        assert_eq!(codes, ["GOOD", "BORDERLINE", "OUT_OF_LIMIT"]);
    }
}
