//! The public id of a key.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use data_encoding::BASE32_NOPAD;

use crate::is_base32;

/// Random bytes that make one key id: 22 base32 characters take 110 of their 112 bits.
pub const KEY_ID_RANDOM_BYTES: usize = 14;

/// Base32 characters at the end of a key id.
const RANDOM_LENGTH: usize = 22;

/// Characters a prefix may have at most.
const PREFIX_MAX: usize = 16;

/// Where a key works. One deployment serves one environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Environment {
    /// The sandbox, `test`.
    Test,
    /// Production, `live`.
    Live,
}

/// A text that names no environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an environment is `test` or `live`")]
pub struct UnknownEnvironment;

impl Environment {
    /// `test` or `live`, as in key ids and in the health answer.
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

/// The public id of a key: `<prefix>_live_` or `<prefix>_test_`, then 22 base32 characters.
///
/// The prefix is the operator's: 1 to 16 of `a-z0-9`, the first a letter. Equality, order and hash are those of the
/// text, so that a map keyed by it can be asked with a `&str`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(String);

/// A text that cannot be a key id, or a prefix that cannot begin one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeyId {
    /// The prefix is empty, too long, or has other characters.
    #[error("a key id's prefix has 1 to {PREFIX_MAX} characters of a-z and 0-9, the first a letter")]
    Prefix,
    /// Neither `_live_` nor `_test_` stands before the last 22 characters.
    #[error("a key id has `_live_` or `_test_` between its prefix and its last {RANDOM_LENGTH} characters")]
    Environment,
    /// The last 22 characters are not base32.
    #[error("a key id ends in {RANDOM_LENGTH} characters of A-Z and 2-7")]
    Random,
}

impl KeyId {
    /// A new key id from random bytes.
    ///
    /// # Errors
    /// [`InvalidKeyId::Prefix`] when `prefix` is not 1 to 16 of `a-z0-9` beginning with a letter.
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

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The environment the key works in.
    pub fn environment(&self) -> Environment {
        if self.marker().contains("live") {
            Environment::Live
        } else {
            Environment::Test
        }
    }

    /// What stands before `_live_` or `_test_`.
    pub fn prefix(&self) -> &str {
        &self.0[..self.0.len() - RANDOM_LENGTH - MARKER_LENGTH]
    }

    /// `_live_` or `_test_`.
    fn marker(&self) -> &str {
        &self.0[self.0.len() - RANDOM_LENGTH - MARKER_LENGTH..self.0.len() - RANDOM_LENGTH]
    }
}

/// Characters of `_live_` and of `_test_`.
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
    use super::*;

    /// KEY-1
    #[test]
    fn a_generated_key_id_is_read_back_with_its_parts() {
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
    fn a_malformed_key_id_is_refused_with_the_part_that_is_wrong() {
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
