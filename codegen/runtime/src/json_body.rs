//! The body of a request, as JSON.

use async_trait::async_trait;
use dropshot::{
    ApiEndpointBodyContentType, Body, CONTENT_TYPE_JSON, ExclusiveExtractor, ExtractorMetadata, HttpError,
    RequestContext, ServerContext, TypedBody, UntypedBody,
};
use http::{HeaderMap, Request, header};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::json;

/// A request body that is one JSON document and nothing else ([`json::read`]).
///
/// It is what Dropshot's `TypedBody` is to the emitted document, with the same answers to what is no such body; but
/// `TypedBody` also takes what has more behind it, and any bytes in members that it passes over.
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

/// A body that may be left out: none, or one that [`JsonBody`] reads.
///
/// In the emitted document it is required: Dropshot knows no other bodies.
#[derive(Debug)]
pub struct OptionalJsonBody<T> {
    inner: Option<T>,
}

impl<T> OptionalJsonBody<T> {
    /// The value, if there was a body.
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

/// Refuses another content type than JSON; none at all is taken for JSON, as Dropshot does.
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
