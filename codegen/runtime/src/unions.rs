//! Unions, which are distinguished by a member, a name, or their values.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{Error as TextError, StrDeserializer};
use serde::de::{DeserializeOwned, Error, IgnoredAny, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::plain::{self, shown, without_position};
use crate::rules::not_among;

/// An object whose member `tag` identifies its alternative.
pub struct Tagged<E> {
    /// The value of the member.
    pub tag: String,
    name: &'static str,
    raw: Box<RawValue>,
    error: PhantomData<E>,
}

impl<E: Error> Tagged<E> {
    /// Reads the object and its member `name`.
    ///
    /// # Errors
    /// The deserializer's error, or one that says that the member is missing or not a string.
    pub fn of<'de, D: Deserializer<'de, Error = E>>(deserializer: D, name: &'static str) -> Result<Self, E> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let members: BTreeMap<String, &RawValue> =
            serde_json::from_str(raw.get()).map_err(|_| E::custom("must be an object"))?;
        let member = members
            .get(name)
            .ok_or_else(|| E::custom(format!("must have the member {name}")))?;
        let tag = serde_json::from_str(member.get()).map_err(|_| E::custom(format!("{name}: must be a string")))?;
        Ok(Tagged {
            tag,
            name,
            raw,
            error: PhantomData,
        })
    }

    /// Reads the whole object.
    ///
    /// # Errors
    /// The member with the error, and the error itself. The outer reader prepends the object's own path.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, E> {
        read(&self.raw).map_err(E::custom)
    }

    /// The error for a tag that is not one of `values`.
    pub fn unknown(self, values: &[&str]) -> E {
        E::custom(format!("{}: {}", self.name, not_among(values, &self.tag)))
    }
}

/// Reads raw JSON. The error consists of the path inside it and the message.
pub(crate) fn read<T: DeserializeOwned>(raw: &RawValue) -> Result<T, String> {
    let mut inner = serde_json::Deserializer::from_str(raw.get());
    serde_path_to_error::deserialize(&mut inner).map_err(|error| {
        let reason = plain::message(&without_position(error.inner()));
        match error.path().to_string().as_str() {
            "." => reason,
            path => format!("{path}: {reason}"),
        }
    })
}

/// Checks before serialization that the member `name` identifies the alternative.
///
/// # Errors
/// If `tag` is not one of `values`, because a reader would take the object for another alternative.
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

/// A union whose alternatives are strings or objects with one member, whose name identifies the alternative.
pub trait Named: Sized {
    /// The strings.
    const TEXTS: &'static [&'static str];
    /// The names of the members.
    const MEMBERS: &'static [&'static str];

    /// The alternative for a string.
    fn of_text(text: &str) -> Option<Self>;

    /// The alternative for a member, whose value is the next in `map`; `None` for an unknown name.
    ///
    /// # Errors
    /// The deserializer's error.
    fn of_member<'de, A: MapAccess<'de>>(name: &str, map: &mut A) -> Result<Option<Self>, A::Error>;
}

/// Reads a union whose alternatives have names.
///
/// # Errors
/// The deserializer's error, or one that lists the alternatives.
pub fn named<'de, D: Deserializer<'de>, T: Named>(deserializer: D) -> Result<T, D::Error> {
    struct Any<T>(PhantomData<T>);
    impl<'de, T: Named> Visitor<'de> for Any<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(match (T::TEXTS, T::MEMBERS) {
                ([], _) => "an object with one member",
                (_, []) => "a string",
                _ => "a string or an object with one member",
            })
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            T::of_text(text).ok_or_else(|| E::custom(not_among(T::TEXTS, text)))
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
            let one = || A::Error::custom(format!("must have exactly one member: {}", T::MEMBERS.join(" or ")));
            let name: String = map.next_key()?.ok_or_else(one)?;
            let Some(value) = T::of_member(&name, &mut map)? else {
                return Err(A::Error::custom(format!(
                    "the name of the member {}",
                    not_among(T::MEMBERS, &name)
                )));
            };
            match map.next_key::<IgnoredAny>()? {
                None => Ok(value),
                Some(_) => Err(one()),
            }
        }
    }
    deserializer.deserialize_any(Any(PhantomData))
}

/// An object with the members of several types.
pub struct Whole<E> {
    members: Members,
    error: PhantomData<E>,
}

/// The members of an object in their original form. A type that declares a repeated member rejects it.
type Members = Vec<(String, Box<RawValue>)>;

impl<E: Error> Whole<E> {
    /// Deserializes the object.
    ///
    /// # Errors
    /// The deserializer's error.
    pub fn of<'de, D: Deserializer<'de, Error = E>>(deserializer: D) -> Result<Self, E> {
        Ok(Whole {
            members: deserializer.deserialize_map(AllMembers)?,
            error: PhantomData,
        })
    }

