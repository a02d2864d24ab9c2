//! Checks of numbers, and of the kinds of values.

use serde_json::Value;
use serde_json::value::RawValue;

use super::count;
use crate::ExactNumber;
use crate::format::DATE_TIME;
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

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Number,
    Text,
    Array,
    Object,
}

impl Kind {
    pub(super) fn of(raw: &RawValue) -> Self {
        match raw.get().as_bytes().first() {
            Some(b'n') => Kind::Null,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'"') => Kind::Text,
            Some(b'[') => Kind::Array,
            Some(b'{') => Kind::Object,
            _ => Kind::Number,
        }
    }

    pub(super) fn named(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Boolean => "a boolean",
            Kind::Number => "a number",
            Kind::Text => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        }
    }
}

/// The error for a value of another kind than its schema requires.
pub(super) fn other_kind(wanted: &str, kind: Kind, raw: &RawValue, schema: &Value) -> Option<String> {
    let expected = match wanted {
        "object" => match example_entry(schema) {
            Some(entry) => format!("a JSON object such as {entry}"),
            None => "a JSON object".to_string(),
        },
        "array" => "an array".to_string(),
        "string" => "a string".to_string(),
        "integer" => "a whole number".to_string(),
        "number" => "a number".to_string(),
        "boolean" => "true or false".to_string(),
        _ => return None,
    };
    let format = schema.get("format").and_then(Value::as_str);
    let hint = match (wanted, kind) {
        ("string", Kind::Number) if format == Some("date-time") => {
            return Some(format!("must be {DATE_TIME}, not UNIX time"));
        }
        ("string", Kind::Number | Kind::Boolean) => "; put it in quotes".to_string(),
        ("number" | "integer" | "boolean", Kind::Text) => unquoted(wanted, raw),
        _ => String::new(),
    };
    Some(match kind {
        Kind::Null => "must not be null".to_string(),
        _ => format!("must be {expected}, is {}{hint}", kind.named()),
    })
}

/// The error for a value of a map's member that shows that there is none; `None` for any other value.
pub(super) fn no_value(raw: &RawValue, schema: &Value) -> Option<&'static str> {
    // Alternatives without a type may admit null.
    let kind = schema.get("type").and_then(Value::as_str)?;
    let is_number = matches!(kind, "number" | "integer");
    match raw.get() {
        "null" => Some("must not be null; omit the member if there is no value"),
        "\"\"" if is_number => Some("must be a number, is an empty string; omit the member if there is no value"),
        _ => None,
    }
}

/// A hint to remove the quotes around a number or a boolean.
fn unquoted(wanted: &str, raw: &RawValue) -> String {
    let text: String = serde_json::from_str(raw.get()).unwrap_or_default();
    let text = text.trim();
    let dotted = text.replacen(',', ".", 1);
    let is_wanted = |text: &str| match wanted {
        "boolean" => matches!(text, "true" | "false"),
        _ => serde_json::from_str::<serde_json::Number>(text).is_ok(),
    };
    match () {
        () if text.len() > 32 => String::new(),
        () if is_wanted(text) => format!("; send {text} without quotes"),
        () if is_wanted(&dotted) => format!("; send {dotted} without quotes, with a dot"),
        () => String::new(),
    }
}

/// The first member of a map's example, as an object.
fn example_entry(schema: &Value) -> Option<String> {
    if schema.get("properties").is_some() {
        return None;
    }
    let (name, value) = schema.get("example")?.as_object()?.iter().next()?;
    Some(format!("{{{name:?}: {value}}}"))
}
