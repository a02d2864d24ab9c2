//! Links that the service signs and serves itself, for the embedded file store.

use chrono::{DateTime, Utc};
use data_encoding::HEXLOWER;
use hmac::{Hmac, Mac};
use partner_api_signing::hmac_sha256;
use sha2::Sha256;
use thiserror::Error;

use partner_api_store::secrets::Derived;

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
    key: Derived,
}

impl LinkSigner {
    /// For links that begin with `<public_url>/files/`.
    pub fn new(public_url: &str, key: Derived) -> Self {
        Self {
            base: format!("{}/files/", public_url.trim_end_matches('/')),
            key,
        }
    }

    /// `<public url>/files/<key>?expires=<unix seconds>&signature=<64 hex digits>`. The key needs no encoding: a valid one
    /// consists of characters that are plain in a path.
    pub fn sign(&self, key: &str, expires: i64) -> String {
        let signature = HEXLOWER.encode(&mac(self.key.signing(), key, expires).finalize().into_bytes());
        format!("{}{key}?expires={expires}&signature={signature}", self.base)
    }

    /// Whether this service signed the link and it holds `now`; `expires` is in UNIX seconds.
    ///
    /// # Errors
    /// [`LinkError::Invalid`] unless it is one of ours, and only then [`LinkError::Expired`].
    pub fn verify(&self, key: &str, expires: i64, signature: &str, now: DateTime<Utc>) -> Result<(), LinkError> {
        let signature = HEXLOWER.decode(signature.as_bytes()).map_err(|_| LinkError::Invalid)?;
        // Compares in constant time, and the whole of it.
        let made = |with: &[u8; 32]| mac(with, key, expires).verify_slice(&signature).is_ok();
        if !self.key.accepted().any(made) {
            return Err(LinkError::Invalid);
        }
        let end = DateTime::from_timestamp(expires, 0).ok_or(LinkError::Invalid)?;
        if now > end { Err(LinkError::Expired) } else { Ok(()) }
    }
}

fn mac(with: &[u8; 32], key: &str, expires: i64) -> Hmac<Sha256> {
    // The method is `GET` for `HEAD` too: whoever may read may ask what there is to read.
    hmac_sha256(with).chain_update(format!("GET\n{key}\n{expires}"))
}
