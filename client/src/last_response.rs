//! Tracks the last response of a call, because generated code returns the error of an invalid response without its headers.

use std::cell::RefCell;

use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};

tokio::task_local! {
    static LAST_RESPONSE: RefCell<LastResponse>;
}

/// The request ID and status of the last response of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastResponse {
    pub(crate) request_id: Option<String>,
    pub(crate) status: Option<StatusCode>,
}

/// Records a response of the current call, if it is [tracked](track).
pub(crate) fn record(response: &Response) {
    let last = LastResponse {
        request_id: request_id(response.headers()),
        status: Some(response.status()),
    };
    // A call that is sent without `response()` is not tracked.
    let _ = LAST_RESPONSE.try_with(|cell| cell.replace(last));
}

/// Returns the `X-Request-Id` of a response.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    Some(headers.get("x-request-id")?.to_str().ok()?.to_owned())
}

/// Runs a call and returns its output and its last response.
pub(crate) async fn track<F: Future>(call: F) -> (F::Output, LastResponse) {
    LAST_RESPONSE
        .scope(RefCell::default(), async {
            let output = call.await;
            let last = LAST_RESPONSE.try_with(|cell| cell.take()).unwrap_or_default();
            (output, last)
        })
        .await
}
