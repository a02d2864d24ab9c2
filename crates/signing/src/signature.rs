//! Signing and verifying a canonical string.

use hmac::Mac;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::hmac_sha256;
use crate::secret::Secret;

/// What a signature's header value begins with.
pub const SIGNATURE_PREFIX: &str = "sha256=";

/// The value of the signature header: `sha256=` and the lower-case hex HMAC-SHA256 of the canonical string, keyed with
/// the secret's 32 characters.
pub fn sign(secret: &Secret, canonical: &str) -> String {
    let mac = hmac_sha256(&secret.key()).chain_update(canonical);
    format!("{SIGNATURE_PREFIX}{:x}", mac.finalize().into_bytes())
}

/// Whether `header_value` is the signature of the canonical string. The comparison takes the same time wherever the two
/// differ. Anything but the exact value is false: another prefix, upper-case hex, another length.
pub fn verify(secret: &Secret, canonical: &str, header_value: impl AsRef<[u8]>) -> bool {
    let expected = Zeroizing::new(sign(secret, canonical));
    expected.as_bytes().ct_eq(header_value.as_ref()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
