//! What only the fields of a line together can say.

use rust_decimal::Decimal;

use super::kinds::Kind;
use super::value::{Value, Wrong};
use crate::threshold::Range;

/// A line whose fields are each right.
pub(crate) struct Line<'l> {
    pub kind: &'static Kind,
    /// Where in the row each field begins.
    pub starts: &'l [usize],
    pub row: &'l [Value],
}

impl Line<'_> {
    fn of(&self, name: &str) -> Option<&Value> {
        let index = self.kind.fields.iter().position(|field| field.name == name)?;
        self.row.get(*self.starts.get(index)?)
    }
}

/// Answers the field that is wrong.
pub(crate) type Check = fn(&Line<'_>) -> Option<(&'static str, Wrong)>;

pub(crate) fn nothing(_: &Line<'_>) -> Option<(&'static str, Wrong)> {
    None
}

/// The schema's own condition.
pub(crate) fn inspection(line: &Line<'_>) -> Option<(&'static str, Wrong)> {
    let Some(Value::Text(status)) = line.of("status") else {
        return None;
    };
    let is_out = ["PUBLISHED", "ARCHIVED", "CANCELLED"].contains(&status.as_str());
    (is_out && line.of("published_at") == Some(&Value::Null)).then(|| {
        (
            "published_at",
            Wrong::expected(format!("a time: the report is {status}")),
        )
    })
}

/// What `threshold set` asks for.
pub(crate) fn threshold(line: &Line<'_>) -> Option<(&'static str, Wrong)> {
    let bound = |name: &str| match line.of(name) {
        Some(Value::Decimal(bound)) => Some(*bound),
        _ => None::<Decimal>,
    };
    let good = Range::of(bound("good_min"), bound("good_max"));
    let borderline = Range::of(bound("borderline_min"), bound("borderline_max"));
    if good.is_open() {
        return Some(("good_min", Wrong::expected("a number here or in good_max")));
    }
    if good.is_reversed() {
        return Some((
            "good_max",
            Wrong::expected(format!("a number from good_min on; the range is {good}")),
        ));
    }
    if borderline.is_reversed() {
        let expected = format!("a number from borderline_min on; the range is {borderline}");
        return Some(("borderline_max", Wrong::expected(expected)));
    }
    if !borderline.is_open() && !borderline.holds(good) {
        let expected = format!("a range around the good one, which is {good}; this is {borderline}");
        return Some(("borderline_min", Wrong::expected(expected)));
    }
    None
}
