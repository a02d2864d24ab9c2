//! What is served unsigned: the published document, pages beside it, and the links that the embedded file store signed.

use dropshot::Body;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};

use super::{Answered, Arrived, Refused, pages};

use crate::context::Context;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;

/// The document as written.
pub const SPEC_YAML: &str = include_str!("../../../spec/partner-api.yaml");

/// The document as JSON.
///
/// # Errors
/// When it is no YAML.
pub fn spec_json() -> Result<String, serde_yaml::Error> {
    let spec: serde_json::Value = serde_yaml::from_str(SPEC_YAML)?;
    Ok(spec.to_string())
}

/// The template of a path that is answered here, for the log.
pub(super) fn template(path: &str) -> Option<&'static str> {
    match path {
        "/openapi.yaml" => Some("/openapi.yaml"),
        "/openapi.json" => Some("/openapi.json"),
        "/" => Some("/"),
        _ if path.starts_with(pages::FOLDER) || pages::FOLDER.strip_suffix('/') == Some(path) => Some("/docs/{page}"),
        _ => path.starts_with("/files/").then_some("/files/{key}"),
    }
}

/// Answers a request outside the API's root.
///
/// # Errors
/// 404, or 405 for what is not GET or HEAD.
pub(super) async fn answer(context: &Context, arrived: Arrived) -> Result<Answered, Box<Refused>> {
    let Arrived { seen, head, .. } = arrived;
    match response(context, &head).await {
        Ok(response) => Ok(Answered { seen, response }),
        Err(error) => Err(seen.refused(error)),
    }
}

async fn response(context: &Context, request: &Parts) -> Result<Response<Body>, ApiError> {
    let path = request.uri.path();
    let is_here = match path {
        "/openapi.yaml" | "/openapi.json" => true,
        _ => path.starts_with("/files/") || context.pages.has(path),
    };
    if is_here && !matches!(request.method, Method::GET | Method::HEAD) {
        return Err(ApiError {
            allow: Some("GET, HEAD".into()),
            ..ApiError::new(
                ErrorCode::MethodNotAllowed,
                format!("{} is not allowed; allowed: GET, HEAD", request.method),
            )
            .because(Reason::NoSuchMethod)
        });
    }
    let mut response = match path {
        "/openapi.yaml" => text("application/yaml", SPEC_YAML),
        "/openapi.json" => text("application/json", &context.spec_json),
        _ => match path.strip_prefix("/files/") {
            Some(key) => file(context, key, request.uri.query().unwrap_or_default()).await?,
            None => context.pages.answer(path, &request.headers).ok_or_else(|| {
                ApiError::not_found(
                    "there is nothing at this path; the API is under /api/v1/partner, its document at /openapi.yaml",
                )
                .because(Reason::NoSuchPath)
            })?,
        },
    };
    if request.method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    Ok(response)
}

fn text(content_type: &'static str, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.to_string()));
    *response.status_mut() = StatusCode::OK;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    let unchanged = HeaderValue::from_static("public, max-age=300");
    response.headers_mut().insert(header::CACHE_CONTROL, unchanged);
    // The document and what tries it out may live on other hosts; there is nothing secret in it.
    response
        .headers_mut()
        .insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

async fn file(context: &Context, key: &str, query: &str) -> Result<Response<Body>, ApiError> {
    // Forged, expired and missing are not told apart.
    let gone = || {
        ApiError::not_found("there is no such file, or its link has expired; ask the API for a new link")
            .because(Reason::LinkRefused)
    };
    let field = |name: &str| {
        query
            .split('&')
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_default()
            .to_string()
    };
    let expires = field("expires").parse::<i64>().map_err(|_| gone())?;
    context
        .storage
        .verify_link(key, expires, &field("signature"), chrono::Utc::now())
        .map_err(|error| {
            tracing::debug!(%error, "a file link was refused");
            gone()
        })?;
    let object = context.storage.stream(key).await.map_err(|error| {
        tracing::warn!(%error, "a linked file could not be read");
        gone()
    })?;
    let content_type =
        HeaderValue::from_str(&object.content_type).map_err(|_| ApiError::internal().because(Reason::StorageFailed))?;
    let mut response = Response::new(object.into_body());
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    Ok(response)
}
