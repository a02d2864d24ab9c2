//! The proof that a request comes from its key's holder: the signature and the key's allowlist.

use std::net::IpAddr;

use ipnet::IpNet;
use partner_api_signing::{
    Canonical, Environment, SIGNATURE_PREFIX, body_sha256, canonical_of, verify as signature_is_valid,
};
use partner_api_store::deadline::Deadline;
use partner_api_store::directory::AllowlistMode;

use super::Gateway;
use super::identify::Credentials;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;
use partner_api_gateway::{DecodedQuery, Unverified};

/// The credentials of a request whose signature is valid.
pub struct Verified {
    pub(super) credentials: Credentials,
    /// Until when the request waits for the database.
    pub(super) deadline: Deadline,
    _stage: (),
}

/// Compares the signature with the server's own.
///
/// # Errors
/// 400 when the query has no canonical form; 401 `invalid_signature`, in the sandbox with the server's canonical string (it holds
/// nothing secret), so that partners can compare it with theirs.
pub(super) fn signature(
    environment: Environment,
    request: &Unverified<'_, Gateway>,
    credentials: Credentials,
) -> Result<(Verified, DecodedQuery), ApiError> {
    // The body has arrived just now.
    let deadline = Deadline::begin();
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
        let (reason, form) = what_is_wrong(credentials.signature.as_bytes());
        let error = invalid_signature(environment, &canonical, form.as_deref());
        return Err(error.with_reason(reason));
    }
    let verified = Verified {
        credentials,
        deadline,
        _stage: (),
    };
    Ok((verified, query))
}

/// What is wrong with a signature that does not verify: the reason for the request log, and for the caller what is wrong with its
/// form. About one of the right form nothing more can be said than that it differs.
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
pub(super) fn allowlist(verified: &Verified, address: IpAddr) -> Result<(), ApiError> {
    let key = &verified.credentials.key;
    if allows(&key.allowlist, address) {
        return Ok(());
    }
    match key.allowlist_mode {
        AllowlistMode::Report => {
            tracing::warn!(key_id = &*key.id, %address, "outside the key's allowlist, admitted (mode report)");
            Ok(())
        }
        AllowlistMode::Enforce => {
            let message =
                format!("this key's allowlist does not admit your address {address}; ask the operator to add it");
            Err(ApiError::new(ErrorCode::InvalidKey, message).with_reason(Reason::AddressNotAllowed))
        }
    }
}

/// Whether `address` is in one of `blocks`, or there are none; an IPv4-mapped IPv6 address is its IPv4 address.
fn allows(blocks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    blocks.is_empty() || blocks.iter().any(|block| canonical_block(block).contains(&address))
}

/// `::ffff:10.0.0.0/104` means `10.0.0.0/8`.
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
    fn an_allowlist_admits_its_blocks_and_v4_mapped_addresses_are_v4() {
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
