//! Types with a choice of values: enumerations and unions.

use proc_macro2::Ident;
use serde_json::Value;

use super::values::{IntegerKind, Type};

/// A closed set of values.
#[derive(Debug)]
pub struct Enumeration {
    /// The type of the values.
    pub kind: EnumerationKind,
    /// The values.
    pub variants: Vec<Variant>,
}

/// The type of an enumeration's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnumerationKind {
    /// Strings.
    Text,
    /// Integers.
    Integer(IntegerKind),
    /// Floating-point numbers.
    Number,
    /// A single boolean.
    Boolean,
}

impl EnumerationKind {
    /// The text that identifies the variant of a value; `None` if the value has another type.
    pub fn text(self, value: &Value) -> Option<String> {
        match (self, value) {
            (EnumerationKind::Text, Value::String(text)) => Some(text.clone()),
            (EnumerationKind::Integer(_), Value::Number(number)) if !number.is_f64() => Some(number.to_string()),
            (EnumerationKind::Number, Value::Number(number)) => Some(number.as_f64()?.to_string()),
            (EnumerationKind::Boolean, Value::Bool(value)) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// A value of an enumeration.
#[derive(Debug)]
pub struct Variant {
    /// The value on the wire, or the text of a number or boolean.
    pub value: String,
    /// The Rust name.
    pub ident: Ident,
    /// The description.
    pub docs: String,
}

/// A union of several alternatives.
#[derive(Debug)]
pub struct Union {
    /// How the alternatives are distinguished.
    pub tagging: Tagging,
    /// The alternatives.
    pub alternatives: Vec<Alternative>,
}

/// How the alternatives of a union are distinguished.
#[derive(Debug, PartialEq)]
pub enum Tagging {
    /// By the string in this member (a discriminator; serde's internal and adjacent tagging).
    Member(String),
    /// By the name of the only member, or by a string (serde's external tagging).
    Name,
    /// By trying each alternative (serde's `untagged`).
    Value {
        /// Whether a value must match exactly one alternative (`oneOf`) rather than at least one (`anyOf`), of which
        /// the first is taken.
        exclusive: bool,
    },
}

/// One alternative of a union.
#[derive(Debug)]
pub struct Alternative {
    /// The Rust name of the variant.
    pub ident: Ident,
    /// The description.
    pub docs: String,
    /// The type of its content; `None` if the alternative is only a name.
    pub content: Option<Type>,
    /// The Rust name of the member that identifies the alternative.
    pub tag_field: Option<Ident>,
    /// The values of that member, or the names, that identify this alternative. Messages use the first.
    pub values: Vec<String>,
}

impl Alternative {
    /// The name on the wire or in messages.
    pub fn name(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }
}
