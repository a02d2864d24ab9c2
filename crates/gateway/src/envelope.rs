//! The error response of every contract (ERR-1).

use std::time::Duration;

use codegen_runtime::ValidationErrors;
use dropshot::Body;
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use uuid::Uuid;

use crate::{ApiError, ErrorCode};

#[derive(Serialize)]
struct Envelope<'a> {
    error: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<InvalidField<'a>>,
    request_id: Uuid,
}

/// An invalid part of the request (ERR-9).
#[derive(Serialize)]
struct InvalidField<'a> {
    field: &'a str,
    message: &'a str,
}

impl<E: ErrorCode> ApiError<E> {
    /// Builds the response to the request with this ID.
    pub fn response(&self, request_id: Uuid) -> Response<Body> {
        let mut response = Response::new(Body::from(body(self, request_id)));
        *response.status_mut() = StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(after) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(after)));
        }
        let allow = self.allow.as_deref();
        if let Some(allow) = allow.and_then(|allow| HeaderValue::from_str(allow).ok()) {
            headers.insert(header::ALLOW, allow);
        }
        // The unread rest of the body must not be parsed as the next request.
        if matches!(self.status(), 408 | 413) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Rounds up to whole seconds, at least 1.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}

fn body<E: ErrorCode>(error: &ApiError<E>, request_id: Uuid) -> Vec<u8> {
    let errors = error.validation_errors.as_deref();
    let listed = errors.into_iter().flat_map(ValidationErrors::iter);
    let details = listed.map(|error| InvalidField {
        field: &error.field,
        message: &error.message,
    });
    let envelope = Envelope {
        error: Detail {
            code: error.code.as_str(),
            message: &error.message,
            field: errors.map(|errors| &*errors.first().field),
            details: details.collect(),
            request_id,
        },
    };
    serde_json::to_vec(&envelope).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;
    use crate::error::TestCode;

    /// ERR-7
    #[test]
    fn retry_after_is_rounded_up_and_at_least_one_second() {
        for (nanoseconds, seconds) in [
            (0, 1),
            (1, 1),
            (999_999_999, 1),
            (1_000_000_000, 1),
            (1_000_000_001, 2),
            (59_000_000_001, 60),
            (60_000_000_000, 60),
        ] {
            assert_eq!(
                whole_seconds(Duration::from_nanos(nanoseconds)),
                seconds,
                "{nanoseconds} ns"
            );
        }
    }

    #[test]
    fn retry_after_is_sent_even_if_the_window_has_just_ended() {
        let mut error = ApiError::<TestCode>::unavailable(Reason::RequestOverdue);
        error.retry_after = Some(Duration::ZERO);
        assert_eq!(error.response(Uuid::nil()).headers()[header::RETRY_AFTER], "1");
    }
}
