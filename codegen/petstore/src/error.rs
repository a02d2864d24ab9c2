//! The error type of all operations, with the body that `openapi.yaml` declares.

use std::borrow::Cow;

use dropshot::{ErrorStatusCode, HttpError, HttpResponseError};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Serialize, Serializer};

use crate::generated::types;

/// An error, as sent to the client.
#[derive(Debug)]
pub struct ApiError {
    status: ErrorStatusCode,
    /// The body.
    pub body: types::Error,
}

impl ApiError {
    /// Creates an error with this status and message.
    pub fn new(status: ErrorStatusCode, message: impl Into<String>) -> Self {
        ApiError::with_code(status, message.into(), None)
    }

    /// 501: the operation is not implemented yet.
    pub fn not_implemented(operation: &str) -> Self {
        let message = format!("the operation {operation} is not implemented yet");
        ApiError::new(ErrorStatusCode::NOT_IMPLEMENTED, message)
    }

    fn with_code(status: ErrorStatusCode, message: String, _code: Option<String>) -> Self {
        let body = types::Error {
            message: message.clone(),
        };
        ApiError { status, body }
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.body)
    }
}

/// Errors in parameters and bodies, which Dropshot detects before it calls a handler.
impl From<HttpError> for ApiError {
    fn from(error: HttpError) -> Self {
        ApiError::with_code(error.status_code, error.external_message, error.error_code)
    }
}

impl HttpResponseError for ApiError {
    fn status_code(&self) -> ErrorStatusCode {
        self.status
    }
}

impl Serialize for ApiError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.body.serialize(serializer)
    }
}

impl JsonSchema for ApiError {
    fn schema_name() -> String {
        types::Error::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        types::Error::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        types::Error::json_schema(generator)
    }
}
