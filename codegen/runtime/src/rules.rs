//! The bounds a document can declare, and the messages for values outside them.

use std::fmt::Display;
use std::sync::LazyLock;

use regex::Regex;

/// A compiled pattern, made at its first use.
pub type Pattern = LazyLock<Option<Regex>>;

/// What a string must be like; lengths count characters.
#[derive(Clone, Copy, Default)]
pub struct StringRules {
    /// `minLength`
    pub min_length: Option<usize>,
    /// `maxLength`
    pub max_length: Option<usize>,
    /// `pattern`, as written in the document and compiled.
    pub pattern: Option<(&'static str, &'static Pattern)>,
}

/// What an integer or a number must be like.
#[derive(Clone, Copy)]
pub struct NumberRules<T> {
    /// `minimum`, and whether it is exclusive.
    pub minimum: Option<(T, bool)>,
    /// `maximum`, and whether it is exclusive.
    pub maximum: Option<(T, bool)>,
}

impl<T> Default for NumberRules<T> {
    fn default() -> Self {
        NumberRules {
            minimum: None,
            maximum: None,
        }
    }
}

/// What an array must be like.
#[derive(Clone, Copy, Default)]
pub struct ArrayRules {
    /// `minItems`
    pub min_items: Option<usize>,
    /// `maxItems`
    pub max_items: Option<usize>,
}

/// What a map (an object with `additionalProperties`) must be like.
#[derive(Clone, Copy, Default)]
pub struct MapRules {
    /// `minProperties`
    pub min_properties: Option<usize>,
    /// `maxProperties`
    pub max_properties: Option<usize>,
    /// `x-key-pattern`, as written in the document and compiled.
    pub key_pattern: Option<(&'static str, &'static Pattern)>,
}

impl StringRules {
    /// Says what is wrong with `value`, if anything is.
    pub fn check(&self, value: &str) -> Result<(), String> {
        let length = value.chars().count();
        if let Some(min) = self.min_length.filter(|min| length < *min) {
            return Err(match min {
                1 => "must not be empty".into(),
                _ => format!("must have at least {min} characters, has {length}"),
            });
        }
        if let Some(max) = self.max_length.filter(|max| length > *max) {
            return Err(format!("must have at most {max} characters, has {length}"));
        }
        matches(self.pattern, value)
    }
}

impl<T> NumberRules<T> {
    /// Whether every number will do.
    pub fn is_empty(&self) -> bool {
        self.minimum.is_none() && self.maximum.is_none()
    }
}

impl<T: PartialOrd + Display + Copy> NumberRules<T> {
    /// Says what is wrong with `value`, if anything is.
    pub fn check(&self, value: T) -> Result<(), String> {
        let too_low = self
            .minimum
            .is_some_and(|(bound, exclusive)| value < bound || exclusive && value == bound);
        let too_high = self
            .maximum
            .is_some_and(|(bound, exclusive)| value > bound || exclusive && value == bound);
        if too_low || too_high {
            Err(format!("must be {self}, is {value}"))
        } else {
            Ok(())
        }
    }
}

impl<T: Display> Display for NumberRules<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.minimum, &self.maximum) {
            (None, None) => f.write_str("a number"),
            (Some((min, false)), Some((max, false))) => write!(f, "from {min} to {max}"),
            (min, max) => {
                if let Some((min, exclusive)) = min {
                    write!(f, "{} {min}", if *exclusive { "more than" } else { "at least" })?;
                }
                if let Some((max, exclusive)) = max {
                    let and = if min.is_some() { " and " } else { "" };
                    write!(f, "{and}{} {max}", if *exclusive { "less than" } else { "at most" })?;
                }
                Ok(())
            }
        }
    }
}

impl ArrayRules {
    /// Says what is wrong with an array of `length` items, if anything is.
    pub fn check(&self, length: usize) -> Result<(), String> {
        count(length, self.min_items, self.max_items, "items")
    }
}

impl MapRules {
    /// Says what is wrong with a map of `length` members, if anything is.
    pub fn check(&self, length: usize) -> Result<(), String> {
        count(length, self.min_properties, self.max_properties, "members")
    }

    /// Says what is wrong with a member's name, if anything is.
    pub fn check_key(&self, key: &str) -> Result<(), String> {
        matches(self.key_pattern, key).map_err(|problem| format!("the name {} {problem}", shown(key)))
    }
}

/// A client's text as a message may quote it: short, on one line.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 64;
    let mut quoted: String = text.chars().take(LONGEST).collect();
    if text.chars().count() > LONGEST {
        quoted.push('…');
    }
    format!("{quoted:?}")
}

/// What is wrong with a text that is none of an enumeration's values.
pub(crate) fn not_among(values: &[&str], text: &str) -> String {
    format!("must be one of {}, is {}", values.join(", "), shown(text))
}

fn matches(pattern: Option<(&'static str, &'static Pattern)>, value: &str) -> Result<(), String> {
    match pattern {
        Some((text, compiled)) if !compiled.as_ref().is_some_and(|regex| regex.is_match(value)) => {
            Err(format!("must match {text}"))
        }
        _ => Ok(()),
    }
}

fn count(length: usize, min: Option<usize>, max: Option<usize>, what: &str) -> Result<(), String> {
    if let Some(min) = min.filter(|min| length < *min) {
        return Err(format!("must have at least {min} {what}, has {length}"));
    }
    if let Some(max) = max.filter(|max| length > *max) {
        return Err(format!("must have at most {max} {what}, has {length}"));
    }
    Ok(())
}
