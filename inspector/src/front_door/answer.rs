//! How answers leave: errors in the envelope, and the headers that every answer carries.

use std::time::Duration;

use dropshot::Body;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use partner_api::front_door::envelope;
use uuid::Uuid;

use crate::error::ApiError;

/// The response of an error.
pub(super) fn refusal(error: &ApiError, request_id: Uuid) -> Response<Body> {
    let body = envelope::body(error.code.as_str(), &error.message, error.faults.as_deref(), request_id);
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

/// The response with what every one carries: the request's id, and word that nobody may keep it, take it for another kind of
/// thing, or show it inside of a page of theirs.
pub(super) fn finished(mut response: Response<Body>, request_id: Uuid) -> Response<Body> {
    const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&request_id.to_string()) {
        headers.insert(REQUEST_ID, id);
    }
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Whole seconds, rounded up, at least 1.
fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}
