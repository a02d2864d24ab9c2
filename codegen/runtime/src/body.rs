//! Deserialisers for members of JSON bodies.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::rules::{ArrayRules, MapRules, NumberRules, StringRules, shown};
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
    T: Deserialize<'de> + PartialOrd + fmt::Display + Copy,
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

/// A member that may be left out but, unless `nullable`, must not be null.
///
/// # Errors
/// The deserialiser's; for a null, a fragment that says to leave the member out.
pub fn optional<'de, D, T, F>(deserializer: D, nullable: bool, read: F) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    F: FnOnce(OptionReader<'de, D::Error>) -> Result<T, D::Error>,
{
    // The value is read as raw JSON first: serde's Option would accept a null before `read` saw it.
    let raw = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
    if raw.get() == "null" {
        return match nullable {
            true => Ok(None),
            false => Err(D::Error::custom("must not be null; leave the member out instead")),
        };
    }
    read(OptionReader {
        raw,
        error: PhantomData,
        lifetime: PhantomData,
    })
    .map(Some)
}

/// Hands raw JSON on as a deserialiser with the outer error type.
pub struct OptionReader<'de, E> {
    raw: Box<serde_json::value::RawValue>,
    error: PhantomData<E>,
    lifetime: PhantomData<&'de ()>,
}

impl<E: serde::de::Error> OptionReader<'_, E> {
    /// Reads the value with `read`.
    ///
    /// # Errors
    /// What `read` says, as a fragment without a position (the outer reader knows the path).
    pub fn with<T>(
        self,
        read: impl for<'a> FnOnce(&mut serde_json::Deserializer<serde_json::de::StrRead<'a>>) -> serde_json::Result<T>,
    ) -> Result<T, E> {
        let mut inner = serde_json::Deserializer::from_str(self.raw.get());
        read(&mut inner).map_err(|error| E::custom(without_position(&error)))
    }
}

/// An object of a union, whose member `tag` says which alternative it is.
pub struct Tagged<E> {
    /// The member's value.
    pub tag: String,
    name: &'static str,
    raw: Box<serde_json::value::RawValue>,
    error: PhantomData<E>,
}

impl<E: serde::de::Error> Tagged<E> {
    /// Reads the object and its member `name`.
    ///
    /// # Errors
    /// The deserialiser's; a fragment that says that the member is missing or no text.
    pub fn of<'de, D: Deserializer<'de, Error = E>>(deserializer: D, name: &'static str) -> Result<Self, E> {
        let raw = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
        let members: BTreeMap<String, &serde_json::value::RawValue> =
            serde_json::from_str(raw.get()).map_err(|_| E::custom("must be an object"))?;
        let member = members
            .get(name)
            .ok_or_else(|| E::custom(format!("missing field `{name}`")))?;
        let tag = serde_json::from_str(member.get()).map_err(|_| E::custom(format!("{name}: must be a string")))?;
        Ok(Tagged {
            tag,
            name,
            raw,
            error: PhantomData,
        })
    }

    /// Reads the whole object with `read`.
    ///
    /// # Errors
    /// What `read` says, as a fragment without a position (the outer reader knows the path).
    pub fn read<T>(
        self,
        read: impl for<'a> FnOnce(&mut serde_json::Deserializer<serde_json::de::StrRead<'a>>) -> serde_json::Result<T>,
    ) -> Result<T, E> {
        let mut inner = serde_json::Deserializer::from_str(self.raw.get());
        read(&mut inner).map_err(|error| E::custom(without_position(&error)))
    }

    /// The refusal of a tag that is none of `values`.
    pub fn unknown(self, values: &[&str]) -> E {
        E::custom(format!(
            "{}: must be one of {}, is {}",
            self.name,
            values.join(", "),
            shown(&self.tag)
        ))
    }
}

/// Makes sure that what is written as one alternative of a union says so in its member `name`.
///
/// # Errors
/// When `tag` is none of `values`: a reader would take the object for another alternative.
pub fn same_tag<E: serde::ser::Error>(name: &str, tag: &str, values: &[&str]) -> Result<(), E> {
    match values.contains(&tag) {
        true => Ok(()),
        false => Err(E::custom(format!(
            "{name} is {}, but must be one of {} in this alternative",
            shown(tag),
            values.join(", ")
        ))),
    }
}

/// A JSON error's text without the line and column, which would count from the member's beginning.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_string(),
        None => text,
    }
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
            return Err(A::Error::custom(format!("must have at most {max} members")));
        }
    }
    rules.check(members.len()).map_err(A::Error::custom)?;
    Ok(members)
}
