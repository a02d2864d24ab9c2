//! Deserializers for path, query and header parameters, which are text. Error messages start with the parameter's name.

use std::collections::HashSet;
use std::str::FromStr;

use chrono::{DateTime, NaiveDate, Utc};
use rust_decimal::Decimal;
use serde::de::value::{Error as TextError, StrDeserializer};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use crate::format::{parse_date, parse_date_time, parse_uuid};
use crate::plain::{self, shown};
use crate::rules::{ArrayRules, Multiple, NumberRules, StringRules, not_among};
use crate::unions::read_text;
use crate::{Base64, ExactNumber, decimal};

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer)
}

/// Deserializes a string and checks its rules.
///
/// # Errors
/// A message with the parameter and the violated rule.
pub fn string<'de, D: Deserializer<'de>>(d: D, name: &str, rules: StringRules) -> Result<String, D::Error> {
    let value = text(d)?;
    rules
        .check(&value)
        .map_err(|problem| D::Error::custom(format!("{name}: {problem}")))?;
    Ok(value)
}

/// Deserializes an integer in decimal digits and checks its rules.
///
/// # Errors
/// A message with the parameter, its bounds and the value.
pub fn integer<'de, D, T>(d: D, name: &str, rules: NumberRules<T>) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr + Multiple,
{
    let value = text(d)?;
    let rejected = |problem: String| Err(D::Error::custom(format!("{name}: {problem}")));
    // Rust parses `+5`, which is not a JSON integer.
    let number = value.parse::<T>().ok().filter(|_| !value.starts_with('+'));
    match number.map(|number| (number, rules.check(number))) {
        Some((number, Ok(()))) => Ok(number),
        Some((number, Err(problem))) if rules.admits(number) => rejected(problem),
        _ if rules.has_no_bounds() => rejected(format!(
            "must be a whole number of at most {} bits, is {}",
            8 * size_of::<T>(),
            shown(&value)
        )),
        _ => rejected(format!("must be a whole number {rules}, is {}", shown(&value))),
    }
}

/// Deserializes a number and checks its rules.
///
/// # Errors
/// A message with the parameter, its bounds and the value.
pub fn number<'de, D: Deserializer<'de>>(d: D, name: &str, rules: NumberRules<f64>) -> Result<f64, D::Error> {
    let value = text(d)?;
    let rejected = |problem: String| Err(D::Error::custom(format!("{name}: {problem}")));
    let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
    match number.map(|number| (number, rules.check(number))) {
        Some((number, Ok(()))) => Ok(number),
        Some((number, Err(problem))) if rules.admits(number) => rejected(problem),
        _ => rejected(format!("must be {rules}, is {}", shown(&value))),
    }
}

/// Deserializes `true` or `false`.
///
/// # Errors
/// A message with the parameter and the value.
pub fn boolean<'de, D: Deserializer<'de>>(d: D, name: &str) -> Result<bool, D::Error> {
    match text(d)?.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(D::Error::custom(format!(
            "{name}: must be true or false, is {}",
            shown(other)
        ))),
    }
}

/// Deserializes a date and time in RFC 3339 with an offset.
///
/// # Errors
/// A message with the parameter, and a hint if a plus sign was lost in the query.
pub fn date_time<'de, D: Deserializer<'de>>(d: D, name: &str) -> Result<DateTime<Utc>, D::Error> {
    let value = text(d)?;
    parse_date_time(&value).map_err(|problem| D::Error::custom(format!("{name}: {problem}")))
}

/// Deserializes a date such as `2026-05-01`.
///
/// # Errors
/// A message with the parameter and an example.
pub fn date<'de, D: Deserializer<'de>>(d: D, name: &str) -> Result<NaiveDate, D::Error> {
    let value = text(d)?;
    parse_date(&value).map_err(|problem| D::Error::custom(format!("{name}: {problem}")))
}

/// Deserializes a UUID.
///
/// # Errors
/// A message with the parameter.
pub fn uuid<'de, D: Deserializer<'de>>(d: D, name: &str) -> Result<uuid::Uuid, D::Error> {
    let value = text(d)?;
    parse_uuid(&value).map_err(|problem| D::Error::custom(format!("{name}: {problem}")))
}

/// Deserializes bytes in Base64.
///
/// # Errors
/// A message with the parameter.
pub fn base64<'de, D: Deserializer<'de>>(d: D, name: &str) -> Result<Base64, D::Error> {
    let value = text(d)?;
    let read = Base64::deserialize(StrDeserializer::<TextError>::new(&value));
    read.map_err(|problem| D::Error::custom(format!("{name}: {problem}")))
}

/// Deserializes a decimal number with a maximum number of digits after the decimal point.
///
/// # Errors
/// A message with the parameter.
pub fn decimal<'de, D: Deserializer<'de>>(d: D, name: &str, places: u32) -> Result<Decimal, D::Error> {
    let value = text(d)?;
    let read = decimal::read(StrDeserializer::<TextError>::new(&value), places);
    read.map_err(|problem| D::Error::custom(format!("{name}: {problem}")))
}

