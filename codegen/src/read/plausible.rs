//! `x-plausible-range`: which values of a map can be, by their names.

use codegen_runtime::{ExactNumber, Pattern};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::Problem;
use crate::node::Node;

/// The extension's name.
pub const KEYWORD: &str = "x-plausible-range";

/// Refuses ranges that say nothing, or nothing that could be.
///
/// # Errors
/// With the place: a name that no key can have, a bound that is missing or no number, a range that is empty.
pub fn check(node: &Node<'_>, key_pattern: Option<&Pattern>, values_are_exact: bool) -> Result<(), Problem> {
    let Some(ranges) = node.get(KEYWORD) else {
        return Ok(());
    };
    if !values_are_exact {
        return Err(ranges.refuse("is for a map of numbers with `format: decimal`; leave it out, or declare them so"));
    }
    for (name, range) in ranges.members()? {
        if key_pattern.is_some_and(|pattern| !pattern.is_match(name)) {
            return Err(range.refuse(format!(
                "no key of this map can be `{name}`: `x-key-pattern` does not match it; leave it out"
            )));
        }
        for (key, place) in range.members()? {
            if !["minimum", "maximum"].contains(&key) {
                return Err(place.refuse(format!(
                    "`{key}` is not supported here; a range has `minimum` and `maximum`"
                )));
            }
        }
        let bound = |key: &str| {
            let place = range
                .get(key)
                .ok_or_else(|| range.refuse("needs both `minimum` and `maximum`"))?;
            number(place.value()).ok_or_else(|| place.refuse("must be a number"))
        };
        if bound("minimum")? > bound("maximum")? {
            return Err(range.refuse("no value can lie between these bounds; exchange them"));
        }
    }
    Ok(())
}

/// The ranges of a map's schema, which was checked: name, least and greatest value.
pub fn ranges(schema: &Value) -> Vec<(&str, Decimal, Decimal)> {
    let all = schema.get(KEYWORD).and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(name, range)| {
        let bound = |key: &str| number(range.get(key)?);
        Some((name.as_str(), bound("minimum")?, bound("maximum")?))
    })
    .collect()
}

fn number(value: &Value) -> Option<Decimal> {
    let Value::Number(number) = value else { return None };
    ExactNumber::parse(&number.to_string(), 28)
        .ok()
        .map(|number| number.value)
}
