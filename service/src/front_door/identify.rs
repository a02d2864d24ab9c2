//! Whose request it is: the four headers, the key, the time (SIG-1).

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use http::{HeaderMap, HeaderValue};
use partner_api_signing::{
    HEADER_KEY_ID, HEADER_NONCE, HEADER_SIGNATURE, HEADER_TIMESTAMP, NONCE_MAX, NONCE_MIN, TIMESTAMP_TOLERANCE_SECONDS,
    is_valid_nonce, parse_timestamp, timestamp_is_current,
};

use super::route::Destination;
use super::{Arrived, Refused, Seen};
use crate::admission::Durability;
use crate::directory::{Directory, Key, Named, STALE};
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::listener::RequestBody;
use crate::request_log::Reason;

/// A request with credentials: the key is known and the time is right; the signature is not checked yet.
pub(super) struct Identified {
    pub seen: Seen,
    pub destination: Destination,
    pub head: http::request::Parts,
    pub body: RequestBody,
    pub credentials: Credentials,
    // Private, so that nothing but the step makes one; so in the other steps.
    _step: (),
}

/// What the four headers say.
pub(super) struct Credentials {
    pub key: Arc<Key>,
    pub nonce: Text,
    pub timestamp: Text,
    pub seconds: i64,
    pub signature: HeaderValue,
}

/// A header's value that has been found to be ASCII.
pub(super) struct Text(Bytes);

impl Text {
    /// The value.
    pub fn as_str(&self) -> &str {
        // Checked when it was made.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Reads the four headers and finds the key.
///
/// # Errors
/// 401 `missing_signature_headers`, `invalid_key` or `expired_timestamp`; 503 while the directory is out of date, but for
/// an operation that answers without the database.
pub(super) fn identify(directory: &Directory, arrived: Arrived) -> Result<Identified, Box<Refused>> {
    let Arrived {
        mut seen,
        destination,
        head,
        body,
    } = arrived;
    let credentials = match credentials(directory, &head.headers, destination.durability()) {
        Ok(credentials) => credentials,
        Err(error) => {
            let id = head.headers.get(HEADER_KEY_ID).and_then(|id| id.to_str().ok());
            seen.named = id.and_then(|id| directory.whose(id));
            return Err(seen.refused(error));
        }
    };
    seen.named = Some(Named::by(&credentials.key));
    Ok(Identified {
        seen,
        destination,
        head,
        body,
        credentials,
        _step: (),
    })
}

/// A header that must be there once, and what is noted when it is not.
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

fn credentials(directory: &Directory, headers: &HeaderMap, durability: Durability) -> Result<Credentials, ApiError> {
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
    let key_id = key_id.to_str().map_err(|_| not_in_force(Reason::KeyMalformed))?;
    let key = directory.key(key_id, now).map_err(not_in_force)?;
    check_time(seconds, now)?;
    Ok(Credentials {
        key,
        nonce: Text(Bytes::copy_from_slice(nonce.as_bytes())),
        timestamp: Text(Bytes::copy_from_slice(timestamp.as_bytes())),
        seconds,
        signature: signature.clone(),
    })
}

/// Whether the credentials still hold, `now` that the request is about to be admitted: its body may have taken its time.
///
/// # Errors
/// 401 as in [`identify`].
pub(super) fn check_again(
    directory: &Directory,
    credentials: &Credentials,
    now: DateTime<Utc>,
) -> Result<Arc<Key>, ApiError> {
    let key = directory.key(&credentials.key.id, now).map_err(not_in_force)?;
    check_time(credentials.seconds, now).map_err(|error| error.because(Reason::TimestampOutrun))?;
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
    .because(match seconds < now.timestamp() {
        true => Reason::TimestampBehind,
        false => Reason::TimestampAhead,
    }))
}

/// What a time so far from the server's looks like.
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

/// The one answer for a key that is not in force, whatever the reason (ERR-3).
fn not_in_force(reason: Reason) -> ApiError {
    ApiError::new(
        ErrorCode::InvalidKey,
        "this key id is not accepted; check it for typing errors, and that test keys go to the sandbox and live keys to \
         production; it may also have expired, been revoked or been disabled, which the operator can tell",
    )
    .because(reason)
}

/// The one value of a header that must be there once.
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
    .because(reason)
}

/// A header's name as the documents write it.
fn shown(name: &str) -> String {
    name.split('-')
        .map(|part| part[..1].to_uppercase() + &part[1..])
        .collect::<Vec<_>>()
        .join("-")
}
