//! The credentials of a request: its four headers, its key, and its timestamp (SIG-1).

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use codegen_runtime::ValidationError;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use partner_api_signing::{
    Environment, HEADER_KEY_ID, HEADER_NONCE, HEADER_SIGNATURE, HEADER_TIMESTAMP, KeyId, NONCE_MAX, NONCE_MIN,
    TIMESTAMP_TOLERANCE_SECONDS, is_valid_nonce, parse_timestamp, timestamp_is_current,
};
use partner_api_store::directory::{Directory, Key, KeyProblem, STALE};

use crate::admission::Durability;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;

/// The values of the four headers. The key is active and the timestamp is current; the signature is not verified yet.
pub struct Credentials {
    pub key: Arc<Key>,
    pub nonce: Text,
    pub timestamp: Text,
    pub seconds: i64,
    pub signature: HeaderValue,
}

/// The value of a header, which is ASCII.
pub struct Text(Bytes);

impl Text {
    /// Returns the value.
    pub fn as_str(&self) -> &str {
        // Only ASCII values become a `Text`.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// A header that must be sent once, and the reasons for the request log if it is not.
struct Header {
    name: &'static str,
    missing: Reason,
    empty: Reason,
    repeated: Reason,
}

const KEY_ID: Header = Header {
    name: HEADER_KEY_ID,
    missing: Reason::KeyIdMissing,
    empty: Reason::KeyIdEmpty,
    repeated: Reason::KeyIdRepeated,
};
const TIMESTAMP: Header = Header {
    name: HEADER_TIMESTAMP,
    missing: Reason::TimestampMissing,
    empty: Reason::TimestampEmpty,
    repeated: Reason::TimestampRepeated,
};
const NONCE: Header = Header {
    name: HEADER_NONCE,
    missing: Reason::NonceMissing,
    empty: Reason::NonceEmpty,
    repeated: Reason::NonceRepeated,
};
const SIGNATURE: Header = Header {
    name: HEADER_SIGNATURE,
    missing: Reason::SignatureMissing,
    empty: Reason::SignatureEmpty,
    repeated: Reason::SignatureRepeated,
};

/// Reads the four headers and finds the key.
///
/// # Errors
/// 401 `missing_signature_headers`, `invalid_key` or `expired_timestamp`; 503 while the directory is stale, except for an operation
/// that does not need the database.
pub(super) fn credentials(
    directory: &Directory,
    headers: &HeaderMap,
    durability: Durability,
) -> Result<Credentials, ApiError> {
    let key_id = single(headers, &KEY_ID)?;
    let timestamp = single(headers, &TIMESTAMP)?;
    let nonce = single(headers, &NONCE)?;
    let signature = single(headers, &SIGNATURE)?;
    let seconds = timestamp.to_str().ok().and_then(parse_timestamp).ok_or_else(|| {
        malformed(
            &TIMESTAMP,
            "must be a plain integer, UNIX time in seconds",
            Reason::TimestampMalformed,
        )
    })?;
    if !is_valid_nonce(nonce.as_bytes()) {
        let problem = format!(
            "must have {NONCE_MIN} to {NONCE_MAX} characters of visible ASCII, has {}",
            nonce.len()
        );
        return Err(malformed(&NONCE, &problem, Reason::NonceMalformed));
    }
    if durability == Durability::Database && directory.age() > STALE {
        // A revoked key might still be accepted.
        return Err(ApiError::unavailable(Reason::DirectoryStale));
    }
    let now = Utc::now();
    let key_id = String::from_utf8_lossy(key_id.as_bytes());
    let key = directory
        .key(&key_id, now)
        .map_err(|problem| not_accepted(directory, &key_id, problem))?;
    check_time(seconds, now)?;
    Ok(Credentials {
        key,
        nonce: Text(Bytes::copy_from_slice(nonce.as_bytes())),
        timestamp: Text(Bytes::copy_from_slice(timestamp.as_bytes())),
        seconds,
        signature: signature.clone(),
    })
}

/// Checks the key and the timestamp again at `now`, because receiving the body may have taken a long time.
///
/// # Errors
/// 401 as in [`credentials`].
pub(super) fn recheck(
    directory: &Directory,
    credentials: &Credentials,
    now: DateTime<Utc>,
) -> Result<Arc<Key>, ApiError> {
    let key_id = &credentials.key.id;
    let key = directory
        .key(key_id, now)
        .map_err(|problem| not_accepted(directory, key_id, problem))?;
    check_time(credentials.seconds, now).map_err(|error| error.with_reason(Reason::TimestampOutrun))?;
    Ok(key)
}

fn check_time(seconds: i64, now: DateTime<Utc>) -> Result<(), ApiError> {
    if timestamp_is_current(seconds, now.timestamp()) {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::ExpiredTimestamp,
        format!(
            "{} is more than {TIMESTAMP_TOLERANCE_SECONDS} s from the server's time, {} ({}){}; synchronize this machine's \
             clock, and sign each attempt just before you send it",
            shown(HEADER_TIMESTAMP),
            now.timestamp(),
            now.to_rfc3339_opts(SecondsFormat::Secs, true),
            likely_cause(seconds, now.timestamp()).unwrap_or_default(),
        ),
    )
    .with_reason(match seconds < now.timestamp() {
        true => Reason::TimestampBehind,
        false => Reason::TimestampAhead,
    }))
}

/// Returns the likely cause of a timestamp's difference from the server's time.
fn likely_cause(seconds: i64, now: i64) -> Option<String> {
    const HOUR: i64 = 3_600;
    // As seconds, this would be the year 5138.
    if seconds > 100_000_000_000 {
        return Some("; it seems to be in milliseconds, send seconds".into());
    }
    let ahead = seconds - now;
    let hours = (ahead + ahead.signum() * HOUR / 2) / HOUR;
    let is_offset = (1..=14).contains(&hours.abs()) && timestamp_is_current(seconds - hours * HOUR, now);
    is_offset.then(|| {
        let by = if hours > 0 { "ahead" } else { "behind" };
        format!("; it is {} h {by}, so it may be local time instead of UTC", hours.abs())
    })
}

/// Returns the error for a key that is not active. Its message depends only on the text of the ID (ERR-3).
fn not_accepted(directory: &Directory, key_id: &str, problem: KeyProblem) -> ApiError {
    let message = match key_id.parse::<KeyId>().map(|key_id| key_id.environment()) {
        Err(_) => {
            "this is not a key ID; a key ID is <prefix>_test_ or <prefix>_live_, followed by 22 characters of A-Z and 2-7"
        }
        Ok(Environment::Live) if directory.environment() == Environment::Test => {
            "this is the ID of a live key, and this service is the sandbox; send a test key, or call the production base URL"
        }
        Ok(Environment::Test) if directory.environment() == Environment::Live => {
            "this is the ID of a test key, and this service is production; send a live key, or call the sandbox's base URL"
        }
        Ok(_) => {
            "this key ID is not accepted; check it for typos, and use test keys in the sandbox and live keys in production; if \
             both are right, ask the operator whether the key has expired, been revoked or been disabled"
        }
    };
    ApiError::new(ErrorCode::InvalidKey, message).with_reason(problem.into())
}

/// Returns the key ID that a request claims, without checking it.
pub(super) fn claimed_key_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(HEADER_KEY_ID)?.to_str().ok()
}

