//! Which operation a request is for, whether its key may call it, and calling it.

use codegen_runtime::call::Request;
use http::{HeaderMap, Method};
use partner_api_signing::{DecodedPair, Environment};

use super::admit::{Admitted, Caller};
use super::paths::{self, Found, Unrouted};
use super::{API_ROOT, Answered, Refused, Seen, arguments, prefer, public};
use crate::admission::Durability;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::calls::{ROUTES, Route};
use crate::generated::errors::ErrorCode;
use crate::generated::operations::Operation;
use crate::request_log::Reason;

/// Whether a path is one of the API's, where everything is signed.
pub(super) fn is_signed(path: &str) -> bool {
    path.strip_prefix(API_ROOT)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The operation that a request will reach if it is let in: how it is let in depends on it, but the caller is told nothing of
/// it before.
pub(crate) struct Destination {
    found: Result<Found<Route>, ApiError>,
    template: &'static str,
}

impl Destination {
    pub fn of(method: &Method, path: &str) -> Self {
        let (template, found) = find(method, path);
        Destination {
            found,
            template: template.unwrap_or_else(|| unrouted(path)),
        }
    }

    /// The operation, for the log.
    pub fn operation(&self) -> Option<&'static Operation> {
        self.found.as_ref().ok().map(|found| found.route.operation)
    }

    /// The path without what may be somebody's, for the log: a template, or for a path that fits none how far it is known.
    pub fn template(&self) -> &'static str {
        self.template
    }

    /// How the nonce and the count of the request are kept (`x-admission`).
    pub fn durability(&self) -> Durability {
        match self
            .operation()
            .and_then(|operation| operation.extension("x-admission"))
        {
            Some("memory") => Durability::Behind,
            _ => Durability::Recorded,
        }
    }
}

/// A path below [`API_ROOT`] that fits no template.
const UNKNOWN_IN_API: &str = "/api/v1/partner/*";

/// What the log has for a path of no operation.
fn unrouted(path: &str) -> &'static str {
    match public::template(path) {
        Some(template) => template,
        None if is_signed(path) => UNKNOWN_IN_API,
        None => "/*",
    }
}

/// Finds the operation of a method and a raw path, and the template that the path fits: 404 where there is none, 405 with the
/// methods that the path has where the method is another.
fn find(method: &Method, path: &str) -> (Option<&'static str>, Result<Found<Route>, ApiError>) {
    let line = |route: &Route| (route.operation.method, route.operation.path);
    match paths::find(ROUTES, line, method, path) {
        Ok(found) => (Some(found.route.operation.path), Ok(found)),
        Err(Unrouted::NoSuchPath) => {
            let hint = nearly(path).map(|remedy| format!("; {remedy}")).unwrap_or_default();
            let message = format!("there is nothing at this path; paths are compared byte for byte{hint}");
            (None, Err(ApiError::not_found(message).because(Reason::NoSuchPath)))
        }
        Err(Unrouted::NoSuchMethod {
            template,
            allow,
            message,
        }) => {
            let error = ApiError {
                allow: Some(allow),
                ..ApiError::new(ErrorCode::MethodNotAllowed, message)
            };
            (Some(template), Err(error.because(Reason::NoSuchMethod)))
        }
    }
}

/// What to change in a path that fits no template, where one thing alone would make it fit.
fn nearly(path: &str) -> Option<&'static str> {
    // A path of slashes alone costs as much as any other.
    let single = path.split('/').filter(|segment| !segment.is_empty());
    let single = format!("/{}", single.collect::<Vec<_>>().join("/"));
    let unescaped = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    let candidates = [
        (path.trim_end_matches('/').to_string(), "remove the trailing slash"),
        (single, "remove the doubled slash"),
        (unescaped.into_owned(), "write it without percent escapes"),
        (path.to_ascii_lowercase(), "write it in lower case"),
    ];
    let fits = |path: &str| {
        ROUTES
            .iter()
            .any(|route| paths::variables(route.operation.path, path).is_some())
    };
    let found = candidates.into_iter().find(|(candidate, _)| fits(candidate));
    found.map(|(_, remedy)| remedy)
}

