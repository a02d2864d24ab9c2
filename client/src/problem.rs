//! Errors of calls.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use crate::code::Code;
use crate::generated::{Error, types};
use crate::retry::retry_after;

/// The error of a call. Its text is for people and contains the request ID and, if known, a remedy. Programs use
/// [`code`](Self::code) and [`status`](Self::status).
///
/// ```
/// use partner_api_client::{Code, Problem};
///
/// fn may_succeed_later(problem: &Problem) -> bool {
///     match problem.code() {
///         Some(Code::NotFound | Code::InvalidRequest) => false,
///         Some(code) => !matches!(code, Code::ScopeRequired | Code::PayloadTooLarge),
///         None => problem.is_outcome_unknown(),
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The service rejected the request and returned an error.
    #[error(transparent)]
    Rejected(Box<Rejection>),
    /// The response is not one that the document declares. It often comes from another server, such as a gateway.
    #[error(
        "this response{} did not come from the API: {reason}{}",
        status.map(|status| format!(" ({})", status.as_u16())).unwrap_or_default(),
        suffix(request_id.as_deref())
    )]
    InvalidResponse {
        /// Its status, if known.
        status: Option<StatusCode>,
        /// Its `X-Request-Id`, if it has one.
        request_id: Option<String>,
        /// The reason why it is invalid.
        reason: String,
    },
    /// No complete response arrived.
    #[error("failed to reach the service: {}{}", with_causes(source), suffix(request_id.as_deref()))]
    Transport {
        /// The error of the connection.
        source: reqwest::Error,
        /// The request ID of the incomplete response, if there is one.
        request_id: Option<String>,
    },
    /// The request could not be created, because an argument is missing or invalid.
    #[error("failed to create the request: {0}")]
    InvalidRequest(String),
}

/// An error that the service returned.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rejection {
    /// The status of the response.
    pub status: StatusCode,
    /// The error code, for programs.
    pub code: Code,
    /// The error message, for people. Its wording may change.
    pub message: String,
    /// The first invalid part of the request: a JSON pointer into the body, or the name of a parameter.
    pub field: Option<String>,
    /// All invalid parts of the request, each with a message. The service limits their number.
    pub details: Vec<types::InvalidField>,
    /// The request ID, which the operator needs to find the request.
    pub request_id: String,
    /// The time to wait before another attempt, if the service names one.
    pub retry_after: Option<Duration>,
}

impl std::error::Error for Rejection {}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.as_u16();
        write!(
            f,
            "{status} {}: {} (request ID {})",
            self.code, self.message, self.request_id
        )?;
        match self.code.remedy() {
            Some(remedy) => write!(f, ". {remedy}"),
            None => Ok(()),
        }
    }
}

impl Problem {
    /// Returns the error code of the service, or `None` if the service did not return an error.
    pub fn code(&self) -> Option<&Code> {
        self.rejection().map(|rejection| &rejection.code)
    }

