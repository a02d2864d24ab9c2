//! The errors of the inspectors' API.

use codegen_runtime::ValidationError;
use partner_api::request_log::Reason;
use partner_api::storage::StorageError;
use partner_api_gateway as gateway;

use crate::generated::errors::ErrorCode;
use crate::generated::types;

/// An error as the page sees it.
pub type ApiError = gateway::ApiError<ErrorCode>;

impl gateway::ErrorCode for ErrorCode {
    const INVALID_REQUEST: Self = ErrorCode::InvalidRequest;
    const NOT_FOUND: Self = ErrorCode::NotFound;
    const METHOD_NOT_ALLOWED: Self = ErrorCode::MethodNotAllowed;
    const REQUEST_TIMEOUT: Self = ErrorCode::RequestTimeout;
    const PAYLOAD_TOO_LARGE: Self = ErrorCode::PayloadTooLarge;
    const INTERNAL_ERROR: Self = ErrorCode::InternalError;
    const SERVICE_UNAVAILABLE: Self = ErrorCode::ServiceUnavailable;

    type Body = types::Error;

    fn as_str(self) -> &'static str {
        self.as_str()
    }

    fn status(self) -> u16 {
        self.status()
    }
}

/// 400 about one member of the body.
pub fn member(name: &str, message: impl Into<String>) -> ApiError {
    ApiError::invalid_request(ValidationError::of_member(name, message))
}

/// 404. The same response for a report that does not exist and for one of another branch.
pub fn no_such_report() -> ApiError {
    ApiError::not_found("no such report at your branches")
}

/// 401: there is no session, or it has ended.
pub fn signed_out() -> ApiError {
    ApiError::new(
        ErrorCode::SignedOut,
        "there is no session, or it has ended; sign in again",
    )
}

/// 409: the report has changed since it was read.
pub fn changed_meanwhile() -> ApiError {
    ApiError::new(
        ErrorCode::ChangedMeanwhile,
        "the report has changed since you read it, and nothing was written; read it again",
    )
}

/// 409: the report's status does not allow the change.
pub fn transition_rejected(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::TransitionRejected, message)
}

/// 409: a measurement is no longer pending.
pub fn already_settled() -> ApiError {
    ApiError::new(
        ErrorCode::AlreadySettled,
        "the measurement has already been applied or discarded; read the report again",
    )
}

/// 409: a measurement is pending, so there is nothing to undo.
pub fn not_settled() -> ApiError {
    ApiError::new(
        ErrorCode::NotSettled,
        "the measurement is pending; read the report again",
    )
}

/// 503: a request to the object storage has failed.
pub fn storage_failed(error: &StorageError) -> ApiError {
    tracing::error!(%error, "object storage request failed");
    ApiError::unavailable(Reason::StorageFailed)
}
