//! Dropshot endpoints behind a gateway. The gateway reads the arguments and creates the response; the endpoints only declare the
//! types of both.

use std::marker::PhantomData;

use async_trait::async_trait;
use dropshot::{
    ApiEndpointBodyContentType, ApiEndpointResponse, Body, ExclusiveExtractor, ExtensionMode, ExtractorMetadata,
    HttpError, HttpResponse, RequestContext, ServerContext,
};
use http::{Request, Response, StatusCode};

/// A request whose arguments are declared but not read yet. `T` is a tuple of extractors in Dropshot's order.
///
/// Dropshot's own extractors would reject a malformed argument before the handler authenticates the caller.
#[derive(Debug)]
pub struct Unread<T> {
    request: Request<Body>,
    arguments: PhantomData<fn() -> T>,
}

impl<T> Unread<T> {
    /// The request.
    pub fn into_request(self) -> Request<Body> {
        self.request
    }
}

#[async_trait]
impl<T: Arguments + 'static> ExclusiveExtractor for Unread<T> {
    async fn from_request<C: ServerContext>(_: &RequestContext<C>, request: Request<Body>) -> Result<Self, HttpError> {
        Ok(Unread {
            request,
            arguments: PhantomData,
        })
    }

    fn metadata(content_type: ApiEndpointBodyContentType) -> ExtractorMetadata {
        let parts = T::metadata(content_type);
        ExtractorMetadata {
            extension_mode: ExtensionMode::None,
            parameters: parts.into_iter().flat_map(|part| part.parameters).collect(),
        }
    }
}

/// A tuple of extractors.
pub trait Arguments {
    /// Returns the metadata of each extractor.
    fn metadata(content_type: ApiEndpointBodyContentType) -> Vec<ExtractorMetadata>;
}

macro_rules! arguments {
    ($($name:ident),*) => {
        impl<$($name: ExclusiveExtractor),*> Arguments for ($($name,)*) {
            fn metadata(_content_type: ApiEndpointBodyContentType) -> Vec<ExtractorMetadata> {
                vec![$($name::metadata(_content_type.clone())),*]
            }
        }
    };
}

arguments!();
arguments!(A);
arguments!(A, B);
arguments!(A, B, C);
arguments!(A, B, C, D);
arguments!(A, B, C, D, E);

/// A finished response to an operation whose declared responses are `R`.
#[derive(Debug)]
pub struct GatewayResponse<R> {
    response: Response<Body>,
    declared: PhantomData<fn() -> R>,
}

impl<R> From<Response<Body>> for GatewayResponse<R> {
    fn from(response: Response<Body>) -> Self {
        GatewayResponse {
            response,
            declared: PhantomData,
        }
    }
}

impl<R: HttpResponse> HttpResponse for GatewayResponse<R> {
    fn to_result(self) -> Result<Response<Body>, HttpError> {
        Ok(self.response)
    }

    fn response_metadata() -> ApiEndpointResponse {
        R::response_metadata()
    }

    fn status_code(&self) -> StatusCode {
        self.response.status()
    }
}
