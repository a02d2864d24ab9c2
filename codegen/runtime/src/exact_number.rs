//! A JSON number whose decimal text is kept.

use std::fmt;

use rust_decimal::Decimal;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON number (`type: number, format: decimal`): its value without rounding, and its text as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactNumber {
    /// The text as sent, `12.50` or `1.25e1`.
    pub text: String,
    /// The value; the number of decimals as sent, an exponent resolved.
    pub value: Decimal,
}

impl ExactNumber {
    /// Reads a JSON number's text.
    ///
    /// # Errors
    /// A fragment that says what is wrong: not a number, or more digits than `max_significant_digits`, or out of the
    /// range that can be kept exactly.
    pub fn parse(text: &str, max_significant_digits: u32) -> Result<Self, String> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (
                mantissa,
                exponent.parse::<i64>().map_err(|_| "is out of range".to_string())?,
            ),
            None => (text, 0),
        };
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let significant = digits.trim_start_matches('0').len();
        if significant > max_significant_digits as usize {
            return Err(format!(
                "must have at most {max_significant_digits} significant digits, has {significant}"
            ));
        }
        let out_of_range = || "is out of the range that can be kept exactly".to_string();
        let mut value = Decimal::from_str_exact(mantissa).map_err(|_| out_of_range())?;
        if exponent != 0 && !value.is_zero() {
            let scale = i64::from(value.scale()) - exponent;
            if !(-28..=28).contains(&scale) {
                return Err(out_of_range());
            }
            if scale >= 0 {
                value.set_scale(scale as u32).map_err(|_| out_of_range())?;
            } else {
                value.set_scale(0).map_err(|_| out_of_range())?;
                for _ in scale..0 {
                    value = value.checked_mul(Decimal::TEN).ok_or_else(out_of_range)?;
                }
            }
        }
        Ok(ExactNumber {
            text: text.to_string(),
            value,
        })
    }

    /// Reads a JSON number with at most `max_significant_digits` digits; used by [`crate::body`].
    ///
    /// # Errors
    /// The deserialiser's, with a fragment as [`ExactNumber::parse`] gives it.
    pub fn read<'de, D: Deserializer<'de>>(deserializer: D, max_significant_digits: u32) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            let kind = match text.as_bytes().first() {
                Some(b'"') => "a string",
                Some(b'{') => "an object",
                Some(b'[') => "an array",
                Some(b'n') => "null",
                _ => "a boolean",
            };
            return Err(D::Error::custom(format!("must be a number, is {kind}")));
        }
        Self::parse(text, max_significant_digits).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ExactNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(deserializer, 28)
    }
}

impl Serialize for ExactNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match RawValue::from_string(self.text.clone()) {
            Ok(raw) => raw.serialize(serializer),
            Err(error) => Err(serde::ser::Error::custom(error)),
        }
    }
}

impl From<Decimal> for ExactNumber {
    fn from(value: Decimal) -> Self {
        ExactNumber {
            text: value.to_string(),
            value,
        }
    }
}

impl fmt::Display for ExactNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads through a seed, so that a map's values can be read under rules.
pub(crate) struct Seed(pub u32);

impl<'de> serde::de::DeserializeSeed<'de> for Seed {
    type Value = ExactNumber;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ExactNumber, D::Error> {
        ExactNumber::read(deserializer, self.0)
    }
}

/// Reads an object of exact numbers; a name that occurs twice is refused, as one of the two would be lost.
pub(crate) struct MapVisitor {
    pub rules: crate::MapRules,
    pub max_significant_digits: u32,
}

impl<'de> Visitor<'de> for MapVisitor {
    type Value = std::collections::BTreeMap<String, ExactNumber>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of numbers")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        crate::body::read_map(&mut map, self.rules, |map| {
            map.next_value_seed(Seed(self.max_significant_digits))
        })
    }
}
