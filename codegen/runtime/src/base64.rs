//! Base64 in JSON.

use std::fmt;

use data_encoding::BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
        parse(&text).map_err(D::Error::custom)
    }
}

/// Decodes padded Base64.
pub(crate) fn parse(text: &str) -> Result<Base64, String> {
    let bytes = BASE64.decode(text.as_bytes());
    bytes.map(Base64).map_err(|_| "must be Base64 with padding".to_string())
}
