//! Kinds of JSON values, and the errors for values of the wrong kind.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::format::DATE_TIME;

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
