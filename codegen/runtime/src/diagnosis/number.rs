//! Checks of numbers.

use serde_json::Value;

use super::count;
use crate::ExactNumber;
use crate::rules::{Multiple, NumberRules};

pub(super) fn integer(text: &str, schema: &Value) -> Result<(), String> {
    let (low, high, bits) = match schema.get("format").and_then(Value::as_str) {
        Some("int8") => (i8::MIN.into(), i8::MAX.into(), 8),
        Some("int16") => (i16::MIN.into(), i16::MAX.into(), 16),
        Some("int32") => (i32::MIN.into(), i32::MAX.into(), 32),
        Some("uint8") => (0, u8::MAX.into(), 8),
        Some("uint16") => (0, u16::MAX.into(), 16),
        Some("uint32") => (0, u32::MAX.into(), 32),
        Some("uint64" | "uint") => (0, u64::MAX.into(), 64),
        Some("int128" | "uint128") => (i128::MIN, i128::MAX, 128),
        _ => (i64::MIN.into(), i64::MAX.into(), 64),
    };
    let value: i128 = text
        .parse()
        .map_err(|_| format!("must be a whole number, is {}", cut(text)))?;
    let of = |key: &str| schema.get(key).and_then(Value::as_f64).map(|bound| bound as i128);
    let rules = NumberRules {
        minimum: bound(of("minimum"), of("exclusiveMinimum")),
        maximum: bound(of("maximum"), of("exclusiveMaximum")),
        multiple_of: of("multipleOf"),
        not_zero: schema.get("not").is_some(),
    };
    rules.check(value)?;
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(format!(
            "must be a whole number of at most {bits} bits, is {}",
            cut(text)
        )),
    }
}

pub(super) fn number(text: &str, schema: &Value) -> Result<(), String> {
    if schema.get("format").and_then(Value::as_str) == Some("decimal") {
        let digits = count(schema, "x-max-significant-digits").and_then(|digits| u32::try_from(digits).ok());
        return ExactNumber::parse(text, digits.unwrap_or(28)).map(drop);
    }
    let out_of_range = || "is out of the range of a number".to_string();
    let value: f64 = text.parse().map_err(|_| out_of_range())?;
    if !value.is_finite() {
        return Err(out_of_range());
    }
    let of = |key: &str| schema.get(key).and_then(Value::as_f64);
    let rules = NumberRules {
        minimum: bound(of("minimum"), of("exclusiveMinimum")),
        maximum: bound(of("maximum"), of("exclusiveMaximum")),
        multiple_of: of("multipleOf"),
        not_zero: false,
    };
    rules.check(value)
}

/// A bound as schemars writes it: exclusive bounds have their own keyword.
fn bound<T: Multiple>(inclusive: Option<T>, exclusive: Option<T>) -> Option<(T, bool)> {
    match exclusive {
        Some(bound) => Some((bound, true)),
        None => inclusive.map(|bound| (bound, false)),
    }
}

/// A number, shortened for a message.
fn cut(text: &str) -> String {
    match text.len() > 32 {
        true => format!("{}…", &text[..32]),
        false => text.to_string(),
    }
}
