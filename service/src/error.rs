//! The one error type at the API's edge.

use std::fmt;
use std::time::Duration;

use codegen_runtime::Faults;
use dropshot::{ErrorStatusCode, HttpError, HttpResponseError};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Serialize, Serializer};

use crate::db::DbError;
use crate::front_door::arguments::Wrong;
use crate::front_door::envelope::{self, Refusal};
use crate::generated::errors::ErrorCode;
use crate::generated::types;
use crate::request_log::Reason;

/// A refusal or failure as the caller sees it (ERR-1). The front door adds the request id and makes the
/// envelope. Messages carry no cause from inside: a cause is logged where it occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// The error code; it decides the status.
    pub code: ErrorCode,
    /// What is wrong, and what to do, for the partner's engineer.
    pub message: String,
    /// The places of the request that are wrong, where they can be named (ERR-9).
    pub faults: Option<Box<Faults>>,
    /// `Retry-After`, in whole seconds, where the code asks for it.
    pub retry_after: Option<Duration>,
    /// `Allow`, for 405.
    pub allow: Option<String>,
    /// Why, for the request log and nobody else; none where the code says all.
    pub reason: Option<Reason>,
}

impl ApiError {
    /// An error of this code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        ApiError {
            code,
            message: message.into(),
            faults: None,
            retry_after: None,
            allow: None,
            reason: None,
        }
    }

    /// The same, with why it is so for the request log.
    #[must_use]
    pub fn because(self, reason: Reason) -> Self {
        ApiError {
            reason: Some(reason),
            ..self
        }
    }

    /// 400: the message is the first fault, and says how many more there are (ERR-9).
    pub fn invalid_request(faults: impl Into<Faults>) -> Self {
        Self::new(ErrorCode::InvalidRequest, "")
            .about(faults)
            .because(Reason::ArgumentRefused)
    }

    /// 404: the message must be the same for what does not exist and what is not granted.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message).because(Reason::NotVisible)
    }

    /// The same, about these places of the request.
    #[must_use]
    pub fn about(self, faults: impl Into<Faults>) -> Self {
        let faults = faults.into();
        ApiError {
            message: envelope::message(&faults),
            faults: Some(Box::new(faults)),
            ..self
        }
    }

    /// 500; the cause has been logged.
    pub fn internal() -> Self {
        Self::new(
            ErrorCode::InternalError,
            "the service failed to answer; if it happens again, tell the operator this request_id",
        )
    }

    /// 503: the database or the object store is out of reach or busy.
    pub fn unavailable(reason: Reason) -> Self {
        ApiError {
            retry_after: Some(Duration::from_secs(1)),
            reason: Some(reason),
            ..Self::new(
                ErrorCode::ServiceUnavailable,
                "the service is busy or under repair; try again after Retry-After",
            )
        }
    }

    /// As it is answered.
    pub fn refusal(&self) -> Refusal<'_> {
        Refusal {
            status: self.status(),
            code: self.code.as_str(),
            message: &self.message,
            faults: self.faults.as_deref(),
            retry_after: self.retry_after,
            allow: self.allow.as_deref(),
        }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.code.status()
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Arguments that cannot be read are the caller's fault.
impl From<Faults> for ApiError {
    fn from(faults: Faults) -> Self {
        Self::invalid_request(faults)
    }
}

/// A query that is refused before it is read.
impl From<Wrong> for ApiError {
    fn from(Wrong { faults, reason }: Wrong) -> Self {
        Self::invalid_request(faults).because(reason)
    }
}

/// A response that cannot be built is ours. (The generated trait wants this conversion, too.)
impl From<HttpError> for ApiError {
    fn from(error: HttpError) -> Self {
        tracing::error!(cause = %error.internal_message, "a response could not be built");
        Self::internal().because(Reason::AnswerUnbuildable)
    }
}

impl From<DbError> for ApiError {
    fn from(error: DbError) -> Self {
        let reason = Reason::from(&error);
        if error.is_unavailable() {
            tracing::warn!(%error, "the database is unavailable: see that it runs, takes connections and holds no long locks");
            return Self::unavailable(reason);
        }
        tracing::error!(%error, "a query failed");
        Self::internal().because(reason)
    }
}

impl HttpResponseError for ApiError {
    fn status_code(&self) -> ErrorStatusCode {
        ErrorStatusCode::from_u16(self.status()).unwrap_or(ErrorStatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// Never sent as it is: what is sent is the envelope. Dropshot requires it.
impl Serialize for ApiError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code.as_str())
    }
}

/// In Dropshot's document an error is the envelope (ERR-1).
impl JsonSchema for ApiError {
    fn schema_name() -> String {
        types::Error::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        types::Error::json_schema(generator)
    }
}
