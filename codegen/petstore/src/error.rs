//! The error type of all operations.

use dropshot::{ErrorStatusCode, HttpError, HttpResponseError};
use schemars::JsonSchema;
use serde::Serialize;

/// An error, as sent to the client.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApiError {
    #[serde(skip)]
    status: ErrorStatusCode,
    /// A description of the error for the client.
    pub message: String,
}

impl ApiError {
    /// Creates an error with this status.
    pub fn new(status: ErrorStatusCode, message: impl Into<String>) -> Self {
        ApiError {
            status,
            message: message.into(),
        }
    }

    /// 501: the operation is not implemented yet.
    pub fn not_implemented(operation: &str) -> Self {
        let message = format!("the operation {operation} is not implemented yet");
        ApiError::new(ErrorStatusCode::NOT_IMPLEMENTED, message)
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Errors in parameters and bodies, which Dropshot detects before it calls a handler.
impl From<HttpError> for ApiError {
    fn from(error: HttpError) -> Self {
        ApiError::new(error.status_code, error.external_message)
    }
}

impl HttpResponseError for ApiError {
    fn status_code(&self) -> ErrorStatusCode {
        self.status
    }
}
