//! Types of option values.

use std::{convert::Infallible, fmt, net::SocketAddr, ops::Deref, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use zeroize::Zeroizing;

use partner_api_domain::report_link;

/// A positive duration, written as `250ms`, `5s` or `1m 30s`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(Duration);

impl Span {
    /// Converts whole milliseconds.
    #[must_use]
    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Converts whole seconds.
    #[must_use]
    pub const fn secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl Deref for Span {
    type Target = Duration;

    fn deref(&self) -> &Duration {
        &self.0
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match humantime::parse_duration(text) {
            Ok(duration) if duration.is_zero() => Err("must be longer than 0".to_owned()),
            Ok(duration) => Ok(Self(duration)),
            Err(error) => Err(format!("{error}; write a duration as 250ms, 5s or 1m")),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A switch, written as `on` or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// The address of an optional listener, written as `127.0.0.1:9464` or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaybeListen {
    /// Listens on an address; port 0 picks a free port.
    At(SocketAddr),
    /// Does not listen.
    Off,
}

impl MaybeListen {
    /// Returns the address, if there is one.
    #[must_use]
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Self::At(address) => Some(address),
            Self::Off => None,
        }
    }
}

impl FromStr for MaybeListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            text => text
                .parse()
                .map(Self::At)
                .map_err(|error| format!("{error}; write an address and a port as 127.0.0.1:9464, or off")),
        }
    }
}

impl Serialize for MaybeListen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(address) => serializer.collect_str(address),
            Self::Off => serializer.serialize_str("off"),
        }
    }
}

impl<'de> Deserialize<'de> for MaybeListen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The URL of reports' public pages with a placeholder for the slug, written as `https://reports.example/{slug}`, or `off`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicReportUrl {
    /// Public pages are at this URL.
    At(String),
    /// There are no public pages.
    Off,
}

impl PublicReportUrl {
    /// Returns the address, if there is one.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        match self {
            Self::At(address) => Some(address),
            Self::Off => None,
        }
    }
}

impl FromStr for PublicReportUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, report_link::problem(text)) {
            ("off", _) => Ok(Self::Off),
            (text, None) => Ok(Self::At(text.to_owned())),
            (_, Some(reason)) => Err(reason),
        }
    }
}

impl Serialize for PublicReportUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.address().unwrap_or("off"))
    }
}

impl<'de> Deserialize<'de> for PublicReportUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A secret. It is redacted when printed and wiped from memory when dropped.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(transparent)]
pub struct Hidden(Zeroizing<String>);

impl Hidden {
    /// Returns the text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl FromStr for Hidden {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::from(text.to_owned()))
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Serialize for Hidden {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[redacted]")
    }
}
