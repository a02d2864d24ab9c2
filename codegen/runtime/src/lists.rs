//! Queries and forms with repeated names, which Dropshot's own extractors refuse.

use async_trait::async_trait;
use dropshot::{
    ApiEndpointBodyContentType, Body, CONTENT_TYPE_URL_ENCODED, ExclusiveExtractor, ExtractorMetadata, HttpError,
    Query, RequestContext, ServerContext, SharedExtractor, TypedBody, UntypedBody,
};
use http::{Request, header};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// Query parameters, some of which are lists.
#[derive(Debug)]
pub struct ListQuery<T> {
    inner: T,
}

impl<T> ListQuery<T> {
    /// The parameters.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

#[async_trait]
impl<T> SharedExtractor for ListQuery<T>
where
    T: JsonSchema + DeserializeOwned + Send + Sync + 'static,
{
    async fn from_request<C: ServerContext>(context: &RequestContext<C>) -> Result<Self, HttpError> {
        let query = context.request.uri().query().unwrap_or_default();
        match serde_html_form::from_str(query) {
            Ok(inner) => Ok(ListQuery { inner }),
            Err(error) => {
                let message = format!("unable to parse query string: {error}");
                Err(HttpError::for_bad_request(None, message))
            }
        }
    }

    fn metadata(content_type: ApiEndpointBodyContentType) -> ExtractorMetadata {
        <Query<T> as SharedExtractor>::metadata(content_type)
    }
}

/// A form, some of whose members are lists.
#[derive(Debug)]
pub struct ListForm<T> {
    inner: T,
}

impl<T> ListForm<T> {
    /// The members.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

#[async_trait]
impl<T> ExclusiveExtractor for ListForm<T>
where
    T: JsonSchema + DeserializeOwned + Send + Sync + 'static,
{
    async fn from_request<C: ServerContext>(
        context: &RequestContext<C>,
        request: Request<Body>,
    ) -> Result<Self, HttpError> {
        let refused = |message: String| Err(HttpError::for_bad_request(None, message));
        let sent = request.headers().get(header::CONTENT_TYPE).map(|value| value.to_str());
        let essence = match sent {
            Some(Ok(sent)) => sent.split(';').next().unwrap_or_default().trim(),
            _ => "",
        };
        if !essence.eq_ignore_ascii_case(CONTENT_TYPE_URL_ENCODED) {
            return refused(format!("expected content type \"{CONTENT_TYPE_URL_ENCODED}\""));
        }
        let bytes = UntypedBody::from_request(context, request).await?;
        match serde_html_form::from_bytes(bytes.as_bytes()) {
            Ok(inner) => Ok(ListForm { inner }),
            Err(error) => refused(format!("unable to parse URL-encoded body: {error}")),
        }
    }

    fn metadata(content_type: ApiEndpointBodyContentType) -> ExtractorMetadata {
        <TypedBody<T> as ExclusiveExtractor>::metadata(content_type)
    }
}
