//! Deserializers for members of JSON bodies.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::decimal::ExactNumber;
use crate::format::{parse_date, parse_date_time};
use crate::plain::shown;
use crate::rules::{ArrayRules, MapRules, Multiple, NumberRules, StringRules, not_among};

/// Deserializes a string and checks its rules.
///
/// # Errors
/// The deserializer's error, or one that names the violated rule.
pub fn string<'de, D: Deserializer<'de>>(deserializer: D, rules: StringRules) -> Result<String, D::Error> {
    let value = String::deserialize(deserializer)?;
    rules.check(&value).map_err(D::Error::custom)?;
    Ok(value)
}

/// Deserializes a number or an integer and checks its rules.
///
/// # Errors
/// The deserializer's error, or one that names the violated rule.
pub fn number<'de, D, T>(deserializer: D, rules: NumberRules<T>) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Multiple,
{
    let value = T::deserialize(deserializer)?;
    rules.check(value).map_err(D::Error::custom)?;
    Ok(value)
}

/// Deserializes an exact number with a maximum number of significant digits.
///
/// # Errors
/// The deserializer's error, or one that names the limit.
pub fn exact_number<'de, D: Deserializer<'de>>(
    deserializer: D,
    max_significant_digits: u32,
) -> Result<ExactNumber, D::Error> {
    ExactNumber::read(deserializer, max_significant_digits)
}

/// Deserializes a date and time with an offset.
///
/// # Errors
/// The deserializer's error, or one with an example.
pub fn date_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<chrono::DateTime<chrono::Utc>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_date_time(&text).map_err(D::Error::custom)
}

/// Deserializes a date such as `2026-05-01`.
///
/// # Errors
/// The deserializer's error, or one with an example.
pub fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<chrono::NaiveDate, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_date(&text).map_err(D::Error::custom)
}

/// Deserializes an array and checks its rules.
///
/// # Errors
/// The deserializer's error, or one that names the violated rule.
pub fn array<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    rules: ArrayRules,
) -> Result<Vec<T>, D::Error> {
    let items = Vec::deserialize(deserializer)?;
    rules.check(items.len()).map_err(D::Error::custom)?;
    Ok(items)
}

/// Checks that all items are different in serialized form.
///
/// # Errors
/// If two are equal; the message contains their indexes.
pub fn distinct<T: Serialize, E: serde::de::Error>(items: Vec<T>) -> Result<Vec<T>, E> {
    let rules = ArrayRules {
        unique_items: true,
        ..ArrayRules::NONE
    };
    rules.check_items(&items).map_err(E::custom)?;
    Ok(items)
}

/// Deserializes a value of a numeric or boolean enumeration, using `parse` to convert its text. `1` and `1.0` are
/// equal.
///
/// # Errors
/// The deserializer's error, or one that lists the allowed values.
pub fn one_of_values<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    values: &[&str],
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    struct Scalar;
    impl Visitor<'_> for Scalar {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number or a boolean")
        }

        fn visit_bool<E>(self, value: bool) -> Result<String, E> {
            Ok(value.to_string())
        }

        fn visit_i64<E>(self, value: i64) -> Result<String, E> {
            Ok(value.to_string())
        }

        fn visit_u64<E>(self, value: u64) -> Result<String, E> {
            Ok(value.to_string())
        }

        fn visit_f64<E>(self, value: f64) -> Result<String, E> {
            Ok(value.to_string())
        }
    }
    let text = deserializer.deserialize_any(Scalar)?;
    parse(&text).ok_or_else(|| D::Error::custom(format!("must be one of {}, is {text}", values.join(", "))))
}

/// Deserializes a map and checks its rules. A repeated name is an error.
///
/// # Errors
/// The deserializer's error, or one that names the violated rule or the member.
pub fn map<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    rules: MapRules,
) -> Result<BTreeMap<String, T>, D::Error> {
    deserializer.deserialize_map(MapVisitor {
        rules,
        expected: "an object",
        seed: PhantomData,
    })
}

/// Deserializes a map of exact numbers and checks its rules. A repeated name is an error.
///
/// # Errors
/// The deserializer's error, or one that names the violated rule or the member.
pub fn exact_number_map<'de, D: Deserializer<'de>>(
    deserializer: D,
    rules: MapRules,
    max_significant_digits: u32,
) -> Result<BTreeMap<String, ExactNumber>, D::Error> {
    deserializer.deserialize_map(MapVisitor {
        rules,
        expected: "an object of numbers",
        seed: ExactNumberSeed(max_significant_digits),
    })
}

/// Deserializes an optional member. Null counts as absent, because many serializers write it for unset members.
///
/// # Errors
/// The deserializer's error.
pub fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// Deserializes a member that has a default if it is absent or null.
///
/// # Errors
/// The deserializer's error.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    default: impl FnOnce() -> T,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(default))
}

/// Serializes a member that every response must contain, although requests may omit it.
///
/// # Errors
/// If the value is absent.
pub fn set<S: Serializer, T: Serialize>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.serialize(serializer),
        None => Err(serde::ser::Error::custom(
            "a member that is `readOnly` and required must be set",
        )),
    }
}

/// Deserializes a value of an enumeration, using `parse` to convert it.
///
/// # Errors
/// The deserializer's error, or one that lists the allowed values.
pub fn one_of<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    values: &[&str],
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| D::Error::custom(not_among(values, &text)))
}

/// Deserializes an exact number with at most this many significant digits.
#[derive(Clone, Copy)]
struct ExactNumberSeed(u32);

impl<'de> DeserializeSeed<'de> for ExactNumberSeed {
    type Value = ExactNumber;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ExactNumber, D::Error> {
        ExactNumber::read(deserializer, self.0)
    }
}

/// Reads an object whose values `seed` deserializes. A repeated name is an error, because one of the values would be lost.
struct MapVisitor<S> {
    rules: MapRules,
    expected: &'static str,
    seed: S,
}

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for MapVisitor<S> {
    type Value = BTreeMap<String, S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            self.rules.check_key(&name).map_err(A::Error::custom)?;
            if members.contains_key(&name) {
                return Err(A::Error::custom(format!("the name {} occurs twice", shown(&name))));
            }
            members.insert(name, map.next_value_seed(self.seed)?);
            // Checked for every member, so that an oversized map is not kept in memory.
            if let Some(max) = self.rules.max_properties.filter(|max| members.len() > *max) {
                return Err(A::Error::custom(format!("must have at most {max} members, has more")));
            }
        }
        self.rules.check(members.len()).map_err(A::Error::custom)?;
        Ok(members)
    }
}
