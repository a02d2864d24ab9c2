//! The four headers of a signed request, and the rules for their values that client and server share.

use crate::canonical::{Canonical, body_sha256};
use crate::key_id::KeyId;
use crate::query::{MalformedQuery, canonical_query};
use crate::secret::Secret;
use crate::signature::sign;

/// The header with the key's public ID.
pub const HEADER_KEY_ID: &str = "x-partner-key-id";
/// The header with the Unix time in seconds.
pub const HEADER_TIMESTAMP: &str = "x-partner-timestamp";
/// The header with the single-use nonce.
pub const HEADER_NONCE: &str = "x-partner-nonce";
/// The header with the signature.
pub const HEADER_SIGNATURE: &str = "x-partner-signature";

/// The maximum difference in seconds, inclusive, between a timestamp and the server's time, in either direction.
pub const TIMESTAMP_TOLERANCE_SECONDS: u64 = 300;

/// The minimum number of characters of a nonce.
pub const NONCE_MIN: usize = 16;
/// The maximum number of characters of a nonce.
pub const NONCE_MAX: usize = 128;

/// Returns whether a nonce is valid: 16 to 128 characters of visible ASCII (`!` to `~`).
pub fn is_valid_nonce(nonce: &[u8]) -> bool {
    (NONCE_MIN..=NONCE_MAX).contains(&nonce.len()) && nonce.iter().all(u8::is_ascii_graphic)
}

/// Creates a nonce of 32 hexadecimal characters from random bytes. Each attempt at a request needs a new one.
pub fn nonce_from(random: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*random))
}

/// Parses a timestamp header. Returns `None` if it is not a plain integer (decimal digits only, no sign, no fraction, no spaces).
/// A number that is too large for an `i64` becomes `i64::MAX`, which is well-formed and never current.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(i64::MAX))
}

/// Returns whether a timestamp is within [`TIMESTAMP_TOLERANCE_SECONDS`] of the server's time. Both are Unix times in seconds.
pub fn timestamp_is_current(timestamp: i64, now: i64) -> bool {
    timestamp.abs_diff(now) <= TIMESTAMP_TOLERANCE_SECONDS
}

/// The parts of a request that its signature covers.
#[derive(Clone, Copy, Debug)]
pub struct UnsignedRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The path exactly as it will be sent, beginning with `/api/v1/partner/...`.
    pub path: &'a str,
    /// The query exactly as it will be sent, without its `?`; empty if there is none.
    pub raw_query: &'a [u8],
    /// The exact bytes of the body; empty if there is none.
    pub body: &'a [u8],
}

/// The values of the four headers of a signed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    /// For [`HEADER_KEY_ID`].
    pub key_id: String,
    /// For [`HEADER_TIMESTAMP`].
    pub timestamp: String,
    /// For [`HEADER_NONCE`].
    pub nonce: String,
    /// For [`HEADER_SIGNATURE`].
    pub signature: String,
}

/// The error for a nonce that the service would reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a nonce must have {NONCE_MIN} to {NONCE_MAX} characters of visible ASCII")]
pub struct InvalidNonce;

