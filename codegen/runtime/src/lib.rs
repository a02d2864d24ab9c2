//! What generated servers need at run time.
//!
//! Generated types name these functions in their serde attributes, so that a value is checked against what the OpenAPI
//! document declares while it is read. Messages are fragments that say what is wrong and what would be right; of a
//! request's arguments each comes with its place, as a [`Fault`].

pub mod base64;
pub mod body;
pub mod call;
pub mod decimal;
mod diagnosis;
pub mod exact_number;
pub mod failure;
pub mod fault;
pub mod format;
pub mod json;
pub mod json_body;
pub mod kept;
pub mod lists;
pub mod names;
pub mod param;
pub mod pattern;
mod plain;
pub mod plausible;
pub mod response;
pub mod rules;
pub mod schema;
mod syntax;
pub mod unions;

pub use self::base64::Base64;
pub use exact_number::ExactNumber;
pub use failure::Failure;
pub use fault::{Fault, Faults};
pub use format::Format;
pub use json_body::{JsonBody, OptionalJsonBody};
pub use kept::Kept;
pub use lists::{ListForm, ListQuery};
pub use pattern::Pattern;
pub use plausible::PlausibleRange;
pub use rules::{ArrayRules, MapRules, NumberRules, StringRules};

/// A type without a value (`not: {}`): nothing can be read into it, and nothing written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Never {}

impl<'de> serde::Deserialize<'de> for Never {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("must not be there: no value is one"))
    }
}

impl serde::Serialize for Never {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match *self {}
    }
}

/// A value that stands in the document as this JSON, which the generator has read before.
///
/// What does not parse all the same is the type's own default, which a test of the first use shows.
pub fn constant<T: serde::de::DeserializeOwned + Default>(json: &str) -> T {
    serde_json::from_str(json).unwrap_or_default()
}
