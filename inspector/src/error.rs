//! The one error type at the edge of the inspectors' API.

use std::fmt;
use std::time::Duration;

use codegen_runtime::{Fault, Faults};
use dropshot::{ErrorStatusCode, HttpError, HttpResponseError};
use partner_api::db::DbError;
use partner_api::front_door::arguments::Wrong;
use partner_api::front_door::envelope::{self, Refusal};
use partner_api::request_log::Reason;
use partner_api::storage::StorageError;
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Serialize, Serializer};

use crate::generated::errors::ErrorCode;
use crate::generated::types;

/// A refusal or failure as the caller sees it (ERR-1). The front door adds the request id and makes the envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// The error code; it decides the status.
    pub code: ErrorCode,
    /// What is wrong, and what to do.
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
        let faults = faults.into();
        ApiError {
            faults: Some(Box::new(faults.clone())),
            ..Self::new(ErrorCode::InvalidRequest, envelope::message(&faults))
        }
        .because(Reason::ArgumentRefused)
    }

    /// 400 about one member of the body.
    pub fn member(name: &str, message: impl Into<String>) -> Self {
        Self::invalid_request(Fault::of_member(name, message))
    }

    /// 404: the same for what does not exist and what is of another branch.
    pub fn no_such_report() -> Self {
        Self::new(ErrorCode::NotFound, "there is no such report at a branch of yours").because(Reason::NotVisible)
    }

    /// 401: no session, or one that has ended.
    pub fn signed_out() -> Self {
        Self::new(
            ErrorCode::SignedOut,
            "nobody is signed in, or the session has ended; sign in again",
        )
    }

    /// 409: somebody changed the report since it was read.
    pub fn changed_meanwhile() -> Self {
        Self::new(
            ErrorCode::ChangedMeanwhile,
            "the report was changed since you read it; read it again, nothing of yours was written",
        )
    }

    /// 409: the report's status does not allow it.
    pub fn transition_refused(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::TransitionRefused, message)
    }

    /// 409: a measurement waits no more.
    pub fn already_settled() -> Self {
        Self::new(
            ErrorCode::AlreadySettled,
            "this measurement waits no more: it was applied or discarded meanwhile; read the report again",
        )
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
            ..Self::new(
                ErrorCode::ServiceUnavailable,
                "the service is busy or under repair; try again after Retry-After",
            )
        }
        .because(reason)
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
        // A text with U+0000, which JSON can hold and the database cannot.
        if error.refusal().is_some_and(|code| code.code() == "22021") {
            return Self::member("", "a text has the character U+0000; leave it out");
        }
        if error.is_unavailable() {
            tracing::warn!(%error, "the database is unavailable: see that it runs, takes connections and holds no long locks");
            return Self::unavailable(reason);
        }
        tracing::error!(%error, "a query failed");
        Self::internal().because(reason)
    }
}

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        tracing::error!(%error, "the object storage failed");
        Self::unavailable(Reason::StorageFailed)
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
