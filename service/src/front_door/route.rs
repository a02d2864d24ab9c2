//! The generated API's router, driven from outside Dropshot's server.

use std::sync::Arc;

use dropshot::{ApiDescriptionBuildErrors, Body, RequestContext, RequestEndpointMetadata};
use futures::future::BoxFuture;
use http::{Method, Response};

use super::API_ROOT;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::generated::operations::{OPERATIONS, Operation};

/// Calls an endpoint; its error has been carried out before it returns one.
pub(super) type Handler = Box<
    dyn FnOnce(RequestContext<Context>, hyper::Request<Body>) -> BoxFuture<'static, Result<Response<Body>, ()>> + Send,
>;

/// How a request's nonce and count are kept (`x-admission`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitting {
    /// In the database before the endpoint runs.
    Durable,
    /// In the process's memory, and in the database behind the answer.
    Memory,
    /// In the transaction in which the endpoint writes.
    Transaction,
}

/// A route that was found.
pub(super) struct Found {
    pub operation: &'static Operation,
    pub endpoint: RequestEndpointMetadata,
    pub admission: Admitting,
    pub handler: Handler,
}

type Lookup = dyn Fn(&Method, &str) -> Option<(RequestEndpointMetadata, Handler)> + Send + Sync;

/// The routes of the generated API.
pub(super) struct Routes {
    // The router's type cannot be named outside Dropshot: a closure keeps it.
    lookup: Box<Lookup>,
}

impl Routes {
    pub fn new() -> Result<Self, ApiDescriptionBuildErrors> {
        let router = Arc::new(crate::generated::dispatch::description()?.into_router());
        let lookup = move |method: &Method, path: &str| {
            let found = router.lookup_route(method, path.into(), None).ok()?;
            let handler = found.handler;
            let call: Handler = Box::new(move |rqctx, request| {
                Box::pin(async move { handler.handle_request(rqctx, request).await.map_err(|_| ()) })
            });
            Some((found.endpoint, call))
        };
        Ok(Routes {
            lookup: Box::new(lookup),
        })
    }

    /// Finds the operation of a method and a raw path.
    ///
    /// # Errors
    /// 404, or 405 with the methods that the path has.
    pub fn find(&self, method: &Method, path: &str) -> Result<Found, ApiError> {
        // Dropshot normalises; what reaches a resource only after normalisation is another path.
        let mut methods: Vec<&str> = OPERATIONS
            .iter()
            .filter(|operation| fits(operation.path, path))
            .map(|operation| operation.method)
            .collect();
        if methods.is_empty() {
            return Err(ApiError::not_found(
                "there is nothing at this path; paths are compared byte for byte",
            ));
        }
        let found = if methods.contains(&method.as_str()) {
            (self.lookup)(method, path)
        } else {
            None
        };
        let found = found.and_then(|(endpoint, handler)| {
            let operation = Operation::find(&endpoint.operation_id)?;
            let admission = match operation.extension("x-admission") {
                Some("memory") => Admitting::Memory,
                Some("transaction") => Admitting::Transaction,
                _ => Admitting::Durable,
            };
            Some(Found {
                operation,
                endpoint,
                admission,
                handler,
            })
        });
        found.ok_or_else(|| {
            methods.sort_unstable();
            let allow = methods.join(", ");
            ApiError {
                allow: Some(allow.clone()),
                ..ApiError::new(
                    ErrorCode::MethodNotAllowed,
                    format!("{method} is not possible here; this path has {allow}"),
                )
            }
        })
    }
}

/// Whether a path is one of the API's, where everything is signed.
pub(super) fn is_signed(path: &str) -> bool {
    path.strip_prefix(API_ROOT)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a raw path is an instance of a template, byte for byte; a variable is one segment without escapes.
fn fits(template: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    let all = template.split('/').all(|wanted| match segments.next() {
        Some(segment) if wanted.starts_with('{') => !segment.is_empty() && !segment.contains('%'),
        Some(segment) => segment == wanted,
        None => false,
    });
    all && segments.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_path_fits_its_template_byte_for_byte() {
        assert!(fits("/a/{id}/b", "/a/1/b"));
        for other in [
            "/a/1/b/", "/a//b", "//a/1/b", "/a/1/%62", "/a/%31/b", "/a/1", "/A/1/b", "/a/1/b/c",
        ] {
            assert!(!fits("/a/{id}/b", other), "{other}");
        }
    }
}
