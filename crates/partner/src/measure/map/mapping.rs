//! The mapping from the columns of an export to the members of a package.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use chrono::{DateTime, FixedOffset, NaiveDateTime, Utc};
use rust_decimal::Decimal;
use serde::Deserialize;

use super::records::Record;
use crate::measure::package::Point;

/// A mapping file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::measure) struct Mapping {
    /// The character encoding of the export; UTF-8, or UTF-16 with a byte-order mark, if it is absent.
    pub(super) encoding: Option<String>,
    /// The separator of a CSV file.
    #[serde(default = "comma")]
    pub(super) separator: char,
    /// The decimal separator of the values.
    #[serde(default = "dot")]
    decimal: char,
    /// The name of the element of an XML file that is a record.
    pub(super) record: Option<String>,
    pub(super) branch_code: Field,
    pub(super) plate: Field,
    pub(super) external_id: Option<Field>,
    pub(super) device_serial: Option<Field>,
    measured_at: Option<Time>,
    points: BTreeMap<String, MappedPoint>,
}

/// A text from a column, or a constant.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum Field {
    Column { column: String },
    Value { value: String },
}

/// A time, with its format and its UTC offset if the format contains none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Time {
    column: String,
    format: String,
    offset: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MappedPoint {
    column: String,
    #[serde(default)]
    unit: Unit,
}

/// The unit of a column. Forces become kilonewtons; all other values stay as they are.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
enum Unit {
    #[default]
    #[serde(rename = "unchanged")]
    Unchanged,
    #[serde(rename = "kN")]
    Kilonewton,
    #[serde(rename = "daN")]
    Decanewton,
    #[serde(rename = "N")]
    Newton,
}

fn comma() -> char {
    ','
}

fn dot() -> char {
    '.'
}

impl Unit {
    /// Returns the number by which a value is multiplied.
    fn factor(self) -> Decimal {
        match self {
            Self::Unchanged | Self::Kilonewton => Decimal::ONE,
            Self::Decanewton => Decimal::new(1, 2),
            Self::Newton => Decimal::new(1, 3),
        }
    }
}

impl Field {
    /// Returns the text for a record.
    pub(super) fn of(&self, record: &Record) -> String {
        match self {
            Self::Column { column } => record.cell(column).to_owned(),
            Self::Value { value } => value.clone(),
        }
    }

    fn column(&self) -> Option<&str> {
        match self {
            Self::Column { column } => Some(column),
            Self::Value { .. } => None,
        }
    }
}

impl Mapping {
    /// Parses a mapping file.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mapping: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        match mapping.decimal {
            '.' | ',' => Ok(mapping),
            other => Err(format!("decimal must be . or , and is {other:?}")),
        }
    }

    /// Returns the columns that the mapping names.
    pub(super) fn columns(&self) -> Vec<&str> {
        let fields = [
            Some(&self.branch_code),
            Some(&self.plate),
            self.external_id.as_ref(),
            self.device_serial.as_ref(),
        ];
        let fields = fields.into_iter().flatten().filter_map(Field::column);
        let time = self.measured_at.iter().map(|time| time.column.as_str());
        let points = self.points.values().map(|point| point.column.as_str());
        fields.chain(time).chain(points).collect()
    }

    /// Returns the measured values of a record. An empty cell was not measured.
    pub(super) fn points(&self, record: &Record) -> Result<Vec<Point>, String> {
        let mut points = Vec::new();
        for (code, point) in &self.points {
            let text = record.cell(&point.column);
            if text.is_empty() {
                continue;
            }
            let value = self
                .number(text)
                .map_err(|error| format!("{}: {error}", point.column))?;
            let value = value.checked_mul(point.unit.factor());
            let value = value.ok_or_else(|| format!("{}: {text} is too large", point.column))?;
            points.push(Point::read(&format!("{code}={value}"))?);
        }
        if points.is_empty() {
            return Err("has no measured values".to_owned());
        }
        Ok(points)
    }

    /// Parses a number with the file's decimal separator. Thousands separators are rejected, because one of them could be a decimal
    /// separator.
    fn number(&self, text: &str) -> Result<Decimal, String> {
        let other = if self.decimal == ',' { '.' } else { ',' };
        if text.contains(other) {
            return Err(format!(
                "`{text}` contains {other:?}, but the decimal separator is {:?}",
                self.decimal
            ));
        }
        let plain = text.replace(self.decimal, ".");
        if !plain
            .chars()
            .all(|character| character.is_ascii_digit() || "+-.".contains(character))
        {
            return Err(format!("`{text}` is not a number"));
        }
        Decimal::from_str(&plain).map_err(|_| format!("`{text}` is not a number"))
    }

    /// Returns the time of a record.
    pub(super) fn measured_at(&self, record: &Record) -> Result<Option<DateTime<Utc>>, String> {
        let Some(time) = &self.measured_at else { return Ok(None) };
        let text = record.cell(&time.column);
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = |error: chrono::ParseError| {
            format!(
                "{}: `{text}` does not have the format {}: {error}",
                time.column, time.format
            )
        };
        let parsed = match &time.offset {
            None => DateTime::parse_from_str(text, &time.format).map_err(wrong)?,
            Some(offset) => {
                let offset: FixedOffset = offset
                    .parse()
                    .map_err(|_| format!("`{offset}` must be a UTC offset such as +03:00"))?;
                let local = NaiveDateTime::parse_from_str(text, &time.format).map_err(wrong)?;
                let at = local.and_local_timezone(offset).single();
                at.ok_or_else(|| format!("{}: `{text}` is not a time", time.column))?
            }
        };
        Ok(Some(parsed.with_timezone(&Utc)))
    }
}