/// An error while signing a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningError {
    /// The query has no canonical form.
    #[error(transparent)]
    Query(#[from] MalformedQuery),
    /// The nonce is invalid.
    #[error(transparent)]
    Nonce(#[from] InvalidNonce),
}

impl Headers {
    /// Signs a request.
    ///
    /// `timestamp` is the Unix time in seconds. `nonce` must not be used again with this key (see [`nonce_from`]), so a retry must
    /// be signed again with a new timestamp and nonce.
    ///
    /// # Errors
    /// [`SigningError::Query`] for a query without a canonical form, [`SigningError::Nonce`] for a nonce that is not 16
    /// to 128 characters of visible ASCII.
    pub fn sign(
        key_id: &KeyId,
        secret: &Secret,
        request: UnsignedRequest<'_>,
        timestamp: u64,
        nonce: &str,
    ) -> Result<Self, SigningError> {
        if !is_valid_nonce(nonce.as_bytes()) {
            return Err(InvalidNonce.into());
        }
        let timestamp = timestamp.to_string();
        let canonical = Canonical {
            method: request.method,
            path: request.path,
            canonical_query: &canonical_query(request.raw_query)?,
            timestamp: &timestamp,
            nonce,
            body_sha256: &body_sha256(request.body),
        };
        let signature = sign(secret, &canonical.render());
        Ok(Self {
            key_id: key_id.to_string(),
            timestamp,
            nonce: nonce.to_owned(),
            signature,
        })
    }

    /// Returns the names and values of the four headers.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            (HEADER_KEY_ID, self.key_id.as_str()),
            (HEADER_TIMESTAMP, self.timestamp.as_str()),
            (HEADER_NONCE, self.nonce.as_str()),
            (HEADER_SIGNATURE, self.signature.as_str()),
        ]
        .into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SIG-1
    #[test]
    fn a_nonce_has_16_to_128_visible_characters() {
        for (nonce, valid) in [
            ("a".repeat(15), false),
            ("a".repeat(16), true),
            ("!~".repeat(64), true),
            ("a".repeat(129), false),
            (format!("{} ", "a".repeat(16)), false),
            ("ş".repeat(16), false),
            (format!("{}\t", "a".repeat(16)), false),
        ] {
            assert_eq!(is_valid_nonce(nonce.as_bytes()), valid, "{nonce}");
        }
        assert_eq!(nonce_from(&[0; 16]), "0".repeat(32));
        assert!(is_valid_nonce(nonce_from(&[255; 16]).as_bytes()));
    }

    #[test]
    fn a_timestamp_is_a_plain_integer() {
        assert_eq!(parse_timestamp("1780000000"), Some(1_780_000_000));
        assert_eq!(parse_timestamp("99999999999999999999"), Some(i64::MAX));
        for wrong in ["", " 1", "+1", "-1", "1.0", "1e9", "0x1", "١"] {
            assert_eq!(parse_timestamp(wrong), None, "{wrong}");
        }
    }

    /// SIG-5
    #[test]
    fn a_timestamp_is_current_up_to_300_seconds_before_and_after() {
        let now = 1_780_000_000;
        for (difference, current) in [(0, true), (300, true), (-300, true), (301, false), (-301, false)] {
            assert_eq!(timestamp_is_current(now + difference, now), current, "{difference}");
        }
        assert!(!timestamp_is_current(i64::MAX, -1));
    }

    #[test]
    fn a_client_gets_the_headers_of_the_worked_example() {
        let key_id: KeyId = "vip_test_ABCDEFGHIJKLMNOPQRSTUV".parse().unwrap();
        let secret: Secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".parse().unwrap();
        let request = UnsignedRequest {
            method: "GET",
            path: "/api/v1/partner/health",
            raw_query: b"",
            body: b"",
        };
        let headers = Headers::sign(&key_id, &secret, request, 1_780_000_000, "0123456789abcdef").unwrap();
        let expected = [
            ("x-partner-key-id", "vip_test_ABCDEFGHIJKLMNOPQRSTUV"),
            ("x-partner-timestamp", "1780000000"),
            ("x-partner-nonce", "0123456789abcdef"),
            (
                "x-partner-signature",
                "sha256=00b8332449583da2c92d54fa0ee432290c99864df6d9226fca919be2d027f8d7",
            ),
        ];
        assert_eq!(headers.iter().collect::<Vec<_>>(), expected);
        let short = Headers::sign(&key_id, &secret, request, 0, "short");
        assert_eq!(short, Err(SigningError::Nonce(InvalidNonce)));
        let malformed = Headers::sign(
            &key_id,
            &secret,
            UnsignedRequest {
                raw_query: b"%",
                ..request
            },
            0,
            &"n".repeat(16),
        );
        assert!(matches!(
            malformed,
            Err(SigningError::Query(MalformedQuery { offset: 0, .. }))
        ));
    }
}
