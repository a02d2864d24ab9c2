//! Links that the service signs and serves itself, for the embedded file store.

use chrono::{DateTime, Utc};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::secrets::hmac_sha256;

/// Why a link is not served. Only who holds a link that we signed learns that it has expired: to everybody else a wrong
/// signature, an altered key and an altered time look alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// Not a link of ours.
    #[error("the link is not valid")]
    Invalid,
    /// A link of ours whose time has run out.
    #[error("the link has expired")]
    Expired,
}

/// Signs and verifies links with HMAC-SHA256.
pub(super) struct LinkSigner {
    base: String,
    key: Zeroizing<[u8; 32]>,
}

impl LinkSigner {
    pub fn new(public_url: &str, key: [u8; 32]) -> Self {
        Self {
            base: format!("{}/files/", public_url.trim_end_matches('/')),
            key: Zeroizing::new(key),
        }
    }

    /// `<public url>/files/<key>?expires=<unix seconds>&signature=<64 hex digits>`. The key needs no encoding: a valid one
    /// consists of characters that are plain in a path.
    pub fn sign(&self, key: &str, expires: i64) -> String {
        let signature: String = self
            .mac(key, expires)
            .finalize()
            .into_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{}{key}?expires={expires}&signature={signature}", self.base)
    }

    pub fn verify(&self, key: &str, expires: i64, signature: &str, now: DateTime<Utc>) -> Result<(), LinkError> {
        let signature = unhex(signature).ok_or(LinkError::Invalid)?;
        // Compares in constant time.
        self.mac(key, expires)
            .verify_slice(&signature)
            .map_err(|_| LinkError::Invalid)?;
        let end = DateTime::from_timestamp(expires, 0).ok_or(LinkError::Invalid)?;
        if now > end { Err(LinkError::Expired) } else { Ok(()) }
    }

    fn mac(&self, key: &str, expires: i64) -> Hmac<Sha256> {
        // The method is `GET` for `HEAD` too: whoever may read may ask what there is to read.
        hmac_sha256(&self.key).chain_update(format!("GET\n{key}\n{expires}"))
    }
}

/// The bytes of exactly 64 lower-case hex digits.
fn unhex(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}
