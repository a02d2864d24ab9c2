//! Strings, numbers and their rules.

use super::schema::allow;
use crate::Problem;
use crate::model::Type;
use crate::node::Node;

/// What may be declared of a number.
const BOUNDS: [&str; 6] = [
    "type",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

/// A schema with `type: string`.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn string(node: &Node<'_>) -> Result<Type, Problem> {
    match node.text_of("format")? {
        Some("decimal") => {
            allow(node, &["type", "format", "pattern", "x-decimal-places"])?;
            let places = node
                .count("x-decimal-places")?
                .ok_or_else(|| node.refuse("`format: decimal` needs `x-decimal-places`, the number of decimals"))?;
            let places = u32::try_from(places).map_err(|_| node.refuse("too many decimal places"))?;
            Ok(Type::Decimal { places })
        }
        Some("date-time") => plain(node, Type::DateTime),
        Some("date") => plain(node, Type::Date),
        Some("byte") => plain(node, Type::Bytes),
        Some("uuid") => plain(node, Type::Uuid),
        Some(format @ ("binary" | "time" | "partial-date-time")) => Err(node.refuse(format!(
            "a string of format `{format}` is not supported here; leave the format out and state a `pattern`"
        ))),
        _ => {
            allow(node, &["type", "format", "minLength", "maxLength", "pattern"])?;
            let (min_length, max_length) = span(node, "minLength", "maxLength")?;
            Ok(Type::String {
                min_length,
                max_length,
                pattern: pattern(node, "pattern")?,
            })
        }
    }
}

fn plain(node: &Node<'_>, ty: Type) -> Result<Type, Problem> {
    allow(node, &["type", "format"])?;
    Ok(ty)
}

/// Two counts of which the first must not be above the second.
///
/// # Errors
/// When it is, or one is no count.
pub fn span(node: &Node<'_>, low: &str, high: &str) -> Result<(Option<usize>, Option<usize>), Problem> {
    let (min, max) = (node.count(low)?, node.count(high)?);
    match (min, max) {
        (Some(least), Some(most)) if least > most => {
            Err(node.refuse(format!("no value can have `{low}: {least}` and `{high}: {most}`")))
        }
        _ => Ok((min, max)),
    }
}

/// The regular expression in the member `key`.
///
/// # Errors
/// When it is none, or none that Rust's engine takes.
pub fn pattern(node: &Node<'_>, key: &str) -> Result<Option<String>, Problem> {
    let Some(place) = node.get(key) else { return Ok(None) };
    let text = place.text()?;
    regex::Regex::new(text).map_err(|error| {
        // The engine's message draws the place under the pattern; its last line says what is wrong.
        let message = error.to_string();
        let last = message.lines().last().unwrap_or_default().trim();
        let reason = last.strip_prefix("error: ").unwrap_or(last);
        place.refuse(format!(
            "the pattern `{text}` does not compile in Rust's regex: {reason}"
        ))
    })?;
    Ok(Some(text.to_string()))
}

/// A schema with `type: integer`.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn integer(node: &Node<'_>) -> Result<Type, Problem> {
    allow(node, &BOUNDS)?;
    let kind = match node.text_of("format")? {
        Some("int8") => "i8",
        Some("int16") => "i16",
        Some("int32") => "i32",
        Some("int64") | None => "i64",
        Some("uint8") => "u8",
        Some("uint16") => "u16",
        Some("uint32") => "u32",
        Some("uint64" | "uint") => "u64",
        Some(other) => {
            return Err(node.refuse(format!(
                "integer format `{other}` is unknown; use int8 to int64 or uint8 to uint64"
            )));
        }
    };
    let bound = |key: &str, exclusive: &str| -> Result<Option<(i128, bool)>, Problem> {
        let Some(place) = node.get(key) else { return Ok(None) };
        let value = place.value();
        let whole = value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
        // Dropshot writes some whole bounds as `0.0`.
        let whole = whole.or_else(|| value.as_f64().filter(|it| it.fract() == 0.0).map(|it| it as i128));
        let value = whole.ok_or_else(|| place.refuse("must be a whole number"))?;
        Ok(Some((value, node.flag(exclusive)?)))
    };
    let minimum = bound("minimum", "exclusiveMinimum")?;
    let maximum = bound("maximum", "exclusiveMaximum")?;
    if let (Some((least, _)), Some((most, _))) = (minimum, maximum)
        && least > most
    {
        return Err(node.refuse(format!("no value can have `minimum: {least}` and `maximum: {most}`")));
    }
    Ok(Type::Integer { kind, minimum, maximum })
}

/// The least and the greatest value of an integer type.
pub fn range(kind: &str) -> (i128, i128) {
    match kind {
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" => (0, u64::MAX.into()),
        _ => (i64::MIN.into(), i64::MAX.into()),
    }
}

/// A schema with `type: number`.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn number(node: &Node<'_>) -> Result<Type, Problem> {
    if node.text_of("format")? == Some("decimal") {
        allow(node, &["type", "format", "x-max-significant-digits"])?;
        let digits = node.count("x-max-significant-digits")?.unwrap_or(28);
        if !(1..=28).contains(&digits) {
            return Err(node.refuse("`x-max-significant-digits` must be from 1 to 28"));
        }
        return Ok(Type::ExactNumber {
            max_significant_digits: u32::try_from(digits).unwrap_or(28),
        });
    }
    allow(node, &BOUNDS)?;
    let bound = |key: &str, exclusive: &str| -> Result<Option<(f64, bool)>, Problem> {
        let Some(place) = node.get(key) else { return Ok(None) };
        let value = place.value().as_f64().ok_or_else(|| place.refuse("must be a number"))?;
        Ok(Some((value, node.flag(exclusive)?)))
    };
    Ok(Type::Number {
        minimum: bound("minimum", "exclusiveMinimum")?,
        maximum: bound("maximum", "exclusiveMaximum")?,
    })
}
