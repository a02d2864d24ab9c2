//! The error type of every API.

use std::fmt;
use std::time::Duration;

use codegen_runtime::{Fault, Faults};
use dropshot::{Body, ErrorStatusCode, HttpError, HttpResponseError};
use http::Response;
use partner_api_store::DbError;
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::Reason;
use crate::envelope;
use crate::query::InvalidQuery;

/// The error codes of a contract; these are the ones that the gateway itself answers with.
pub trait ErrorCode: Copy + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// 400
    const INVALID_REQUEST: Self;
    /// 404
    const NOT_FOUND: Self;
    /// 405
    const METHOD_NOT_ALLOWED: Self;
    /// 408
    const REQUEST_TIMEOUT: Self;
    /// 413
    const PAYLOAD_TOO_LARGE: Self;
    /// 500
    const INTERNAL_ERROR: Self;
    /// 503
    const SERVICE_UNAVAILABLE: Self;

    /// The body of an error, as the contract's document declares it.
    type Body: JsonSchema;

    /// The code as sent.
    fn as_str(self) -> &'static str;

    /// The HTTP status.
    fn status(self) -> u16;
}

/// An error as the caller sees it (ERR-1). The gateway adds the request id and makes the envelope. Messages carry no internal
/// cause: a cause is logged where it occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError<E> {
    /// The error code, which decides the status.
    pub code: E,
    /// What is wrong and what to do, for the caller's engineer.
    pub message: String,
    /// The parts of the request that are wrong, where they can be named (ERR-9).
    pub faults: Option<Box<Faults>>,
    /// `Retry-After`, for the codes that have it.
    pub retry_after: Option<Duration>,
    /// `Allow`, for 405.
    pub allow: Option<String>,
    /// The reason for the request log, which the caller is not told; `None` if the code says everything.
    pub reason: Option<Reason>,
}

impl<E: ErrorCode> ApiError<E> {
    /// An error of this code.
    pub fn new(code: E, message: impl Into<String>) -> Self {
        ApiError {
            code,
            message: message.into(),
            faults: None,
            retry_after: None,
            allow: None,
            reason: None,
        }
    }

    /// The same error, with this reason for the request log.
    #[must_use]
    pub fn with_reason(self, reason: Reason) -> Self {
        ApiError {
            reason: Some(reason),
            ..self
        }
    }

    /// The same error about these parts of the request; the message is the first fault, and says how many more there are.
    #[must_use]
    pub fn with_faults(self, faults: impl Into<Faults>) -> Self {
        let faults = faults.into();
        ApiError {
            message: envelope::message(&faults),
            faults: Some(Box::new(faults)),
            ..self
        }
    }

    /// 400 about these parts of the request (ERR-9).
    pub fn invalid_request(faults: impl Into<Faults>) -> Self {
        Self::new(E::INVALID_REQUEST, "")
            .with_faults(faults)
            .with_reason(Reason::ArgumentRefused)
    }

    /// 404. The message must be the same for what does not exist and what the caller may not see.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(E::NOT_FOUND, message).with_reason(Reason::NotVisible)
    }

    /// 405 with the methods that are allowed, as `Allow` lists them.
    pub fn method_not_allowed(method: &http::Method, allowed: impl Into<String>) -> Self {
        let allowed = allowed.into();
        let message = format!("{method} is not allowed; allowed: {allowed}");
        ApiError {
            allow: Some(allowed),
            ..Self::new(E::METHOD_NOT_ALLOWED, message)
        }
        .with_reason(Reason::NoSuchMethod)
    }

    /// 500. The cause has been logged.
    pub fn internal() -> Self {
        Self::new(
            E::INTERNAL_ERROR,
            "the service failed to answer; if it happens again, tell the operator this request_id",
        )
    }

    /// 503: the database or the object store is unreachable or busy.
    pub fn unavailable(reason: Reason) -> Self {
        ApiError {
            retry_after: Some(Duration::from_secs(1)),
            reason: Some(reason),
            ..Self::new(
                E::SERVICE_UNAVAILABLE,
                "the service is busy or under repair; try again after Retry-After",
            )
        }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.code.status()
    }

    /// The response to a request of this id.
    pub fn response(&self, request_id: Uuid) -> Response<Body> {
        envelope::response(self, request_id)
    }
}

impl<E> fmt::Display for ApiError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Arguments that cannot be read are the caller's error.
impl<E: ErrorCode> From<Faults> for ApiError<E> {
    fn from(faults: Faults) -> Self {
        Self::invalid_request(faults)
    }
}

impl<E: ErrorCode> From<InvalidQuery> for ApiError<E> {
    fn from(InvalidQuery { faults, reason }: InvalidQuery) -> Self {
        Self::invalid_request(faults).with_reason(reason)
    }
}

/// A response that cannot be built is the service's error. (The generated trait requires this conversion as well.)
impl<E: ErrorCode> From<HttpError> for ApiError<E> {
    fn from(error: HttpError) -> Self {
        tracing::error!(cause = %error.internal_message, "failed to build a response");
        Self::internal().with_reason(Reason::AnswerUnbuildable)
    }
}

/// The error of a failed query. The cause is logged here and not sent.
impl<E: ErrorCode> From<DbError> for ApiError<E> {
    fn from(error: DbError) -> Self {
        let reason = Reason::from(&error);
        // A text with U+0000, which JSON can express and the database cannot.
        if error.refusal().is_some_and(|code| code.code() == "22021") {
            return Self::invalid_request(Fault::of_member("", "a text has the character U+0000; leave it out"));
        }
        if error.is_unavailable() {
            tracing::warn!(%error, "the database is unavailable: see that it runs, takes connections and holds no long locks");
            return Self::unavailable(reason);
        }
        tracing::error!(%error, "a query failed");
        Self::internal().with_reason(reason)
    }
}

impl<E: ErrorCode> HttpResponseError for ApiError<E> {
    fn status_code(&self) -> ErrorStatusCode {
        ErrorStatusCode::from_u16(self.status()).unwrap_or(ErrorStatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// Dropshot requires it. What is sent is the envelope.
impl<E: ErrorCode> Serialize for ApiError<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code.as_str())
    }
}

/// In Dropshot's document, an error is the envelope (ERR-1).
impl<E: ErrorCode> JsonSchema for ApiError<E> {
    fn schema_name() -> String {
        E::Body::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        E::Body::json_schema(generator)
    }
}

/// The error codes of this crate's tests: a code and its status.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TestCode(&'static str, u16);

#[cfg(test)]
impl ErrorCode for TestCode {
    const INVALID_REQUEST: Self = TestCode("invalid_request", 400);
    const NOT_FOUND: Self = TestCode("not_found", 404);
    const METHOD_NOT_ALLOWED: Self = TestCode("method_not_allowed", 405);
    const REQUEST_TIMEOUT: Self = TestCode("request_timeout", 408);
    const PAYLOAD_TOO_LARGE: Self = TestCode("payload_too_large", 413);
    const INTERNAL_ERROR: Self = TestCode("internal_error", 500);
    const SERVICE_UNAVAILABLE: Self = TestCode("service_unavailable", 503);

    type Body = String;

    fn as_str(self) -> &'static str {
        self.0
    }

    fn status(self) -> u16 {
        self.1
    }
}
