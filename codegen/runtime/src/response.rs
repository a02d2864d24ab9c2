//! What generated response types share.

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

/// What a handler has once it has accepted a websocket: the value of `WebsocketUpgrade::handle`.
///
/// Dropshot gives its type no name.
pub type Upgraded = <WebsocketEndpointResult as Outcome>::Value;

/// What a `Result` holds when all went well.
pub trait Outcome {
    /// It.
    type Value;
}

impl<T, E> Outcome for Result<T, E> {
    type Value = T;
}

/// What Dropshot's document says of a websocket.
pub fn websocket_metadata(description: &str) -> ApiEndpointResponse {
    described(
        Upgraded::response_metadata(),
        StatusCode::SWITCHING_PROTOCOLS,
        description,
    )
}

/// The headers that a response declares.
pub trait DeclaredHeaders: Send + Sync + 'static {
    /// The schema of an object with a member for each.
    const SCHEMA: &'static str;
}

/// The metadata with the headers of `H`, as Dropshot's document has them.
pub fn with_headers<H: DeclaredHeaders>(metadata: ApiEndpointResponse) -> ApiEndpointResponse {
    // A header's schema, too, has a holder that cannot be named outside Dropshot.
    type Any<H> = HttpResponseHeaders<HttpResponseUpdatedNoContent, OfHeaders<H>>;
    ApiEndpointResponse {
        headers: <Any<H> as HttpResponse>::response_metadata().headers,
        ..metadata
    }
}

/// What Dropshot asks for the headers' schema.
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

/// What Dropshot's document says of a response that the handler builds as a whole: nothing but that there is one.
pub fn whole_metadata(description: &str) -> ApiEndpointResponse {
    ApiEndpointResponse {
        description: Some(description.to_string()).filter(|description| !description.is_empty()),
        ..Response::<Body>::response_metadata()
    }
}

/// Builds a JSON response.
///
/// # Errors
/// 500 when `body` does not serialise or a header's value is not one.
pub fn json<T: Serialize>(
    status: StatusCode,
    body: &T,
    headers: &[(&'static str, Option<String>)],
) -> Result<Response<Body>, HttpError> {
    json_as(status, "application/json", body, headers)
}

/// Builds a response of JSON under another media type, such as `application/problem+json`.
///
/// # Errors
/// 500 when `body` does not serialise or a header's value is not one.
pub fn json_as<T: Serialize>(
    status: StatusCode,
    content_type: &'static str,
    body: &T,
    headers: &[(&'static str, Option<String>)],
) -> Result<Response<Body>, HttpError> {
    let bytes = serde_json::to_vec(body).map_err(|error| HttpError::for_internal_error(error.to_string()))?;
    built(status, Some(content_type), Body::from(bytes), headers)
}

/// Builds a response of bytes, or an empty one (no `content_type`).
///
/// # Errors
/// 500 when a header's value is not one.
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

/// What Dropshot's document says of a JSON response.
pub fn json_metadata<T>(status: StatusCode, description: &str) -> ApiEndpointResponse
where
    T: JsonSchema + Serialize + Send + Sync + 'static,
{
    // The schema's holder cannot be named outside Dropshot: its own response type is asked for one.
    described(
        <HttpResponseOk<T> as HttpResponse>::response_metadata(),
        status,
        description,
    )
}

/// What Dropshot's document says of a response of bytes.
pub fn bytes_metadata(status: StatusCode, description: &str) -> ApiEndpointResponse {
    let metadata = <HttpResponseOk<dropshot::FreeformBody> as dropshot::HttpResponse>::response_metadata();
    described(metadata, status, description)
}

/// What Dropshot's document says of a response without a body.
pub fn empty_metadata(status: StatusCode, description: &str) -> ApiEndpointResponse {
    let metadata = <dropshot::HttpResponseUpdatedNoContent as dropshot::HttpResponse>::response_metadata();
    described(metadata, status, description)
}

fn described(mut metadata: ApiEndpointResponse, status: StatusCode, description: &str) -> ApiEndpointResponse {
    metadata.success = Some(status);
    metadata.description = Some(description.to_string());
    metadata
}
