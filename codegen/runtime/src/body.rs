//! Deserialisers for members of JSON bodies.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::rules::{ArrayRules, MapRules, Multiple, NumberRules, StringRules, not_among, shown};
use crate::{ExactNumber, exact_number};

/// A string within its rules.
///
/// # Errors
/// The deserialiser's; a fragment that names the bound.
pub fn string<'de, D: Deserializer<'de>>(deserializer: D, rules: StringRules) -> Result<String, D::Error> {
    let value = String::deserialize(deserializer)?;
    rules.check(&value).map_err(D::Error::custom)?;
    Ok(value)
}

/// A number or integer within its rules.
///
/// # Errors
/// The deserialiser's; a fragment that names the bound.
pub fn number<'de, D, T>(deserializer: D, rules: NumberRules<T>) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Multiple,
{
    let value = T::deserialize(deserializer)?;
    rules.check(value).map_err(D::Error::custom)?;
    Ok(value)
}

/// An exact number within its number of digits.
///
/// # Errors
/// The deserialiser's; a fragment that names the bound.
pub fn exact_number<'de, D: Deserializer<'de>>(
    deserializer: D,
    max_significant_digits: u32,
) -> Result<ExactNumber, D::Error> {
    ExactNumber::read(deserializer, max_significant_digits)
}

/// A time with its offset.
///
/// # Errors
/// The deserialiser's; a fragment with an example.
pub fn date_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<chrono::DateTime<chrono::Utc>, D::Error> {
    let text = String::deserialize(deserializer)?;
    crate::param::parse_date_time(&text).map_err(D::Error::custom)
}

/// A calendar day, `2026-05-01`.
///
/// # Errors
/// The deserialiser's; a fragment with an example.
pub fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<chrono::NaiveDate, D::Error> {
    let text = String::deserialize(deserializer)?;
    crate::param::parse_date(&text).map_err(D::Error::custom)
}

/// An array within its rules.
///
/// # Errors
/// The deserialiser's; a fragment that names the bound.
pub fn array<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    rules: ArrayRules,
) -> Result<Vec<T>, D::Error> {
    let items = Vec::deserialize(deserializer)?;
    rules.check(items.len()).map_err(D::Error::custom)?;
    Ok(items)
}

/// Items of which no two may be the same, as they would be written.
///
/// # Errors
/// A fragment that names the two by their indexes.
pub fn distinct<T: Serialize, E: serde::de::Error>(items: Vec<T>) -> Result<Vec<T>, E> {
    let rules = ArrayRules {
        unique_items: true,
        ..ArrayRules::NONE
    };
    rules.check_items(&items).map_err(E::custom)?;
    Ok(items)
}

/// One of an enumeration's numbers or booleans, read by `parse` from its text; a whole number is the same with and
/// without a point.
///
/// # Errors
/// The deserialiser's; a fragment that names all admitted values.
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

/// A map within its rules; a name that occurs twice is refused.
///
/// # Errors
/// The deserialiser's; a fragment that names the bound or the name.
pub fn map<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    rules: MapRules,
) -> Result<BTreeMap<String, T>, D::Error> {
    struct AnyMap<T>(MapRules, PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for AnyMap<T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            read_map(&mut map, self.0, |map| map.next_value_seed(PhantomData::<T>))
        }
    }
    deserializer.deserialize_map(AnyMap(rules, PhantomData))
}

/// A map of exact numbers within its rules; a name that occurs twice is refused.
///
/// # Errors
/// The deserialiser's; a fragment that names the bound or the name.
pub fn exact_number_map<'de, D: Deserializer<'de>>(
    deserializer: D,
    rules: MapRules,
    max_significant_digits: u32,
) -> Result<BTreeMap<String, ExactNumber>, D::Error> {
    deserializer.deserialize_map(exact_number::MapVisitor {
        rules,
        max_significant_digits,
    })
}

/// A member that may be left out, which is also what a null means: serialisers write one for a member that is not set.
///
/// # Errors
/// The deserialiser's.
pub fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// A member that has a default where it is left out, or null.
///
/// # Errors
/// The deserialiser's.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    default: impl FnOnce() -> T,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(default))
}

/// Writes a member that every response has, though requests go without it.
///
/// # Errors
/// When it is not there.
pub fn set<S: Serializer, T: Serialize>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.serialize(serializer),
        None => Err(serde::ser::Error::custom(
            "a member that is `readOnly` and required must be set",
        )),
    }
}

/// One of an enumeration's values, read by `parse`.
///
/// # Errors
/// The deserialiser's; a fragment that names all admitted values.
pub fn one_of<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    values: &[&str],
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| D::Error::custom(not_among(values, &text)))
}

pub(crate) fn read_map<'de, A, T>(
    map: &mut A,
    rules: MapRules,
    mut read: impl FnMut(&mut A) -> Result<T, A::Error>,
) -> Result<BTreeMap<String, T>, A::Error>
where
    A: MapAccess<'de>,
{
    let mut members = BTreeMap::new();
    while let Some(name) = map.next_key_seed(PhantomData::<String>)? {
        rules.check_key(&name).map_err(A::Error::custom)?;
        if members.contains_key(&name) {
            return Err(A::Error::custom(format!("the name {} occurs twice", shown(&name))));
        }
        let value = read(map)?;
        members.insert(name, value);
        // Not only at the end: a map far beyond its bound need not be kept in memory.
        if let Some(max) = rules.max_properties.filter(|max| members.len() > *max) {
            return Err(A::Error::custom(format!("must have at most {max} members, has more")));
        }
    }
    rules.check(members.len()).map_err(A::Error::custom)?;
    Ok(members)
}
