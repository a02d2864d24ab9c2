//! String formats that are checked, and bytes in Base64.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use data_encoding::BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::plain::shown;

/// The format of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `ipv4`: four decimal numbers (RFC 2673).
    Ipv4,
    /// `ipv6`: an address without a zone (RFC 4291).
    Ipv6,
    /// `ip`: an IPv4 or IPv6 address, as schemars writes `IpAddr`.
    Ip,
    /// `hostname`: labels of letters, digits and hyphens (RFC 1123), at most 253 characters.
    Hostname,
    /// `email`: a local part, `@`, and a host name or bracketed address, without quotes and comments (RFC 5321).
    Email,
    /// `uri`: with a scheme (RFC 3986).
    Uri,
    /// `time`: hours, minutes and seconds with an offset (RFC 3339).
    Time,
    /// `partial-date-time`: a time without an offset, as schemars writes chrono's `NaiveDateTime` and `NaiveTime`.
    PartialDateTime,
    /// `date-time`: a date and time with an offset (RFC 3339).
    DateTime,
    /// `date`: a full date (RFC 3339).
    Date,
    /// `uuid`: with hyphens.
    Uuid,
    /// `byte`: base64 (RFC 4648).
    Byte,
}

impl Format {
    /// The format with this name; `None` if it is not checked.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "ipv4" => Format::Ipv4,
            "ipv6" => Format::Ipv6,
            "ip" => Format::Ip,
            "hostname" => Format::Hostname,
            "email" => Format::Email,
            "uri" => Format::Uri,
            "time" => Format::Time,
            "partial-date-time" => Format::PartialDateTime,
            "date-time" => Format::DateTime,
            "date" => Format::Date,
            "uuid" => Format::Uuid,
            "byte" => Format::Byte,
            _ => return None,
        })
    }

    /// Whether `text` has this format.
    pub fn admits(self, text: &str) -> bool {
        match self {
            Format::Ipv4 => Ipv4Addr::from_str(text).is_ok(),
            Format::Ipv6 => Ipv6Addr::from_str(text).is_ok(),
            Format::Ip => IpAddr::from_str(text).is_ok(),
            Format::Hostname => is_hostname(text),
            Format::Email => is_email(text),
            Format::Uri => url::Url::parse(text).is_ok() && text.is_ascii() && !text.contains(char::is_whitespace),
            Format::Time => {
                // chrono parses an offset only as part of a date and time.
                DateTime::parse_from_rfc3339(&format!("2000-01-01T{text}")).is_ok() && !text.contains(' ')
            }
            Format::PartialDateTime => NaiveDateTime::from_str(text).is_ok() || NaiveTime::from_str(text).is_ok(),
            Format::DateTime => parse_date_time(text).is_ok(),
            Format::Date => parse_date(text).is_ok(),
            Format::Uuid => parse_uuid(text).is_ok(),
            Format::Byte => base64(text).is_ok(),
        }
    }

    /// A description of the expected form, for messages.
    pub fn expected(self) -> &'static str {
        match self {
            Format::Ipv4 => "an IPv4 address such as 192.0.2.1",
            Format::Ipv6 => "an IPv6 address such as 2001:db8::1",
            Format::Ip => "an IP address",
            Format::Hostname => "a host name",
            Format::Email => "an e-mail address",
            Format::Uri => "a URI with its scheme",
            Format::Time => "a time with an offset, such as 09:30:00Z",
            Format::PartialDateTime => "a time without an offset, such as 2026-05-01T09:30:00 or 09:30:00",
            Format::DateTime => "a date and time such as 2026-05-01T09:30:00Z",
            Format::Date => "a date such as 2026-05-01",
            Format::Uuid => "a UUID",
            Format::Byte => "base64",
        }
    }
}

/// Parses a UUID.
pub(crate) fn parse_uuid(value: &str) -> Result<uuid::Uuid, String> {
    uuid::Uuid::try_parse(value).map_err(|_| format!("must be a UUID, is {}", shown(value)))
}

/// A description of a date and time, for messages.
pub(crate) const DATE_TIME: &str = "an RFC 3339 time with an offset, such as 2026-05-01T09:30:00Z or \
                                    2026-05-01T12:30:00+03:00";

/// Parses RFC 3339. The error says which part is missing.
pub(crate) fn parse_date_time(value: &str) -> Result<DateTime<Utc>, String> {
    // chrono also accepts a space instead of the T. Here it indicates a plus sign that was not encoded.
    match DateTime::parse_from_rfc3339(value) {
        Ok(time) if !value.contains(' ') => Ok(time.with_timezone(&Utc)),
        _ if value.contains(' ') && DateTime::parse_from_rfc3339(&value.replace(' ', "+")).is_ok() => Err(format!(
            "must be {DATE_TIME}; a plus sign in a query means a space, send it as %2B"
        )),
        _ if NaiveDateTime::from_str(value).is_ok() => Err(format!("must be {DATE_TIME}; the offset is missing")),
        _ if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(format!("must be {DATE_TIME}, not UNIX time"))
        }
        _ => Err(format!("must be {DATE_TIME}; is {}", shown(value))),
    }
}

/// Parses a date in RFC 3339. chrono alone would also accept `2026-5-1`.
pub(crate) fn parse_date(value: &str) -> Result<NaiveDate, String> {
    match NaiveDate::parse_from_str(value, "%Y-%m-%d") {
        Ok(day) if day.to_string() == value => Ok(day),
        _ => Err(format!("must be a date such as 2026-05-01, is {}", shown(value))),
    }
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let is_atom = |atom: &str| {
        let others = "!#$%&'*+-/=?^_`{|}~";
        !atom.is_empty()
            && atom
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || others.contains(it) || !it.is_ascii())
    };
    let address = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_domain = match address {
        Some(address) => match address.strip_prefix("IPv6:") {
            Some(address) => Format::Ipv6.admits(address),
            None => Format::Ipv4.admits(address),
        },
        None => is_hostname(domain),
    };
    (1..=64).contains(&local.len()) && local.split('.').all(is_atom) && is_domain
}

/// Bytes that are encoded as Base64 in JSON (`type: string, format: byte`; RFC 4648, section 4, with padding).
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Base64(pub Vec<u8>);

impl fmt::Debug for Base64 {
    /// Shows only the length, so that the bytes do not appear in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Base64({} bytes)", self.0.len())
    }
}

impl From<Vec<u8>> for Base64 {
    fn from(bytes: Vec<u8>) -> Self {
        Base64(bytes)
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        base64(&text).map_err(D::Error::custom)
    }
}

/// Decodes padded Base64.
pub(crate) fn base64(text: &str) -> Result<Base64, String> {
    let bytes = BASE64.decode(text.as_bytes());
    bytes.map(Base64).map_err(|_| "must be Base64 with padding".to_string())
}
