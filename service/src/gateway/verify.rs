//! Verifies the signature and the key's allowlist.

use std::net::IpAddr;

use bounded_listener::Queued;
use ipnet::IpNet;
use partner_api_signing::{
    Canonical, Environment, SIGNATURE_PREFIX, body_sha256, canonical_of, verify as signature_is_valid,
};
use partner_api_store::deadline::Deadline;
use partner_api_store::directory::AllowlistMode;

use super::identify::Credentials;
use super::{Gateway, durability};
use crate::admission::Durability;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;
use partner_api_gateway::{DecodedQuery, Unverified};

/// The credentials of a request whose signature is valid.
pub struct Verified {
    pub(super) credentials: Credentials,
    /// The deadline of the request's waits for the database.
    pub(super) deadline: Deadline,
    _stage: (),
}

/// Verifies the signature.
///
/// # Errors
/// 400 if the query has no canonical form; 401 `invalid_signature`. In `test`, the message shows the server's canonical string,
/// which contains no secret, so that partners can compare it with theirs.
pub(super) fn signature(
    environment: Environment,
    request: &Unverified<'_, Gateway>,
    credentials: Credentials,
) -> Result<(Verified, DecodedQuery), ApiError> {
    // The client also waits while the request waits in the listener.
    let queued = request.head.extensions.get::<Queued>();
    if queued.is_some_and(Queued::is_late) && durability(request.route) == Durability::Database {
        return Err(ApiError::unavailable(Reason::AdmissionCrowded));
    }
    // The deadline starts when the body has arrived.
    let deadline = Deadline::begin_after(queued.map(Queued::waited).unwrap_or_default());
    let query = request.query.decode()?;
    let canonical = Canonical {
        method: request.head.method.as_str(),
        path: request.head.uri.path(),
        canonical_query: &canonical_of(query.pairs()),
        timestamp: credentials.timestamp.as_str(),
        nonce: credentials.nonce.as_str(),
        body_sha256: &body_sha256(request.body),
    }
    .render();
    if !signature_is_valid(&credentials.key.secret, &canonical, &credentials.signature) {
        let (reason, problem) = diagnose(credentials.signature.as_bytes());
        let error = invalid_signature(environment, &canonical, problem.as_deref());
        return Err(error.with_reason(reason));
    }
    let verified = Verified {
        credentials,
        deadline,
        _stage: (),
    };
    Ok((verified, query))
}

/// Diagnoses a signature that does not verify. Returns the reason for the request log and, if the signature is malformed, the problem
/// for the caller.
fn diagnose(signature: &[u8]) -> (Reason, Option<String>) {
    let Some(hex) = signature.strip_prefix(SIGNATURE_PREFIX.as_bytes()) else {
        return (Reason::SignaturePrefix, Some("does not begin with \"sha256=\"".into()));
    };
    let some = |problem: &str| Some(problem.to_string());
    // The length of 32 bytes in Base64.
    if hex.len() == 44 && hex.ends_with(b"=") {
        return (Reason::SignatureLength, some("seems to be Base64"));
    }
    if hex.len() != 64 {
        return (
            Reason::SignatureLength,
            Some(format!("has {} characters after the \"=\"", hex.len())),
        );
    }
    if !hex.iter().all(u8::is_ascii_hexdigit) {
        return (Reason::SignatureNotHex, some("has characters other than hex digits"));
    }
    match hex.iter().any(u8::is_ascii_uppercase) {
        true => (Reason::SignatureUpperCase, some("has uppercase hex digits")),
        false => (Reason::SignatureDiffers, None),
    }
}

fn invalid_signature(environment: Environment, canonical: &str, problem: Option<&str>) -> ApiError {
    let shows_canonical = environment == Environment::Test;
    let mut message = match problem {
        Some(problem) => {
            format!("X-Partner-Signature must be \"sha256=\" followed by 64 lowercase hex digits; the value sent {problem}")
        }
        None => "the signature does not match this request. It must be the HMAC-SHA256 of the canonical string of the exact \
                 bytes sent, keyed with the 32 characters of the secret as shown"
            .to_string(),
    };
    if shows_canonical {
        if problem.is_none() {
            message.push_str(
                ". Compare your canonical string with the server's below. If they are identical, the secret does not match \
                 this key ID",
            );
        }
        message.push_str(
            ". The server's canonical string (six lines, no line feed at the end) is between the dashes:\n---\n",
        );
        message.push_str(canonical);
        message.push_str("\n---");
    } else {
        message.push_str(". In the sandbox, this error includes the server's canonical string");
    }
    ApiError::new(ErrorCode::InvalidSignature, message)
}

/// Checks the key's allowlist.
///
/// # Errors
/// 401 `invalid_key`. The message shows the client's address, because the caller has proved that it knows the secret.
pub(super) fn allowlist(verified: &Verified, address: IpAddr) -> Result<(), ApiError> {
    let key = &verified.credentials.key;
    if allows(&key.allowlist, address) {
        return Ok(());
    }
    match key.allowlist_mode {
        AllowlistMode::Report => {
            tracing::warn!(key_id = &*key.id, %address, "admitted an address outside the key's allowlist (mode report)");
            Ok(())
        }
        AllowlistMode::Enforce => {
            let message =
                format!("this key's allowlist does not admit your address {address}; ask the operator to add it");
            Err(ApiError::new(ErrorCode::InvalidKey, message).with_reason(Reason::AddressNotAllowed))
        }
    }
}

/// Returns whether `address` is in one of `blocks`, or there are none. IPv4-mapped IPv6 addresses are treated as IPv4.
fn allows(blocks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    blocks.is_empty() || blocks.iter().any(|block| canonical_block(block).contains(&address))
}

/// Converts an IPv4-mapped block into its IPv4 block: `::ffff:10.0.0.0/104` into `10.0.0.0/8`.
fn canonical_block(block: &IpNet) -> IpNet {
    let IpNet::V6(v6) = block else { return *block };
    match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96)) {
        (Some(v4), Some(length)) => ipnet::Ipv4Net::new(v4, length).map(IpNet::V4).unwrap_or(*block),
        _ => *block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KEY-5
    #[test]
    fn an_allowlist_admits_its_blocks_and_treats_mapped_addresses_as_ipv4() {
        let blocks: Vec<IpNet> = ["192.0.2.0/24", "2001:db8::/32", "::ffff:198.51.100.0/120"]
            .map(|block| block.parse().unwrap())
            .to_vec();
        for allowed in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::9", "198.51.100.9"] {
            assert!(allows(&blocks, allowed.parse().unwrap()), "{allowed}");
        }
        for other in ["192.0.3.1", "2001:db9::9", "198.51.101.9"] {
            assert!(!allows(&blocks, other.parse().unwrap()), "{other}");
        }
        assert!(allows(&[], "203.0.113.1".parse().unwrap()));
    }
}
