//! Checks across the fields of a line.

use chrono::{Datelike as _, TimeDelta, Utc};

use super::kinds::Kind;
use super::value::{CellError, Value, written};
use crate::point::Range;
use crate::range::widened;

/// A line whose fields are valid one by one.
pub(crate) struct Line<'l> {
    pub kind: &'static Kind,
    /// The position of each field in the row.
    pub starts: &'l [usize],
    pub row: &'l [Value],
}

impl Line<'_> {
    fn of(&self, name: &str) -> Option<&Value> {
        let index = self.kind.fields.iter().position(|field| field.name == name)?;
        self.row.get(*self.starts.get(index)?)
    }

    fn range(&self, min: &str, max: &str) -> Range {
        let bound = |name: &str| match self.of(name) {
            Some(Value::Decimal(bound)) => Some(*bound),
            _ => None,
        };
        Range::of(bound(min), bound(max))
    }
}

/// Returns the field that is not valid.
pub(crate) type Check = fn(&Line<'_>) -> Option<(&'static str, CellError)>;

pub(crate) fn no_check(_: &Line<'_>) -> Option<(&'static str, CellError)> {
    None
}

/// The tolerance for the clocks of the exporting system and of this machine.
const CLOCK_TOLERANCE: TimeDelta = TimeDelta::days(1);

/// The earliest year of a report. Earlier ones come from a device or an export that has lost the date.
const FIRST_YEAR: i32 = 1950;

/// Returns the condition of the schema, and rejects times in the future or the distant past.
pub(crate) fn inspection(line: &Line<'_>) -> Option<(&'static str, CellError)> {
    let latest = Utc::now() + CLOCK_TOLERANCE;
    for name in ["created_at", "published_at"] {
        if let Some(Value::Time(time)) = line.of(name)
            && *time > latest
        {
            return Some((
                name,
                CellError::found(&written(*time), "a time that is not in the future"),
            ));
        }
        if let Some(Value::Time(time)) = line.of(name)
            && time.year() < FIRST_YEAR
        {
            let expected = format!("a time from {FIRST_YEAR} on");
            return Some((name, CellError::found(&written(*time), expected)));
        }
    }
    let Some(Value::Text(status)) = line.of("status") else {
        return None;
    };
    let is_out = ["PUBLISHED", "ARCHIVED", "CANCELLED"].contains(&status.as_str());
    (is_out && line.of("published_at") == Some(&Value::Null)).then(|| {
        (
            "published_at",
            CellError::expected(format!("a time: the report is {status}")),
        )
    })
}

/// Returns the rules of `threshold set`.
pub(crate) fn threshold(line: &Line<'_>) -> Option<(&'static str, CellError)> {
    let good = line.range("good_min", "good_max");
    let borderline = line.range("borderline_min", "borderline_max");
    if good.is_open() {
        return Some(("good_min", CellError::expected("a number here or in good_max")));
    }
    if good.is_reversed() {
        return Some((
            "good_max",
            CellError::expected(format!("a number of at least good_min; the range is {good}")),
        ));
    }
    if borderline.is_reversed() {
        let expected = format!("a number of at least borderline_min; the range is {borderline}");
        return Some(("borderline_max", CellError::expected(expected)));
    }
    if !borderline.is_open() && !borderline.holds(good) {
        let expected = format!("a range that includes the good one, which is {good}; found {borderline}");
        return Some(("borderline_min", CellError::expected(expected)));
    }
    None
}

/// Returns the rules of `range set`.
pub(crate) fn range(line: &Line<'_>) -> Option<(&'static str, CellError)> {
    let range = line.range("minimum", "maximum");
    if range.is_open() {
        return Some(("minimum", CellError::expected("a number here or in maximum")));
    }
    if range.is_reversed() {
        let expected = format!("a number of at least minimum; the range is {range}");
        return Some(("maximum", CellError::expected(expected)));
    }
    let Some(Value::Text(point)) = line.of("point_code") else {
        return None;
    };
    let whole = widened(point, range)?;
    let expected = format!("a range within {whole}, the document's range of {point}; found {range}");
    Some(("minimum", CellError::expected(expected)))
}
