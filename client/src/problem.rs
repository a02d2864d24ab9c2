//! Why a call gave nothing.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use crate::call::request_id;
use crate::code::Code;
use crate::generated::{Error, types};
use crate::retry::retry_after;
use crate::seen::Seen;

/// Why a call gave nothing. Its text is a sentence for people, with the request id to quote and, where that is known, what to
/// do; for programs there are [`code`](Self::code) and [`status`](Self::status).
///
/// ```
/// use partner_api_client::{Code, Problem};
///
/// fn is_worth_another_day(problem: &Problem) -> bool {
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
    /// The service refused it, and said why.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// An answer came that the document does not declare: often another server's, such as a gateway's.
    #[error(
        "the answer{} is none of the service's: {what}{}",
        status.map(|status| format!(" ({})", status.as_u16())).unwrap_or_default(),
        quoted(request_id.as_deref())
    )]
    Garbled {
        /// Its status, where one was read.
        status: Option<StatusCode>,
        /// Its `X-Request-Id`, if it had one.
        request_id: Option<String>,
        /// What is wrong with it.
        what: String,
    },
    /// No whole answer came.
    #[error("the service was not reached: {}{}", with_causes(source), quoted(request_id.as_deref()))]
    Unreached {
        /// What happened to the connection.
        source: reqwest::Error,
        /// The id of the answer that broke off, if one had begun.
        request_id: Option<String>,
    },
    /// The request could not be made: an argument is missing or cannot be meant.
    #[error("the request could not be made: {0}")]
    Unsendable(String),
}

/// An answer that says no.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// The answer's status.
    pub status: StatusCode,
    /// What went wrong, for programs.
    pub code: Code,
    /// What went wrong, for people; its wording may change.
    pub message: String,
    /// The first place of the request that is wrong: a JSON pointer into the body, or a parameter's name.
    pub field: Option<String>,
    /// All places that are wrong, each with what is wrong there; the service bounds their number.
    pub details: Vec<types::InvalidField>,
    /// The id to quote to the operator.
    pub request_id: String,
    /// How long to wait before another attempt, where the service says so.
    pub retry_after: Option<Duration>,
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.as_u16();
        write!(
            f,
            "{status} {}: {} (request id {})",
            self.code, self.message, self.request_id
        )?;
        match self.code.remedy() {
            Some(remedy) => write!(f, ". {remedy}"),
            None => Ok(()),
        }
    }
}

impl Problem {
    /// The service's code; `None` when it did not answer.
    pub fn code(&self) -> Option<&Code> {
        self.refusal().map(|refusal| &refusal.code)
    }

    /// The service's refusal; `None` when it did not answer.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The answer's status; `None` without one.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            Self::Garbled { status, .. } => *status,
            Self::Unreached { source, .. } => source.status(),
            Self::Unsendable(_) => None,
        }
    }

    /// The id to quote to the operator; `None` when there was no answer, or none of the service's.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => Some(&refusal.request_id),
            Self::Garbled { request_id, .. } | Self::Unreached { request_id, .. } => request_id.as_deref(),
            Self::Unsendable(_) => None,
        }
    }

    /// Whether what was sent may have taken effect all the same: then only the same `external_id` makes another attempt safe.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.status.is_server_error(),
            Self::Garbled { .. } => true,
            Self::Unreached { source, .. } => !source.is_connect(),
            Self::Unsendable(_) => false,
        }
    }

    /// Of a generated call's error, with what was seen of the answers.
    pub(crate) fn of(error: Error<types::Error>, seen: &Seen) -> Self {
        let garbled = |status, headers: Option<&HeaderMap>, what: String| Self::Garbled {
            status,
            request_id: headers.and_then(request_id).or_else(|| seen.request_id.clone()),
            what,
        };
        match error {
            Error::ErrorResponse(answer) => {
                let (status, retry_after) = (answer.status(), retry_after(answer.headers(), chrono::Utc::now()));
                let detail = answer.into_inner().error;
                Self::Refused(Box::new(Refusal {
                    status,
                    code: detail.code.into(),
                    message: detail.message,
                    field: detail.field,
                    details: detail.details,
                    request_id: detail.request_id,
                    retry_after,
                }))
            }
            Error::UnexpectedResponse(response) => {
                let what = match response.headers().get("content-type").map(|value| value.to_str()) {
                    Some(Ok(kind)) => format!("a status that the document does not declare, as {kind}"),
                    _ => "a status that the document does not declare".to_owned(),
                };
                garbled(Some(response.status()), Some(response.headers()), what)
            }
            Error::InvalidResponsePayload(_, error) => garbled(
                seen.status,
                None,
                format!("its body is not as the document declares: {error}"),
            ),
            Error::CommunicationError(source) | Error::ResponseBodyError(source) | Error::InvalidUpgrade(source) => {
                Self::Unreached {
                    source,
                    request_id: seen.request_id.clone(),
                }
            }
            Error::InvalidRequest(what) | Error::Custom(what) => Self::Unsendable(what),
        }
    }
}

/// With [`Call::answer`](crate::Call::answer) an error also knows the id of an answer that could not be read.
impl From<Error<types::Error>> for Problem {
    fn from(error: Error<types::Error>) -> Self {
        Self::of(error, &Seen::default())
    }
}

fn quoted(request_id: Option<&str>) -> String {
    request_id.map(|id| format!(" (request id {id})")).unwrap_or_default()
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

    fn answer(code: &str) -> Problem {
        let error = types::Error {
            error: types::ErrorDetail {
                code: code.to_owned(),
                message: "as the service said".to_owned(),
                field: Some("/plate".to_owned()),
                details: Vec::new(),
                request_id: "r-1".to_owned(),
            },
        };
        let headers = [(RETRY_AFTER, "17".parse().unwrap())].into_iter().collect();
        Error::ErrorResponse(ResponseValue::new(error, StatusCode::UNAUTHORIZED, headers)).into()
    }

    #[test]
    fn a_clock_that_is_off_is_told_what_to_do() {
        let problem = answer("expired_timestamp");
        assert_eq!(problem.code(), Some(&Code::ExpiredTimestamp));
        assert_eq!(problem.request_id(), Some("r-1"));
        assert_eq!(
            problem.refusal().and_then(|refusal| refusal.field.as_deref()),
            Some("/plate")
        );
        assert_eq!(
            problem.refusal().and_then(|refusal| refusal.retry_after),
            Some(Duration::from_secs(17))
        );
        let text = problem.to_string();
        assert!(
            text.starts_with("401 expired_timestamp: as the service said (request id r-1). "),
            "{text}"
        );
        assert!(text.contains("synchronize the clock"), "{text}");
    }

    #[test]
    fn an_unknown_code_is_shown_without_advice() {
        let text = answer("brand_new").to_string();
        assert_eq!(text, "401 brand_new: as the service said (request id r-1)");
    }
}
