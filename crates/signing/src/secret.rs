//! The shared secret of a key.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE32_NOPAD;
use zeroize::Zeroizing;

use crate::is_base32;

/// The number of characters of a secret.
pub const SECRET_LENGTH: usize = 32;

/// The number of random bytes for a secret: 160 bits are exactly 32 base32 characters.
pub const SECRET_RANDOM_BYTES: usize = 20;

/// The secret of a key: 32 base32 characters (`A-Z2-7`). The HMAC key consists of the characters themselves, not of the decoded
/// bytes.
///
/// `Debug` does not show the secret, there is no `Display`, and the memory is cleared when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// The error for a text that is not a secret. It does not contain the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecret {
    /// The text is not 32 bytes long.
    #[error(
        "a secret must have {SECRET_LENGTH} characters, but this text has {length} bytes; copy all of it, without spaces"
    )]
    Length {
        /// The text's length in bytes.
        length: usize,
    },
    /// The text contains a character outside the base32 alphabet.
    #[error(
        "a secret must consist of the characters A-Z and 2-7, but byte {offset} is another character; copy it exactly as shown"
    )]
    Character {
        /// The byte offset of the first invalid character, starting at 0.
        offset: usize,
    },
}

impl Secret {
    /// Creates a secret from random bytes, which must come from a cryptographic source and not be used for anything else.
    pub fn generate(random: &[u8; SECRET_RANDOM_BYTES]) -> Self {
        Self(Zeroizing::new(BASE32_NOPAD.encode(random)))
    }

    /// Returns the 32 characters, to show the secret once when it is created, to encrypt it, or to sign. They must not be logged.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the characters as an HMAC key.
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
    fn debug_output_does_not_contain_the_secret() {
        let secret: Secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".parse().unwrap();
        assert_eq!(format!("{secret:?}"), "Secret([redacted])");
        assert_eq!(secret.expose(), "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");
    }

    #[test]
    fn a_generated_secret_can_be_parsed() {
        let random: [u8; SECRET_RANDOM_BYTES] = std::array::from_fn(|index| index as u8 * 13);
        let secret = Secret::generate(&random);
        assert_eq!(secret.expose().parse::<Secret>().unwrap().expose(), secret.expose());
        assert_eq!(Secret::generate(&[0; SECRET_RANDOM_BYTES]).expose(), "A".repeat(32));
        assert_eq!(Secret::generate(&[255; SECRET_RANDOM_BYTES]).expose(), "7".repeat(32));
    }

    /// KEY-1
    #[test]
    fn the_error_for_an_invalid_secret_does_not_contain_the_text() {
        let short = "ABCDEFG".parse::<Secret>().unwrap_err();
        assert_eq!(short, InvalidSecret::Length { length: 7 });
        let lower = "ABCDEFGHIJKLMNOPQRSTUVWXYZ23456a".parse::<Secret>().unwrap_err();
        assert_eq!(lower, InvalidSecret::Character { offset: 31 });
        assert!(!format!("{short} {lower}").contains("ABCDEFG"));
        assert!("ABCDEFGHIJKLMNOPQRSTUVWXYZ23456\n".parse::<Secret>().is_err());
    }
}
