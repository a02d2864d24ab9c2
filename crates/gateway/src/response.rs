//! Completion of responses: conversion of panics to errors, and the headers of all responses.

use std::panic::AssertUnwindSafe;

use dropshot::Body;
use futures::FutureExt;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use uuid::Uuid;

use crate::Reason;
use crate::envelope::whole_seconds;
use crate::request::{Completed, Rejected};
use crate::{ApiError, ErrorCode, RateLimitStatus, RequestInfo, sunset};

/// Returns the outcome, or 500 if `outcome` panics. The panic message may contain anything, so it goes only to the panic hook and
/// never into the response.
pub(super) async fn or_internal_error<E: ErrorCode>(
    outcome: impl Future<Output = Result<Completed, Box<Rejected<E>>>>,
    info: &RequestInfo,
) -> Result<Completed, Box<Rejected<E>>> {
    match AssertUnwindSafe(outcome).catch_unwind().await {
        Ok(outcome) => outcome,
        Err(_) => {
            tracing::error!("a handler panicked");
            Err(info
                .clone()
                .rejected(ApiError::internal().with_reason(Reason::Panicked)))
        }
    }
}

/// Adds the headers of all responses: the request ID, the caller's rate-limit status, and the headers that forbid
/// clients to store the response or to guess its content type (REQ-14).
pub(super) fn finished(mut response: Response<Body>, info: &RequestInfo) -> Response<Body> {
    const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
    let headers = response.headers_mut();
    let mut text = Uuid::encode_buffer();
    if let Ok(id) = HeaderValue::from_str(info.request_id.hyphenated().encode_lower(&mut text)) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(header::CACHE_CONTROL) {
        let rule = match headers.contains_key(header::ETAG) {
            true => "private, no-cache",
            false => "no-store",
        };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(rule));
    }
    if let Some(status) = info.rate_limit {
        add_rate_limit(&mut response, status);
    }
    // Only successful responses of the operation carry these headers.
    if let (Some(operation), false) = (&info.operation, is_error(response.status())) {
        sunset::announce(response.headers_mut(), operation);
    }
    response
}

fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// Adds the header fields of the IETF draft: the key's policy, and the rest of its window.
fn add_rate_limit(response: &mut Response<Body>, status: RateLimitStatus) {
    const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
    const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
    let fields = [
        (POLICY, format!("\"default\";q={};w=60", status.limit)),
        (
            LIMIT,
            format!(
                "\"default\";r={};t={}",
                status.remaining(),
                whole_seconds(status.resets_in)
            ),
        ),
    ];
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::{Value, json};

    use super::*;
    use crate::error::TestCode;

    async fn body(response: Response<Body>) -> Value {
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
    }

    fn info() -> RequestInfo {
        RequestInfo {
            request_id: Uuid::nil(),
            arrived: std::time::Instant::now(),
            method: "GET",
            route: "/*",
            agent: None,
            received_bytes: 0,
            address: [127, 0, 0, 1].into(),
            key: None,
            operation: None,
            rate_limit: None,
        }
    }

    /// ERR-1, ERR-8
    #[tokio::test]
    async fn a_panic_becomes_a_500_error_without_the_panic_message() {
        let panicking = async {
            tokio::task::yield_now().await;
            panic!("the plate 34 ABC 123 broke it");
        };
        let Err(rejected) = or_internal_error::<TestCode>(panicking, &info()).await else {
            panic!("expected an error")
        };
        let response = rejected.error.response(rejected.info.request_id);
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        let expected = json!({
            "code": "internal_error", "message": ApiError::<TestCode>::internal().message, "request_id": Uuid::nil()
        });
        assert_eq!(body(response).await, json!({ "error": expected }));
    }

    #[test]
    fn only_4xx_and_5xx_are_errors() {
        for (status, expected) in [(200, false), (304, false), (404, true), (503, true)] {
            assert_eq!(is_error(StatusCode::from_u16(status).unwrap()), expected, "{status}");
        }
    }

    /// REQ-14
    #[test]
    fn a_response_with_an_etag_may_be_revalidated_and_no_other_may_be_stored() {
        let plain = finished(Response::new(Body::empty()), &info());
        assert_eq!(plain.headers()[header::CACHE_CONTROL], "no-store");
        let mut tagged = Response::new(Body::empty());
        tagged
            .headers_mut()
            .insert(header::ETAG, HeaderValue::from_static("\"1\""));
        let tagged = finished(tagged, &info());
        assert_eq!(tagged.headers()[header::CACHE_CONTROL], "private, no-cache");
        for response in [plain, tagged] {
            assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(response.headers()["x-request-id"], Uuid::nil().to_string());
        }
    }
}
