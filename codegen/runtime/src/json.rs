//! JSON documents, read whole and only as what they are.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde::forward_to_deserialize_any;

/// How deep arrays and objects may be nested: as deep as serde_json goes. It counts only what it reads into a type, and
/// begins anew where an alternative of a union is read; here the whole document is measured before it is read, so that
/// no type that holds itself can use up the stack.
pub const DEEPEST: usize = 127;

/// Why a document was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonRefusal {
    /// The member, `measurements[2].value`; empty for the document itself.
    pub path: String,
    /// What is wrong there and what would be right: a fragment, which may quote a part of the document.
    pub reason: String,
    /// The line where reading ended, from 1.
    pub line: usize,
    /// The byte in that line, from 1; 0 where the line before it had ended.
    pub column: usize,
}

impl fmt::Display for JsonRefusal {
    /// `measurements[2].value: must be a number at line 1 column 9`, as serde and Dropshot write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        let JsonRefusal {
            reason, line, column, ..
        } = self;
        write!(f, "{reason} at line {line} column {column}")
    }
}

impl std::error::Error for JsonRefusal {}

/// Reads the one JSON document that `bytes` are: UTF-8 to the last byte, nested at most [`DEEPEST`] deep, with nothing
/// but white space after it.
///
/// # Errors
/// The first thing that is wrong, with its member and place.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, JsonRefusal> {
    let text = std::str::from_utf8(bytes).map_err(|error| at(bytes, error.valid_up_to(), "must be UTF-8"))?;
    if let Some(offset) = too_deep(bytes) {
        let reason = format!("must not be nested deeper than {DEEPEST} levels");
        return Err(at(bytes, offset, &reason));
    }
    // Keeping the path costs an allocation a member: only what is refused is read again for it.
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => Err(match with_path::<T>(text) {
            Some(refusal) => refusal,
            None => refusal(String::new(), &error),
        }),
    }
}

/// The refusal with its path; `None` where the document itself is in order, and something follows it.
fn with_path<T: DeserializeOwned>(text: &str) -> Option<JsonRefusal> {
    let mut document = serde_json::Deserializer::from_str(text);
    let error = serde_path_to_error::deserialize::<_, T>(&mut document).err()?;
    // The document's own place is written as a dot.
    let path = match error.path().to_string() {
        path if path == "." => String::new(),
        path => path,
    };
    Some(refusal(path, error.inner()))
}

fn refusal(path: String, error: &serde_json::Error) -> JsonRefusal {
    JsonRefusal {
        path,
        reason: without_position(error),
        line: error.line(),
        column: error.column(),
    }
}

fn at(bytes: &[u8], offset: usize, reason: &str) -> JsonRefusal {
    let before = &bytes[..offset];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    JsonRefusal {
        path: String::new(),
        reason: reason.to_string(),
        line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        column: offset - line_start + 1,
    }
}

/// Where the first array or object that is too deep begins. Of what is no JSON, nothing is said.
fn too_deep(bytes: &[u8]) -> Option<usize> {
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
                if depth > DEEPEST {
                    return Some(offset);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// A JSON error's text without its line and column.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&position) {
        Some(reason) => reason.to_string(),
        None => text,
    }
}

/// Reads nothing but an object: what serde derives for a struct would also take an array of its members.
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

/// Reads a struct, whose derived reading is `#[serde(remote = "Self")]`, from an object alone.
#[macro_export]
macro_rules! read_object {
    ($name:ident) => {
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> ::core::result::Result<Self, D::Error> {
                // The derived function, not this one: what belongs to the type itself comes before a trait's.
                Self::deserialize($crate::json::OnlyObject(deserializer))
            }
        }
    };
}

/// Writes a struct as derived with `#[serde(remote = "Self")]`, which [`read_object`] needs.
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
