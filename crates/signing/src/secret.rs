//! The shared secret of a key.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE32_NOPAD;
use zeroize::Zeroizing;

use crate::is_base32;

/// Characters in a secret.
pub const SECRET_LENGTH: usize = 32;

/// Random bytes that make one secret: 160 bits are exactly 32 base32 characters.
pub const SECRET_RANDOM_BYTES: usize = 20;

/// A key's secret: 32 base32 characters (`A-Z2-7`). The characters themselves are the HMAC key, not their decoding.
///
/// `Debug` shows none of it, there is no `Display`, and its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// A text that cannot be a secret. It never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecret {
    /// Not 32 bytes long.
    #[error("a secret has {SECRET_LENGTH} characters, this text has {length} bytes; copy it whole and without spaces")]
    Length {
        /// The text's length in bytes.
        length: usize,
    },
    /// A character that base32 does not have.
    #[error(
        "a secret has only the characters A-Z and 2-7, the one at byte {offset} is another; copy it exactly as shown"
    )]
    Character {
        /// Where the first such character stands, in bytes from 0.
        offset: usize,
    },
}

impl Secret {
    /// A new secret from random bytes, which must come from a cryptographic source and be used for nothing else.
    pub fn generate(random: &[u8; SECRET_RANDOM_BYTES]) -> Self {
        Self(Zeroizing::new(BASE32_NOPAD.encode(random)))
    }

    /// The secret's 32 characters: to show it once at its creation, to encrypt it, to sign. Never to log it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The characters as the HMAC key that they are.
    pub(crate) fn key(&self) -> Zeroizing<[u8; SECRET_LENGTH]> {
        let mut key = Zeroizing::new([0; SECRET_LENGTH]);
        for (slot, byte) in key.iter_mut().zip(self.expose().bytes()) {
            *slot = byte;
        }
        key
    }
}

impl FromStr for Secret {
    type Err = InvalidSecret;

    fn from_str(text: &str) -> Result<Self, InvalidSecret> {
        if text.len() != SECRET_LENGTH {
            return Err(InvalidSecret::Length { length: text.len() });
        }
        match text.bytes().position(|byte| !is_base32(byte)) {
            Some(offset) => Err(InvalidSecret::Character { offset }),
            None => Ok(Self(Zeroizing::new(text.to_owned()))),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing_of_a_secret() {
        let secret: Secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".parse().unwrap();
        assert_eq!(format!("{secret:?}"), "Secret([redacted])");
        assert_eq!(secret.expose(), "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");
    }

    #[test]
    fn a_generated_secret_is_one_that_can_be_read_back() {
        let random: [u8; SECRET_RANDOM_BYTES] = std::array::from_fn(|index| index as u8 * 13);
        let secret = Secret::generate(&random);
        assert_eq!(secret.expose().parse::<Secret>().unwrap().expose(), secret.expose());
        assert_eq!(Secret::generate(&[0; SECRET_RANDOM_BYTES]).expose(), "A".repeat(32));
        assert_eq!(Secret::generate(&[255; SECRET_RANDOM_BYTES]).expose(), "7".repeat(32));
    }

    /// KEY-1
    #[test]
    fn a_wrong_text_is_refused_without_being_repeated() {
        let short = "ABCDEFG".parse::<Secret>().unwrap_err();
        assert_eq!(short, InvalidSecret::Length { length: 7 });
        let lower = "ABCDEFGHIJKLMNOPQRSTUVWXYZ23456a".parse::<Secret>().unwrap_err();
        assert_eq!(lower, InvalidSecret::Character { offset: 31 });
        assert!(!format!("{short} {lower}").contains("ABCDEFG"));
        assert!("ABCDEFGHIJKLMNOPQRSTUVWXYZ23456\n".parse::<Secret>().is_err());
    }
}
