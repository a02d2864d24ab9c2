//! Types of fields, their values, and errors of values.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use tokio_postgres::types::{IsNull, ToSql, Type as SqlType, to_sql_checked};
use uuid::Uuid;

use crate::names;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Type {
    /// The ID of the row.
    Id,
    /// An organization, by slug or ID.
    Organization,
    /// A branch of the line's organization, by code or ID.
    Branch,
    /// A template of the line's organization, by code or ID.
    Template,
    /// A vehicle, by VIN or ID.
    Vehicle,
    /// A report, by its number or ID.
    Inspection,
    /// A slug.
    Slug,
    /// A name, as for commands.
    Name,
    /// The code of a branch, which is also stored case-folded.
    BranchCode,
    /// One of these words.
    Words(&'static [&'static str]),
    /// An upper-case code.
    Code,
    /// The code of a point, as in measurements (MEA-4).
    Point,
    /// One line of text; says whether it may contain personal data.
    Line { personal: bool },
    /// Multi-line text, which may contain personal data.
    Text,
    /// A number plate; stored in its normal form.
    Plate,
    /// A whole number.
    Integer { min: i64, max: i64 },
    /// A non-negative 64-bit integer.
    Size,
    /// A decimal with limited digits before and after the point.
    Decimal {
        whole: u32,
        scale: u32,
        min: Decimal,
        max: Option<Decimal>,
    },
    /// Any number.
    Number,
    /// A Boolean.
    Bool,
    /// A time with its offset.
    Time,
    /// The name of a stored object.
    ObjectKey,
    /// The statuses of a template.
    Statuses,
    /// The kinds of photos of a template.
    PhotoKinds,
    /// The points of a template.
    Points,
    /// The answers of a form.
    Answers,
}

impl Type {
    /// Describes the values for people.
    pub(crate) fn holds(self) -> String {
        match self {
            Self::Id => "id".to_owned(),
            Self::Organization | Self::Branch | Self::Template | Self::Vehicle | Self::Inspection => {
                "name or ID".to_owned()
            }
            Self::Slug => "a-z, 0-9, hyphens".to_owned(),
            Self::Name | Self::BranchCode => "name of up to 120 characters".to_owned(),
            Self::Words(words) => words.join(", "),
            Self::Code | Self::Point => "code of A-Z, 0-9 and _".to_owned(),
            Self::Line { .. } => "one line of text".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Plate => "plate".to_owned(),
            Self::Integer { min, max } if max >= i64::from(i32::MAX) && min < 0 => "whole number".to_owned(),
            Self::Integer { min, max } if max >= i64::from(i32::MAX) => format!("whole number of at least {min}"),
            Self::Integer { min, max } => format!("whole number, {min} to {max}"),
            Self::Size => "whole number of at least 0".to_owned(),
            Self::Decimal { scale, .. } => format!("number with up to {scale} decimals"),
            Self::Number => "number".to_owned(),
            Self::Bool => "true, false".to_owned(),
            Self::Time => "time with its offset".to_owned(),
            Self::ObjectKey => "object name".to_owned(),
            Self::Points | Self::Answers | Self::Statuses | Self::PhotoKinds => "list".to_owned(),
        }
    }
}

/// A parsed value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Uuid(Uuid),
    Uuids(Vec<Uuid>),
    Text(String),
    Int(i32),
    Long(i64),
    Decimal(Decimal),
    Bool(bool),
    Time(DateTime<Utc>),
    /// A list as JSON text, and its length.
    List(String, usize),
}

/// Why the value of a cell is not valid. Never contains personal data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CellError {
    /// The value found.
    pub found: Option<String>,
    /// The value expected.
    pub expected: Cow<'static, str>,
}

impl CellError {
    pub(crate) fn expected(expected: impl Into<Cow<'static, str>>) -> Self {
        Self {
            found: None,
            expected: expected.into(),
        }
    }

    pub(super) fn found(found: &str, expected: impl Into<Cow<'static, str>>) -> Self {
        Self {
            found: Some(shown(found)),
            expected: expected.into(),
        }
    }

    pub(super) fn hidden(text: &str, expected: impl Into<Cow<'static, str>>) -> Self {
        Self {
            found: Some(format!("a text of {} characters", text.chars().count())),
            expected: expected.into(),
        }
    }
}

/// Shortens a value and removes control characters. Not for personal data.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// Returns `; did you mean X?` if one of the words is similar.
pub(crate) fn suggestion<S: AsRef<str>>(text: &str, words: &[S]) -> String {
    let words: Vec<String> = words.iter().map(|word| word.as_ref().to_owned()).collect();
    match names::similar(text, &words).first() {
        Some(word) => format!("; did you mean `{word}`?"),
        None => String::new(),
    }
}

/// Formats a time for files and documents.
pub(crate) fn written(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

impl Value {
    /// Formats the value as JSON.
    pub(crate) fn json(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Self::Null | Self::Uuids(_) => "null".to_owned(),
            Self::Uuid(id) => quoted(&id.to_string()),
            Self::Text(text) => quoted(text),
            Self::Int(number) => number.to_string(),
            Self::Long(number) => number.to_string(),
            Self::Decimal(number) => number.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::Time(time) => quoted(&written(*time)),
            Self::List(text, _) => text.clone(),
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self, of: &SqlType, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Uuid(value) => value.to_sql(of, out),
            Self::Uuids(value) => value.to_sql(of, out),
            Self::Text(value) => value.to_sql(of, out),
            Self::Int(value) => value.to_sql(of, out),
            Self::Long(value) => value.to_sql(of, out),
            Self::Decimal(value) => value.to_sql(of, out),
            Self::Bool(value) => value.to_sql(of, out),
            Self::Time(value) => value.to_sql(of, out),
            Self::List(text, _) => {
                // The version of jsonb's binary form. The text goes as it is, so that numbers keep their digits.
                out.put_u8(1);
                out.put_slice(text.as_bytes());
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &SqlType) -> bool {
        true
    }

    to_sql_checked!();
}
