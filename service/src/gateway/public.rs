//! Responses without a signature: the published contract, static pages, and signed links to files in the storage folder.

use bytes::Bytes;
use dropshot::Body;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use partner_api_domain::byte_range::ByteRange;
use partner_api_domain::etag::ETag;

use crate::error::ApiError;
use crate::request_log::Reason;
use crate::storage::{Storage, StorageError, StoredObject};
use partner_api_gateway::pages::{FOLDER, Pages};

/// The contract in YAML.
pub const SPEC_YAML: &str = include_str!("../../../spec/partner-api.yaml");

/// The contract in JSON, which `build.rs` generates.
pub const SPEC_JSON: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

/// Returns the template of a path that this module serves, for the log; `None` for any other path.
pub(super) fn template(path: &str) -> Option<&'static str> {
    match path {
        "/openapi.yaml" => Some("/openapi.yaml"),
        "/openapi.json" => Some("/openapi.json"),
        "/" => Some("/"),
        _ if path.starts_with(FOLDER) || FOLDER.strip_suffix('/') == Some(path) => Some("/docs/{page}"),
        _ => path.starts_with("/files/").then_some("/files/{key}"),
    }
}

/// Responds to a request outside the API's root.
///
/// # Errors
/// 404 for an unknown path, and 405 for methods other than GET and HEAD.
pub(super) async fn respond(pages: &Pages, storage: &Storage, request: &Parts) -> Result<Response<Body>, ApiError> {
    let path = request.uri.path();
    let is_here = match path {
        "/openapi.yaml" | "/openapi.json" => true,
        _ => path.starts_with("/files/") || pages.has(path),
    };
    if is_here && !matches!(request.method, Method::GET | Method::HEAD) {
        return Err(ApiError::method_not_allowed(&request.method, "GET, HEAD"));
    }
    let mut response = match path {
        "/openapi.yaml" => text("application/yaml", SPEC_YAML),
        "/openapi.json" => text("application/json", SPEC_JSON),
        _ => match path.strip_prefix("/files/") {
            Some(key) => file(storage, key, request).await?,
            None => pages
                .respond(path, &request.headers)
                .or_else(|| pages.not_found(path, &request.headers))
                .ok_or_else(|| {
                    ApiError::not_found(
                        "there is nothing at this path; the API is under /api/v1/partner, its document at /openapi.yaml",
                    )
                    .with_reason(Reason::NoSuchPath)
                })?,
        },
    };
    if request.method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    Ok(response)
}

fn text(content_type: &'static str, text: &'static str) -> Response<Body> {
    // Not copied, because a client that sends many requests and reads no response must not occupy memory.
    let mut response = Response::new(Body::from(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = StatusCode::OK;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    let unchanged = HeaderValue::from_static("public, max-age=300");
    response.headers_mut().insert(header::CACHE_CONTROL, unchanged);
    // Tools on other hosts may load the contract; it is public.
    response
        .headers_mut()
        .insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// Returns a linked file, or the part of it that `Range` selects (REP-17).
async fn file(storage: &Storage, key: &str, request: &Parts) -> Result<Response<Body>, ApiError> {
    let query = request.uri.query().unwrap_or_default();
    // Forged, expired and missing links get the same response.
    let not_found = || {
        ApiError::not_found("there is no such file, or its link has expired; ask the API for a new link")
            .with_reason(Reason::LinkRejected)
    };
    let field = |name: &str| {
        query
            .split('&')
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_default()
            .to_string()
    };
    let expires = field("expires").parse::<i64>().map_err(|_| not_found())?;
    storage
        .verify_link(key, expires, &field("signature"), chrono::Utc::now())
        .map_err(|error| {
            tracing::debug!(%error, "rejected a file link");
            not_found()
        })?;
    let sent = |name| request.headers.get(name).and_then(|value| value.to_str().ok());
    // `Range` applies to GET only.
    let mut part = sent(header::RANGE)
        .filter(|_| request.method == Method::GET)
        .and_then(ByteRange::parse);
    let mut opened = match part {
        Some(part) => storage.stream_part(key, part).await,
        None => storage.stream(key).await,
    };
    // If the file changed since the client read its first part, the whole file is sent.
    if let (Some(_), Some(if_range)) = (part, sent(header::IF_RANGE))
        && !opened
            .as_ref()
            .is_ok_and(|object| tag(object).is_some_and(|tag| tag.matches_if_range(if_range)))
    {
        part = None;
        opened = storage.stream(key).await;
    }
    let object = match opened {
        Ok(object) => object,
        Err(StorageError::RangeNotSatisfiable { size }) => return Ok(range_not_satisfiable(size)),
        Err(error) => {
            tracing::warn!(%error, "failed to read a linked file");
            return Err(not_found());
        }
    };
    let failed = |_| ApiError::internal().with_reason(Reason::StorageFailed);
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let tag = tag(&object);
    let is_known = tag.as_ref().is_some_and(|tag| tag.matches(sent(header::IF_NONE_MATCH)));
    if let Some(tag) = tag {
        headers.insert(header::ETAG, HeaderValue::from_str(&tag.into_header()).map_err(failed)?);
    }
    let mut response = Response::new(Body::empty());
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_str(&object.content_type).map_err(failed)?,
        );
        // Set explicitly, because a response to HEAD has no body to derive it from.
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(object.content_length));
        if part.is_some() {
            let last = object.first + object.content_length.saturating_sub(1);
            let bytes = format!("bytes {}-{last}/{}", object.first, object.size);
            headers.insert(header::CONTENT_RANGE, HeaderValue::from_str(&bytes).map_err(failed)?);
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        *response.body_mut() = object.into_body();
    }
    *response.headers_mut() = headers;
    Ok(response)
}

/// Returns the ETag of a file, if its store provides one.
fn tag(object: &StoredObject) -> Option<ETag> {
    object.e_tag.as_deref().map(ETag::of_name)
}

/// Returns 416 with the size of the file, which a client needs for another request.
fn range_not_satisfiable(size: u64) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    if let Ok(value) = HeaderValue::from_str(&format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn all_responses_share_the_memory_of_the_contract() {
        for contract in [SPEC_YAML, SPEC_JSON] {
            let body = text("application/json", contract).into_body();
            let sent = body.collect().await.unwrap().to_bytes();
            assert_eq!(sent.as_ptr(), contract.as_ptr());
        }
    }
}
