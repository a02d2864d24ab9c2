//! Values that stay JSON, because they may match several schemas.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::rules::canonical;
use crate::unions::{none_of, read};

/// An alternative that a value may match: its name in messages, and a function that checks whether a value matches.
pub type Alternative = (&'static str, fn(&RawJson) -> Result<(), String>);

/// A JSON value in its original form, with all digits and members.
#[derive(Clone, Debug, Serialize)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Deserializes a value that must match at least one of the alternatives.
    ///
    /// # Errors
    /// The deserializer's error, or one that explains why no alternative matches.
    pub fn of<'de, D: Deserializer<'de>>(deserializer: D, alternatives: &[Alternative]) -> Result<Self, D::Error> {
        let value = RawJson(Box::<RawValue>::deserialize(deserializer)?);
        let mut problems = Vec::with_capacity(alternatives.len());
        for (name, check) in alternatives {
            match check(&value) {
                Ok(()) => return Ok(value),
                Err(problem) => problems.push((*name, problem)),
            }
        }
        Err(D::Error::custom(none_of(&problems)))
    }

    /// Serializes a value.
    ///
    /// # Errors
    /// The serializer's error.
    pub fn written<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(RawJson)
    }

    /// A value of the document, which the generator has checked. Invalid JSON becomes null.
    pub fn constant(json: &str) -> Self {
        RawJson(RawValue::from_string(json.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// Reads the value as one of the alternatives.
    ///
    /// # Errors
    /// Why the alternative does not match.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        read(&self.0)
    }

    /// The original JSON.
    pub fn json(&self) -> &str {
        self.0.get()
    }

    /// The value. Numbers that `f64` cannot represent are rounded, unlike in [`json`](Self::json).
    pub fn value(&self) -> Value {
        serde_json::from_str(self.json()).unwrap_or_default()
    }
}

impl PartialEq for RawJson {
    /// Compares values like JSON Schema, ignoring white space and the order of members.
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json() || canonical(self.value()) == canonical(other.value())
    }
}
