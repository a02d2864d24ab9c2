//! The error type of every API.

use std::fmt;
use std::time::Duration;

use codegen_runtime::{ValidationError, ValidationErrors};
use dropshot::{ErrorStatusCode, HttpError, HttpResponseError};
use partner_api_store::DbError;
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Serialize, Serializer};

use crate::Reason;
use crate::query::InvalidQuery;

/// The error codes of a contract. The constants are those that the gateway uses.
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

    /// Returns the code as sent.
    fn as_str(self) -> &'static str;

    /// Returns the HTTP status.
    fn status(self) -> u16;
}

/// An error as the caller sees it (ERR-1). The gateway adds the request ID and builds the envelope. Messages do not contain
/// internal causes, which are logged where they occur.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError<E> {
    /// The error code, which decides the status.
    pub code: E,
    /// The problem and its remedy, for the caller's engineer.
    pub message: String,
    /// The invalid parts of the request, if they can be identified (ERR-9).
    pub validation_errors: Option<Box<ValidationErrors>>,
    /// `Retry-After`, for the codes that have it.
    pub retry_after: Option<Duration>,
    /// `Allow`, for 405.
    pub allow: Option<String>,
    /// The reason for the request log, which is not sent to the caller; `None` if the code suffices.
    pub reason: Option<Reason>,
}

impl<E: ErrorCode> ApiError<E> {
    /// Creates an error with this code.
    pub fn new(code: E, message: impl Into<String>) -> Self {
        ApiError {
            code,
            message: message.into(),
            validation_errors: None,
            retry_after: None,
            allow: None,
            reason: None,
        }
    }

    /// Sets the reason for the request log.
    #[must_use]
    pub fn with_reason(self, reason: Reason) -> Self {
        ApiError {
            reason: Some(reason),
            ..self
        }
    }

    /// Sets the invalid parts of the request, and the message, which is the first error and the number of others.
    #[must_use]
    pub fn with_validation_errors(self, validation_errors: impl Into<ValidationErrors>) -> Self {
        let validation_errors = validation_errors.into();
        ApiError {
            message: message(&validation_errors),
            validation_errors: Some(Box::new(validation_errors)),
            ..self
        }
    }

    /// Creates a 400 error with the invalid parts of the request (ERR-9).
    pub fn invalid_request(validation_errors: impl Into<ValidationErrors>) -> Self {
        Self::new(E::INVALID_REQUEST, "")
            .with_validation_errors(validation_errors)
            .with_reason(Reason::ArgumentRejected)
    }

    /// Creates a 404 error. The message must be the same whether something does not exist or the caller may not see it.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(E::NOT_FOUND, message).with_reason(Reason::NotVisible)
    }

    /// Creates a 405 error with the allowed methods, in the format of `Allow`.
    pub fn method_not_allowed(method: &http::Method, allowed: impl Into<String>) -> Self {
        let allowed = allowed.into();
        let message = format!("{method} is not allowed; allowed: {allowed}");
        ApiError {
            allow: Some(allowed),
            ..Self::new(E::METHOD_NOT_ALLOWED, message)
        }
        .with_reason(Reason::NoSuchMethod)
    }

    /// Creates a 500 error. The caller has logged the cause.
    pub fn internal() -> Self {
        Self::new(
            E::INTERNAL_ERROR,
            "the service failed to process the request; if it happens again, report this request_id to the operator",
        )
    }

    /// Creates a 503 error: the database or the object store is unreachable or busy.
    pub fn unavailable(reason: Reason) -> Self {
        ApiError {
            retry_after: Some(Duration::from_secs(1)),
            reason: Some(reason),
            ..Self::new(
                E::SERVICE_UNAVAILABLE,
                "the service is busy or temporarily unavailable; try again after Retry-After",
            )
        }
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> u16 {
        self.code.status()
    }
}

