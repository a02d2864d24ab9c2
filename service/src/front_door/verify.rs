//! Whether the request is what its key's holder signed, and sent from where the key may be used.

use bytes::Bytes;
use http::request::Parts;
use partner_api_signing::{
    Canonical, DecodedPair, Environment, SIGNATURE_PREFIX, body_sha256, canonical_of, decode_query,
    verify as signature_is_valid,
};

use super::body::Received;
use super::identify::Credentials;
use super::route::Destination;
use super::{Refused, Seen, address};
use crate::deadline::Deadline;
use crate::directory::AllowlistMode;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;

/// A request whose signature is right.
pub(super) struct Verified {
    pub seen: Seen,
    pub destination: Destination,
    pub head: Parts,
    /// The query's pairs, decoded.
    pub query: Vec<DecodedPair>,
    /// The body, byte for byte as sent.
    pub raw: Bytes,
    pub credentials: Credentials,
    pub deadline: Deadline,
    _step: (),
}

/// A verified request that was sent from where its key may be used.
pub(super) struct Located(Verified);

impl Located {
    /// The request.
    pub fn into_verified(self) -> Verified {
        self.0
    }
}

/// Compares the signature with the server's own.
///
/// # Errors
/// 400 when the query has no canonical form; 401 `invalid_signature`, in the sandbox with the server's canonical
/// string (it holds nothing secret), so that a partner can lay it beside its own.
pub(super) fn signature(environment: Environment, received: Received) -> Result<Verified, Box<Refused>> {
    // What the body took of the budget is given back below: who has proved the secret answers for it.
    let Received {
        seen,
        destination,
        head,
        raw,
        credentials,
        hold,
        deadline,
        ..
    } = received;
    let query = match decode_query(head.uri.query().unwrap_or_default().as_bytes()) {
        Ok(query) => query,
        Err(malformed) => {
            let error = ApiError::invalid_request(format!("query: {malformed}")).because(Reason::QueryMalformed);
            return Err(seen.refused(error));
        }
    };
    let canonical = Canonical {
        method: head.method.as_str(),
        path: head.uri.path(),
        canonical_query: &canonical_of(&query),
        timestamp: credentials.timestamp.as_str(),
        nonce: credentials.nonce.as_str(),
        body_sha256: &body_sha256(&raw),
    }
    .render();
    if !signature_is_valid(&credentials.key.secret, &canonical, &credentials.signature) {
        let reason = what_is_wrong(credentials.signature.as_bytes());
        return Err(seen.refused(invalid_signature(environment, &canonical).because(reason)));
    }
    drop(hold);
    Ok(Verified {
        seen,
        destination,
        head,
        query,
        raw,
        credentials,
        deadline,
        _step: (),
    })
}

/// What is wrong with a signature that does not verify. The caller is told what one looks like, whatever is wrong.
fn what_is_wrong(signature: &[u8]) -> Reason {
    match signature.strip_prefix(SIGNATURE_PREFIX.as_bytes()) {
        None => Reason::SignaturePrefix,
        Some(hex) if hex.len() != 64 => Reason::SignatureLength,
        Some(hex) if !hex.iter().all(u8::is_ascii_hexdigit) => Reason::SignatureNotHex,
        Some(hex) if hex.iter().any(u8::is_ascii_uppercase) => Reason::SignatureUpperCase,
        Some(_) => Reason::SignatureDiffers,
    }
}

fn invalid_signature(environment: Environment, canonical: &str) -> ApiError {
    let mut message =
        "the signature does not verify; it is `sha256=` and the lower-case hex of the HMAC-SHA256, keyed \
                       with the 32 characters of the secret as shown, of the canonical string over the exact bytes sent"
            .to_string();
    if environment == Environment::Test {
        message.push_str(
            "; the server's canonical string is between the lines (six lines, no line feed at the end):\n---\n",
        );
        message.push_str(canonical);
        message.push_str("\n---");
    }
    ApiError::new(ErrorCode::InvalidSignature, message)
}

/// Checks the key's allowlist.
///
/// # Errors
/// 401 `invalid_key` with the observed address: the caller has proved the secret.
pub(super) fn address(verified: Verified) -> Result<Located, Box<Refused>> {
    let (key, address) = (&verified.credentials.key, verified.seen.address);
    if address::admits(&key.allowlist, address) {
        return Ok(Located(verified));
    }
    match key.allowlist_mode {
        AllowlistMode::Report => {
            tracing::warn!(key_id = &*key.id, %address, "outside the key's allowlist, admitted (mode report)");
            Ok(Located(verified))
        }
        AllowlistMode::Enforce => Err(verified.seen.refused(
            ApiError::new(
                ErrorCode::InvalidKey,
                format!("this key's allowlist does not admit your address {address}; ask the operator to add it"),
            )
            .because(Reason::AddressNotAllowed),
        )),
    }
}