/// Returns the value of a header that must be sent once.
fn single<'h>(headers: &'h HeaderMap, header: &Header) -> Result<&'h HeaderValue, ApiError> {
    let mut values = headers.get_all(header.name).iter();
    let (problem, reason) = match (values.next(), values.next()) {
        (Some(value), None) if !value.is_empty() => return Ok(value),
        (Some(_), None) => ("is empty", header.empty),
        (None, _) => ("is missing", header.missing),
        (Some(_), Some(_)) => ("was sent more than once", header.repeated),
    };
    let mut error = invalid(header, &format!(" {problem}"), problem, reason);
    if header.name == HEADER_KEY_ID && headers.contains_key(AUTHORIZATION) {
        error.message.push_str(
            "; the header Authorization is not used, because requests are signed: see the chapter Signing in /openapi.yaml",
        );
    }
    Err(error)
}

/// Returns the error for a header with an invalid value.
fn malformed(header: &Header, problem: &str, reason: Reason) -> ApiError {
    invalid(header, &format!(": {problem}"), problem, reason)
}

/// Returns the error for a header. Its message begins with the header's name, followed by `after`.
fn invalid(header: &Header, after: &str, problem: &str, reason: Reason) -> ApiError {
    let name = shown(header.name);
    let message = format!(
        "{name}{after}; every request must carry X-Partner-Key-Id, X-Partner-Timestamp, X-Partner-Nonce and \
         X-Partner-Signature, each exactly once"
    );
    ApiError {
        validation_errors: Some(Box::new(ValidationError::of_parameter(&name, problem).into())),
        ..ApiError::new(ErrorCode::MissingSignatureHeaders, message)
    }
    .with_reason(reason)
}

/// Returns a header's name in the capitalization of the documentation.
fn shown(name: &str) -> String {
    name.split('-')
        .map(|part| part[..1].to_uppercase() + &part[1..])
        .collect::<Vec<_>>()
        .join("-")
}
