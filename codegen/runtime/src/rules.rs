//! Validation rules. The generator stores them in its model and checks defaults with them, and generated servers check
//! values with them, so both report the same errors.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt::Display;

use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::Value;

use crate::format::Format;
use crate::names;
use crate::pattern::Pattern;
use crate::plain::shown;

/// The rules of a string. Lengths are in characters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StringRules<P = &'static Pattern> {
    /// `minLength`
    pub min_length: Option<usize>,
    /// `maxLength`
    pub max_length: Option<usize>,
    /// `pattern`
    pub pattern: Option<P>,
    /// `format`, if it is one that is checked.
    pub format: Option<Format>,
}

/// The rules of an integer or a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberRules<T> {
    /// `minimum`, and whether it is exclusive.
    pub minimum: Option<(T, bool)>,
    /// `maximum`, and whether it is exclusive.
    pub maximum: Option<(T, bool)>,
    /// `multipleOf`, which is greater than 0.
    pub multiple_of: Option<T>,
    /// Whether 0 is excluded: `not: {}` on an integer, as Dropshot writes `NonZeroI32` and similar types.
    pub not_zero: bool,
}

/// The rules of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrayRules {
    /// `minItems`
    pub min_items: Option<usize>,
    /// `maxItems`
    pub max_items: Option<usize>,
    /// `uniqueItems`
    pub unique_items: bool,
}

/// The rules of a map, which is an object with `additionalProperties`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapRules<P = &'static Pattern> {
    /// `minProperties`
    pub min_properties: Option<usize>,
    /// `maxProperties`
    pub max_properties: Option<usize>,
    /// `x-key-pattern`
    pub key_pattern: Option<P>,
}

impl<P> StringRules<P> {
    /// Allows every string.
    pub const NONE: Self = StringRules {
        min_length: None,
        max_length: None,
        pattern: None,
        format: None,
    };
}

impl<T> NumberRules<T> {
    /// Allows every number.
    pub const NONE: Self = NumberRules {
        minimum: None,
        maximum: None,
        multiple_of: None,
        not_zero: false,
    };
}

impl ArrayRules {
    /// Allows every array.
    pub const NONE: Self = ArrayRules {
        min_items: None,
        max_items: None,
        unique_items: false,
    };
}

impl<P> MapRules<P> {
    /// Allows every map.
    pub const NONE: Self = MapRules {
        min_properties: None,
        max_properties: None,
        key_pattern: None,
    };
}

impl<P: Borrow<Pattern>> StringRules<P> {
    /// Checks a string. The error describes what is wrong.
    pub fn check(&self, value: &str) -> Result<(), String> {
        let length = value.chars().count();
        match self.min_length {
            Some(1..) if length == 0 => return Err("must not be empty".into()),
            _ => count(length, self.min_length, self.max_length, "character")?,
        }
        match self.format {
            Some(format) if !format.admits(value) => Err(format!("must be {}, is {}", format.expected(), shown(value))),
            _ => matches(&self.pattern, value),
        }
    }
}

/// A number that can be checked for being a multiple of another.
pub trait Multiple: PartialOrd + Display + Copy {
    /// Whether it is an integer multiple of `unit`, which is not 0.
    fn is_multiple_of(self, unit: Self) -> bool;

    /// Whether it is 0.
    fn is_zero(self) -> bool;
}

macro_rules! whole_multiples {
    ($($kind:ident)*) => {
        $(impl Multiple for $kind {
            fn is_multiple_of(self, unit: Self) -> bool {
                self.checked_rem(unit).is_none_or(|rest| rest == 0)
            }

            fn is_zero(self) -> bool {
                self == 0
            }
        })*
    };
}
whole_multiples!(i8 i16 i32 i64 i128 u8 u16 u32 u64 u128);

