//! Strings, numbers and their rules.

use codegen_runtime::{Format, NumberRules, Pattern};
use serde_json::json;

use crate::error::Problem;
use crate::keywords::{OF_TYPES, allow};
use crate::model::{IntegerKind, StringRules, Type};
use crate::node::Node;

pub fn string(node: &Node<'_>) -> Result<Type, Problem> {
    // A value with rules for its text is kept as text.
    let mut rules = ["minLength", "maxLength", "pattern"].iter();
    let has_rules = rules.any(|key| node.get(key).is_some());
    let places = node.count("x-decimal-places")?;
    match node.text_of("format")? {
        Some("decimal") if places.is_some() => {
            allow(node, &["type", "format", "pattern", "x-decimal-places"])?;
            let places = u32::try_from(places.unwrap_or_default());
            let places = places.map_err(|_| node.reject("`x-decimal-places` is too large"))?;
            Ok(Type::Decimal { places })
        }
        Some("date-time") if !has_rules => plain(node, Type::DateTime),
        Some("date") if !has_rules => plain(node, Type::Date),
        Some("byte") if !has_rules => plain(node, Type::Bytes),
        Some("uuid") if !has_rules => plain(node, Type::Uuid),
        format => {
            allow(node, &["type", "format", "minLength", "maxLength", "pattern"])?;
            let (min_length, max_length) = span(node, "minLength", "maxLength")?;
            Ok(Type::String(StringRules {
                min_length,
                max_length,
                pattern: pattern(node, "pattern")?,
                format: format.and_then(Format::named),
            }))
        }
    }
}

fn allow_number(node: &Node<'_>, more: Option<&str>) -> Result<(), Problem> {
    let known = ["type", "format"].into_iter().chain(more);
    let rules = OF_TYPES.into_iter().filter(|(ty, _)| *ty == "number");
    let rules = rules.flat_map(|(_, rules)| rules.iter().copied());
    allow(node, &known.chain(rules).collect::<Vec<_>>())
}

fn plain(node: &Node<'_>, ty: Type) -> Result<Type, Problem> {
    allow(node, &["type", "format"])?;
    Ok(ty)
}

/// Reads a minimum and a maximum count.
pub fn span(node: &Node<'_>, low: &str, high: &str) -> Result<(Option<usize>, Option<usize>), Problem> {
    let (min, max) = (node.count(low)?, node.count(high)?);
    match (min, max) {
        (Some(min), Some(max)) if min > max => {
            Err(node.reject(format!("no value can have `{low}: {min}` and `{high}: {max}`")))
        }
        _ => Ok((min, max)),
    }
}

/// Reads the regular expression in the member `key`.
pub fn pattern(node: &Node<'_>, key: &str) -> Result<Option<Pattern>, Problem> {
    let Some(place) = node.get(key) else { return Ok(None) };
    let text = place.text()?;
    let reject = |reason: String| place.reject(format!("`{text}` is not a valid ECMAScript pattern: {reason}"));
    regress::Regex::new(text).map_err(|error| reject(error.text))?;
    Pattern::compiled(text).map(Some).map_err(reject)
}

pub fn integer(node: &Node<'_>) -> Result<Type, Problem> {
    let not = node.get("not");
    if let Some(place) = not.as_ref().filter(|place| place.value() != &json!({})) {
        return Err(place.reject("on an integer, `not` is supported only as `not: {}`, with which Dropshot excludes 0"));
    }
    allow_number(node, not.as_ref().map(|_| "not"))?;
    let kind = IntegerKind::of_format(node.text_of("format")?);
    let mut rules = number_rules(node, |place| {
        let value = place.value();
        let whole = value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
        // Dropshot writes some integer bounds as `0.0`.
        let whole = whole.or_else(|| value.as_f64().filter(|it| it.fract() == 0.0).map(|it| it as i128));
        whole.ok_or_else(|| place.reject("must be an integer"))
    })?;
    rules.not_zero = not.is_some();
    let (low, high) = kind.range();
    let above = |(bound, exclusive): (i128, bool)| bound.saturating_add(exclusive.into());
    let below = |(bound, exclusive): (i128, bool)| bound.saturating_sub(exclusive.into());
    let (min, max) = (rules.minimum.map_or(low, above), rules.maximum.map_or(high, below));
    if min > high || max < low || rules.multiple_of.is_some_and(|unit| unit > high) {
        let name = kind.name();
        return Err(node.reject(format!(
            "the rules allow no value of this format, which ranges from {low} to {high} (`{name}`); use a wider format"
        )));
    }
    if min > max {
        return Err(node.reject(format!("no value can have `minimum: {min}` and `maximum: {max}`")));
    }
    Ok(Type::Integer { kind, rules })
}

/// Reads the rules of a number, using `read` to read their values.
fn number_rules<T: PartialOrd + Default>(
    node: &Node<'_>,
    read: impl Fn(&Node<'_>) -> Result<T, Problem>,
) -> Result<NumberRules<T>, Problem> {
    let bound = |key: &str, exclusive: &str| -> Result<Option<(T, bool)>, Problem> {
        let Some(place) = node.get(key) else { return Ok(None) };
        Ok(Some((read(&place)?, node.flag(exclusive)?)))
    };
    let multiple_of = match node.get("multipleOf") {
        None => None,
        Some(place) => match read(&place)? {
            unit if unit > T::default() => Some(unit),
            _ => return Err(place.reject("must be greater than 0")),
        },
    };
    Ok(NumberRules {
        minimum: bound("minimum", "exclusiveMinimum")?,
        maximum: bound("maximum", "exclusiveMaximum")?,
        multiple_of,
        not_zero: false,
    })
}

pub fn number(node: &Node<'_>) -> Result<Type, Problem> {
    if node.text_of("format")? == Some("decimal") {
        allow(node, &["type", "format", "x-max-significant-digits"])?;
        let digits = node.count("x-max-significant-digits")?.unwrap_or(28);
        if !(1..=28).contains(&digits) {
            return Err(node.reject("`x-max-significant-digits` must be from 1 to 28"));
        }
        let max_significant_digits = u32::try_from(digits).unwrap_or(28);
        return Ok(Type::ExactNumber { max_significant_digits });
    }
    allow_number(node, None)?;
    let rules = number_rules(node, |place| {
        place.value().as_f64().ok_or_else(|| place.reject("must be a number"))
    })?;
    Ok(Type::Number(rules))
}
