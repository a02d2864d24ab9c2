//! The effect of a changed keyword of a schema on the values that the schema accepts.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// The effect of a change on the values that a schema accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The schema accepts the same values.
    None,
    /// It accepts more values.
    Wider,
    /// It accepts fewer values.
    Narrower,
    /// It accepts other values.
    Other,
}

impl Effect {
    fn reversed(self) -> Self {
        match self {
            Self::Wider => Self::Narrower,
            Self::Narrower => Self::Wider,
            same => same,
        }
    }
}

/// Returns the effect of changing `keyword` from `was` to `is`; `None` if the keyword does not restrict values.
pub(super) fn effect(keyword: &str, was: Option<&Value>, is: Option<&Value>) -> Option<Effect> {
    let same = was == is;
    Some(match keyword {
        "minimum" | "minLength" | "minItems" | "minProperties" => limit(was, is),
        "maximum" | "maxLength" | "maxItems" | "maxProperties" | "x-max-significant-digits" => match (was, is) {
            (Some(_), Some(_)) => limit(was, is).reversed(),
            _ => limit(was, is),
        },
        "exclusiveMinimum" | "exclusiveMaximum" | "uniqueItems" => flag(was, is).reversed(),
        "nullable" => flag(was, is),
        "type" => kind(was, is),
        // Two patterns, formats or steps cannot be compared in general, so another one accepts other values.
        "pattern" | "format" | "multipleOf" | "x-key-pattern" | "x-decimal-places" => match (was, is) {
            _ if same => Effect::None,
            (None, _) => Effect::Narrower,
            (_, None) => Effect::Wider,
            _ => Effect::Other,
        },
        _ => return None,
    })
}

/// Returns the effect of changing a lower limit.
fn limit(was: Option<&Value>, is: Option<&Value>) -> Effect {
    match (was, is) {
        (None, None) => Effect::None,
        (None, Some(_)) => Effect::Narrower,
        (Some(_), None) => Effect::Wider,
        (Some(Value::Number(was)), Some(Value::Number(is))) => match order(was, is) {
            Some(Ordering::Equal) => Effect::None,
            Some(Ordering::Less) => Effect::Narrower,
            Some(Ordering::Greater) => Effect::Wider,
            None => Effect::Other,
        },
        _ => Effect::Other,
    }
}

fn order(one: &Number, other: &Number) -> Option<Ordering> {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// Returns the effect of changing a flag that widens a schema if it is set. An absent flag is not set.
fn flag(was: Option<&Value>, is: Option<&Value>) -> Effect {
    let set = |value: Option<&Value>| value == Some(&Value::Bool(true));
    match (set(was), set(is)) {
        (false, true) => Effect::Wider,
        (true, false) => Effect::Narrower,
        _ => Effect::None,
    }
}

/// Returns the effect of changing the type. Every integer is a number; other types do not overlap.
fn kind(was: Option<&Value>, is: Option<&Value>) -> Effect {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    match (text(was).as_deref(), text(is).as_deref()) {
        (was, is) if was == is => Effect::None,
        (None, _) | (Some("number"), Some("integer")) => Effect::Narrower,
        (_, None) | (Some("integer"), Some("number")) => Effect::Wider,
        _ => Effect::Other,
    }
}

/// Returns "from X to Y", for a message.
pub(super) fn step(was: Option<&Value>, is: Option<&Value>) -> String {
    let text = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    format!("from {} to {}", text(was), text(is))
}
