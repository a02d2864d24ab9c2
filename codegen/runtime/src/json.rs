//! Parsing and validating complete JSON documents.

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, Visitor};
use serde::forward_to_deserialize_any;
use serde_path_to_error::Segment;

use crate::validation::{Path, ValidationError, ValidationErrors};
use crate::{diagnosis, plain, syntax};

/// The maximum nesting of arrays and objects, which is serde_json's limit. serde_json counts only the levels that it
/// reads into a type, and starts again for each alternative of a union. The nesting of the whole document is therefore
/// checked first, so that a recursive type cannot overflow the stack.
pub const MAX_DEPTH: usize = 127;

/// The maximum size in bytes of a document in which all errors are collected. Locating them costs many times as much as
/// reading the document, and a caller determines its size.
pub const MAX_DIAGNOSED: usize = 64 * 1024;

/// Reads a JSON document: valid UTF-8, nested at most [`MAX_DEPTH`] levels deep, and followed only by white space.
///
/// # Errors
/// All errors up to a limit, each with its place. For invalid JSON and for a document of more than [`MAX_DIAGNOSED`] bytes,
/// only the first. If that one is after the first [`MAX_DIAGNOSED`] bytes, its line and column replace its path.
pub fn read<T: DeserializeOwned + JsonSchema>(bytes: &[u8]) -> Result<T, ValidationErrors> {
    if let Some(offset) = too_deep(bytes) {
        let place = syntax::position(bytes, offset);
        let message = format!("must not be nested deeper than {MAX_DEPTH} levels{place}");
        return Err(ValidationError::in_body(&Path::default(), message).into());
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(no_utf8(bytes, error.valid_up_to()).into()),
    };
    serde_json::from_str(text).map_err(|error| errors_in::<T>(text, &error))
}

/// The errors in a rejected document. They are located only now, because most documents are valid.
fn errors_in<T: DeserializeOwned + JsonSchema>(text: &str, error: &serde_json::Error) -> ValidationErrors {
    let is_large = text.len() > MAX_DIAGNOSED;
    // The rest of a large document is not read.
    if !(is_large && error.is_data()) && serde_json::from_str::<IgnoredAny>(text).is_err() {
        // ASCII encoded in two bytes per character is also valid UTF-8.
        return match other_encoding(text.as_bytes()) {
            Some(error) => error.into(),
            None if is_large => {
                let message = format!("is not valid JSON (line {}, column {})", error.line(), error.column());
                ValidationError::in_body(&Path::default(), message).into()
            }
            None => syntax::error(text).into(),
        };
    }
    let all = if is_large { None } else { diagnosis::errors::<T>(text) };
    all.unwrap_or_else(|| reader_error::<T>(text, error).into())
}

/// The reader's error, for a large document or one in which the schema alone reveals none.
fn reader_error<T: DeserializeOwned>(text: &str, error: &serde_json::Error) -> ValidationError {
    // Finding the path means reading everything before the error again, and copying the name of each member.
    let lines_before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    if lines_before.map(str::len).sum::<usize>() + error.column() > MAX_DIAGNOSED {
        let message = format!(
            "{} (line {}, column {})",
            message_of(error),
            error.line(),
            error.column()
        );
        return ValidationError::in_body(&Path::default(), message);
    }
    let mut document = serde_json::Deserializer::from_str(text);
    let Err(placed) = serde_path_to_error::deserialize::<_, T>(&mut document) else {
        return ValidationError::in_body(&Path::default(), message_of(error));
    };
    let mut path = Path::default();
    for segment in placed.path() {
        path = match segment {
            Segment::Seq { index } => path.item(*index),
            Segment::Map { key } => path.member(key),
            Segment::Enum { variant } => path.member(variant),
            Segment::Unknown => path,
        };
    }
    ValidationError::in_body(&path, message_of(placed.inner()))
}

fn message_of(error: &serde_json::Error) -> String {
    match error.is_data() {
        true => plain::message(&plain::without_position(error)),
        false => "has text or a number that is not valid in JSON".to_string(),
    }
}

/// The error for bytes that are not UTF-8.
fn no_utf8(bytes: &[u8], offset: usize) -> ValidationError {
    other_encoding(bytes).unwrap_or_else(|| {
        let before = std::str::from_utf8(&bytes[..offset]).unwrap_or_default();
        let place = syntax::position(bytes, offset);
        let message = format!("is not UTF-8 (ISO-8859-9 or Windows-1254?); send UTF-8{place}");
        let path = match bytes.len() > MAX_DIAGNOSED {
            true => Path::default(),
            false => syntax::end_of(before),
        };
        ValidationError::in_body(&path, message)
    })
}

/// The error for bytes that start like another encoding.
fn other_encoding(bytes: &[u8]) -> Option<ValidationError> {
    let message = match bytes {
        [0x1f, 0x8b, ..] => "is compressed (gzip); compressed bodies are not accepted, send the JSON itself",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [_, 0, ..] | [0, _, ..] => "is UTF-16; send UTF-8",
        _ => return None,
    };
    Some(ValidationError::in_body(&Path::default(), message))
}

/// The offset of the first array or object that is nested too deep. Errors in the syntax are ignored.
fn too_deep(bytes: &[u8]) -> Option<usize> {
    // A document with so few brackets cannot be nested too deep.
    if bytes.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() <= MAX_DEPTH {
        return None;
    }
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    for (offset, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Some(offset);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// A deserializer that accepts only objects. serde's derived implementation for structs also accepts arrays.
pub struct OnlyObject<D>(pub D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for OnlyObject<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Implements `Deserialize` for a struct with `#[serde(remote = "Self")]`, accepting only objects.
#[macro_export]
macro_rules! read_object {
    ($name:ident) => {
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> ::core::result::Result<Self, D::Error> {
                // This calls the derived function, because inherent functions take precedence over those of traits.
                Self::deserialize($crate::json::OnlyObject(deserializer))
            }
        }
    };
}

/// Implements `Serialize` for a struct with `#[serde(remote = "Self")]`, which [`read_object`] requires.
#[macro_export]
macro_rules! write_object {
    ($name:ident) => {
        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }
    };
}
