//! Parses the values of cells of both formats, and describes those that are not valid.

use std::borrow::Cow;

use chrono::{DateTime, Datelike as _, DurationRound as _, TimeDelta, Utc};
use partner_api_domain::plate::Plate;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::value::{CellError, Type, Value, shown, suggestion, written};
use crate::names;

/// The maximum lengths of single-line and multi-line texts, in characters.
const LINE: usize = 500;
const TEXT: usize = 100_000;

/// The tolerance for the clocks of the exporting system and of this machine.
const CLOCK_TOLERANCE: TimeDelta = TimeDelta::days(1);

/// The earliest year of a time. Earlier ones come from a device or an export that has lost the date.
const FIRST_YEAR: i32 = 1950;

/// A field of a line before parsing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    /// Missing, null, or an empty cell.
    Nothing,
    /// A cell of a CSV file.
    Csv(&'a str),
    /// A JSON value as written.
    Json(&'a str),
}

impl<'a> Cell<'a> {
    /// Returns its text, if it is a text.
    pub(crate) fn text(self) -> Result<Cow<'a, str>, CellError> {
        match self {
            Self::Nothing => Ok(Cow::Borrowed("")),
            Self::Csv(text) => Ok(Cow::Borrowed(text)),
            Self::Json(raw) => match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
                None => Err(CellError {
                    found: Some(kind_of(raw).to_owned()),
                    expected: Cow::Borrowed("a text, in quotes"),
                }),
                Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
                Some(_) => serde_json::from_str(raw)
                    .map(Cow::Owned)
                    .map_err(|_| CellError::expected("a text whose escapes are characters")),
            },
        }
    }

    /// Returns the text of a number, `true` or `false`; a value in quotes is an error.
    fn unquoted(self, expected: &'static str) -> Result<&'a str, CellError> {
        match self {
            Self::Nothing => Ok(""),
            Self::Csv(text) => Ok(text),
            Self::Json(raw) if raw.starts_with('"') => Err(CellError {
                found: Some(format!("{}, in quotes", shown(raw.trim_matches('"')))),
                expected: Cow::Owned(format!("{expected}, without quotes")),
            }),
            Self::Json(raw) if raw.starts_with(['[', '{']) => Err(CellError {
                found: Some(kind_of(raw).to_owned()),
                expected: Cow::Borrowed(expected),
            }),
            Self::Json(raw) => Ok(raw),
        }
    }
}

/// Returns the kind of a JSON value.
pub(crate) fn kind_of(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'"') => "a text",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Parses a cell that is not empty. References, points and answers are parsed where their targets are known.
pub(crate) fn read(of: Type, cell: Cell<'_>) -> Result<Value, CellError> {
    match of {
        Type::Integer { min, max } => {
            let number = integer(cell.unquoted("a whole number")?)?;
            match i32::try_from(number) {
                Ok(value) if (min..=max).contains(&number) => Ok(Value::Int(value)),
                _ => Err(CellError::found(
                    &number.to_string(),
                    format!("a whole number from {min} to {max}"),
                )),
            }
        }
        Type::Size => match integer(cell.unquoted("a whole number")?)? {
            number if number >= 0 => Ok(Value::Long(number)),
            number => Err(CellError::found(&number.to_string(), "a whole number of at least 0")),
        },
        Type::Decimal { whole, scale, min, max } => decimal(cell.unquoted("a number")?, whole, scale, min, max),
        Type::Number => number(cell.unquoted("a number")?).map(Value::Decimal),
        Type::Bool => match cell.unquoted("true or false")? {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            other => Err(CellError::found(other, "true or false")),
        },
        Type::Time => time(&cell.text()?).map(Value::Time),
        _ => text(of, &cell.text()?),
    }
}

