//! Measurement packages: their original bytes, with an `external_id` and perhaps a `measured_at` added if there is none.

use std::collections::BTreeMap;

use chrono::{DateTime, Local, SecondsFormat, Utc};
use codegen_runtime::validation::Path;
use codegen_runtime::{ValidationError, ValidationErrors, json};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;
use uuid::Uuid;

use crate::failure::Failure;
use crate::text::utf8;

/// The service's limit on the size of a body, in bytes.
const BODY_MAX: usize = 1_048_576;
/// The maximum number of characters of an `external_id`.
const ID_MAX: usize = 120;

/// The bytes of a package that has an `external_id`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) body: Vec<u8>,
    /// The `external_id` that was added; `None` if the package had one.
    pub(super) added_id: Option<String>,
    /// Whether `measured_at` was added.
    pub(super) has_added_time: bool,
}

/// The reason why some bytes are not a package.
#[derive(Debug, Error)]
pub(super) enum InvalidPackage {
    /// They are not a JSON object. The message is the one with which the service rejects these bytes.
    #[error("{}", error)]
    NotJson {
        /// The error and its place.
        error: ValidationError,
        /// Whether the rest of the bytes may be missing, because a program still writes the file.
        is_incomplete: bool,
    },
    /// The package is too large.
    #[error("the package has {0} bytes; it must have at most {BODY_MAX}")]
    TooLarge(usize),
}

impl InvalidPackage {
    fn not_json(bytes: &[u8], parser_error: &serde_json::Error) -> Self {
        let object: Result<BTreeMap<String, Value>, ValidationErrors> = json::read(bytes);
        let error = match object {
            Err(errors) => errors.first().clone(),
            Ok(_) => ValidationError::in_body(&Path::default(), "must be a JSON object"),
        };
        Self::NotJson {
            error,
            // Some programs reserve the space of a file before they write into it.
            is_incomplete: parser_error.is_eof() || bytes.contains(&0),
        }
    }

    /// Returns whether the rest of the bytes may be missing.
    pub(super) fn is_incomplete(&self) -> bool {
        matches!(
            self,
            Self::NotJson {
                is_incomplete: true,
                ..
            }
        )
    }

    /// Returns the invalid place of the package.
    pub(super) fn error(&self) -> Option<&ValidationError> {
        match self {
            Self::NotJson { error, .. } => Some(error),
            Self::TooLarge(_) => None,
        }
    }
}

