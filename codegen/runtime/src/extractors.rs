//! Extractors for Dropshot's server: JSON bodies, cookies, and queries and forms with repeated names, which Dropshot's own
//! extractors reject.

use async_trait::async_trait;
use dropshot::{
    ApiEndpointBodyContentType, Body, CONTENT_TYPE_JSON, CONTENT_TYPE_URL_ENCODED, ExclusiveExtractor, ExtensionMode,
    ExtractorMetadata, HttpError, MultipartBody, Query, RequestContext, ServerContext, SharedExtractor, TypedBody,
    UntypedBody,
};
use http::{HeaderMap, Request, header};
use percent_encoding::percent_decode_str;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::call::{as_texts, declared, parameters};
use crate::{ValidationErrors, json};

/// Declares an extractor that reads the body with a function. Its documentation is that of `TypedBody`.
macro_rules! body_extractor {
    ($(#[$about:meta])* $name:ident, $inner:ty, $read:expr) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct $name<T> {
            inner: $inner,
        }

        impl<T> $name<T> {
            /// The value; for an optional body, `None` if the body is empty.
            pub fn into_inner(self) -> $inner {
                self.inner
            }
        }

        #[async_trait]
        impl<T> ExclusiveExtractor for $name<T>
        where
            T: JsonSchema + DeserializeOwned + Send + Sync + 'static,
        {
            async fn from_request<C: ServerContext>(
                context: &RequestContext<C>,
                request: Request<Body>,
            ) -> Result<Self, HttpError> {
                let bytes = UntypedBody::from_request(context, request).await?;
                let inner = $read(context.request.headers(), bytes.as_bytes())?;
                Ok($name { inner })
            }

            fn metadata(content_type: ApiEndpointBodyContentType) -> ExtractorMetadata {
                <TypedBody<T> as ExclusiveExtractor>::metadata(content_type)
            }
        }
    };
}

body_extractor! {
    /// A request body that is exactly one JSON document ([`json::read`]).
    ///
    /// It has the same schema and error statuses as Dropshot's `TypedBody`, which however also accepts trailing data, and
    /// invalid UTF-8 in members that it ignores.
    JsonBody, T, json
}

body_extractor! {
    /// An optional body, read like [`JsonBody`] unless it is empty.
    ///
    /// The emitted document describes it as required, because Dropshot does not support optional bodies.
    OptionalJsonBody, Option<T>, unless_empty(json)
}

body_extractor! {
    /// A form, some of whose members are lists.
    ListForm, T, form
}

body_extractor! {
    /// An optional form, read like [`ListForm`] unless the body is empty.
    ///
    /// The emitted document describes it as required, because Dropshot does not support optional bodies.
    OptionalForm, Option<T>, unless_empty(form)
}

/// The parts of an optional body.
///
/// The emitted document describes it as required, because Dropshot does not support optional bodies.
#[derive(Debug)]
pub struct OptionalMultipart {
    inner: Option<MultipartBody>,
}

impl OptionalMultipart {
    /// The parts; `None` if the request has no content type.
    pub fn into_inner(self) -> Option<MultipartBody> {
        self.inner
    }
}

#[async_trait]
impl ExclusiveExtractor for OptionalMultipart {
    async fn from_request<C: ServerContext>(
        context: &RequestContext<C>,
        request: Request<Body>,
    ) -> Result<Self, HttpError> {
        // Dropshot rejects a request without parts.
        let inner = match request.headers().contains_key(header::CONTENT_TYPE) {
            true => Some(MultipartBody::from_request(context, request).await?),
            false => None,
        };
        Ok(OptionalMultipart { inner })
    }

    fn metadata(content_type: ApiEndpointBodyContentType) -> ExtractorMetadata {
        MultipartBody::metadata(content_type)
    }
}

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
            Err(error) => Err(rejected(format!("unable to parse query string: {error}"))),
        }
    }

    fn metadata(content_type: ApiEndpointBodyContentType) -> ExtractorMetadata {
        <Query<T> as SharedExtractor>::metadata(content_type)
    }
}

/// Parameters in cookies.
///
/// The emitted document does not have them, because Dropshot does not support them.
#[derive(Debug)]
pub struct Cookies<T> {
    inner: T,
}

