//! A package as it is sent: its bytes as they came, with an `external_id` in any case.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::value::RawValue;
use thiserror::Error;
use uuid::Uuid;

use crate::failure::Failure;

/// What the service takes of a body at most.
const BODY_MAX: usize = 1_048_576;
/// What an `external_id` has at most.
const ID_MAX: usize = 120;

/// The bytes of a package that has an `external_id`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) body: Vec<u8>,
    /// The `external_id` that was put into it; `None` where it had one.
    pub(super) added_id: Option<String>,
}

/// Why some bytes cannot be a package, now or ever.
#[derive(Debug, Error)]
pub(super) enum Unfit {
    /// They are no JSON object: of a file, perhaps not yet.
    #[error("it is no JSON object: {0}")]
    NotJson(#[from] serde_json::Error),
    /// They are too many.
    #[error("it has {0} bytes; a package has at most {BODY_MAX}")]
    TooLarge(usize),
}

impl Package {
    /// Of these bytes; `uuid` makes an `external_id` unlike any other, where there is none. The same bytes and uuid give the
    /// same package, whenever it is made.
    pub(super) fn of(bytes: &[u8], uuid: Uuid) -> Result<Self, Unfit> {
        // Editors of Windows begin files with a mark that JSON does not have.
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let members: BTreeMap<String, &RawValue> = serde_json::from_slice(bytes)?;
        let has_id = members.get("external_id").is_some_and(|id| id.get() != "null");
        let package = if has_id {
            Self {
                body: bytes.to_vec(),
                added_id: None,
            }
        } else {
            let text = |name: &str| {
                members
                    .get(name)
                    .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
            };
            let id = external_id(text("branch_code"), text("device_serial"), uuid);
            Self {
                body: with_id(bytes, &members, &id)?,
                added_id: Some(id),
            }
        };
        if package.body.len() > BODY_MAX {
            return Err(Unfit::TooLarge(package.body.len()));
        }
        Ok(package)
    }
}

/// `<branch>-<device>-<uuid>`, as far as they are known and fit.
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

/// The same bytes, with the id as their first member. A `null` in its place, which says nothing, is left out.
fn with_id(bytes: &[u8], members: &BTreeMap<String, &RawValue>, id: &str) -> Result<Vec<u8>, serde_json::Error> {
    let member = format!("\"external_id\":{}", serde_json::to_string(id)?);
    if members.contains_key("external_id") {
        let mut body = format!("{{{member}");
        for (name, value) in members.iter().filter(|(name, _)| *name != "external_id") {
            body.push_str(&format!(",{}:{value}", serde_json::to_string(name)?));
        }
        body.push('}');
        return Ok(body.into_bytes());
    }
    let comma = if members.is_empty() { "" } else { "," };
    let trimmed = bytes.trim_ascii_start();
    // What was read as an object begins with a brace.
    Ok([
        b"{",
        member.as_bytes(),
        comma.as_bytes(),
        trimmed.get(1..).unwrap_or_default(),
    ]
    .concat())
}

/// A value of the command line: the exact text of its number.
#[derive(Clone, Debug)]
pub struct Point {
    code: String,
    value: Box<RawValue>,
}

impl Point {
    /// Reads `BRAKE_FRONT_LEFT=2.85`.
    ///
    /// # Errors
    /// It is something else; the message says what to write.
    pub fn read(text: &str) -> Result<Self, String> {
        let (code, value) = text
            .split_once('=')
            .ok_or_else(|| "expected CODE=VALUE, like BRAKE_FRONT_LEFT=2.85".to_owned())?;
        if value.contains(',') {
            return Err(format!("write a dot for decimals: {code}={}", value.replace(',', ".")));
        }
        let number: serde_json::Number = serde_json::from_str(value)
            .map_err(|_| format!("`{value}` is no number; expected one like 2.85 or -1.4"))?;
        let value = RawValue::from_string(value.trim().to_owned()).map_err(|_| format!("`{number}` is no number"))?;
        Ok(Self {
            code: code.trim().to_ascii_uppercase(),
            value,
        })
    }
}

/// A package from the command line.
#[derive(Serialize)]
pub(super) struct Written<'a> {
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

impl Written<'_> {
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
        String::from_utf8(Package::of(bytes, UUID).unwrap().body).unwrap()
    }

    /// MEA-5, MEA-10
    #[test]
    fn a_package_with_an_id_is_sent_as_it_is_but_for_a_byte_order_mark() {
        let package = br#" { "plate" : "34 ABC 123", "external_id":"M-1", "x": 2.850 } "#;
        assert_eq!(text(package).as_bytes(), package);
        assert_eq!(
            text(&[b"\xef\xbb\xbf", package.as_slice()].concat()).as_bytes(),
            package
        );
    }

    /// MEA-10
    #[test]
    fn a_package_without_an_id_is_given_one_and_keeps_the_rest_byte_for_byte() {
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
    fn an_id_has_at_most_120_characters_and_ends_in_what_makes_it_unique() {
        let id = external_id(Some("ş".repeat(200)), Some("\u{7}".to_owned()), UUID);
        assert_eq!(id.chars().count(), 120);
        assert!(id.ends_with(&UUID.to_string()));
    }

    #[test]
    fn what_is_not_yet_an_object_is_no_package() {
        for bytes in [
            "",
            "{",
            r#"{"a":1"#,
            r#"{"a":1}}"#,
            "[]",
            "1",
            r#"{"a":1} {"#,
            "{\"a\":1}\0\0",
        ] {
            assert!(
                matches!(Package::of(bytes.as_bytes(), UUID), Err(Unfit::NotJson(_))),
                "{bytes}"
            );
        }
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(BODY_MAX));
        assert!(matches!(Package::of(large.as_bytes(), UUID), Err(Unfit::TooLarge(_))));
    }

    /// MEA-4
    #[test]
    fn a_point_keeps_its_number_as_it_was_written() {
        let point = Point::read("brake_front_left=2.850").unwrap();
        assert_eq!((point.code.as_str(), point.value.get()), ("BRAKE_FRONT_LEFT", "2.850"));
        assert_eq!(Point::read("A=2,85").unwrap_err(), "write a dot for decimals: A=2.85");
        for wrong in ["A", "A=", "A=NaN", "A=1e", "A=\"1\"", "A=0x1"] {
            assert!(Point::read(wrong).is_err(), "{wrong}");
        }
    }
}