impl Package {
    /// Creates a package from these bytes. If it has no `external_id`, one is derived from `uuid`; if it has no `measured_at`, this one is
    /// added. The same arguments always give the same package.
    pub(super) fn of(bytes: &[u8], uuid: Uuid, measured_at: Option<DateTime<Utc>>) -> Result<Self, InvalidPackage> {
        let bytes = &*utf8(bytes);
        let members: BTreeMap<String, &RawValue> =
            serde_json::from_slice(bytes).map_err(|error| InvalidPackage::not_json(bytes, &error))?;
        let has = |name: &str| members.get(name).is_some_and(|value| value.get() != "null");
        let text = |name: &str| {
            members
                .get(name)
                .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
        };
        let added_id = (!has("external_id")).then(|| external_id(text("branch_code"), text("device_serial"), uuid));
        let added_time = measured_at.filter(|_| !has("measured_at")).map(with_offset);
        let added: Vec<_> = [("external_id", &added_id), ("measured_at", &added_time)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .collect();
        let package = Self {
            body: with_members(bytes, &members, &added),
            has_added_time: added_time.is_some(),
            added_id,
        };
        if package.body.len() > BODY_MAX {
            return Err(InvalidPackage::TooLarge(package.body.len()));
        }
        Ok(package)
    }
}

/// Formats a time in this machine's time zone, such as `2026-11-23T08:15:30.250+03:00`.
fn with_offset(time: DateTime<Utc>) -> String {
    time.with_timezone(&Local).to_rfc3339_opts(SecondsFormat::Millis, false)
}

/// Returns `<branch>-<device>-<uuid>`, shortened to [`ID_MAX`] characters; an unknown branch or device is left out.
fn external_id(branch: Option<String>, device: Option<String>, uuid: Uuid) -> String {
    let names = [branch, device].into_iter().flatten();
    let prefix: String = names
        .flat_map(|name| {
            let plain = name.trim().to_owned();
            plain
                .chars()
                .filter(|character| !character.is_control())
                .chain(['-'])
                .collect::<Vec<_>>()
        })
        .collect();
    let uuid = uuid.to_string();
    let kept: String = prefix.chars().take(ID_MAX - uuid.len()).collect();
    kept + &uuid
}

/// Inserts members at the start of an object. A member of the same name, whose value is `null`, is removed.
fn with_members(bytes: &[u8], members: &BTreeMap<String, &RawValue>, added: &[(&str, &str)]) -> Vec<u8> {
    if added.is_empty() {
        return bytes.to_vec();
    }
    let member = |name: &str, value: &str| format!("{}:{value}", Value::from(name));
    let mut first: Vec<_> = added
        .iter()
        .map(|(name, value)| member(name, &Value::from(*value).to_string()))
        .collect();
    if added.iter().any(|(name, _)| members.contains_key(*name)) {
        let is_added = |other: &str| added.iter().any(|(name, _)| *name == other);
        let kept = members.iter().filter(|(name, _)| !is_added(name));
        first.extend(kept.map(|(name, value)| member(name, value.get())));
        return format!("{{{}}}", first.join(",")).into_bytes();
    }
    if !members.is_empty() {
        first.push(String::new());
    }
    // The bytes were parsed as an object, so they begin with a brace.
    let rest = bytes.trim_ascii_start().get(1..).unwrap_or_default();
    [b"{", first.join(",").as_bytes(), rest].concat()
}

/// A measured value from the command line, with the exact text of its number.
#[derive(Clone, Debug)]
pub struct Point {
    code: String,
    value: Box<RawValue>,
}

impl Point {
    /// Parses text such as `BRAKE_FRONT_LEFT=2.85`.
    ///
    /// # Errors
    /// The text has another form; the message gives an example.
    pub fn read(text: &str) -> Result<Self, String> {
        let (code, value) = text
            .split_once('=')
            .ok_or_else(|| "expected CODE=VALUE, such as BRAKE_FRONT_LEFT=2.85".to_owned())?;
        if value.contains(',') {
            return Err(format!("use a decimal point: {code}={}", value.replace(',', ".")));
        }
        let number: serde_json::Number = serde_json::from_str(value)
            .map_err(|_| format!("`{value}` is not a number; expected a number such as 2.85 or -1.4"))?;
        let value =
            RawValue::from_string(value.trim().to_owned()).map_err(|_| format!("`{number}` is not a number"))?;
        Ok(Self {
            code: code.trim().to_ascii_uppercase(),
            value,
        })
    }
}

/// The fields of a package that is described by flags.
#[derive(Serialize)]
pub(super) struct PackageFields<'a> {
    pub(super) branch_code: &'a str,
    pub(super) plate: &'a str,
    #[serde(serialize_with = "moment", skip_serializing_if = "Option::is_none")]
    pub(super) measured_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) external_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device_serial: Option<&'a str>,
    #[serde(serialize_with = "points")]
    pub(super) measurements: &'a [Point],
}

impl PackageFields<'_> {
    pub(super) fn to_json(&self) -> Result<Vec<u8>, Failure> {
        let mut codes: Vec<_> = self.measurements.iter().map(|point| &point.code).collect();
        codes.sort_unstable();
        if let Some(pair) = codes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::Usage(format!("{} is given twice", pair[0])));
        }
        serde_json::to_vec(self).map_err(|error| Failure::Usage(error.to_string()))
    }
}

fn moment<S: Serializer>(time: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = time.map(|time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true));
    text.serialize(serializer)
}