fn text(of: Type, text: &str) -> Result<Value, CellError> {
    let plain = |text: &str| !text.chars().any(char::is_control);
    let right = match of {
        Type::Id => {
            return Uuid::try_parse(text)
                .map(Value::Uuid)
                .map_err(|_| CellError::found(text, "an ID, like 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f"));
        }
        Type::Plate => {
            return Plate::parse(text)
                .map(|plate| Value::Text(plate.into()))
                .map_err(|error| CellError::hidden(text, format!("a plate: it {error}")));
        }
        Type::Words(words) => {
            let expected = || format!("one of {}{}", words.join(", "), suggestion(text, words));
            words
                .contains(&text)
                .then_some(())
                .ok_or_else(|| CellError::found(text, expected()))
        }
        Type::Slug => crate::organization::slug(text)
            .map(drop)
            .map_err(|error| CellError::found(text, error.trim_start_matches("expected ").to_owned())),
        Type::Name | Type::BranchCode => names::invalid_name(text).map_or(Ok(()), |reason| {
            Err(CellError::found(text, format!("a name; {reason}")))
        }),
        Type::Code => {
            let code = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            ((1..=64).contains(&text.len()) && text.bytes().all(code))
                .then_some(())
                .ok_or_else(|| CellError::found(text, "a code of 1 to 64 characters of A-Z, 0-9 and _, like SEDAN"))
        }
        Type::Point => crate::point::is_point(text).then_some(()).ok_or_else(|| {
            CellError::found(
                text,
                "a code of 1 to 64 characters of A-Z, 0-9 and _, starting with a letter, like SLIP_FRONT",
            )
        }),
        Type::ObjectKey => partner_api::storage::is_key(text).then_some(()).ok_or_else(|| {
            CellError::found(
                text,
                "an object name: A-Z, a-z, 0-9, - _ and . in parts joined by /, like photos/1.jpg",
            )
        }),
        Type::Line { personal } => {
            let mismatch = |expected: String| {
                if personal {
                    CellError::hidden(text, expected)
                } else {
                    CellError::found(text, expected)
                }
            };
            if !plain(text) {
                Err(mismatch(
                    "one line of text, without tabs and other control characters".to_owned(),
                ))
            } else if text.chars().count() > LINE {
                Err(mismatch(format!("at most {LINE} characters")))
            } else {
                Ok(())
            }
        }
        _ if text.contains('\0') => Err(CellError::hidden(text, "a text without NUL characters")),
        _ if text.chars().count() > TEXT => Err(CellError::hidden(text, format!("at most {TEXT} characters"))),
        _ => Ok(()),
    };
    right.map(|()| Value::Text(text.to_owned()))
}

fn integer(text: &str) -> Result<i64, CellError> {
    text.parse()
        .map_err(|_| CellError::found(text, "a whole number, without a decimal point or separators"))
}

fn number(text: &str) -> Result<Decimal, CellError> {
    if text.contains(',') {
        let point = match text.rsplit_once(',') {
            Some((whole, decimals)) => format!("{}.{decimals}", whole.replace(['.', ','], "")),
            None => String::new(),
        };
        let digits = |byte: u8| byte.is_ascii_digit() || byte == b'.' || byte == b'-';
        let like = if point.bytes().all(digits) {
            format!(": write {point}")
        } else {
            String::new()
        };
        return Err(CellError::found(
            text,
            format!("a number with a decimal point and without thousands separators{like}"),
        ));
    }
    let begins = |character: char| character.is_ascii_digit() || character == '-';
    let all = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b".-+eE".contains(&byte));
    let plain = (all && text.starts_with(begins)).then(|| match text.contains(['e', 'E']) {
        true => Decimal::from_scientific(text),
        false => Decimal::from_str_exact(text),
    });
    match plain {
        Some(Ok(number)) => Ok(number),
        _ => Err(CellError::found(text, "a number of up to 28 digits, like 12.5")),
    }
}

fn decimal(text: &str, whole: u32, scale: u32, min: Decimal, max: Option<Decimal>) -> Result<Value, CellError> {
    let number = number(text)?;
    if number.normalize().scale() > scale {
        return Err(CellError::found(text, format!("at most {scale} decimals")));
    }
    if number < min {
        return Err(CellError::found(text, format!("a number of at least {min}")));
    }
    if let Some(max) = max
        && number > max
    {
        return Err(CellError::found(text, format!("a number of at most {max}")));
    }
    if number.abs() >= Decimal::from(10_i64.pow(whole)) {
        return Err(CellError::found(
            text,
            format!("at most {whole} digits before the decimal point"),
        ));
    }
    Ok(Value::Decimal(number))
}

