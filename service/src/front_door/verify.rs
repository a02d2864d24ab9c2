//! Whether the request is what its key's holder signed, and sent from where the key may be used.

use bytes::Bytes;
use http::request::Parts;
use partner_api_signing::{
    Canonical, DecodedPair, Environment, SIGNATURE_PREFIX, body_sha256, canonical_of, verify as signature_is_valid,
};

use super::body::Received;
use super::identify::Credentials;
use super::route::Destination;
use super::{Refused, Seen, address, arguments};
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
    let query = match arguments::pairs(head.uri.query().unwrap_or_default()) {
        Ok(query) => query,
        Err(wrong) => return Err(seen.refused(wrong.into())),
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
        let (reason, form) = what_is_wrong(credentials.signature.as_bytes());
        let error = invalid_signature(environment, &canonical, form.as_deref());
        return Err(seen.refused(error.because(reason)));
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

/// What is wrong with a signature that does not verify, for the request log and as its sender is told: of one that has
/// the right form, that it differs is all that can be said.
fn what_is_wrong(signature: &[u8]) -> (Reason, Option<String>) {
    let Some(hex) = signature.strip_prefix(SIGNATURE_PREFIX.as_bytes()) else {
        return (Reason::SignaturePrefix, Some("does not begin with \"sha256=\"".into()));
    };
    let told = |problem: &str| Some(problem.to_string());
    // Thirty-two bytes in Base64.
    if hex.len() == 44 && hex.ends_with(b"=") {
        return (Reason::SignatureLength, told("seems to be Base64"));
    }
    if hex.len() != 64 {
        return (
            Reason::SignatureLength,
            Some(format!("has {} characters after the \"=\"", hex.len())),
        );
    }
    if !hex.iter().all(u8::is_ascii_hexdigit) {
        return (Reason::SignatureNotHex, told("has characters that are no hex digits"));
    }
    match hex.iter().any(u8::is_ascii_uppercase) {
        true => (Reason::SignatureUpperCase, told("has upper-case hex digits")),
        false => (Reason::SignatureDiffers, None),
    }
}

fn invalid_signature(environment: Environment, canonical: &str, form: Option<&str>) -> ApiError {
    let shows = environment == Environment::Test;
    let mut message = match form {
        Some(problem) => {
            format!("X-Partner-Signature must be \"sha256=\" + 64 lower-case hex digits; the one sent {problem}")
        }
        None => "the signature does not match this request: it must be the HMAC-SHA256 of the canonical string over the exact \
                 bytes sent, keyed with the 32 characters of the secret as shown"
            .to_string(),
    };
    match (shows, form) {
        (true, Some(_)) => message.push_str("; the canonical string that is to be signed"),
        (true, None) => message.push_str(
            "; if your canonical string differs from the server's, that is why; if it is identical, the secret does not belong \
             to this key id; the server's",
        ),
        (false, _) => message.push_str("; the sandbox tells its canonical string with this error"),
    }
    if shows {
        message.push_str(" (six lines, no line feed at the end) stands between the dashes:\n---\n");
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