impl Multiple for f64 {
    /// Compares decimal representations, so that 0.3 is a multiple of 0.1. Numbers with more than 28 digits are divided
    /// as floating-point numbers.
    fn is_multiple_of(self, unit: Self) -> bool {
        let decimal = |number: f64| Decimal::from_str_exact(&number.to_string());
        match (decimal(self), decimal(unit)) {
            (Ok(number), Ok(unit)) => number.checked_rem(unit).is_none_or(|rest| rest.is_zero()),
            _ => self % unit == 0.0,
        }
    }

    fn is_zero(self) -> bool {
        self == 0.0
    }
}

impl<T> NumberRules<T> {
    /// Whether there are no bounds.
    pub fn has_no_bounds(&self) -> bool {
        self.minimum.is_none() && self.maximum.is_none()
    }
}

impl<T: Multiple> NumberRules<T> {
    /// Whether `value` is within the bounds.
    pub fn admits(&self, value: T) -> bool {
        let too_low = self
            .minimum
            .is_some_and(|(bound, exclusive)| value < bound || exclusive && value == bound);
        let too_high = self
            .maximum
            .is_some_and(|(bound, exclusive)| value > bound || exclusive && value == bound);
        !too_low && !too_high
    }

    /// Checks a number. The error describes what is wrong.
    pub fn check(&self, value: T) -> Result<(), String> {
        if !self.admits(value) {
            return Err(format!("must be {self}, is {value}"));
        }
        if self.not_zero && value.is_zero() {
            return Err("must not be 0".into());
        }
        match self.multiple_of {
            Some(unit) if !value.is_multiple_of(unit) => Err(format!("must be a multiple of {unit}, is {value}")),
            _ => Ok(()),
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
    /// Checks the length of an array. The error describes what is wrong.
    pub fn check(&self, length: usize) -> Result<(), String> {
        count(length, self.min_items, self.max_items, "item")
    }

    /// Checks that the items are unique, if they must be. The error contains the indexes of two equal items.
    pub fn check_items<T: Serialize>(&self, items: &[T]) -> Result<(), String> {
        if !self.unique_items {
            return Ok(());
        }
        let mut seen = HashMap::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let value = serde_json::to_value(item).map_err(|error| error.to_string())?;
            if let Some(first) = seen.insert(canonical(value).to_string(), index) {
                return Err(format!(
                    "must not have equal items; items {first} and {index} are equal"
                ));
            }
        }
        Ok(())
    }
}

/// The canonical form of a value, which is the same for all equal values: members are sorted, and integers have no
/// decimal point.
pub(crate) fn canonical(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            members
                .into_iter()
                .map(|(name, value)| (name, canonical(value)))
                .collect()
        }
        Value::Array(items) => items.into_iter().map(canonical).collect(),
        Value::Number(number) => match number.as_f64() {
            // Above this, some integers have no `f64` representation.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => (float as i64).into(),
            _ => Value::Number(number),
        },
        other => other,
    }
}

impl<P: Borrow<Pattern>> MapRules<P> {
    /// Checks the number of members of a map. The error describes what is wrong.
    pub fn check(&self, length: usize) -> Result<(), String> {
        count(length, self.min_properties, self.max_properties, "member")
    }

    /// Checks a member name. The error describes what is wrong.
    pub fn check_key(&self, key: &str) -> Result<(), String> {
        matches(&self.key_pattern, key).map_err(|problem| {
            let pattern = self.key_pattern.as_ref().map(Borrow::borrow);
            let problem = pattern
                .and_then(|pattern| foreign_letter(pattern, key))
                .unwrap_or(problem);
            format!("the name {} {problem}", shown(key))
        })
    }
}

/// The error for a name that matches except for letters outside ASCII, if the pattern is a sequence of sets of characters.
fn foreign_letter(pattern: &Pattern, key: &str) -> Option<String> {
    let foreign = key.chars().find(|character| !character.is_ascii())?;
    let rest: String = key.chars().filter(char::is_ascii).collect();
    let allowed = last_set(pattern.text()).filter(|_| pattern.is_match(&rest))?;
    Some(format!("must not contain {foreign:?}; only {allowed} are allowed"))
}