impl<T> Cookies<T> {
    /// The parameters.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

#[async_trait]
impl<T> SharedExtractor for Cookies<T>
where
    T: JsonSchema + DeserializeOwned + Send + Sync + 'static,
{
    async fn from_request<C: ServerContext>(context: &RequestContext<C>) -> Result<Self, HttpError> {
        match cookies(context.request.headers()) {
            Ok(inner) => Ok(Cookies { inner }),
            Err(errors) => Err(rejected(format!("unable to parse cookies: {errors}"))),
        }
    }

    fn metadata(_: ApiEndpointBodyContentType) -> ExtractorMetadata {
        ExtractorMetadata {
            extension_mode: ExtensionMode::None,
            parameters: Vec::new(),
        }
    }
}

/// Reads parameters in cookies, whose values may be percent-encoded. If a cookie is sent twice, the first one counts.
///
/// # Errors
/// An error for each missing or invalid parameter.
pub fn cookies<T: DeserializeOwned + JsonSchema>(headers: &HeaderMap) -> Result<T, ValidationErrors> {
    let lines = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok());
    let pairs = lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let all: Vec<(&str, &str)> = pairs.collect();
    let mut sent: Vec<(&'static str, String)> = Vec::new();
    for name in declared::<T>() {
        if let Some((_, value)) = all.iter().find(|(known, _)| known == name) {
            sent.push((*name, percent_decode_str(value).decode_utf8_lossy().into_owned()));
        }
    }
    parameters(as_texts(&sent), &[])
}

/// Declares a wrapper of another extractor.
macro_rules! identified {
    ($(#[$about:meta])* $name:ident, $kind:ident, $($request:ident: $ty:ty)?) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct $name<E> {
            inner: E,
        }

        impl<E> $name<E> {
            /// The other extractor.
            pub fn into_inner(self) -> E {
                self.inner
            }
        }

        #[async_trait]
        impl<E: $kind + 'static> $kind for $name<E> {
            async fn from_request<C: ServerContext>(
                context: &RequestContext<C>,
                $($request: $ty,)?
            ) -> Result<Self, HttpError> {
                let inner = E::from_request(context, $($request)?).await;
                inner.map(|inner| $name { inner }).map_err(|mut error| {
                    // Dropshot's IDs are UUIDs, which are valid headers.
                    drop(error.add_header(REQUEST_ID, context.request_id.as_str()));
                    error
                })
            }

            fn metadata(content_type: ApiEndpointBodyContentType) -> ExtractorMetadata {
                E::metadata(content_type)
            }
        }
    };
}

identified! {
    /// An extractor whose errors have the request's ID, so that an error type with its own body, which is converted from them,
    /// can send it ([`request_id`]).
    Identified, SharedExtractor,
}

identified! {
    /// An [`Identified`] extractor of the body.
    IdentifiedBody, ExclusiveExtractor, request: Request<Body>
}

const REQUEST_ID: &str = "x-request-id";

/// The request's ID in an error of an [`Identified`] extractor.
pub fn request_id(error: &HttpError) -> Option<&str> {
    error.headers.as_ref()?.get(REQUEST_ID)?.to_str().ok()
}

fn unless_empty<T>(
    read: impl FnOnce(&HeaderMap, &[u8]) -> Result<T, HttpError>,
) -> impl FnOnce(&HeaderMap, &[u8]) -> Result<Option<T>, HttpError> {
    move |headers: &HeaderMap, bytes: &[u8]| match bytes {
        [] => Ok(None),
        bytes => read(headers, bytes).map(Some),
    }
}

fn json<T: DeserializeOwned + JsonSchema>(headers: &HeaderMap, bytes: &[u8]) -> Result<T, HttpError> {
    is_json(headers)?;
    json::read(bytes).map_err(|errors| rejected(format!("unable to parse JSON body: {errors}")))
}

/// Rejects content types other than JSON. Like Dropshot, accepts requests without one.
fn is_json(headers: &HeaderMap) -> Result<(), HttpError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let text = value
        .to_str()
        .map_err(|_| rejected("invalid content type: must be visible ASCII".into()))?;
    let name = text.split(';').next().unwrap_or_default().trim_end().to_lowercase();
    match ApiEndpointBodyContentType::from_mime_type(&name) {
        Ok(ApiEndpointBodyContentType::Json) => Ok(()),
        Ok(other) => Err(rejected(format!(
            "expected content type \"{CONTENT_TYPE_JSON}\", got \"{}\"",
            other.mime_type()
        ))),
        Err(unknown) => Err(rejected(format!("unsupported content-type: {unknown}"))),
    }
}

fn form<T: DeserializeOwned>(headers: &HeaderMap, bytes: &[u8]) -> Result<T, HttpError> {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = sent.and_then(|sent| sent.split(';').next()).unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case(CONTENT_TYPE_URL_ENCODED) {
        return Err(rejected(format!(
            "expected content type \"{CONTENT_TYPE_URL_ENCODED}\""
        )));
    }
    serde_html_form::from_bytes(bytes).map_err(|error| rejected(format!("unable to parse URL-encoded body: {error}")))
}

fn rejected(message: String) -> HttpError {
    HttpError::for_bad_request(None, message)
}
