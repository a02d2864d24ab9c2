//! The errors of the inspectors' API.

use codegen_runtime::Fault;
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
    ApiError::invalid_request(Fault::of_member(name, message))
}

/// 404: the same for a report that does not exist and one of another branch.
pub fn no_such_report() -> ApiError {
    ApiError::not_found("there is no such report at a branch of yours")
}

/// 401: no session, or one that has ended.
pub fn signed_out() -> ApiError {
    ApiError::new(
        ErrorCode::SignedOut,
        "nobody is signed in, or the session has ended; sign in again",
    )
}

/// 409: somebody changed the report since it was read.
pub fn changed_meanwhile() -> ApiError {
    ApiError::new(
        ErrorCode::ChangedMeanwhile,
        "the report was changed since you read it; read it again, nothing of yours was written",
    )
}

/// 409: the report's status does not allow it.
pub fn transition_refused(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::TransitionRefused, message)
}

/// 409: a measurement is no longer waiting.
pub fn already_settled() -> ApiError {
    ApiError::new(
        ErrorCode::AlreadySettled,
        "this measurement waits no more: it was applied or discarded meanwhile; read the report again",
    )
}

/// 503: the object storage has failed.
pub fn storage_failed(error: &StorageError) -> ApiError {
    tracing::error!(%error, "the object storage failed");
    ApiError::unavailable(Reason::StorageFailed)
}
