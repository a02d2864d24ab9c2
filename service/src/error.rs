//! The errors of the partner API.

use partner_api_gateway as gateway;

use crate::generated::errors::ErrorCode;
use crate::generated::types;

/// An error as the partner sees it.
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
