//! Responses of generated servers.

use std::marker::PhantomData;

use dropshot::{
    ApiEndpointResponse, Body, HttpError, HttpResponse, HttpResponseHeaders, HttpResponseOk,
    HttpResponseUpdatedNoContent, WebsocketEndpointResult,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Serialize, Serializer};

/// The result of `WebsocketUpgrade::handle`, which a handler returns after accepting a websocket.
///
/// Dropshot does not export its type.
pub type Upgraded = <WebsocketEndpointResult as Outcome>::Value;

/// The success type of a `Result`.
pub trait Outcome {
    /// The type.
    type Value;
}

impl<T, E> Outcome for Result<T, E> {
    type Value = T;
}

/// The metadata of a websocket for Dropshot's document.
pub fn websocket_metadata(description: &str) -> ApiEndpointResponse {
    described(
        Upgraded::response_metadata(),
        StatusCode::SWITCHING_PROTOCOLS,
        description,
    )
}

/// The declared headers of a response.
pub trait DeclaredHeaders: Send + Sync + 'static {
    /// The schema of an object with a member for each header.
    const SCHEMA: &'static str;
}

/// Adds the headers of `H` to the metadata.
pub fn with_headers<H: DeclaredHeaders>(metadata: ApiEndpointResponse) -> ApiEndpointResponse {
    // Dropshot does not export the type that contains the schemas of headers, so its own response type creates one.
    type Any<H> = HttpResponseHeaders<HttpResponseUpdatedNoContent, OfHeaders<H>>;
    ApiEndpointResponse {
        headers: <Any<H> as HttpResponse>::response_metadata().headers,
        ..metadata
    }
}

/// A type with the headers' schema, for Dropshot.
struct OfHeaders<H>(PhantomData<H>);

impl<H> Serialize for OfHeaders<H> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<H: DeclaredHeaders> JsonSchema for OfHeaders<H> {
    fn schema_name() -> String {
        "Headers".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        crate::schema::embedded(H::SCHEMA)
    }
}

/// The metadata of a response that the handler builds itself.
pub fn whole_metadata(description: &str) -> ApiEndpointResponse {
    ApiEndpointResponse {
        description: Some(description.to_string()).filter(|description| !description.is_empty()),
        ..Response::<Body>::response_metadata()
    }
}

/// Builds a JSON response.
///
/// # Errors
/// 500 if `body` cannot be serialized or a header value is invalid.
pub fn json<T: Serialize>(
    status: StatusCode,
    body: &T,
    headers: &[(&'static str, Option<String>)],
) -> Result<Response<Body>, HttpError> {
    json_as(status, "application/json", body, headers)
}

/// Builds a JSON response with another media type, such as `application/problem+json`.
///
/// # Errors
/// 500 if `body` cannot be serialized or a header value is invalid.
pub fn json_as<T: Serialize>(
    status: StatusCode,
    content_type: &'static str,
    body: &T,
    headers: &[(&'static str, Option<String>)],
) -> Result<Response<Body>, HttpError> {
    let bytes = serde_json::to_vec(body).map_err(|error| HttpError::for_internal_error(error.to_string()))?;
    built(status, Some(content_type), Body::from(bytes), headers)
}

/// Builds a response of bytes, or an empty response if there is no `content_type`.
///
/// # Errors
/// 500 if a header value is invalid.
pub fn bytes(
    status: StatusCode,
    content_type: Option<&'static str>,
    body: Body,
    headers: &[(&'static str, Option<String>)],
) -> Result<Response<Body>, HttpError> {
    built(status, content_type, body, headers)
}

fn built(
    status: StatusCode,
    content_type: Option<&'static str>,
    body: Body,
    headers: &[(&'static str, Option<String>)],
) -> Result<Response<Body>, HttpError> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Some(content_type) = content_type {
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    for (name, value) in headers {
        if let Some(value) = value {
            let value =
                HeaderValue::from_str(value).map_err(|error| HttpError::for_internal_error(error.to_string()))?;
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    Ok(response)
}

/// The metadata of a JSON response for Dropshot's document.
pub fn json_metadata<T>(status: StatusCode, description: &str) -> ApiEndpointResponse
where
    T: JsonSchema + Serialize + Send + Sync + 'static,
{
    // Dropshot does not export the type that contains a schema, so its own response type creates one.
    described(
        <HttpResponseOk<T> as HttpResponse>::response_metadata(),
        status,
        description,
    )
}

/// The metadata of a response of bytes for Dropshot's document.
pub fn bytes_metadata(status: StatusCode, description: &str) -> ApiEndpointResponse {
    let metadata = <HttpResponseOk<dropshot::FreeformBody> as dropshot::HttpResponse>::response_metadata();
    described(metadata, status, description)
}

/// The metadata of a response without a body for Dropshot's document.
pub fn empty_metadata(status: StatusCode, description: &str) -> ApiEndpointResponse {
    let metadata = <dropshot::HttpResponseUpdatedNoContent as dropshot::HttpResponse>::response_metadata();
    described(metadata, status, description)
}

fn described(mut metadata: ApiEndpointResponse, status: StatusCode, description: &str) -> ApiEndpointResponse {
    metadata.success = Some(status);
    metadata.description = Some(description.to_string());
    metadata
}
