//! The one place every request passes.
//!
//! Dropshot has no middleware, answers unknown routes in its own shape, gives error types no request id, and runs
//! extractors before anyone could check a signature. So its server has one unpublished wildcard endpoint per method,
//! the front door, which measures the body while reading it, authenticates, admits, looks the route up in the generated
//! API's router, calls the handler and turns whatever comes back into the contract's envelope.
//!
//! The order of checks is decided in the contract's decisions: per-IP limit, the four headers, key, timestamp, body
//! size, signature, IP allowlist, nonce, key limit, route, scope, parameters and body.

pub mod address;
pub mod admission;
mod authenticate;
mod body;
mod caller;
mod envelope;
mod ip_limit;
pub mod nonces;
pub mod public;
mod query;
mod request_log;
mod route;
mod transaction;
mod windows;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use dropshot::{ApiDescription, ApiEndpoint, ApiEndpointVersions, Body, HttpError, RawRequest, RequestContext};
use futures::FutureExt;
use http::{Method, Response};
use partner_api_signing::Environment;
use tracing::Instrument;

pub use admission::{Admission, Standing};
pub(crate) use caller::carry_out;
pub use caller::{Caller, caller, raw_body};
pub use ip_limit::IpLimit;
pub use transaction::WriteTransaction;

use crate::context::Context;
use crate::directory::{Directory, Key};
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use address::TrustedProxies;
use request_log::Record;
use route::Routes;
use transaction::Slot;

/// The path under which everything is signed.
pub const API_ROOT: &str = "/api/v1/partner";

/// One MB of the contract's section 8: bytes of the largest admitted body.
pub const MAX_BODY_BYTES: usize = 1_048_576;

/// Bounds of the front door that an operator can set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The deployment's environment.
    pub environment: Environment,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: TrustedProxies,
    /// The time in which a body must have arrived.
    pub body_timeout: Duration,
    /// The time in which a request must have been answered, from the body's end.
    pub request_timeout: Duration,
}

/// The front door's state.
pub struct FrontDoor {
    settings: Settings,
    ip_limit: IpLimit,
    directory: Arc<Directory>,
    admission: Admission,
    routes: Routes,
}

impl FrontDoor {
    /// Puts the front door together.
    ///
    /// # Errors
    /// When the generated API does not register.
    pub fn new(
        settings: Settings,
        ip_limit: IpLimit,
        directory: Arc<Directory>,
        admission: Admission,
    ) -> Result<Self, dropshot::ApiDescriptionBuildErrors> {
        Ok(FrontDoor {
            settings,
            ip_limit,
            directory,
            admission,
            routes: Routes::new()?,
        })
    }
}

/// Dropshot's only routes: the front door, once per registered HTTP method (IANA's registry).
///
/// # Errors
/// When Dropshot refuses one.
pub fn description() -> Result<ApiDescription<Context>, dropshot::ApiDescriptionRegisterError> {
    const METHODS: [&str; 40] = [
        "GET",
        "HEAD",
        "POST",
        "PUT",
        "DELETE",
        "CONNECT",
        "OPTIONS",
        "TRACE",
        "PATCH",
        "QUERY",
        "ACL",
        "BASELINE-CONTROL",
        "BIND",
        "CHECKIN",
        "CHECKOUT",
        "COPY",
        "LABEL",
        "LINK",
        "LOCK",
        "MERGE",
        "MKACTIVITY",
        "MKCALENDAR",
        "MKCOL",
        "MKREDIRECTREF",
        "MKWORKSPACE",
        "MOVE",
        "ORDERPATCH",
        "PRI",
        "PROPFIND",
        "PROPPATCH",
        "REBIND",
        "REPORT",
        "SEARCH",
        "UNBIND",
        "UNCHECKOUT",
        "UNLINK",
        "UNLOCK",
        "UPDATE",
        "UPDATEREDIRECTREF",
        "VERSION-CONTROL",
    ];
    let mut description = ApiDescription::new();
    for method in METHODS {
        let Ok(method) = Method::from_bytes(method.as_bytes()) else {
            continue;
        };
        let endpoint = ApiEndpoint::new(
            format!("front_door_{}", method.as_str().to_lowercase()),
            front_door,
            method,
            "application/json",
            "/{path:.*}",
            ApiEndpointVersions::All,
        );
        description.register(endpoint.visible(false))?;
    }
    Ok(description)
}

/// The wildcard of the front door's route; the raw path is read instead, as it was signed.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct AnyPath {
    #[serde(rename = "path")]
    _path: Vec<String>,
}

async fn front_door(
    rqctx: RequestContext<Context>,
    _path: dropshot::Path<AnyPath>,
    request: RawRequest,
) -> Result<Response<Body>, HttpError> {
    let context = rqctx.context().clone();
    let door = &context.front_door;
    let started = Instant::now();
    let request = request.into_inner();
    let mut record = Record::new(&rqctx.request_id, request.method(), request.uri().path());
    let request_id = rqctx.request_id.clone();
    // Whatever is logged on the way names the request.
    let span = tracing::info_span!("request", request_id);
    let response = envelope::or_internal_error(door.answer(rqctx, request, &mut record), &request_id)
        .instrument(span)
        .await;
    record.finish(response.status(), started.elapsed());
    Ok(response)
}

