//! Values that are kept as they came, because they fit one of several schemas, or more than one.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::rules::canonical;
use crate::unions::{none_of, read};

/// An alternative that a value may fit: what it is called in messages, and what is wrong with a value as one, if
/// anything is.
pub type Alternative = (&'static str, fn(&Kept) -> Result<(), String>);

/// A JSON value as it came, to the last digit and with every member.
#[derive(Clone, Debug, Serialize)]
pub struct Kept(Box<RawValue>);

impl Kept {
    /// Takes in a value that fits at least one of the alternatives.
    ///
    /// # Errors
    /// The deserialiser's; a fragment that says what is wrong with it as each.
    pub fn of<'de, D: Deserializer<'de>>(deserializer: D, alternatives: &[Alternative]) -> Result<Self, D::Error> {
        let kept = Kept(Box::<RawValue>::deserialize(deserializer)?);
        let mut problems = Vec::with_capacity(alternatives.len());
        for (name, check) in alternatives {
            match check(&kept) {
                Ok(()) => return Ok(kept),
                Err(problem) => problems.push((*name, problem)),
            }
        }
        Err(D::Error::custom(none_of(&problems)))
    }

    /// A value as it is written.
    ///
    /// # Errors
    /// Those of writing it.
    pub fn written<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Kept)
    }

    /// A value that stands in the document as this JSON, which the generator has checked; null if it is none all the
    /// same.
    pub fn constant(json: &str) -> Self {
        Kept(RawValue::from_string(json.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// Reads it as one of the alternatives.
    ///
    /// # Errors
    /// What is wrong with it as this one.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        read(&self.0)
    }

    /// The JSON as it came.
    pub fn json(&self) -> &str {
        self.0.get()
    }

    /// The value; numbers beyond what a `f64` holds are rounded there, unlike in [`json`](Self::json).
    pub fn value(&self) -> Value {
        serde_json::from_str(self.json()).unwrap_or_default()
    }
}

impl PartialEq for Kept {
    /// Whether both mean the same, as JSON Schema compares: the order of members and blanks mean nothing.
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json() || canonical(self.value()) == canonical(other.value())
    }
}