fn points<S: Serializer>(points: &&[Point], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(points.len()))?;
    for point in *points {
        map.serialize_entry(&point.code, &point.value)?;
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: Uuid = Uuid::from_u128(7);

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(Package::of(bytes, UUID, None).unwrap().body).unwrap()
    }

    fn rejected(bytes: &[u8]) -> InvalidPackage {
        Package::of(bytes, UUID, None).unwrap_err()
    }

    /// MEA-5, MEA-10
    #[test]
    fn a_package_with_an_id_is_sent_unchanged_without_its_byte_order_mark() {
        let package = br#" { "plate" : "34 ABC 123", "external_id":"M-1", "x": 2.850 } "#;
        assert_eq!(text(package).as_bytes(), package);
        assert_eq!(
            text(&[b"\xef\xbb\xbf", package.as_slice()].concat()).as_bytes(),
            package
        );
    }

    /// MEA-10
    #[test]
    fn a_package_without_an_id_gets_one_and_keeps_its_other_bytes() {
        assert_eq!(
            text(b" {\n \"branch_code\": \"ANK-01\",\n \"device_serial\": \"BT 1\", \"x\": 2.850 }"),
            "{\"external_id\":\"ANK-01-BT 1-00000000-0000-0000-0000-000000000007\",\n \"branch_code\": \"ANK-01\",\n \
             \"device_serial\": \"BT 1\", \"x\": 2.850 }"
        );
        assert_eq!(text(b"{}"), r#"{"external_id":"00000000-0000-0000-0000-000000000007"}"#);
        assert_eq!(
            text(br#"{"x":2.850,"external_id":null}"#),
            r#"{"external_id":"00000000-0000-0000-0000-000000000007","x":2.850}"#
        );
    }

    /// MEA-15
    #[test]
    fn an_id_has_at_most_120_characters_and_ends_with_the_uuid() {
        let id = external_id(Some("ş".repeat(200)), Some("\u{7}".to_owned()), UUID);
        assert_eq!(id.chars().count(), 120);
        assert!(id.ends_with(&UUID.to_string()));
    }

    /// MEA-5
    #[test]
    fn a_package_without_a_time_gets_the_given_one_with_an_offset() {
        let time = "2026-06-15T09:30:00.250Z".parse().unwrap();
        let body =
            |text: &str| String::from_utf8(Package::of(text.as_bytes(), UUID, Some(time)).unwrap().body).unwrap();
        let written = with_offset(time);
        assert_eq!(written.parse::<DateTime<Utc>>().unwrap(), time);
        assert!(!written.ends_with('Z'), "{written}");
        let added = format!(r#""measured_at":"{written}""#);
        assert_eq!(
            body(r#"{ "external_id":"M-1","x": 2.850 }"#),
            format!(r#"{{{added}, "external_id":"M-1","x": 2.850 }}"#)
        );
        assert_eq!(
            body(r#"{"measured_at":null,"external_id":"M-1"}"#),
            format!(r#"{{{added},"external_id":"M-1"}}"#)
        );
        let own = r#"{"external_id":"M-1", "measured_at":"2026-01-01T00:00:00Z"}"#;
        assert_eq!(body(own), own);
    }

    #[test]
    fn an_incomplete_object_may_become_a_package_and_an_invalid_one_may_not() {
        for bytes in ["", "{", r#"{"a":1"#, r#"{"a":"#, "{\"a\":1}\0\0"] {
            assert!(rejected(bytes.as_bytes()).is_incomplete(), "{bytes}");
        }
        for bytes in [r#"{"a":1}}"#, "[]", "1", r#"{"a":1} {"#, r#"{"a":2,85}"#, "<a/>"] {
            assert!(!rejected(bytes.as_bytes()).is_incomplete(), "{bytes}");
        }
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(BODY_MAX));
        assert!(matches!(rejected(large.as_bytes()), InvalidPackage::TooLarge(_)));
    }

    /// MEA-4
    #[test]
    fn a_point_keeps_the_text_of_its_number() {
        let point = Point::read("brake_front_left=2.850").unwrap();
        assert_eq!((point.code.as_str(), point.value.get()), ("BRAKE_FRONT_LEFT", "2.850"));
        assert_eq!(Point::read("A=2,85").unwrap_err(), "use a decimal point: A=2.85");
        for wrong in ["A", "A=", "A=NaN", "A=1e", "A=\"1\"", "A=0x1"] {
            assert!(Point::read(wrong).is_err(), "{wrong}");
        }
    }
}