impl FrontDoor {
    async fn answer(
        &self,
        rqctx: RequestContext<Context>,
        request: hyper::Request<Body>,
        record: &mut Record,
    ) -> Response<Body> {
        let request_id = rqctx.request_id.clone();
        let peer = rqctx.request.remote_addr().ip();
        let address = self.settings.trusted_proxies.client_address(peer, request.headers());
        record.address = Some(address);
        if let Err(error) = self.ip_limit.count(address) {
            record.refused(&error);
            return envelope::response(&error, &request_id);
        }
        if !route::is_signed(request.uri().path()) {
            return match public::answer(rqctx.context(), &request).await {
                Ok(response) => response,
                Err(error) => {
                    record.refused(&error);
                    envelope::response(&error, &request_id)
                }
            };
        }
        let mut standing = None;
        let answered = self.signed(rqctx, request, address, record, &mut standing).await;
        let mut response = match answered {
            Ok(response) => response,
            Err(error) => {
                record.refused(&error);
                envelope::response(&error, &request_id)
            }
        };
        if let Some(standing) = standing {
            envelope::add_rate_limit(&mut response, standing);
        }
        response
    }

    /// A request under [`API_ROOT`], in the order of checks.
    async fn signed(
        &self,
        rqctx: RequestContext<Context>,
        request: hyper::Request<Body>,
        address: std::net::IpAddr,
        record: &mut Record,
        standing: &mut Option<Standing>,
    ) -> Result<Response<Body>, ApiError> {
        let received_at = Utc::now();
        let identified = authenticate::identify(&self.directory, request.headers(), received_at, record)?;
        let (head, body) = request.into_parts();
        let raw = body::read(&head.headers, body, self.settings.body_timeout).await?;
        authenticate::verify(&identified, &head, &raw, self.settings.environment)?;
        authenticate::check_address(&identified.key, address, &rqctx.request_id)?;

        let deadline = tokio::time::Instant::now() + self.settings.request_timeout;
        let within = |future| async move {
            tokio::time::timeout_at(deadline, future)
                .await
                .unwrap_or_else(|_| Err(ApiError::unavailable()))
        };
        within(
            self.admitted(rqctx, head, raw, identified, received_at, standing, record)
                .boxed(),
        )
        .await
    }

    #[allow(clippy::too_many_arguments)]
    async fn admitted(
        &self,
        rqctx: RequestContext<Context>,
        head: http::request::Parts,
        raw: Bytes,
        identified: authenticate::Identified,
        received_at: DateTime<Utc>,
        standing: &mut Option<Standing>,
        record: &mut Record,
    ) -> Result<Response<Body>, ApiError> {
        // The route decides how the nonce is kept, but is not told before it is.
        let found = self.routes.find(&head.method, head.uri.path());
        let how = found
            .as_ref()
            .map(|found| found.admission)
            .unwrap_or(route::Admitting::Durable);
        let key = identified.key;
        let slot = Slot::default();
        let admitted = self
            .admission
            .admit(&key, &identified.nonce, how, &rqctx.context().pool, &slot)
            .await;
        let admitted = admitted.map_err(refused_or_unavailable)?;
        *standing = Some(admitted);
        let outcome = match found {
            _ if admitted.is_exceeded() => Err(admitted.refusal()),
            Err(error) => Err(error),
            Ok(found) => {
                record.operation = Some(found.operation.id);
                let caller = Caller {
                    scope: key.scope.clone(),
                    key,
                    request_id: rqctx.request_id.clone(),
                    received_at,
                    slot: slot.clone(),
                };
                enter(rqctx, head, raw, found, caller).await
            }
        };
        // An endpoint that did not commit leaves the nonce alone in its transaction.
        if let Some(left) = slot.take() {
            left.keep_nonce_only().await.map_err(refused_or_unavailable)?;
        }
        outcome
    }
}

/// An admitted request at its route: scope, then parameters, then the endpoint.
async fn enter(
    mut rqctx: RequestContext<Context>,
    head: http::request::Parts,
    raw: Bytes,
    found: route::Found,
    caller: Caller,
) -> Result<Response<Body>, ApiError> {
    check_scope(found.operation, &caller.key)?;
    query::check(found.operation, head.uri.query().unwrap_or_default())?;
    rqctx.endpoint = found.endpoint;
    let request = hyper::Request::from_parts(head, Body::from(raw.clone()));
    caller::call(found.handler, rqctx, request, caller, raw).await
}

/// The scope that the operation asks for (`x-required-scope`).
fn check_scope(operation: &crate::generated::operations::Operation, key: &Key) -> Result<(), ApiError> {
    match operation.extension("x-required-scope") {
        Some(scope) if !key.scopes.iter().any(|held| held == scope) => Err(ApiError::new(
            ErrorCode::ScopeRequired,
            format!("this operation needs the scope {scope}, which this key does not have; ask the operator for it"),
        )),
        _ => Ok(()),
    }
}

fn refused_or_unavailable(error: admission::AdmissionError) -> ApiError {
    match error {
        admission::AdmissionError::Replayed => ApiError::new(
            ErrorCode::ReplayDetected,
            "this nonce was used before; every attempt, a retry too, needs a new nonce, the current time and a new \
             signature",
        ),
        // Whatever keeps a nonce from being recorded is a failure that the caller may retry.
        admission::AdmissionError::Db(error) => {
            tracing::warn!(%error, "a request could not be admitted");
            ApiError::unavailable()
        }
    }
}
