//! Tokens of inspectors: their format, normalization and hash (INS-1, INS-2).

use std::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::fold::fold;

/// The number of random bytes for a token: one for each character, of which five bits are used.
pub const RANDOM_BYTES: usize = 26;
/// The number of characters at the end of a token that are stored, so that people can distinguish tokens.
const HINT_LENGTH: usize = 4;
/// The prefix of all tokens, by which secret scanners recognize them.
const PREFIX: &str = "insp_";
/// The alphabet of Crockford's base32, which omits characters that look alike.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A new token: `insp_` and 26 characters with 130 random bits.
///
/// It is shown to the operator once. The database stores only [`hash`] and [`hint`](Self::hint).
pub struct InspectorToken(Zeroizing<String>);

impl InspectorToken {
    /// Creates a token from random bytes, which must come from a cryptographic source and not be used for anything else.
    pub fn generate(random: &[u8; RANDOM_BYTES]) -> Self {
        let characters = random.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
        Self(Zeroizing::new(PREFIX.chars().chain(characters).collect()))
    }

    /// Returns the whole token, to show it once. It must not be logged or stored.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the last four characters.
    pub fn hint(&self) -> &str {
        &self.0[self.0.len() - HINT_LENGTH..]
    }
}

impl fmt::Debug for InspectorToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InspectorToken([redacted])")
    }
}

/// Returns the SHA-256 of a token's text, by which the database identifies the token.
///
/// The text is normalized first: letter case, white space and hyphens are ignored, `O` is read as `0`, and `I` and `L` in all
/// variants of keyboards are read as `1`. The hash of a text that is not a token matches no token.
pub fn hash(typed: &str) -> [u8; 32] {
    Sha256::digest(normalized(typed).as_bytes()).into()
}

/// Returns the token in the form in which it was issued.
fn normalized(typed: &str) -> Zeroizing<String> {
    let folded = Zeroizing::new(fold(typed));
    let text = folded.trim();
    let characters = text.strip_prefix("INSP_").unwrap_or(text);
    let characters = characters
        .chars()
        .filter(|character| !character.is_whitespace() && *character != '-');
    let characters = characters.map(|character| match character {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    });
    Zeroizing::new(PREFIX.chars().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// INS-1
    #[test]
    fn a_token_is_its_prefix_and_26_unambiguous_characters() {
        let counting: [u8; RANDOM_BYTES] = std::array::from_fn(|index| (index as u8).wrapping_mul(11));
        let token = InspectorToken::generate(&counting);
        assert_eq!(token.expose(), "insp_0BP1CQ2DR3ES4FT5GV6HW7JX8K");
        assert_eq!(token.hint(), "JX8K");
        assert!(!format!("{token:?}").contains("0BP1"));
    }

    /// INS-2
    #[test]
    fn a_tokens_hash_is_the_sha_256_of_its_text() {
        let token = "insp_7Q2M4KD5ZC3YB6XW2VTSRNPHGF";
        assert_eq!(hash(token), <[u8; 32]>::from(Sha256::digest(token)));
    }

    /// INS-2
    #[test]
    fn a_token_is_recognized_however_it_is_typed() {
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
        fn normalization_does_not_change_an_issued_token(random: [u8; RANDOM_BYTES]) {
            let token = InspectorToken::generate(&random);
            let normalized = normalized(token.expose());
            prop_assert_eq!(normalized.as_str(), token.expose());
        }

        #[test]
        fn any_text_can_be_hashed(text: String) {
            hash(&text);
        }
    }
}