/// Parses a time. All times of imported data are in the past, because they say when something was written, photographed or set.
fn time(text: &str) -> Result<DateTime<Utc>, CellError> {
    let expected = "a time with its offset, like 2026-05-11T09:30:00+03:00";
    let time = DateTime::parse_from_rfc3339(text).map_err(|_| CellError::found(text, expected))?;
    let time = time.to_utc();
    if time > Utc::now() + CLOCK_TOLERANCE {
        return Err(CellError::found(&written(time), "a time that is not in the future"));
    }
    if time.year() < FIRST_YEAR {
        return Err(CellError::found(&written(time), format!("a time from {FIRST_YEAR} on")));
    }
    // The database keeps microseconds.
    time.duration_trunc(TimeDelta::microseconds(1)).or(Ok(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Type = Type::Decimal {
        whole: 10,
        scale: 2,
        min: Decimal::ZERO,
        max: None,
    };

    #[test]
    fn a_cell_is_parsed_or_an_error_names_the_expected_value() {
        let year = Type::Integer { min: 1900, max: 2100 };
        for (of, cell, expected) in [
            (PRICE, "2500.00", "2500.00"),
            (PRICE, "1e3", "1000"),
            (
                PRICE,
                "1,5",
                "found `1,5`; a number with a decimal point and without thousands separators: write 1.5",
            ),
            (PRICE, "1.250,75", "write 1250.75"),
            (PRICE, "1.005", "at most 2 decimals"),
            (PRICE, "-1", "a number of at least 0"),
            (PRICE, "12345678901", "at most 10 digits before the decimal point"),
            (PRICE, "NaN", "a number of up to 28 digits"),
            (PRICE, ".5", "a number of up to 28 digits"),
            (year, "2021", "2021"),
            (year, "21", "found `21`; a whole number from 1900 to 2100"),
            (year, "2021.0", "a whole number, without a decimal point"),
            (Type::Bool, "yes", "found `yes`; true or false"),
            (
                Type::Words(&["NONE", "MASKED"]),
                "MASKD",
                "one of NONE, MASKED; did you mean `MASKED`?",
            ),
            (
                Type::Time,
                "2026-05-11T09:30:00+03:00",
                "\"2026-05-11T06:30:00.000000Z\"",
            ),
            (Type::Time, "2026-05-11T09:30:00", "a time with its offset"),
            (Type::Time, "2999-05-11T09:30:00Z", "a time that is not in the future"),
            (Type::Time, "1949-05-11T09:30:00Z", "a time from 1950 on"),
            (Type::Time, "2026-02-30T09:30:00Z", "a time with its offset"),
            (Type::Plate, "34 abc 123", "\"34ABC123\""),
            (Type::Point, "slip", "like SLIP_FRONT"),
            (Type::ObjectKey, "../etc/passwd", "an object name"),
            (Type::Name, " x", "starts or ends with a space"),
            (
                Type::Line { personal: false },
                "a\tb",
                "found `a\\tb`; one line of text",
            ),
        ] {
            let message = match read(of, Cell::Csv(cell)) {
                Ok(value) => value.json(),
                Err(error) => format!("found {}; {}", error.found.unwrap_or_default(), error.expected),
            };
            assert!(message.contains(expected), "{cell}: {message}");
        }
    }

    #[test]
    fn json_is_parsed_by_its_type() {
        for (of, cell, expected) in [
            (PRICE, "12.50", "12.50"),
            (PRICE, "\"12.50\"", "a number, without quotes"),
            (Type::Bool, "true", "true"),
            (Type::Text, "\"a\\nb\"", "\"a\\nb\""),
            (Type::Text, "\"\\ud800\"", "escapes are characters"),
            (Type::Text, "12", "found a number; a text, in quotes"),
            (Type::Integer { min: 0, max: 9 }, "[1]", "found a list; a whole number"),
        ] {
            let message = match read(of, Cell::Json(cell)) {
                Ok(value) => value.json(),
                Err(error) => format!("found {}; {}", error.found.unwrap_or_default(), error.expected),
            };
            assert!(message.contains(expected), "{cell}: {message}");
        }
    }

    #[test]
    fn errors_do_not_repeat_personal_data() {
        for (of, text) in [
            (Type::Plate, "34 XY"),
            (Type::Line { personal: true }, "Ay\u{7}şe"),
            (Type::Text, "Ay\0şe"),
        ] {
            let error = read(of, Cell::Csv(text)).unwrap_err();
            let message = format!("{error:?}");
            assert!(!message.contains("XY") && !message.contains("Ay"), "{message}");
        }
    }
}
