//! What a field may hold, a value of it, and why something is none.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use tokio_postgres::types::{IsNull, ToSql, Type as SqlType, to_sql_checked};
use uuid::Uuid;

use crate::names;

/// What a field may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Type {
    /// The thing's own id.
    Id,
    /// An organisation, by slug or id; whether it is a column of the table.
    Organization { stored: bool },
    /// A branch of the line's organisation, by code or id.
    Branch,
    /// A template of the line's organisation, by code or id.
    Template,
    /// A vehicle, by VIN or id.
    Vehicle,
    /// A report, by its number or id.
    Inspection,
    /// The name of an organisation in addresses.
    Slug,
    /// A name as commands accept it.
    Name,
    /// The same, for the code of a branch, which is stored a second time as it is compared.
    BranchCode,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A code in capitals.
    Code,
    /// The code of a point, as in measurements (MEA-4).
    Point,
    /// One line of text; whether it may say who somebody is.
    Line { personal: bool },
    /// Text of several lines, which may say who somebody is.
    Text,
    /// A number plate; stored in its normal form.
    Plate,
    /// A whole number.
    Integer { min: i64, max: i64 },
    /// A whole number of eight bytes, not negative.
    Size,
    /// A number of so many digits before and behind the point.
    Decimal {
        whole: u32,
        scale: u32,
        min: Decimal,
        max: Option<Decimal>,
    },
    /// Any number.
    Number,
    /// Yes or no.
    Bool,
    /// A moment with its offset.
    Time,
    /// The name of a stored object.
    ObjectKey,
    /// The points of a template.
    Points,
    /// The answers of a form.
    Answers,
}

impl Type {
    /// What a field of it holds, for people.
    pub(crate) fn holds(self) -> String {
        match self {
            Self::Id => "id".to_owned(),
            Self::Organization { .. } | Self::Branch | Self::Template | Self::Vehicle | Self::Inspection => {
                "name or id".to_owned()
            }
            Self::Slug => "a-z, 0-9, hyphens".to_owned(),
            Self::Name | Self::BranchCode => "name of up to 120 characters".to_owned(),
            Self::Words(words) => words.join(", "),
            Self::Code | Self::Point => "code of A-Z, 0-9 and _".to_owned(),
            Self::Line { .. } => "one line of text".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Plate => "plate".to_owned(),
            Self::Integer { min, max } if max >= i64::from(i32::MAX) && min < 0 => "whole number".to_owned(),
            Self::Integer { min, max } if max >= i64::from(i32::MAX) => format!("whole number from {min} on"),
            Self::Integer { min, max } => format!("whole number, {min} to {max}"),
            Self::Size => "whole number from 0 on".to_owned(),
            Self::Decimal { scale, .. } => format!("number of up to {scale} decimals"),
            Self::Number => "number".to_owned(),
            Self::Bool => "true, false".to_owned(),
            Self::Time => "time with its offset".to_owned(),
            Self::ObjectKey => "name of an object".to_owned(),
            Self::Points | Self::Answers => "list".to_owned(),
        }
    }
}

/// A value on its way into the database.
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
    /// A list as the text of a document, and how long it is.
    List(String, usize),
}

/// Why a cell holds no such value. What may say who somebody is is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// What it holds.
    pub found: Option<String>,
    /// What it should.
    pub expected: Cow<'static, str>,
}

impl Wrong {
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

/// A value that is no text of a person's, shortened, without what would move a terminal's cursor.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// `; did you mean X?`, if one of the words looks like it.
pub(crate) fn meant<S: AsRef<str>>(text: &str, words: &[S]) -> String {
    let words: Vec<String> = words.iter().map(|word| word.as_ref().to_owned()).collect();
    match names::alike(text, &words).first() {
        Some(word) => format!("; did you mean `{word}`?"),
        None => String::new(),
    }
}

/// A moment as files and documents hold it.
pub(crate) fn written(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

impl Value {
    /// As it stands in a document.
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
