//! The gateway of the partner API: the checks of its contract for the shared [gateway](partner_api_gateway).
//!
//! - [`IpLimit`] limits requests per client address.
//! - `identify` identifies the key.
//! - `verify` verifies the signature and the key's allowlist.
//! - [`admission`](crate::admission) admits the request.
//! - [`Contract::authorize`] checks that the key may call the operation.

mod admit;
mod body_budget;
mod hints;
mod identify;
mod ip_limit;
mod prefer;
pub mod public;
mod report_page;
mod reporter;
mod verify;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bounded_listener::RequestBody;
use bytes::Bytes;
use chrono::Utc;
use codegen_runtime::call::Request;
use deadpool_postgres::Pool;
use dropshot::{Body, RequestContext};
use http::request::Parts;
use http::{HeaderMap, Method, Response};
use hyper::body::Body as HttpBody;
use partner_api_gateway::pages::Pages;
use partner_api_gateway::{
    BodyLimit, Contract, DecodedQuery, Destination, Operation, Outcome, RequestInfo, ResponseFuture, TrustedProxies,
    Unverified,
};
use partner_api_signing::Environment;
use partner_api_store::directory::{ClaimedKey, Directory};
use partner_api_store::stages;
use uuid::Uuid;

pub use crate::admission::Caller;
pub use ip_limit::IpLimit;
pub use report_page::FOLDER as REPORT_PAGES;
pub use reporter::Reporter;

use crate::admission::{Admission, Durability};
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::calls::{ROUTES, Route};
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;
use crate::traces::Traces;
use body_budget::{BodyBudget, BodyReservation};
use identify::Credentials;
use report_page::ReportPages;
use verify::Verified;

/// The path prefix of the API; every request below it must be signed.
pub const API_ROOT: &str = "/api/v1/partner";

/// The maximum size of a body in bytes: 1 MB (REQ-6).
const MAX_BODY_BYTES: usize = 1_048_576;

/// The template in the log for a path below [`API_ROOT`] that matches no operation.
const UNKNOWN_IN_API: &str = "/api/v1/partner/*";

/// The gateway's settings that an operator can change.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The deployment's environment.
    pub environment: Environment,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: TrustedProxies,
    /// The timeout for receiving a body.
    pub body_timeout: Duration,
    /// The timeout for processing a request whose body has arrived.
    pub request_timeout: Duration,
}

/// The parts of the gateway.
pub struct GatewayParts {
    /// The settings.
    pub settings: Settings,
    /// The limit per client address.
    pub ip_limit: IpLimit,
    /// The cache of keys and grants.
    pub directory: Arc<Directory>,
    /// Admits requests.
    pub admission: Admission,
    /// Reports completed requests.
    pub reporter: Reporter,
    /// The static pages next to the API.
    pub pages: Pages,
    /// Connections for the public pages of reports.
    pub pool: Pool,
    /// The state that endpoints share.
    pub context: Context,
    /// Exports traces; `None` if tracing is disabled.
    pub traces: Option<Traces>,
}

/// The gateway of the partner API; cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    parts: GatewayParts,
    report_pages: ReportPages,
    body_budget: BodyBudget,
}

/// The amounts that the gateway has in memory.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Requests that wait for admission.
    pub admission_waiting: usize,
    /// Bytes of bodies whose signatures are not verified yet.
    pub unverified_bytes: usize,
}

impl Gateway {
    /// Creates the gateway.
    pub fn new(parts: GatewayParts) -> Self {
        Gateway(Arc::new(Inner {
            report_pages: ReportPages::new(parts.pool.clone()),
            parts,
            body_budget: BodyBudget::default(),
        }))
    }

    /// Returns the current amounts.
    pub fn load(&self) -> Load {
        Load {
            admission_waiting: self.0.parts.admission.waiting(),
            unverified_bytes: self.0.body_budget.reserved(),
        }
    }

    /// Responds to a request of the listener.
    pub async fn respond(self, peer: SocketAddr, request: http::Request<RequestBody>) -> Response<Body> {
        // UUIDv7 keeps the IDs of the same time together in the log's index.
        self.respond_with_id(Uuid::now_v7(), peer, request).await
    }

