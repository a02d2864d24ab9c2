//! Checks across the fields of a line.

use chrono::Utc;
use partner_api_domain::vocabulary;

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

/// Returns the latest model year.
pub(crate) fn vehicle(line: &Line<'_>) -> Option<(&'static str, CellError)> {
    let latest = vocabulary::latest_model_year(Utc::now());
    match line.of("year") {
        Some(Value::Int(year)) if *year > latest => {
            let expected = format!("a model year of at most {latest}, the next year");
            Some(("year", CellError::found(&year.to_string(), expected)))
        }
        _ => None,
    }
}

/// Returns the condition of the schema, and rejects a publication before the opening.
pub(crate) fn inspection(line: &Line<'_>) -> Option<(&'static str, CellError)> {
    if let (Some(Value::Time(created)), Some(Value::Time(published))) = (line.of("created_at"), line.of("published_at"))
        && published < created
    {
        let expected = format!("a time that is not before created_at, {}", written(*created));
        return Some(("published_at", CellError::found(&written(*published), expected)));
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
