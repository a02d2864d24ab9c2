//! Errors as the contract's envelope (section 2.1), and the headers that go with them.

use std::time::Duration;

use dropshot::Body;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use super::admission::Standing;
use crate::error::ApiError;

#[derive(Serialize)]
struct Envelope<'a> {
    error: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    code: &'a str,
    message: &'a str,
    request_id: &'a str,
}

/// The response of an error. Dropshot adds `X-Request-Id`.
pub(super) fn response(error: &ApiError, request_id: &str) -> Response<Body> {
    let envelope = Envelope {
        error: Detail {
            code: error.code.as_str(),
            message: &error.message,
            request_id,
        },
    };
    let body = serde_json::to_vec(&envelope).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(after) = error.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(after)));
    }
    if let Some(allow) = error
        .allow
        .as_deref()
        .and_then(|allow| HeaderValue::from_str(allow).ok())
    {
        headers.insert(header::ALLOW, allow);
    }
    // What was not read of the body must not be taken for the next request.
    if matches!(error.status(), 408 | 413) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The IETF draft's fields: the key's policy, and what is left of its window.
pub(super) fn add_rate_limit(response: &mut Response<Body>, standing: Standing) {
    const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
    const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
    let fields = [
        (POLICY, format!("\"default\";q={};w=60", standing.limit)),
        (
            LIMIT,
            format!(
                "\"default\";r={};t={}",
                standing.remaining(),
                whole_seconds(standing.resets_in)
            ),
        ),
    ];
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
}

/// Whole seconds, rounded up, at least 1.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}