    /// Responds to a request that Dropshot's server routed to an endpoint of
    /// [`dispatch::description`](crate::generated::dispatch::description).
    pub async fn serve(rqctx: RequestContext<Self>, request: http::Request<Body>) -> Response<Body> {
        // Dropshot sends its own ID in the response header.
        let request_id = rqctx.request_id.parse().unwrap_or_else(|_| Uuid::now_v7());
        let peer = rqctx.request.remote_addr();
        rqctx.context().respond_with_id(request_id, peer, request).await
    }

    async fn respond_with_id<B>(&self, request_id: Uuid, peer: SocketAddr, request: http::Request<B>) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin,
    {
        let GatewayParts { traces, reporter, .. } = &self.0.parts;
        let delivery = prefer::Delivery::of(self.settings().environment, request.headers());
        let work = partner_api_gateway::respond(self, request_id, peer.ip(), request);
        let (mut response, record) = match traces {
            None => work.await,
            Some(traces) => {
                let ((response, record), stages) = stages::record(work).await;
                traces.export(&record, stages);
                (response, record)
            }
        };
        delivery.apply(&record, &mut response).await;
        reporter.report(record);
        response
    }

    /// Returns the reporter of completed requests.
    pub fn reporter(&self) -> &Reporter {
        &self.0.parts.reporter
    }

    fn settings(&self) -> &Settings {
        &self.0.parts.settings
    }
}

