//! HMAC-SHA256, and the signatures of canonical strings.

use hmac::digest::Key;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::secret::Secret;

/// SHA-256's block size in bytes, to which HMAC pads its key.
const BLOCK: usize = 64;

/// Returns an HMAC-SHA256 with a key of 32 bytes, to be updated with the data. It authenticates signatures, cursors and links,
/// and derives keys.
pub fn hmac_sha256(key: &[u8; 32]) -> Hmac<Sha256> {
    // HMAC (RFC 2104) pads a shorter key with zeros to the block size. The constructor for a padded key cannot fail.
    let mut block = Zeroizing::new([0; BLOCK]);
    block[..key.len()].copy_from_slice(key);
    Hmac::new(Key::<Hmac<Sha256>>::from_slice(block.as_slice()))
}

/// The prefix of the signature header's value.
pub const SIGNATURE_PREFIX: &str = "sha256=";

/// Returns the value of the signature header: `sha256=` and the HMAC-SHA256 of the canonical string in lower-case hex. The key is
/// the 32 characters of the secret.
pub fn sign(secret: &Secret, canonical: &str) -> String {
    let mac = hmac_sha256(&secret.key()).chain_update(canonical);
    format!("{SIGNATURE_PREFIX}{:x}", mac.finalize().into_bytes())
}

/// Returns whether `header_value` is exactly the signature of the canonical string. Another prefix, upper-case hex or another
/// length is invalid. The comparison takes constant time.
pub fn verify(secret: &Secret, canonical: &str, header_value: impl AsRef<[u8]>) -> bool {
    let expected = Zeroizing::new(sign(secret, canonical));
    expected.as_bytes().ct_eq(header_value.as_ref()).into()
}

/// Returns the text that is signed for a certificate of a partner's program (SVC-12). No canonical string begins with this line, so
/// the signature of a request is never one of a certificate.
pub fn certificate_text(content: &str) -> String {
    format!("certificate\n{content}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mac_equals_that_of_the_hmac_crate_for_any_key_length() {
        let key: [u8; 32] = std::array::from_fn(|index| index as u8);
        let expected = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        let digest = |mac: Hmac<Sha256>| mac.chain_update("text").finalize().into_bytes();
        assert_eq!(digest(hmac_sha256(&key)), digest(expected));
    }

    /// SIG-2
    #[test]
    fn only_the_exact_signature_verifies() {
        let secret: Secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".parse().unwrap();
        let signature = sign(&secret, "GET");
        assert!(verify(&secret, "GET", &signature));
        let hex = &signature[SIGNATURE_PREFIX.len()..];
        for wrong in [
            String::new(),
            hex.to_owned(),
            format!("SHA256={hex}"),
            format!("sha512={hex}"),
            format!("sha256={}", hex.to_uppercase()),
            format!("sha256={}", &hex[1..]),
            format!("{signature}0"),
            format!(" {signature}"),
            format!("sha256={}", "0".repeat(64)),
        ] {
            assert!(!verify(&secret, "GET", &wrong), "{wrong}");
        }
        assert!(!verify(&secret, "GET", b"sha256=\xff"));
        assert!(!verify(&secret, "POST", &signature));
        let other = Secret::generate(&[7; 20]);
        assert!(!verify(&other, "GET", &signature));
    }

    /// SVC-12
    #[test]
    fn the_text_of_a_certificate_begins_with_a_line_of_its_own() {
        assert_eq!(certificate_text("{}"), "certificate\n{}");
    }
}
