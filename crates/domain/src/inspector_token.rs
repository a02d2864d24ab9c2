//! Inspectors' tokens: how one is written, read by people, and kept (INS-1, INS-2).

use std::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::fold::fold;

/// How many random bytes a token is made of: one for each character, of which five bits count.
pub const RANDOM_BYTES: usize = 26;
/// How many of a token's last characters are kept, for people to tell tokens apart by.
const HINT_LENGTH: usize = 4;
/// What a token begins with, by which scanners of leaked secrets know it.
const PREFIX: &str = "insp_";
/// Crockford's base32: none of its characters looks like another one.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A token that was just made: `insp_` and 26 characters, of 130 random bits.
///
/// It is shown to the operator once; the database keeps [`hash`] and [`hint`](Self::hint).
pub struct InspectorToken(Zeroizing<String>);

impl InspectorToken {
    /// A token from random bytes, which must come from a cryptographic source and be used for nothing else.
    pub fn generate(random: &[u8; RANDOM_BYTES]) -> Self {
        let characters = random.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
        Self(Zeroizing::new(PREFIX.chars().chain(characters).collect()))
    }

    /// The whole token: to show it once. Never to log or to store it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Its last four characters.
    pub fn hint(&self) -> &str {
        &self.0[self.0.len() - HINT_LENGTH..]
    }
}

impl fmt::Debug for InspectorToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InspectorToken([redacted])")
    }
}

/// SHA-256 of a token's text, by which the database knows it.
///
/// A token is read as people type it: letter case, white space and hyphens do not count, `O` is `0`, and `I` and `L` are
/// `1`, whatever keyboard they come from. Any other text has the hash of a token that nobody was given.
pub fn hash(typed: &str) -> [u8; 32] {
    Sha256::digest(as_issued(typed).as_bytes()).into()
}

/// The token that a text means.
fn as_issued(typed: &str) -> Zeroizing<String> {
    let folded = Zeroizing::new(fold(typed));
    let text = folded.trim();
    let characters = text.strip_prefix("INSP_").unwrap_or(text);
    let meant = characters
        .chars()
        .filter(|character| !character.is_whitespace() && *character != '-');
    let meant = meant.map(|character| match character {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    });
    Zeroizing::new(PREFIX.chars().chain(meant).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// INS-1
    #[test]
    fn a_token_is_its_prefix_and_26_characters_of_which_none_looks_like_another() {
        let counting: [u8; RANDOM_BYTES] = std::array::from_fn(|index| (index as u8).wrapping_mul(11));
        let token = InspectorToken::generate(&counting);
        assert_eq!(token.expose(), "insp_0BP1CQ2DR3ES4FT5GV6HW7JX8K");
        assert_eq!(token.hint(), "JX8K");
        assert!(!format!("{token:?}").contains("0BP1"));
    }

    /// INS-2: the very bytes of the token as it was shown.
    #[test]
    fn a_tokens_hash_is_the_sha_256_of_its_text() {
        let token = "insp_7Q2M4KD5ZC3YB6XW2VTSRNPHGF";
        assert_eq!(hash(token), <[u8; 32]>::from(Sha256::digest(token)));
    }

    /// INS-2
    #[test]
    fn a_token_is_known_however_it_was_typed() {
        let token = hash("insp_7Q2M40D5ZC1YB6XW2VTSRNPHGF");
        for typed in [
            "  insp_7Q2M40D5ZC1YB6XW2VTSRNPHGF\n",
            "INSP_7q2m40d5zc1yb6xw2vtsrnphgf",
            "İnsp_7Q2M4OD5ZCIYB6XW2VTSRNPHGF",
            "insp_7q2m4od5zcıyb6xw2vtsrnphgf",
            "insp_7Q2M 4oD5 ZClY B6XW 2VTS RNPH GF",
            "7Q2M40-D5ZC1Y-B6XW2V-TSRNPH-GF",
        ] {
            assert_eq!(hash(typed), token, "{typed}");
        }
        for other in [
            "",
            "insp_",
            "insp_7Q2M40D5ZC1YB6XW2VTSRNPHG",
            "insp_7Q2M40D5ZC1YB6XW2VTSRNPHGG",
        ] {
            assert_ne!(hash(other), token, "{other}");
        }
    }

    proptest! {
        #[test]
        fn every_token_is_read_as_itself(random: [u8; RANDOM_BYTES]) {
            let token = InspectorToken::generate(&random);
            let read = as_issued(token.expose());
            prop_assert_eq!(read.as_str(), token.expose());
        }

        #[test]
        fn no_text_is_too_strange_to_hash(text: String) {
            hash(&text);
        }
    }
}
