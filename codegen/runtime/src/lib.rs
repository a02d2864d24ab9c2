//! What generated servers need at run time.
//!
//! Generated types name these functions in their serde attributes, so that a value is checked against what the OpenAPI
//! document declares while it is read. Messages are fragments that say what is wrong and what would be right; inside a
//! JSON body the reader ([`json::read`]) puts the member's path before them, for parameters they name the parameter.

pub mod base64;
pub mod body;
pub mod decimal;
pub mod exact_number;
pub mod json;
pub mod json_body;
pub mod param;
pub mod response;
pub mod rules;
pub mod schema;

pub use self::base64::Base64;
pub use exact_number::ExactNumber;
pub use json_body::JsonBody;
pub use rules::{ArrayRules, MapRules, NumberRules, StringRules};

/// Compiles a pattern that the generator has compiled before; `None` if this engine refuses it all the same.
///
/// A pattern that does not compile admits nothing, which a test of the first request shows.
pub fn pattern(text: &str) -> Option<regex::Regex> {
    regex::Regex::new(text).ok()
}
