//! Types whose values are chosen among several: enumerations and unions.

use proc_macro2::Ident;
use serde_json::Value;

use super::{IntegerKind, Type};

/// A closed set of values.
#[derive(Debug)]
pub struct Enumeration {
    /// What its values are.
    pub kind: EnumerationKind,
    /// Its values.
    pub variants: Vec<Variant>,
}

/// What the values of an enumeration are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnumerationKind {
    /// Texts.
    Text,
    /// Whole numbers.
    Integer(IntegerKind),
    /// Floating-point numbers.
    Number,
    /// `true` or `false`, one of the two.
    Boolean,
}

impl EnumerationKind {
    /// The text by which a variant has this value; `None` if it is of another kind.
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
    /// The value on the wire; of a number or boolean, its text.
    pub value: String,
    /// The Rust name.
    pub ident: Ident,
    /// What the document says of it.
    pub docs: String,
}

/// One of several alternatives.
#[derive(Debug)]
pub struct Union {
    /// How they are told apart.
    pub tagging: Tagging,
    /// The alternatives.
    pub alternatives: Vec<Alternative>,
}

/// How the alternatives of a union are told apart.
#[derive(Debug, PartialEq)]
pub enum Tagging {
    /// By the text in this member (a discriminator; serde's internal and adjacent tagging).
    Member(String),
    /// By the name of the only member, or by a text (serde's external tagging).
    Name,
    /// By what the value itself is: each alternative is tried (serde's `untagged`).
    Value {
        /// Whether a value must fit exactly one (`oneOf`), not at least one (`anyOf`), of which the first counts.
        exclusive: bool,
    },
}

/// One alternative of a union.
#[derive(Debug)]
pub struct Alternative {
    /// The Rust name of the variant.
    pub ident: Ident,
    /// What the document says of it.
    pub docs: String,
    /// What it holds; nothing where its name says all.
    pub content: Option<Type>,
    /// The Rust name of the member that tells it apart.
    pub tag_field: Option<Ident>,
    /// The values of that member, or the name, that stand for this alternative; what it is called in messages.
    pub values: Vec<String>,
}