/// An admitted request whose operation is found.
pub(super) struct Routed {
    seen: Seen,
    route: &'static Route,
    variables: Vec<(&'static str, String)>,
    query: Vec<DecodedPair>,
    headers: HeaderMap,
    raw: bytes::Bytes,
    caller: Caller,
}

/// Tells the request's operation, or that there is none.
///
/// # Errors
/// 404, or 405 with the methods that the path has.
pub(super) fn route(admitted: Admitted) -> Result<Routed, Box<Refused>> {
    let Admitted {
        seen,
        destination,
        head,
        query,
        raw,
        caller,
        ..
    } = admitted;
    match destination.found {
        Ok(Found { route, variables }) => Ok(Routed {
            seen,
            route,
            variables,
            query,
            headers: head.headers,
            raw,
            caller,
        }),
        Err(error) => Err(seen.refused(error)),
    }
}

/// Answers a request that has ordered its answer, in the sandbox; gives back any other.
///
/// # Errors
/// The error that was ordered, or 400 for one that the operation does not have.
pub(super) fn to_order(environment: Environment, routed: Routed) -> Result<Result<Routed, Answered>, Box<Refused>> {
    match prefer::answer(environment, routed.route.operation, &routed.headers) {
        Ok(None) => Ok(Ok(routed)),
        Ok(Some(response)) => Ok(Err(Answered {
            seen: routed.seen,
            response,
        })),
        Err(error) => {
            let mut seen = routed.seen;
            // Where such an answer comes of its own accord, the request was not counted.
            if matches!(error.status(), 401 | 408 | 413) {
                seen.standing = None;
            }
            Err(seen.refused(error))
        }
    }
}

/// A routed request whose key may call its operation.
pub(super) struct Permitted(Routed);

/// Checks the permission that the operation asks for (`x-required-scope`).
///
/// # Errors
/// 403 `scope_required`.
pub(super) fn permission(routed: Routed) -> Result<Permitted, Box<Refused>> {
    match routed.route.operation.extension("x-required-scope") {
        Some(permission) if !routed.caller.key().permissions.iter().any(|held| held == permission) => Err(routed
            .seen
            .refused(
            ApiError::new(
                ErrorCode::ScopeRequired,
                format!(
                    "this operation needs the scope {permission}, which this key does not have; ask the operator for it"
                ),
            )
            .because(Reason::ScopeMissing),
        )),
        _ => Ok(Permitted(routed)),
    }
}

/// A request that is ready to be answered.
pub(super) struct Callable {
    seen: Seen,
    route: &'static Route,
    request: Request,
    /// Why its query is refused, if something was found wrong with it before it is read: reading it refuses it.
    refused_for: Option<Reason>,
    caller: Caller,
}

/// Checks the query, as far as it can be without reading its values.
///
/// # Errors
/// 400 that names each parameter that is wrong.
pub(super) fn parameters(Permitted(routed): Permitted) -> Result<Callable, Box<Refused>> {
    match arguments::query(routed.route.operation.query_parameters, routed.query) {
        Err(wrong) => Err(routed.seen.refused(wrong.into())),
        Ok((query, refused_for)) => Ok(Callable {
            seen: routed.seen,
            route: routed.route,
            request: Request {
                variables: routed.variables,
                query,
                headers: routed.headers,
                body: routed.raw,
            },
            refused_for,
            caller: routed.caller,
        }),
    }
}

impl Callable {
    /// Reads the arguments and calls the endpoint.
    ///
    /// # Errors
    /// 400 for arguments that are not what the document says, and the endpoint's own.
    pub async fn call(self, context: &Context) -> Result<Answered, Box<Refused>> {
        let Callable {
            seen,
            route,
            request,
            refused_for,
            caller,
        } = self;
        match (route.call)(context, &caller, &request).await {
            Ok(response) => Ok(Answered { seen, response }),
            Err(error) => Err(seen.refused(match refused_for {
                Some(reason) => error.because(reason),
                None => error,
            })),
        }
    }
}
