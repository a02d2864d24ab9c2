//! Signed links to files in the storage folder, which the service serves itself.

use chrono::{DateTime, Utc};
use data_encoding::HEXLOWER;
use hmac::{Hmac, Mac};
use partner_api_signing::hmac_sha256;
use sha2::Sha256;
use thiserror::Error;

use partner_api_store::secrets::Derived;

/// Why a link is rejected. A link with a wrong signature, an altered key or an altered time is only invalid; whether it has expired
/// is revealed only if its signature is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// The service did not sign this link.
    #[error("the link is not valid")]
    Invalid,
    /// The service signed this link, and it has expired.
    #[error("the link has expired")]
    Expired,
}

/// Signs and verifies links with HMAC-SHA256.
pub(super) struct LinkSigner {
    base: String,
    key: Derived,
}

impl LinkSigner {
    /// Creates a signer of links that start with `<public_url>/files/`.
    pub fn new(public_url: &str, key: Derived) -> Self {
        Self {
            base: format!("{}/files/", public_url.trim_end_matches('/')),
            key,
        }
    }

    /// Returns `<public url>/files/<key>?expires=<unix seconds>&signature=<64 hex digits>`. A valid key needs no encoding in a path.
    pub fn sign(&self, key: &str, expires: i64) -> String {
        let signature = HEXLOWER.encode(&mac(self.key.signing(), key, expires).finalize().into_bytes());
        format!("{}{key}?expires={expires}&signature={signature}", self.base)
    }

    /// Checks that the service signed the link and that it has not expired at `now`; `expires` is in Unix seconds.
    ///
    /// # Errors
    /// [`LinkError::Invalid`] if the signature is not valid, [`LinkError::Expired`] if the link has expired.
    pub fn verify(&self, key: &str, expires: i64, signature: &str, now: DateTime<Utc>) -> Result<(), LinkError> {
        let signature = HEXLOWER.decode(signature.as_bytes()).map_err(|_| LinkError::Invalid)?;
        // Compares in constant time.
        let is_signed = |with: &[u8; 32]| mac(with, key, expires).verify_slice(&signature).is_ok();
        if !self.key.accepted().any(is_signed) {
            return Err(LinkError::Invalid);
        }
        let expires_at = DateTime::from_timestamp(expires, 0).ok_or(LinkError::Invalid)?;
        if now > expires_at {
            Err(LinkError::Expired)
        } else {
            Ok(())
        }
    }
}

fn mac(with: &[u8; 32], key: &str, expires: i64) -> Hmac<Sha256> {
    // `GET` covers `HEAD` too.
    hmac_sha256(with).chain_update(format!("GET\n{key}\n{expires}"))
}
