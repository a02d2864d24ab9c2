//! Errors in words, with what to do about them.

use std::fmt;

use crate::generated::{Error, types};

/// An error as a sentence for people: status, code, the service's message, the request id to quote, and what to do
/// about it where that is known.
pub fn describe(error: &Error<types::Error>) -> Description<'_> {
    Description(error)
}

/// See [`describe`].
#[derive(Clone, Copy, Debug)]
pub struct Description<'a>(&'a Error<types::Error>);

impl Description<'_> {
    /// The service's code of the error, such as `not_found`; `None` when the service did not answer.
    pub fn code(&self) -> Option<&str> {
        match self.0 {
            Error::ErrorResponse(answer) => Some(&answer.error.code),
            _ => None,
        }
    }

    /// What to do about it, where that can be said.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self.code()? {
            "expired_timestamp" => {
                "this machine's clock and the server's differ by more than 300 s: synchronize the clock (NTP; \
                 `timedatectl status` tells whether it is), and compare with `server_time` of GET /health"
            }
            "invalid_signature" => {
                "check that the secret belongs to this key id, and that nothing between here and the service \
                 rewrites path, query or body"
            }
            "invalid_key" => {
                "check the key id and that it belongs to this address's environment; if they are right, ask the \
                 operator whether the key is active and your address is admitted"
            }
            "missing_signature_headers" => "look for a proxy that drops or doubles the X-Partner-* headers",
            "replay_detected" => "look for a proxy that sends requests twice",
            "scope_required" => "ask the operator to give the key this scope",
            "rate_limited" | "ip_rate_limited" => "send less often, or ask the operator for a higher limit",
            _ => return None,
        })
    }
}

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::ErrorResponse(answer) => {
                let error = &answer.error;
                let status = answer.status().as_u16();
                write!(
                    f,
                    "{status} {}: {} (request id {})",
                    error.code, error.message, error.request_id
                )?;
            }
            Error::CommunicationError(error) => {
                write!(f, "the service was not reached: {error}")?;
                let mut cause = std::error::Error::source(error);
                while let Some(error) = cause {
                    write!(f, ": {error}")?;
                    cause = error.source();
                }
            }
            other => write!(f, "{other}")?,
        }
        match self.remedy() {
            Some(remedy) => write!(f, ". {remedy}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use progenitor_client::ResponseValue;
    use reqwest::StatusCode;
    use reqwest::header::HeaderMap;

    use super::*;

    fn answer(code: &str) -> Error<types::Error> {
        let error = types::Error {
            error: types::ErrorDetail {
                code: code.to_owned(),
                message: "as the service said".to_owned(),
                field: None,
                details: Vec::new(),
                request_id: "r-1".to_owned(),
            },
        };
        Error::ErrorResponse(ResponseValue::new(error, StatusCode::UNAUTHORIZED, HeaderMap::new()))
    }

    #[test]
    fn a_clock_that_is_off_is_told_what_to_do() {
        let text = describe(&answer("expired_timestamp")).to_string();
        assert!(
            text.starts_with("401 expired_timestamp: as the service said (request id r-1). "),
            "{text}"
        );
        assert!(text.contains("synchronize the clock"), "{text}");
    }

    #[test]
    fn an_unknown_code_is_shown_without_advice() {
        let text = describe(&answer("brand_new")).to_string();
        assert_eq!(text, "401 brand_new: as the service said (request id r-1)");
    }
}
