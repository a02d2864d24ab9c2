//! JSON bodies for Dropshot's server.

use async_trait::async_trait;
use dropshot::{
    ApiEndpointBodyContentType, Body, CONTENT_TYPE_JSON, ExclusiveExtractor, ExtractorMetadata, HttpError,
    RequestContext, ServerContext, TypedBody, UntypedBody,
};
use http::{HeaderMap, Request, header};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::json;

/// A request body that is exactly one JSON document ([`json::read`]).
///
/// It has the same schema and error statuses as Dropshot's `TypedBody`, which however also accepts trailing data, and
/// invalid UTF-8 in members that it ignores.
#[derive(Debug)]
pub struct JsonBody<T> {
    inner: T,
}

impl<T> JsonBody<T> {
    /// The value.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

#[async_trait]
impl<T> ExclusiveExtractor for JsonBody<T>
where
    T: JsonSchema + DeserializeOwned + Send + Sync + 'static,
{
    async fn from_request<C: ServerContext>(
        context: &RequestContext<C>,
        request: Request<Body>,
    ) -> Result<Self, HttpError> {
        let bytes = UntypedBody::from_request(context, request).await?;
        let inner = read(context.request.headers(), bytes.as_bytes())?;
        Ok(JsonBody { inner })
    }

    fn metadata(content_type: ApiEndpointBodyContentType) -> ExtractorMetadata {
        <TypedBody<T> as ExclusiveExtractor>::metadata(content_type)
    }
}

/// An optional body, read like [`JsonBody`] unless it is empty.
///
/// The emitted document describes it as required, because Dropshot does not support optional bodies.
#[derive(Debug)]
pub struct OptionalJsonBody<T> {
    inner: Option<T>,
}

impl<T> OptionalJsonBody<T> {
    /// The value, if the body is not empty.
    pub fn into_inner(self) -> Option<T> {
        self.inner
    }
}

#[async_trait]
impl<T> ExclusiveExtractor for OptionalJsonBody<T>
where
    T: JsonSchema + DeserializeOwned + Send + Sync + 'static,
{
    async fn from_request<C: ServerContext>(
        context: &RequestContext<C>,
        request: Request<Body>,
    ) -> Result<Self, HttpError> {
        let bytes = UntypedBody::from_request(context, request).await?;
        if bytes.as_bytes().is_empty() {
            return Ok(OptionalJsonBody { inner: None });
        }
        let inner = Some(read(context.request.headers(), bytes.as_bytes())?);
        Ok(OptionalJsonBody { inner })
    }

    fn metadata(content_type: ApiEndpointBodyContentType) -> ExtractorMetadata {
        <TypedBody<T> as ExclusiveExtractor>::metadata(content_type)
    }
}

fn read<T: DeserializeOwned + JsonSchema>(headers: &HeaderMap, bytes: &[u8]) -> Result<T, HttpError> {
    is_json(headers)?;
    json::read(bytes).map_err(|faults| refused(format!("unable to parse JSON body: {faults}")))
}

/// Refuses content types other than JSON. Like Dropshot, accepts requests without one.
fn is_json(headers: &HeaderMap) -> Result<(), HttpError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let text = value
        .to_str()
        .map_err(|_| refused("invalid content type: must be visible ASCII".into()))?;
    let name = text.split(';').next().unwrap_or_default().trim_end().to_lowercase();
    match ApiEndpointBodyContentType::from_mime_type(&name) {
        Ok(ApiEndpointBodyContentType::Json) => Ok(()),
        Ok(other) => Err(refused(format!(
            "expected content type \"{CONTENT_TYPE_JSON}\", got \"{}\"",
            other.mime_type()
        ))),
        Err(unknown) => Err(refused(format!("unsupported content-type: {unknown}"))),
    }
}

fn refused(message: String) -> HttpError {
    HttpError::for_bad_request(None, message)
}
