//! Converts the errors of admission into responses.

use partner_api_gateway::RateLimitStatus;
use partner_api_store::DbError;

use crate::admission::AdmissionError;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;

/// Returns 401 for a nonce that was used before, and 503 for one that was not recorded.
pub(super) fn error(error: &AdmissionError) -> ApiError {
    let reason = match error {
        AdmissionError::Replayed => {
            return ApiError::new(
                ErrorCode::ReplayDetected,
                "this nonce was used before; every attempt, including a retry, needs a new nonce, the current time and a new \
                 signature",
            )
            .with_reason(Reason::NonceUsed);
        }
        AdmissionError::TimedOut => Reason::AdmissionOverdue,
        AdmissionError::Db(error) => match **error {
            DbError::Pool(_) => Reason::AdmissionNoConnection,
            DbError::TimedOut => Reason::AdmissionOverdue,
            DbError::Query(_) | DbError::Data { .. } => Reason::AdmissionFailed,
        },
        AdmissionError::Busy => Reason::AdmissionCrowded,
        AdmissionError::ClockBehind => Reason::AdmissionClockBehind,
    };
    tracing::warn!(%error, "failed to admit a request");
    ApiError::unavailable(reason)
}

/// Returns 429 for a key that is over its limit.
pub(super) fn over_limit(status: RateLimitStatus) -> ApiError {
    ApiError {
        retry_after: Some(status.resets_in),
        reason: Some(Reason::KeyOverLimit),
        ..ApiError::new(
            ErrorCode::RateLimited,
            format!(
                "this key's limit of {} requests a minute is used up; wait for Retry-After",
                status.limit
            ),
        )
    }
}
