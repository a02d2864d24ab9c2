//! How answers leave: the headers that every one carries.

use dropshot::Body;
use http::{HeaderName, HeaderValue, Response, header};
use uuid::Uuid;

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