/// Deserializes a decimal number whose text is kept.
///
/// # Errors
/// A message with the parameter.
pub fn exact_number<'de, D: Deserializer<'de>>(d: D, name: &str, max_digits: u32) -> Result<ExactNumber, D::Error> {
    let value = text(d)?;
    ExactNumber::parse(&value, max_digits).map_err(|problem| D::Error::custom(format!("{name}: {problem}")))
}

/// Deserializes a value of any type from its JSON.
///
/// # Errors
/// A message with the parameter.
pub fn json<'de, D: Deserializer<'de>, T: DeserializeOwned>(d: D, name: &str) -> Result<T, D::Error> {
    let value = text(d)?;
    serde_json::from_str(&value).map_err(|problem| {
        let problem = plain::message(&plain::without_position(&problem));
        D::Error::custom(format!("{name}: must be JSON: {problem}"))
    })
}

/// Deserializes a value of an enumeration, using `parse` to convert it.
///
/// # Errors
/// A message with the parameter and the allowed values.
pub fn one_of<'de, D: Deserializer<'de>, T>(
    d: D,
    name: &str,
    values: &[&str],
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let value = text(d)?;
    parse(&value).ok_or_else(|| D::Error::custom(format!("{name}: {}", not_among(values, &value))))
}

/// The encoding of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// The name is repeated for each item. The caller collects the texts.
    Repeated,
    /// The items are separated by this character. An empty text is an empty list.
    Separated(char),
}

/// Deserializes a list, using `read` for each item, and checks its rules.
///
/// # Errors
/// A message with the parameter and the violated rule, or the index of the invalid item.
pub fn list<'de, D: Deserializer<'de>, T: std::fmt::Debug>(
    d: D,
    name: &str,
    style: List,
    rules: ArrayRules,
    read: impl Fn(StrDeserializer<'_, TextError>) -> Result<T, TextError>,
) -> Result<Vec<T>, D::Error> {
    let rejected = |problem: String| D::Error::custom(format!("{name}: {problem}"));
    let texts: Vec<String> = match style {
        List::Repeated => Vec::deserialize(d)?,
        List::Separated(by) => match text(d)? {
            whole if whole.is_empty() => Vec::new(),
            whole => whole.split(by).map(str::to_string).collect(),
        },
    };
    rules.check(texts.len()).map_err(rejected)?;
    let mut items = Vec::with_capacity(texts.len());
    let mut seen = HashSet::new();
    for (index, text) in texts.iter().enumerate() {
        let item = read_text(text, name, &read).map_err(|problem| rejected(format!("[{index}]: {problem}")))?;
        // Equal values have the same debug output, whatever their text.
        if rules.unique_items && !seen.insert(format!("{item:?}")) {
            return Err(rejected(format!(
                "[{index}]: must not appear twice, is {}",
                shown(text)
            )));
        }
        items.push(item);
    }
    Ok(items)
}

/// Deserializes a value of one of several types, which `read` tries.
///
/// # Errors
/// A message with the parameter and the error of `read`.
pub fn tried<'de, D: Deserializer<'de>, T>(
    d: D,
    name: &str,
    read: impl FnOnce(&str) -> Result<T, serde::de::value::Error>,
) -> Result<T, D::Error> {
    read(&text(d)?).map_err(|problem| D::Error::custom(format!("{name}: {problem}")))
}

/// The variables of a raw path that matches a template of the document byte for byte, for routers of code generated with
/// `--dispatch calls`. A variable is a non-empty part of one segment without
/// escapes. Of several variables in a segment, each ends at the first occurrence of the literal that follows it.
pub fn variables<'t>(template: &'t str, path: &str) -> Option<Vec<(&'t str, String)>> {
    let mut found = Vec::new();
    let mut segments = path.split('/');
    for wanted in template.split('/') {
        of_segment(wanted, segments.next()?, &mut found)?;
    }
    segments.next().is_none().then_some(found)
}

fn of_segment<'t>(wanted: &'t str, segment: &str, found: &mut Vec<(&'t str, String)>) -> Option<()> {
    let mut parts = wanted.split('{');
    let mut rest = segment.strip_prefix(parts.next()?)?;
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let (name, literal) = part.split_once('}')?;
        let end = match parts.peek() {
            // The last variable ends where the literal at the end of the segment begins.
            None => rest.strip_suffix(literal)?.len(),
            // At least one character belongs to the variable.
            Some(_) => {
                rest.char_indices()
                    .skip(1)
                    .find(|(at, _)| rest[*at..].starts_with(literal))?
                    .0
            }
        };
        let (value, after) = rest.split_at(end);
        if value.is_empty() || value.contains('%') {
            return None;
        }
        found.push((name, value.to_string()));
        rest = &after[literal.len()..];
    }
    rest.is_empty().then_some(())
}
