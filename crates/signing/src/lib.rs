//! Signing of requests to the partner API: the canonical string, its signature, and the verification of signatures (SIG-1 to
//! SIG-5). The crate does no I/O and uses no clock and no source of randomness. Server and client both use it.
//!
//! A client calls [`Headers::sign`]. A server computes the [`canonical_query`] of the raw query, builds a [`Canonical`] from the
//! request as it arrived, and passes its text to [`verify`].
//!
//! ```
//! use partner_api_signing::{Canonical, EMPTY_BODY_SHA256, Secret, sign, verify};
//!
//! let secret: Secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".parse()?;
//! let canonical = Canonical {
//!     method: "GET",
//!     path: "/api/v1/partner/health",
//!     canonical_query: "",
//!     timestamp: "1780000000",
//!     nonce: "0123456789abcdef",
//!     body_sha256: EMPTY_BODY_SHA256,
//! }
//! .render();
//! let signature = sign(&secret, &canonical);
//! assert_eq!(signature, "sha256=00b8332449583da2c92d54fa0ee432290c99864df6d9226fca919be2d027f8d7");
//! assert!(verify(&secret, &canonical, &signature));
//! # Ok::<(), partner_api_signing::InvalidSecret>(())
//! ```

mod canonical;
mod headers;
mod key_id;
mod query;
mod secret;
mod signature;

pub use canonical::{Canonical, EMPTY_BODY_SHA256, body_sha256};
pub use headers::{
    HEADER_KEY_ID, HEADER_NONCE, HEADER_SIGNATURE, HEADER_TIMESTAMP, Headers, InvalidNonce, NONCE_MAX, NONCE_MIN,
    SigningError, TIMESTAMP_TOLERANCE_SECONDS, UnsignedRequest, is_valid_nonce, nonce_from, parse_timestamp,
    timestamp_is_current,
};
pub use key_id::{Environment, InvalidKeyId, KEY_ID_RANDOM_BYTES, KeyId, UnknownEnvironment};
pub use query::{DecodedPair, MalformedQuery, canonical_of, canonical_query, decode_query, split_target};
pub use secret::{InvalidSecret, SECRET_LENGTH, SECRET_RANDOM_BYTES, Secret};
pub use signature::{SIGNATURE_PREFIX, certificate_text, hmac_sha256, sign, verify};

/// Returns whether `byte` is in the base32 alphabet (RFC 4648) of secrets and key IDs.
fn is_base32(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'2'..=b'7')
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE32_NOPAD;

    use super::*;

    #[test]
    fn is_base32_agrees_with_the_library() {
        for byte in 0..=u8::MAX {
            let is_symbol = BASE32_NOPAD
                .specification()
                .symbols
                .bytes()
                .any(|symbol| symbol == byte);
            assert_eq!(is_base32(byte), is_symbol, "byte {byte}");
        }
    }
}