/// The characters of the last set of a pattern such as `^[A-Z][A-Z0-9_]*$`, as `A-Z, 0-9 and _`.
fn last_set(pattern: &str) -> Option<String> {
    let (_, last) = pattern.rsplit_once('[')?;
    let (set, _) = last.split_once(']')?;
    if set.starts_with('^') || set.contains('\\') {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = set.chars().peekable();
    while let Some(first) = rest.next() {
        let mut part = first.to_string();
        if rest.next_if_eq(&'-').is_some() {
            part.push('-');
            part.extend(rest.next());
        }
        parts.push(part);
    }
    let last = parts.pop()?;
    Some(match parts.is_empty() {
        true => last,
        false => format!("{} and {last}", parts.join(", ")),
    })
}

/// The error for a text that is not a value of the enumeration.
pub(crate) fn not_among(values: &[&str], text: &str) -> String {
    let is_list = text.contains(',') && text.split(',').all(|item| values.contains(&item.trim()));
    let hint = match names::nearest(text, values.iter().copied()) {
        Some(near) => format!("; did you mean {near}?"),
        None if is_list => "; send only one of them".to_string(),
        None => String::new(),
    };
    format!("must be one of {}, is {}{hint}", values.join(", "), shown(text))
}

fn matches<P: Borrow<Pattern>>(pattern: &Option<P>, value: &str) -> Result<(), String> {
    match pattern.as_ref().map(Borrow::borrow) {
        Some(pattern) if !pattern.is_match(value) => Err(match not_admitted(pattern, value) {
            Some(character) => format!("must not contain {character:?} (U+{:04X})", u32::from(character)),
            None => format!("must match {}", pattern.text()),
        }),
        _ => Ok(()),
    }
}

/// The first character that a pattern does not allow, if the pattern only restricts the characters and also matches the
/// empty string.
fn not_admitted(pattern: &Pattern, value: &str) -> Option<char> {
    let admits = |character: char| pattern.is_match(character.encode_utf8(&mut [0; 4]));
    // Each character costs a match, so only the first ones of a long text are examined.
    let rejected = value.chars().take(1_000).find(|character| !admits(*character))?;
    let rest: String = value.chars().filter(|character| admits(*character)).collect();
    (pattern.is_match("") && pattern.is_match(&rest)).then_some(rejected)
}

fn count(length: usize, min: Option<usize>, max: Option<usize>, what: &str) -> Result<(), String> {
    let (low, high) = (min.unwrap_or(0), max.unwrap_or(usize::MAX));
    if (low..=high).contains(&length) {
        return Ok(());
    }
    // The singular form for a count of one.
    let plural = |count: usize| match count {
        1 => what.to_string(),
        _ => format!("{what}s"),
    };
    Err(match (min, max) {
        (Some(min), Some(max)) if min != max => format!("must have {min} to {max} {what}s, has {length}"),
        (Some(count), Some(_)) => format!("must have {count} {}, has {length}", plural(count)),
        (Some(min), None) => format!("must have at least {min} {}, has {length}", plural(min)),
        (_, max) => {
            let max = max.unwrap_or(high);
            format!("must have at most {max} {}, has {length}", plural(max))
        }
    })
}

/// The range of plausible values for one name of a map (`x-plausible-range`). Reading a map does not check it; the
/// server decides how to treat other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlausibleRange {
    /// The name.
    pub name: &'static str,
    /// The minimum plausible value.
    pub minimum: Decimal,
    /// The maximum plausible value.
    pub maximum: Decimal,
}

impl PlausibleRange {
    /// Whether `value` is plausible. The bounds are inclusive.
    pub fn holds(&self, value: Decimal) -> bool {
        (self.minimum..=self.maximum).contains(&value)
    }
}
