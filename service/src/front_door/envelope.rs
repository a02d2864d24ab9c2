//! The response of every error, whichever contract it is of (ERR-1).

use std::time::Duration;

use codegen_runtime::Faults;
use dropshot::Body;
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use uuid::Uuid;

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

/// A place of the request that is wrong (ERR-9).
#[derive(Serialize)]
struct InvalidField<'a> {
    field: &'a str,
    message: &'a str,
}

/// An error as it is answered.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The error code.
    pub code: &'a str,
    /// What is wrong, and what to do.
    pub message: &'a str,
    /// The places of the request that are wrong, where they can be named (ERR-9).
    pub faults: Option<&'a Faults>,
    /// `Retry-After`, which is sent in whole seconds (ERR-7).
    pub retry_after: Option<Duration>,
    /// `Allow`, for 405.
    pub allow: Option<&'a str>,
}

impl Refusal<'_> {
    /// The response, to a request of this id.
    #[must_use]
    pub fn response(&self, request_id: Uuid) -> Response<Body> {
        let body = body(self.code, self.message, self.faults, request_id);
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(after) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(after)));
        }
        if let Some(allow) = self.allow.and_then(|allow| HeaderValue::from_str(allow).ok()) {
            headers.insert(header::ALLOW, allow);
        }
        // What was not read of the body must not be taken for the next request.
        if matches!(self.status, 408 | 413) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Whole seconds, rounded up, at least 1.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}

fn body(code: &str, message: &str, faults: Option<&Faults>, request_id: Uuid) -> Vec<u8> {
    let told = faults.into_iter().flat_map(Faults::iter);
    let details = told.map(|fault| InvalidField {
        field: &fault.field,
        message: &fault.message,
    });
    let envelope = Envelope {
        error: Detail {
            code,
            message,
            field: faults.map(|faults| &*faults.first().field),
            details: details.collect(),
            request_id,
        },
    };
    serde_json::to_vec(&envelope).unwrap_or_default()
}

/// The message that tells faults: the first, and how many more there are (ERR-9).
pub fn message(faults: &Faults) -> String {
    let more = match (faults.count(), faults.iter().count()) {
        (1, _) => String::new(),
        (2, _) => "; one more fault is in error.details".to_string(),
        (all, told) if all == told => format!("; {} more faults are in error.details", all - 1),
        (all, told) => format!("; there are {all} faults in all, the first {told} are in error.details"),
    };
    format!("{}{more}", faults.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ERR-7
    #[test]
    fn seconds_to_wait_are_rounded_up_and_at_least_one() {
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
    fn retry_after_is_sent_even_when_the_window_has_just_run_out() {
        let refusal = Refusal {
            status: 503,
            code: "service_unavailable",
            message: "",
            faults: None,
            retry_after: Some(Duration::ZERO),
            allow: None,
        };
        assert_eq!(refusal.response(Uuid::nil()).headers()[header::RETRY_AFTER], "1");
    }
}