    /// Reads one of the types, from the object without these members.
    ///
    /// # Errors
    /// The member with the error, and the error itself.
    pub fn without<T: DeserializeOwned>(&self, others: &[&str]) -> Result<T, E> {
        let own = |(name, _): &&(String, Box<RawValue>)| !others.contains(&name.as_str());
        let members = self.members.iter().filter(own).map(|(name, value)| (name, value));
        let mut text = Vec::new();
        let written = serde_json::Serializer::new(&mut text).collect_map(members);
        let raw = written.and_then(|()| serde_json::from_slice::<Box<RawValue>>(&text));
        read(&raw.map_err(E::custom)?).map_err(E::custom)
    }
}

struct AllMembers;

impl<'de> Visitor<'de> for AllMembers {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Members::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

/// An object that is serialized from several types.
#[derive(Default)]
pub struct Joined {
    members: Members,
}

impl Joined {
    /// An empty object.
    pub fn new() -> Self {
        Joined::default()
    }

    /// Adds the members of a value. Existing members are kept.
    ///
    /// # Errors
    /// If the value is not serialized as an object.
    pub fn add<T: Serialize, E: serde::ser::Error>(&mut self, value: &T) -> Result<(), E> {
        let raw = serde_json::value::to_raw_value(value).map_err(E::custom)?;
        let mut text = serde_json::Deserializer::from_str(raw.get());
        for (name, value) in text.deserialize_map(AllMembers).map_err(E::custom)? {
            if !self.members.iter().any(|(known, _)| *known == name) {
                self.members.push((name, value));
            }
        }
        Ok(())
    }
}

impl Serialize for Joined {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.members.iter().map(|(name, value)| (name, value)))
    }
}

/// A value that is read as one alternative after another.
pub struct Tried<E> {
    raw: Box<RawValue>,
    error: PhantomData<E>,
}

impl<E: Error> Tried<E> {
    /// Deserializes the value.
    ///
    /// # Errors
    /// The deserializer's error.
    pub fn of<'de, D: Deserializer<'de, Error = E>>(deserializer: D) -> Result<Self, E> {
        Ok(Tried {
            raw: Box::<RawValue>::deserialize(deserializer)?,
            error: PhantomData,
        })
    }

    /// Reads the value as one of the alternatives.
    ///
    /// # Errors
    /// Why it does not match.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        read(&self.raw)
    }
}

/// Reads the text of the parameter `name` as one alternative, with the function for parameters of its type.
///
/// # Errors
/// The error, without the parameter's name.
pub fn read_text<T>(
    text: &str,
    name: &str,
    read: impl FnOnce(StrDeserializer<'_, TextError>) -> Result<T, TextError>,
) -> Result<T, String> {
    read(text.into_deserializer()).map_err(|error| {
        let problem = error.to_string();
        match problem.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")) {
            Some(rest) => rest.to_string(),
            None => problem,
        }
    })
}

/// The only alternative that matches. `names` are the names of the alternatives, in the order of `tried`.
///
/// # Errors
/// If no alternative or more than one matches, as for `oneOf`.
pub fn only<T, E: Error, const N: usize>(names: [&str; N], tried: [Result<T, String>; N]) -> Result<T, E> {
    let fitting: Vec<&str> = names
        .iter()
        .zip(&tried)
        .filter(|(_, tried)| tried.is_ok())
        .map(|(name, _)| *name)
        .collect();
    match fitting.len() {
        0 | 1 => first(names, tried),
        _ => Err(E::custom(format!(
            "must be exactly one of {}, is {}",
            names.join(", "),
            fitting.join(" and ")
        ))),
    }
}

/// The first alternative that matches. `names` are the names of the alternatives, in the order of `tried`.
///
/// # Errors
/// If no alternative matches.
pub fn first<T, E: Error, const N: usize>(names: [&str; N], tried: [Result<T, String>; N]) -> Result<T, E> {
    let mut problems = Vec::with_capacity(N);
    for (name, tried) in names.into_iter().zip(tried) {
        match tried {
            Ok(value) => return Ok(value),
            Err(problem) => problems.push((name, problem)),
        }
    }
    Err(E::custom(none_of(&problems)))
}

/// The error for a value that matches no alternative, with the reason for each.
pub(crate) fn none_of(problems: &[(&str, String)]) -> String {
    let names: Vec<&str> = problems.iter().map(|(name, _)| *name).collect();
    let each: Vec<String> = problems
        .iter()
        .map(|(name, problem)| format!("as {name}: {problem}"))
        .collect();
    format!("must be one of {} ({})", names.join(", "), each.join("; "))
}
