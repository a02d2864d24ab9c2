//! Members of objects, and parameters.

use proc_macro2::Ident;
use serde_json::Value;

use super::Type;

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
    /// Listed in `required`.
    pub required: bool,
    /// `nullable`
    pub nullable: bool,
    /// `default`
    pub default: Option<Value>,
    /// `deprecated`
    pub deprecated: bool,
    /// How a list is written, where it is a parameter.
    pub list: Option<ListStyle>,
    /// `readOnly` or `writeOnly`
    pub one_way: Option<OneWay>,
    /// Whether its type also travels the way that the member does not go.
    pub two_way_type: bool,
    /// The member's schema, as in the document.
    pub schema: Value,
    /// The place, for refusals.
    pub pointer: String,
}

/// How a parameter writes a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListStyle {
    /// The name occurs once for each item (`style: form` with `explode`, a query's own way).
    Repeated,
    /// The items stand in one text, this between them.
    Separated(char),
}

/// Which way a member goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneWay {
    /// `readOnly`: in responses.
    Responses,
    /// `writeOnly`: in requests.
    Requests,
}

impl Field {
    /// Whether the Rust field is an `Option`.
    pub fn is_option(&self) -> bool {
        let is_absent = self.one_way.is_some() && self.two_way_type && self.default.is_none();
        self.nullable || is_absent || (!self.required && self.default.is_none())
    }

    /// Whether requests may leave the member out.
    pub fn is_optional_in_requests(&self) -> bool {
        !self.required || self.one_way == Some(OneWay::Responses)
    }
}