/// Returns whether a path belongs to the API, so that its requests must be signed.
fn is_signed(path: &str) -> bool {
    path.strip_prefix(API_ROOT)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns where the nonce and the count of a request are recorded (`x-admission`).
fn durability(route: Option<&Route>) -> Durability {
    match route.and_then(|route| route.operation.extension("x-admission")) {
        Some("memory") => Durability::Memory,
        _ => Durability::Database,
    }
}

impl Contract for Gateway {
    type Code = ErrorCode;
    type Route = Route;
    type Identity = Credentials;
    type BodyReservation = BodyReservation;
    type Verified = Verified;
    type Caller = Caller;

    fn routes() -> &'static [Route] {
        ROUTES
    }

    fn operation(route: &Route) -> Operation {
        Operation {
            id: route.operation.id,
            method: route.operation.method,
            path: route.operation.path,
            query_parameters: route.operation.query_parameters,
            has_body: route.operation.has_body,
            extensions: route.operation.extensions,
        }
    }

    fn unknown_path(path: &str) -> (&'static str, ApiError) {
        let template = match ReportPages::template(path).or_else(|| public::template(path)) {
            Some(template) => template,
            None if is_signed(path) => UNKNOWN_IN_API,
            None => "/*",
        };
        let hint = partner_api_gateway::near_miss::<Self>(path).or_else(|| hints::of_path(path));
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        let message = format!("there is nothing at this path; paths are compared byte for byte{hint}");
        (template, ApiError::not_found(message).with_reason(Reason::NoSuchPath))
    }

    fn method_hint(method: &Method, template: &str) -> Option<&'static str> {
        hints::of_method(method, template)
    }

    fn trusted_proxies(&self) -> &TrustedProxies {
        &self.settings().trusted_proxies
    }

    async fn respond_outside(
        &self,
        info: &RequestInfo,
        _: &Destination<Self>,
        head: &Parts,
    ) -> Outcome<Option<Response<Body>>, Self> {
        let GatewayParts {
            ip_limit,
            pages,
            context,
            ..
        } = &self.0.parts;
        ip_limit.check(info.address)?;
        let path = head.uri.path();
        if is_signed(path) {
            return Ok(None);
        }
        // Boxed, because the signed requests, which are most of them, would have the space for it.
        let response = match ReportPages::template(path) {
            Some(_) => Box::pin(self.0.report_pages.respond(info.address, head)).await,
            None => Box::pin(public::respond(pages, &context.storage, head)).await,
        };
        response.map(Some)
    }

    async fn identify(&self, destination: &Destination<Self>, head: &Parts) -> Outcome<Credentials, Self> {
        identify::credentials(&self.0.parts.directory, &head.headers, durability(destination.route()))
    }

    fn identified_key(credentials: &Credentials) -> Option<ClaimedKey> {
        Some(ClaimedKey::of(&credentials.key))
    }

    fn claimed_key(&self, headers: &HeaderMap) -> Option<ClaimedKey> {
        self.0.parts.directory.claimed_key(identify::claimed_key_id(headers)?)
    }

    fn body_limit(&self, _: Option<&'static Route>) -> Option<BodyLimit> {
        Some(BodyLimit {
            bytes: MAX_BODY_BYTES,
            timeout: self.settings().body_timeout,
            remedy: None,
        })
    }

    async fn reserve_body(
        &self,
        info: &RequestInfo,
        _: &Credentials,
        _: Option<&'static Route>,
    ) -> Outcome<BodyReservation, Self> {
        Ok(self.0.body_budget.reserve(info.address))
    }

    async fn extend_reservation(reservation: &mut BodyReservation, bytes: usize) -> Outcome<(), Self> {
        reservation.grow_to(bytes)
    }

    async fn verify(
        &self,
        request: Unverified<'_, Self>,
        credentials: Credentials,
        reservation: &mut BodyReservation,
    ) -> Outcome<(Verified, DecodedQuery), Self> {
        let (verified, query) = verify::signature(self.settings().environment, &request, credentials)?;
        // From here on, the body belongs to an authenticated caller.
        reservation.release();
        verify::allowlist(&verified, request.info.address)?;
        Ok((verified, query))
    }

    fn request_timeout(&self) -> Duration {
        self.settings().request_timeout
    }

    async fn admit(
        &self,
        _: &RequestInfo,
        _: &HeaderMap,
        route: Option<&'static Route>,
        verified: Verified,
    ) -> partner_api_gateway::Admission<Self> {
        let GatewayParts {
            directory, admission, ..
        } = &self.0.parts;
        let Verified {
            credentials, deadline, ..
        } = verified;
        let rejected = |error| partner_api_gateway::Admission {
            rate_limit: None,
            caller: Err(error),
        };
        // If receiving the body took a long time, the nonce might be forgotten before the timestamp expires (KEY-6).
        let key = match identify::recheck(directory, &credentials, Utc::now()) {
            Ok(key) => key,
            Err(error) => return rejected(error),
        };
        let admission = admission.admit(key, credentials.nonce.as_str(), durability(route), deadline);
        match admission.await {
            Ok(admitted) => partner_api_gateway::Admission {
                rate_limit: Some(admitted.rate_limit),
                caller: admitted.caller.ok_or_else(|| admit::over_limit(admitted.rate_limit)),
            },
            Err(error) => rejected(admit::error(&error)),
        }
    }

    fn prepared(&self, route: &'static Route, headers: &HeaderMap) -> Outcome<Option<Response<Body>>, Self> {
        prefer::prepared(self.settings().environment, route.operation, headers)
    }

    /// Checks the permission that the operation requires (`x-required-scope`).
    fn authorize(&self, caller: &Caller, route: &'static Route) -> Outcome<(), Self> {
        let required = route.operation.extension("x-required-scope");
        match required.filter(|required| !caller.key().permissions.iter().any(|held| held == required)) {
            None => Ok(()),
            Some(permission) => {
                let message = format!(
                    "this operation needs the scope {permission}, which this key does not have; ask the operator for it"
                );
                Err(ApiError::new(ErrorCode::ScopeRequired, message).with_reason(Reason::ScopeMissing))
            }
        }
    }

    fn parameter_hint(name: &str, known: &[&str]) -> Option<&'static str> {
        hints::of_parameter(name, known)
    }

    fn call<'r>(&'r self, route: &'static Route, caller: &'r Caller, request: &'r Request) -> ResponseFuture<'r, Self> {
        (route.call)(&self.0.parts.context, caller, request)
    }
}
