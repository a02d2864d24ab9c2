//! `x-plausible-range`: the ranges in which the values of a map are expected, by name.

use codegen_runtime::ExactNumber;
use rust_decimal::Decimal;
use serde_json::Value;

/// The extension's name.
pub const KEYWORD: &str = "x-plausible-range";

/// The ranges of a map's schema that has been checked: name, minimum and maximum.
pub fn ranges(schema: &Value) -> Vec<(&str, Decimal, Decimal)> {
    let all = schema.get(KEYWORD).and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(name, range)| {
        let bound = |key: &str| number(range.get(key)?);
        Some((name.as_str(), bound("minimum")?, bound("maximum")?))
    })
    .collect()
}

/// The exact value of a number in the document.
pub fn number(value: &Value) -> Option<Decimal> {
    let Value::Number(number) = value else { return None };
    ExactNumber::parse(&number.to_string(), 28)
        .ok()
        .map(|number| number.value)
}
