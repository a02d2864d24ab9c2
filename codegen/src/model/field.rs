//! Members of objects, and parameters.

use proc_macro2::Ident;
use serde_json::Value;

use super::values::Type;

/// A member of an object, or a parameter.
#[derive(Debug)]
pub struct Field {
    /// The name on the wire.
    pub name: String,
    /// The Rust name.
    pub ident: Ident,
    /// `description`
    pub docs: String,
    /// The type, without optionality.
    pub ty: Type,
    /// Whether it is listed in `required`.
    pub required: bool,
    /// `nullable`
    pub nullable: bool,
    /// `default`
    pub default: Option<Value>,
    /// `deprecated`
    pub deprecated: bool,
    /// How a parameter encodes a list, or another value that is not text.
    pub list: Option<ListStyle>,
    /// `readOnly` or `writeOnly`
    pub one_way: Option<OneWay>,
    /// Whether its type is also used in the direction in which the member is not.
    pub two_way_type: bool,
    /// The member's schema, as in the document.
    pub schema: Value,
    /// The JSON pointer, for errors.
    pub pointer: String,
}

/// How a parameter encodes a list, or another value that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListStyle {
    /// One occurrence of the name per item (`style: form` with `explode`, the default for queries).
    Repeated,
    /// One string with this separator between the items.
    Separated(char),
    /// The value as JSON, whatever its type is.
    Json,
}

/// The only direction in which a member is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneWay {
    /// In responses (`readOnly`).
    Responses,
    /// In requests (`writeOnly`).
    Requests,
}

impl Field {
    /// An optional member that may have any value.
    pub fn any(name: &str, ident: Ident, pointer: &str) -> Self {
        Field {
            name: name.into(),
            ident,
            docs: String::new(),
            ty: Type::Any,
            required: false,
            nullable: false,
            default: None,
            deprecated: false,
            list: None,
            one_way: None,
            two_way_type: false,
            schema: Value::Bool(true),
            pointer: pointer.into(),
        }
    }

    /// Whether the Rust field is an `Option`.
    pub fn is_option(&self) -> bool {
        let is_absent = self.one_way.is_some() && self.two_way_type && self.default.is_none();
        self.nullable || is_absent || (!self.required && self.default.is_none())
    }

    /// Whether requests may omit the member.
    pub fn is_optional_in_requests(&self) -> bool {
        !self.required || self.one_way == Some(OneWay::Responses)
    }
}
