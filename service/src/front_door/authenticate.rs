//! Who signed: the four headers, the key, the time, the signature, the address (contract, section 5).

use std::net::IpAddr;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use http::HeaderMap;
use http::request::Parts;
use partner_api_signing::{
    Canonical, Environment, HEADER_KEY_ID, HEADER_NONCE, HEADER_SIGNATURE, HEADER_TIMESTAMP, NONCE_MAX, NONCE_MIN,
    TIMESTAMP_TOLERANCE_SECONDS, body_sha256, canonical_query, is_valid_nonce, parse_timestamp, timestamp_is_current,
    verify as signature_is_valid,
};

use super::address;
use super::request_log::Record;
use crate::directory::{AllowlistMode, Directory, Key};
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;

/// A request's claim: the key is known and the time is right; the signature is not checked yet.
pub(super) struct Identified {
    pub key: Arc<Key>,
    pub nonce: String,
    timestamp: String,
    signature: Vec<u8>,
}

/// Reads the four headers and finds the key.
///
/// # Errors
/// 401 `missing_signature_headers`, `invalid_key` or `expired_timestamp`.
pub(super) fn identify(
    directory: &Directory,
    headers: &HeaderMap,
    now: DateTime<Utc>,
    record: &mut Record,
) -> Result<Identified, ApiError> {
    let key_id = single(headers, HEADER_KEY_ID)?;
    let timestamp = single(headers, HEADER_TIMESTAMP)?;
    let nonce = single(headers, HEADER_NONCE)?;
    let signature = single(headers, HEADER_SIGNATURE)?;
    let seconds = std::str::from_utf8(timestamp)
        .ok()
        .and_then(parse_timestamp)
        .ok_or_else(|| {
            missing(format!(
                "{}: must be a plain integer, UNIX time in seconds",
                shown(HEADER_TIMESTAMP)
            ))
        })?;
    if !is_valid_nonce(nonce) {
        return Err(missing(format!(
            "{}: must have {NONCE_MIN} to {NONCE_MAX} characters of visible ASCII, has {}",
            shown(HEADER_NONCE),
            nonce.len()
        )));
    }
    let key = std::str::from_utf8(key_id)
        .ok()
        .and_then(|id| directory.key(id, now))
        .ok_or_else(|| {
            ApiError::new(
                ErrorCode::InvalidKey,
                "this key id is not in force here; check for a typing error, that test keys go to the sandbox and live \
             keys to production, and with the operator that the key has neither expired nor been revoked",
            )
        })?;
    record.key_id = Some(key.id.clone());
    record.partner = Some(key.scope.partner_name.clone());
    if !timestamp_is_current(seconds, now.timestamp()) {
        return Err(ApiError::new(
            ErrorCode::ExpiredTimestamp,
            format!(
                "{} is more than {TIMESTAMP_TOLERANCE_SECONDS} s from the server's time, {} ({}); synchronise this \
                 machine's clock, and sign each attempt at the time it is sent",
                shown(HEADER_TIMESTAMP),
                now.timestamp(),
                now.to_rfc3339_opts(SecondsFormat::Secs, true),
            ),
        ));
    }
    Ok(Identified {
        key,
        // Both are ASCII, as just checked.
        nonce: String::from_utf8_lossy(nonce).into_owned(),
        timestamp: String::from_utf8_lossy(timestamp).into_owned(),
        signature: signature.to_vec(),
    })
}

/// Compares the signature with the server's own.
///
/// # Errors
/// 400 when the query has no canonical form; 401 `invalid_signature`, in the sandbox with the server's canonical
/// string (it holds nothing secret), so that a partner can lay it beside its own.
pub(super) fn verify(
    identified: &Identified,
    head: &Parts,
    body: &[u8],
    environment: Environment,
) -> Result<(), ApiError> {
    let raw_query = head.uri.query().unwrap_or_default();
    let canonical_query = canonical_query(raw_query.as_bytes())
        .map_err(|malformed| ApiError::invalid_request(format!("query: {malformed}")))?;
    let canonical = Canonical {
        method: head.method.as_str(),
        path: head.uri.path(),
        canonical_query: &canonical_query,
        timestamp: &identified.timestamp,
        nonce: &identified.nonce,
        body_sha256: &body_sha256(body),
    }
    .render();
    if signature_is_valid(&identified.key.secret, &canonical, &identified.signature) {
        return Ok(());
    }
    let mut message =
        "the signature does not verify; it is `sha256=` and the lower-case hex of the HMAC-SHA256, keyed \
                       with the 32 characters of the secret as shown, of the canonical string over the exact bytes sent"
            .to_string();
    if environment == Environment::Test {
        message.push_str(
            "; the server's canonical string is between the lines (six lines, no line feed at the end):\n---\n",
        );
        message.push_str(&canonical);
        message.push_str("\n---");
    }
    Err(ApiError::new(ErrorCode::InvalidSignature, message))
}

/// Checks the key's allowlist.
///
/// # Errors
/// 401 `invalid_key` with the observed address: the caller has proved the secret.
pub(super) fn check_address(key: &Key, address: IpAddr, request_id: &str) -> Result<(), ApiError> {
    if address::admits(&key.allowlist, address) {
        return Ok(());
    }
    match key.allowlist_mode {
        AllowlistMode::Report => {
            tracing::warn!(request_id, key_id = key.id, %address, "outside the key's allowlist, admitted (mode report)");
            Ok(())
        }
        AllowlistMode::Enforce => Err(ApiError::new(
            ErrorCode::InvalidKey,
            format!("this key's allowlist does not admit your address {address}; ask the operator to add it"),
        )),
    }
}

/// The one value of a header that must be there once.
fn single<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<&'h [u8], ApiError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) if !value.is_empty() => Ok(value.as_bytes()),
        (Some(_), None) => Err(missing(format!("{} is empty", shown(name)))),
        (None, _) => Err(missing(format!("{} is missing", shown(name)))),
        (Some(_), Some(_)) => Err(missing(format!("{} was sent more than once", shown(name)))),
    }
}

fn missing(problem: String) -> ApiError {
    ApiError::new(
        ErrorCode::MissingSignatureHeaders,
        format!(
            "{problem}; every request carries X-Partner-Key-Id, X-Partner-Timestamp, X-Partner-Nonce and \
             X-Partner-Signature, each once"
        ),
    )
}

/// A header's name as the documents write it.
fn shown(name: &str) -> String {
    name.split('-')
        .map(|part| part[..1].to_uppercase() + &part[1..])
        .collect::<Vec<_>>()
        .join("-")
}