/// Returns the message about validation errors: the first one, and the number of others in the details (ERR-9).
fn message(errors: &ValidationErrors) -> String {
    let more = match errors.iter().count() {
        1 => String::new(),
        2 => "; one more error is in error.details".to_string(),
        listed if errors.is_cut() => format!("; error.details has the first {listed} errors, and there are more"),
        listed => format!("; {} more errors are in error.details", listed - 1),
    };
    format!("{}{more}", errors.first())
}

impl<E> fmt::Display for ApiError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Invalid arguments are the caller's error.
impl<E: ErrorCode> From<ValidationErrors> for ApiError<E> {
    fn from(validation_errors: ValidationErrors) -> Self {
        Self::invalid_request(validation_errors)
    }
}

impl<E: ErrorCode> From<InvalidQuery> for ApiError<E> {
    fn from(InvalidQuery { errors, reason }: InvalidQuery) -> Self {
        Self::invalid_request(errors).with_reason(reason)
    }
}

/// A response that cannot be built is the service's error. The generated trait requires this conversion as well.
impl<E: ErrorCode> From<HttpError> for ApiError<E> {
    fn from(error: HttpError) -> Self {
        tracing::error!(cause = %error.internal_message, "failed to build a response");
        Self::internal().with_reason(Reason::AnswerUnbuildable)
    }
}

/// The error for a failed query. The cause is logged here and not sent.
impl<E: ErrorCode> From<DbError> for ApiError<E> {
    fn from(error: DbError) -> Self {
        let reason = Reason::from(&error);
        // The text contains U+0000, which is valid in JSON and not in the database.
        if error.rejection().is_some_and(|code| code.code() == "22021") {
            return Self::invalid_request(ValidationError::of_member(
                "",
                "a text has the character U+0000; leave it out",
            ));
        }
        if error.is_unavailable() {
            tracing::warn!(%error, "the database is unavailable; check that it runs, accepts connections, and has no long locks");
            return Self::unavailable(reason);
        }
        tracing::error!(%error, "failed to query the database");
        Self::internal().with_reason(reason)
    }
}

impl<E: ErrorCode> HttpResponseError for ApiError<E> {
    fn status_code(&self) -> ErrorStatusCode {
        ErrorStatusCode::from_u16(self.status()).unwrap_or(ErrorStatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// Dropshot requires this implementation. The response contains the envelope instead.
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

/// An error code for the tests of this crate: a code and its status.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_fields_of_its_kind() {
        let wrong = ValidationError::of_parameter("limit", "is wrong");
        let invalid = ApiError::<TestCode>::invalid_request(wrong);
        assert_eq!((invalid.message.as_str(), invalid.status()), ("limit: is wrong", 400));
        assert!(invalid.validation_errors.is_some() && invalid.reason == Some(Reason::ArgumentRejected));
        let method = ApiError::<TestCode>::method_not_allowed(&http::Method::PUT, "GET, POST");
        assert_eq!(method.allow.as_deref(), Some("GET, POST"));
        let unavailable = ApiError::<TestCode>::unavailable(Reason::NoConnection);
        assert_eq!(unavailable.retry_after, Some(Duration::from_secs(1)));
        assert_eq!(unavailable.reason, Some(Reason::NoConnection));
        assert_eq!(invalid.to_string(), invalid.message);
    }

    /// ERR-9
    #[test]
    fn a_message_says_how_many_errors_are_in_the_details() {
        let message = |count: usize| {
            let error = |number| ValidationError::of_parameter("limit", format!("is wrong {number}"));
            super::message(&ValidationErrors::of((0..count).map(error)).unwrap())
        };
        assert_eq!(message(1), "limit: is wrong 0");
        assert_eq!(message(2), "limit: is wrong 0; one more error is in error.details");
        assert_eq!(message(20), "limit: is wrong 0; 19 more errors are in error.details");
        let cut = "limit: is wrong 0; error.details has the first 20 errors, and there are more";
        assert_eq!((message(21), message(100)), (cut.to_owned(), cut.to_owned()));
    }
}
