//! The public ID of a key.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use data_encoding::BASE32_NOPAD;

use crate::is_base32;

/// The number of random bytes for a key ID. Its 22 base32 characters use 110 of the 112 bits.
pub const KEY_ID_RANDOM_BYTES: usize = 14;

/// The number of base32 characters at the end of a key ID.
const RANDOM_LENGTH: usize = 22;

/// The maximum number of characters of a prefix.
const PREFIX_MAX: usize = 16;

/// The environment in which a key works. One deployment serves one environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Environment {
    /// The sandbox, `test`.
    Test,
    /// Production, `live`.
    Live,
}

/// The error for a text that is not an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment must be `test` or `live`")]
pub struct UnknownEnvironment;

impl Environment {
    /// Returns `test` or `live`, as in key IDs and in the response of `GET /health`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Live => "live",
        }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Environment {
    type Err = UnknownEnvironment;

    fn from_str(text: &str) -> Result<Self, UnknownEnvironment> {
        match text {
            "test" => Ok(Self::Test),
            "live" => Ok(Self::Live),
            _ => Err(UnknownEnvironment),
        }
    }
}

/// The public ID of a key: `<prefix>_live_` or `<prefix>_test_`, followed by 22 base32 characters.
///
/// The operator chooses the prefix: 1 to 16 characters `a-z0-9`, the first a letter. Equality, order and hash are those of the
/// text, so a map with key IDs as keys can be accessed with a `&str`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(String);

/// The error for a text that is not a key ID, or for an invalid prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeyId {
    /// The prefix is empty, too long, or has other characters.
    #[error("the prefix of a key ID must have 1 to {PREFIX_MAX} characters of a-z and 0-9, the first a letter")]
    Prefix,
    /// The last 22 characters are not preceded by `_live_` or `_test_`.
    #[error("a key ID must have `_live_` or `_test_` between its prefix and its last {RANDOM_LENGTH} characters")]
    Environment,
    /// The last 22 characters are not base32.
    #[error("a key ID must end in {RANDOM_LENGTH} characters of A-Z and 2-7")]
    Random,
}

impl KeyId {
    /// Creates a key ID from random bytes.
    ///
    /// # Errors
    /// [`InvalidKeyId::Prefix`] if `prefix` is invalid.
    pub fn generate(
        prefix: &str,
        environment: Environment,
        random: &[u8; KEY_ID_RANDOM_BYTES],
    ) -> Result<Self, InvalidKeyId> {
        check_prefix(prefix)?;
        Ok(Self(format!(
            "{prefix}_{environment}_{}",
            &BASE32_NOPAD.encode(random)[..RANDOM_LENGTH]
        )))
    }

    /// Returns the whole ID.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the environment in which the key works.
    pub fn environment(&self) -> Environment {
        if self.marker().contains("live") {
            Environment::Live
        } else {
            Environment::Test
        }
    }

    /// Returns the part before `_live_` or `_test_`.
    pub fn prefix(&self) -> &str {
        &self.0[..self.0.len() - RANDOM_LENGTH - MARKER_LENGTH]
    }

    /// Returns `_live_` or `_test_`.
    fn marker(&self) -> &str {
        &self.0[self.0.len() - RANDOM_LENGTH - MARKER_LENGTH..self.0.len() - RANDOM_LENGTH]
    }
}

/// The number of characters of `_live_` and of `_test_`.
const MARKER_LENGTH: usize = 6;

fn check_prefix(prefix: &str) -> Result<(), InvalidKeyId> {
    let characters = prefix
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let first = prefix.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if characters && first && prefix.len() <= PREFIX_MAX {
        Ok(())
    } else {
        Err(InvalidKeyId::Prefix)
    }
}

impl FromStr for KeyId {
    type Err = InvalidKeyId;

    fn from_str(text: &str) -> Result<Self, InvalidKeyId> {
        let (head, random) = text
            .len()
            .checked_sub(RANDOM_LENGTH)
            .and_then(|at| text.split_at_checked(at))
            .ok_or(InvalidKeyId::Random)?;
        if !random.bytes().all(is_base32) {
            return Err(InvalidKeyId::Random);
        }
        let prefix = head
            .strip_suffix("_live_")
            .or_else(|| head.strip_suffix("_test_"))
            .ok_or(InvalidKeyId::Environment)?;
        check_prefix(prefix)?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for KeyId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for KeyId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn an_environment_is_parsed_as_it_is_written() {
        for environment in [Environment::Test, Environment::Live] {
            assert_eq!(environment.to_string().parse(), Ok(environment));
        }
        assert_eq!("TEST".parse::<Environment>(), Err(UnknownEnvironment));
    }

    #[test]
    fn a_key_id_is_found_in_a_map_by_its_text() {
        let text = "vip_test_ABCDEFGHIJKLMNOPQRSTUV";
        let key_id: KeyId = text.parse().unwrap();
        assert_eq!(key_id.as_ref(), text);
        assert_eq!(HashMap::from([(key_id, 1)]).get(text), Some(&1));
    }

    /// KEY-1
    #[test]
    fn a_generated_key_id_is_parsed_into_its_parts() {
        for environment in [Environment::Test, Environment::Live] {
            let key_id = KeyId::generate("vip", environment, &[0xA5; KEY_ID_RANDOM_BYTES]).unwrap();
            let read: KeyId = key_id.as_str().parse().unwrap();
            assert_eq!(
                (read.environment(), read.prefix(), &read),
                (environment, "vip", &key_id)
            );
            assert_eq!(key_id.as_str().len(), "vip_test_".len() + 22);
        }
    }

    /// KEY-1
    #[test]
    fn a_malformed_key_id_is_rejected_with_its_invalid_part() {
        let cases = [
            ("", InvalidKeyId::Random),
            ("vip_test_", InvalidKeyId::Random),
            ("vip_test_ABCDEFGHIJKLMNOPQRSTU1", InvalidKeyId::Random),
            ("vip_test_abcdefghijklmnopqrstuv", InvalidKeyId::Random),
            ("vip_prod_ABCDEFGHIJKLMNOPQRSTUV", InvalidKeyId::Environment),
            ("vip_test_ABCDEFGHIJKLMNOPQRSTUVW", InvalidKeyId::Environment),
            ("_test_ABCDEFGHIJKLMNOPQRSTUV", InvalidKeyId::Prefix),
            ("Vip_test_ABCDEFGHIJKLMNOPQRSTUV", InvalidKeyId::Prefix),
            ("1vip_test_ABCDEFGHIJKLMNOPQRSTUV", InvalidKeyId::Prefix),
            ("ı\u{307}vip_test_ABCDEFGHIJKLMNOPQRSTUİ", InvalidKeyId::Random),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<KeyId>(), Err(expected), "{text}");
        }
    }
}