    /// Returns the error of the service, or `None` if the service did not return one.
    pub fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            _ => None,
        }
    }

    /// Returns the status of the response, if known.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Rejected(rejection) => Some(rejection.status),
            Self::InvalidResponse { status, .. } => *status,
            Self::Transport { source, .. } => source.status(),
            Self::InvalidRequest(_) => None,
        }
    }

    /// Returns the request ID, which the operator needs to find the request, if there is one.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Rejected(rejection) => Some(&rejection.request_id),
            Self::InvalidResponse { request_id, .. } | Self::Transport { request_id, .. } => request_id.as_deref(),
            Self::InvalidRequest(_) => None,
        }
    }

    /// Returns whether the request may have taken effect despite the error. Then only the same `external_id` makes a retry safe.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Rejected(rejection) => rejection.status.is_server_error(),
            Self::InvalidResponse { .. } => true,
            Self::Transport { source, .. } => !source.is_connect(),
            Self::InvalidRequest(_) => false,
        }
    }

    fn rejected(status: StatusCode, headers: &HeaderMap, detail: types::ErrorDetail) -> Self {
        Self::Rejected(Box::new(Rejection {
            status,
            code: detail.code.into(),
            message: detail.message,
            field: detail.field,
            details: detail.details,
            request_id: detail.request_id,
            retry_after: retry_after(headers, chrono::Utc::now()),
        }))
    }

    /// Converts a response whose status the document does not declare for the operation. The service sends some of them, such as the 404
    /// for an unknown path, in the format of its other errors.
    pub(crate) async fn of_undeclared(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.unwrap_or_default();
        match serde_json::from_slice::<types::Error>(&body) {
            Ok(content) => Self::rejected(status, &headers, content.error),
            Err(_) => Self::InvalidResponse {
                status: Some(status),
                request_id: request_id(&headers),
                reason: undeclared(&headers),
            },
        }
    }

    /// Converts the error of a generated call. `last` is the last response of the call.
    pub(crate) fn of(error: Error<types::Error>, last: &LastResponse) -> Self {
        let invalid = |status, headers: Option<&HeaderMap>, reason: String| Self::InvalidResponse {
            status,
            request_id: headers.and_then(request_id).or_else(|| last.request_id.clone()),
            reason,
        };
        match error {
            Error::ErrorResponse(response) => {
                let (status, headers) = (response.status(), response.headers().clone());
                Self::rejected(status, &headers, response.into_inner().error)
            }
            Error::UnexpectedResponse(response) => {
                let reason = undeclared(response.headers());
                invalid(Some(response.status()), Some(response.headers()), reason)
            }
            Error::InvalidResponsePayload(_, error) => invalid(
                last.status,
                None,
                format!("its body does not match the document: {error}"),
            ),
            Error::CommunicationError(source) | Error::ResponseBodyError(source) | Error::InvalidUpgrade(source) => {
                Self::Transport {
                    source,
                    request_id: last.request_id.clone(),
                }
            }
            Error::InvalidRequest(reason) | Error::Custom(reason) => Self::InvalidRequest(reason),
        }
    }
}

/// [`Call::response`](crate::Call::response) also adds the request ID of a response that could not be parsed.
impl From<Error<types::Error>> for Problem {
    fn from(error: Error<types::Error>) -> Self {
        Self::of(error, &LastResponse::default())
    }
}

fn undeclared(headers: &HeaderMap) -> String {
    match headers.get("content-type").map(|value| value.to_str()) {
        Some(Ok(content_type)) => format!("the document does not declare its status (content type {content_type})"),
        _ => "the document does not declare its status".to_owned(),
    }
}

/// The request ID and status of the last response of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastResponse {
    pub(crate) request_id: Option<String>,
    pub(crate) status: Option<StatusCode>,
}

/// Returns the `X-Request-Id` of a response.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    Some(headers.get("x-request-id")?.to_str().ok()?.to_owned())
}

fn suffix(request_id: Option<&str>) -> String {
    request_id.map(|id| format!(" (request ID {id})")).unwrap_or_default()
}

fn with_causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use progenitor_client::ResponseValue;
    use reqwest::header::RETRY_AFTER;

    use super::*;

    fn rejected_with(code: &str) -> Problem {
        let error = types::Error {
            error: types::ErrorDetail {
                code: code.to_owned(),
                message: "the message of the service".to_owned(),
                field: Some("/plate".to_owned()),
                details: Vec::new(),
                request_id: "r-1".to_owned(),
            },
        };
        let headers = [(RETRY_AFTER, "17".parse().unwrap())].into_iter().collect();
        Error::ErrorResponse(ResponseValue::new(error, StatusCode::UNAUTHORIZED, headers)).into()
    }

    #[test]
    fn an_expired_timestamp_is_shown_with_a_remedy() {
        let problem = rejected_with("expired_timestamp");
        assert_eq!(problem.code(), Some(&Code::ExpiredTimestamp));
        assert_eq!(problem.request_id(), Some("r-1"));
        assert_eq!(
            problem.rejection().and_then(|rejection| rejection.field.as_deref()),
            Some("/plate")
        );
        assert_eq!(
            problem.rejection().and_then(|rejection| rejection.retry_after),
            Some(Duration::from_secs(17))
        );
        let text = problem.to_string();
        assert!(
            text.starts_with("401 expired_timestamp: the message of the service (request ID r-1). "),
            "{text}"
        );
        assert!(text.contains("synchronize the clock"), "{text}");
    }

    #[test]
    fn an_unknown_code_is_shown_without_a_remedy() {
        let text = rejected_with("brand_new").to_string();
        assert_eq!(text, "401 brand_new: the message of the service (request ID r-1)");
    }
}
