//! Letting a verified request in, once.

use std::sync::Arc;

use bytes::Bytes;
use chrono::Utc;
use http::request::Parts;
use partner_api_signing::DecodedPair;

use super::identify::check_again;
use super::route::Destination;
use super::verify::{Located, Verified};
use super::{Refused, Seen};
use crate::admission::{Admission, AdmissionError, Standing};
use crate::db::DbError;
use crate::deadline::Deadline;
use crate::directory::{Directory, Grants, Key};
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;

/// Who called, and what of the call an endpoint may use. Only admission makes one:
///
/// ```compile_fail,E0451
/// use partner_api::{deadline::Deadline, directory::Key, front_door::Caller};
/// fn as_somebody(key: std::sync::Arc<Key>, deadline: Deadline) -> Caller {
///     Caller { key, deadline }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Caller {
    key: Arc<Key>,
    deadline: Deadline,
}

impl Caller {
    /// The key that signed.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What its partner may see.
    pub fn grants(&self) -> &Grants {
        &self.key.partner.grants
    }

    /// Until when its request waits for the database.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }
}

/// A request that has used up its nonce and is within its key's limit.
pub(super) struct Admitted {
    pub seen: Seen,
    pub destination: Destination,
    pub head: Parts,
    pub query: Vec<DecodedPair>,
    pub raw: Bytes,
    pub caller: Caller,
    _step: (),
}

/// Admits a request. Its key, the key's expiry and the timestamp are looked at again first: the body may have taken so long
/// that its nonce would be remembered for less time than it could be used (KEY-6).
///
/// # Errors
/// 401 when the credentials no longer hold, or the nonce was used before; 429 for one request too many; 503 when the nonce could
/// not be recorded.
pub(super) async fn admit(
    directory: &Directory,
    admission: &Admission,
    located: Located,
) -> Result<Admitted, Box<Refused>> {
    let Verified {
        mut seen,
        destination,
        head,
        query,
        raw,
        credentials,
        deadline,
        ..
    } = located.into_verified();
    let key = match check_again(directory, &credentials, Utc::now()) {
        Ok(key) => key,
        Err(error) => return Err(seen.refused(error)),
    };
    let admitted = admission.admit(&key, credentials.nonce.as_str(), destination.durability(), deadline);
    let standing = match admitted.await {
        Ok(standing) => standing,
        Err(error) => return Err(seen.refused(refusal(&error))),
    };
    seen.standing = Some(standing);
    if standing.is_exceeded() {
        return Err(seen.refused(too_many(standing)));
    }
    let caller = Caller { key, deadline };
    Ok(Admitted {
        seen,
        destination,
        head,
        query,
        raw,
        caller,
        _step: (),
    })
}

fn refusal(error: &AdmissionError) -> ApiError {
    match error {
        AdmissionError::Replayed => ApiError::new(
            ErrorCode::ReplayDetected,
            "this nonce was used before; every attempt, a retry too, needs a new nonce, the current time and a new \
             signature",
        )
        .because(Reason::NonceUsed),
        // Whatever keeps a nonce from being recorded is a failure that the caller may retry.
        AdmissionError::Busy | AdmissionError::Db(_) | AdmissionError::TimedOut => {
            tracing::warn!(%error, "a request could not be admitted");
            ApiError::unavailable(match error {
                AdmissionError::TimedOut => Reason::AdmissionOverdue,
                AdmissionError::Db(error) => match **error {
                    DbError::Pool(_) => Reason::AdmissionNoConnection,
                    DbError::TimedOut => Reason::AdmissionOverdue,
                    DbError::Query(_) | DbError::Data { .. } => Reason::AdmissionFailed,
                },
                AdmissionError::Busy | AdmissionError::Replayed => Reason::AdmissionCrowded,
            })
        }
    }
}

fn too_many(standing: Standing) -> ApiError {
    ApiError {
        retry_after: Some(standing.resets_in),
        reason: Some(Reason::KeyOverLimit),
        ..ApiError::new(
            ErrorCode::RateLimited,
            format!(
                "this key has {} requests a minute, all of them used; wait for Retry-After",
                standing.limit
            ),
        )
    }
}
