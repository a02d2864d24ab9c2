//! Measurement points and their ranges: arguments and parsing that `threshold` and `range` share.

use clap::Args;
use rust_decimal::Decimal;
use serde::Serialize;
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::names;
use crate::session::Query;

/// A measurement point of an organization.
#[derive(Args, Debug)]
pub struct PointArgs {
    /// The organization, by slug, name or ID
    pub(crate) organization: String,
    /// The code of the measurement point
    pub(crate) point: String,
}

/// The options of `list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only of this organization, by slug, name or ID
    pub(crate) organization: Option<String>,
}

impl ListArgs {
    /// Finds the organization to which the list is restricted.
    pub(crate) async fn organization_id(&self, query: &impl Query) -> Result<Option<Uuid>, Failure> {
        match &self.organization {
            Some(text) => Ok(Some(names::organization(query, text).await?.id)),
            None => Ok(None),
        }
    }
}

/// Returns the error for a point that is not in the list, with similar ones.
pub(crate) fn not_found(kind: Kind, point: &str, known: impl Iterator<Item = String>) -> Failure {
    let known: Vec<_> = known.collect();
    Failure::NotFound {
        kind,
        name: point.to_owned(),
        suggestions: names::similar(point, &known),
    }
}

/// A range that includes its bounds; a missing bound leaves that side open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Range {
    pub(crate) min: Option<Decimal>,
    pub(crate) max: Option<Decimal>,
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bound = |bound: Option<Decimal>| bound.map(|value| value.normalize().to_string()).unwrap_or_default();
        write!(f, "{}..{}", bound(self.min), bound(self.max))
    }
}

impl Range {
    pub(crate) fn of(min: Option<Decimal>, max: Option<Decimal>) -> Self {
        Self { min, max }
    }

    pub(crate) fn is_open(self) -> bool {
        self == Self::default()
    }

    /// Returns the bounds.
    pub(crate) fn bounds(self) -> (Option<Decimal>, Option<Decimal>) {
        (self.min, self.max)
    }

    /// Fills missing bounds from `whole`.
    pub(crate) fn within(self, whole: Self) -> Self {
        Self {
            min: self.min.or(whole.min),
            max: self.max.or(whole.max),
        }
    }

    /// Returns whether the lower bound exceeds the upper one.
    pub(crate) fn is_reversed(self) -> bool {
        matches!((self.min, self.max), (Some(min), Some(max)) if min > max)
    }

    /// Returns whether `other` lies within this range.
    pub(crate) fn holds(self, other: Self) -> bool {
        let low = self.min.is_none_or(|min| other.min.is_some_and(|other| min <= other));
        let high = self.max.is_none_or(|max| other.max.is_some_and(|other| other <= max));
        low && high
    }
}

/// Returns whether a text is the code of a measurement point (MEA-4).
pub(crate) fn is_point(code: &str) -> bool {
    let first = code.starts_with(|first: char| first.is_ascii_uppercase());
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    first && code.len() <= 64 && code.bytes().all(plain)
}

pub(crate) fn check_point(code: &str) -> Result<(), Failure> {
    if is_point(code) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "`{code}` is not a measurement point; expected 1 to 64 characters of A-Z, 0-9 and _, starting with a letter, like BRAKE_FRONT_EFFICIENCY"
    )))
}

pub(crate) fn range(text: &str) -> Result<Range, String> {
    let (min, max) = text
        .split_once("..")
        .ok_or_else(|| "expected MIN..MAX, like -7..7; a bound that is left out is open, like 50..".to_owned())?;
    let range = Range {
        min: bound(min)?,
        max: bound(max)?,
    };
    match (range.min, range.max) {
        (Some(min), Some(max)) if min > max => Err(format!("{min} is more than {max}")),
        _ => Ok(range),
    }
}

fn bound(text: &str) -> Result<Option<Decimal>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.contains(',') {
        return Err(format!(
            "`{text}`: use a decimal point, like {}",
            text.replace(',', ".")
        ));
    }
    text.parse().map(Some).map_err(|_| format!("`{text}` is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_range_is_reported() {
        for (text, expected) in [
            ("50..", Ok("50..")),
            ("..4", Ok("..4")),
            ("-9.50..9.5", Ok("-9.5..9.5")),
            ("50", Err("expected MIN..MAX")),
            ("1,5..2", Err("use a decimal point, like 1.5")),
            ("4..3", Err("4 is more than 3")),
            ("low..high", Err("`low` is not a number")),
        ] {
            match (range(text), expected) {
                (Ok(range), Ok(expected)) => assert_eq!(range.to_string(), expected),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{text}: {error}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_borderline_range_must_include_the_good_one() {
        let of = |text| range(text).unwrap();
        for (outer, inner, holds) in [
            ("45..", "50..", true),
            ("45..", "50..60", true),
            ("45..55", "50..", false),
            ("..", "1..2", true),
            ("2..", "..4", false),
            ("-9..9", "-7..7", true),
            ("-7..7", "-7..7", true),
        ] {
            assert_eq!(of(outer).holds(of(inner)), holds, "{outer} around {inner}");
        }
    }
}
