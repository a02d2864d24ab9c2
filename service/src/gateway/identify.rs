//! The credentials of a request: the four headers, the key, the time (SIG-1).

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use http::{HeaderMap, HeaderValue};
use partner_api_signing::{
    HEADER_KEY_ID, HEADER_NONCE, HEADER_SIGNATURE, HEADER_TIMESTAMP, NONCE_MAX, NONCE_MIN, TIMESTAMP_TOLERANCE_SECONDS,
    is_valid_nonce, parse_timestamp, timestamp_is_current,
};
use partner_api_store::directory::{Directory, Key, KeyProblem, STALE};

use crate::admission::Durability;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;

/// What the four headers say: the key is known and the time is right; the signature is not checked yet.
pub struct Credentials {
    pub key: Arc<Key>,
    pub nonce: Text,
    pub timestamp: Text,
    pub seconds: i64,
    pub signature: HeaderValue,
}

/// A header's value that was checked to be ASCII.
pub struct Text(Bytes);

impl Text {
    /// The value.
    pub fn as_str(&self) -> &str {
        // Checked when it was made.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// A header that must be sent once, and the reasons for the log when it is not.
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
/// 401 `missing_signature_headers`, `invalid_key` or `expired_timestamp`; 503 while the directory is out of date, except for an
/// operation that answers without the database.
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
        let problem = format!(
            "{}: must be a plain integer, UNIX time in seconds",
            shown(HEADER_TIMESTAMP)
        );
        missing(problem, Reason::TimestampMalformed)
    })?;
    if !is_valid_nonce(nonce.as_bytes()) {
        let problem = format!(
            "{}: must have {NONCE_MIN} to {NONCE_MAX} characters of visible ASCII, has {}",
            shown(HEADER_NONCE),
            nonce.len()
        );
        return Err(missing(problem, Reason::NonceMalformed));
    }
    if durability == Durability::Recorded && directory.age() > STALE {
        // Revoked keys would live on.
        return Err(ApiError::unavailable(Reason::DirectoryStale));
    }
    let now = Utc::now();
    let key_id = key_id.to_str().map_err(|_| not_accepted(KeyProblem::Malformed))?;
    let key = directory.key(key_id, now).map_err(not_accepted)?;
    check_time(seconds, now)?;
    Ok(Credentials {
        key,
        nonce: Text(Bytes::copy_from_slice(nonce.as_bytes())),
        timestamp: Text(Bytes::copy_from_slice(timestamp.as_bytes())),
        seconds,
        signature: signature.clone(),
    })
}

/// Checks the key and the time again, `now` that the request is about to be admitted: its body may have taken long.
///
/// # Errors
/// 401 as in [`credentials`].
pub(super) fn check_again(
    directory: &Directory,
    credentials: &Credentials,
    now: DateTime<Utc>,
) -> Result<Arc<Key>, ApiError> {
    let key = directory.key(&credentials.key.id, now).map_err(not_accepted)?;
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
             clock, and sign each attempt at the time it is sent",
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

/// The likely cause of a time that is so far from the server's.
fn likely_cause(seconds: i64, now: i64) -> Option<String> {
    const HOUR: i64 = 3_600;
    // In seconds, this is the year 5138.
    if seconds > 100_000_000_000 {
        return Some("; it looks like milliseconds, send seconds".into());
    }
    let ahead = seconds - now;
    let hours = (ahead + ahead.signum() * HOUR / 2) / HOUR;
    let is_offset = (1..=14).contains(&hours.abs()) && timestamp_is_current(seconds - hours * HOUR, now);
    is_offset.then(|| {
        let by = if hours > 0 { "ahead" } else { "behind" };
        format!("; it is {} h {by}, as if local time were taken for UTC", hours.abs())
    })
}

/// The one answer for a key that is not active, whatever the reason (ERR-3).
fn not_accepted(problem: KeyProblem) -> ApiError {
    ApiError::new(
        ErrorCode::InvalidKey,
        "this key id is not accepted; check it for typing errors, and that test keys go to the sandbox and live keys to \
         production; it may also have expired, been revoked or been disabled, which the operator can tell",
    )
    .with_reason(problem.into())
}

/// The key id that a request claims, which is not checked.
pub(super) fn claimed_key_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(HEADER_KEY_ID)?.to_str().ok()
}

/// The value of a header that must be sent once.
fn single<'h>(headers: &'h HeaderMap, header: &Header) -> Result<&'h HeaderValue, ApiError> {
    let mut values = headers.get_all(header.name).iter();
    let (problem, reason) = match (values.next(), values.next()) {
        (Some(value), None) if !value.is_empty() => return Ok(value),
        (Some(_), None) => ("is empty", header.empty),
        (None, _) => ("is missing", header.missing),
        (Some(_), Some(_)) => ("was sent more than once", header.repeated),
    };
    Err(missing(format!("{} {problem}", shown(header.name)), reason))
}

fn missing(problem: String, reason: Reason) -> ApiError {
    ApiError::new(
        ErrorCode::MissingSignatureHeaders,
        format!(
            "{problem}; every request carries X-Partner-Key-Id, X-Partner-Timestamp, X-Partner-Nonce and \
             X-Partner-Signature, each once"
        ),
    )
    .with_reason(reason)
}

/// A header's name as the documentation writes it.
fn shown(name: &str) -> String {
    name.split('-')
        .map(|part| part[..1].to_uppercase() + &part[1..])
        .collect::<Vec<_>>()
        .join("-")
}
