//! Who may call the inspectors' API: the contract's side of the [gateway](partner_api_gateway).
//!
//! The document says (`security`) whether an operation requires a session and a CSRF token. Both are checked before the body is
//! read, and again after it.

mod session;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bounded_listener::RequestBody;
use bytes::Bytes;
use codegen_runtime::call::Request;
use dropshot::{Body, RequestContext};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, header};
use hyper::body::Body as HttpBody;
use partner_api::gateway::Reporter;
use partner_api::observability;
use partner_api::request_log::Reason;
use partner_api::server::InternalState;
use partner_api_gateway::{
    Admission, Answer, BodyLimit, Contract, DecodedQuery, Destination, Operation, Outcome, RequestInfo, TrustedProxies,
    Unverified,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

pub use crate::caller::Caller;

use crate::caller::Inspector;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::calls::{ROUTES, Route};
use crate::generated::errors::ErrorCode;
use crate::page::{self, Policy};

/// The path under which the API is.
pub const API_ROOT: &str = "/inspector/v1";

/// How long a request may take in all, once its body has arrived.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of the largest JSON body.
const JSON_BYTES: usize = 1_048_576;

/// Bytes of the largest body without a session.
const ANONYMOUS_BYTES: usize = 4_096;

/// Bytes of the largest photo.
const PHOTO_BYTES: usize = 10_485_760;

/// Photos in memory at the same time, ten megabytes each.
const PHOTOS: usize = 16;

/// How long a photo waits for memory.
const PHOTO_WAIT: Duration = Duration::from_secs(5);

/// The gateway of the inspectors' API; cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    context: Context,
    policy: Policy,
    trusted_proxies: TrustedProxies,
    body_timeout: Duration,
    /// A permit for each photo in memory.
    photos: Arc<Semaphore>,
    reporter: Reporter,
}

impl Gateway {
    /// Puts the gateway together.
    pub fn new(state: InternalState) -> Self {
        let InternalState {
            context,
            pool,
            reporter,
            trusted_proxies,
            body_timeout,
        } = state;
        Gateway(Arc::new(Inner {
            context: Context::new(context, pool),
            policy: Policy::default(),
            trusted_proxies,
            body_timeout,
            photos: Arc::new(Semaphore::new(PHOTOS)),
            reporter,
        }))
    }

    /// The handler of the internal listener's other paths.
    pub fn into_routes(self) -> observability::InternalRoutes {
        Arc::new(move |peer, request| Box::pin(self.clone().answer(peer, request)))
    }

    /// Answers a request, whatever it is: the handler of the listener.
    pub async fn answer(self, peer: SocketAddr, request: http::Request<RequestBody>) -> Response<Body> {
        self.answer_as(Uuid::now_v7(), peer, request).await
    }

    /// Answers a request that Dropshot's server has routed: the handler of each endpoint of
    /// [`dispatch::description`](crate::generated::dispatch::description).
    pub async fn serve(rqctx: RequestContext<Self>, request: http::Request<Body>) -> Response<Body> {
        // Dropshot sends its own id in the header.
        let request_id = rqctx.request_id.parse().unwrap_or_else(|_| Uuid::now_v7());
        let peer = rqctx.request.remote_addr();
        rqctx.context().answer_as(request_id, peer, request).await
    }

    async fn answer_as<B>(&self, request_id: Uuid, peer: SocketAddr, request: http::Request<B>) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin,
    {
        let (response, record) = partner_api_gateway::answer(self, request_id, peer.ip(), request).await;
        self.0.reporter.report(record);
        response
    }

    async fn inspector(&self, route: &Route, head: &Parts) -> Result<Option<Inspector>, ApiError> {
        session::inspector(&self.0.context, route.operation, head).await
    }
}

fn has_photo(route: &Route) -> bool {
    route.operation.id == "add_photo"
}

impl Contract for Gateway {
    type Code = ErrorCode;
    type Route = Route;
    type Identity = Option<Inspector>;
    type BodyHold = Option<OwnedSemaphorePermit>;
    type Verified = Option<Inspector>;
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
        let template = match path.starts_with("/inspector/") {
            true => "/inspector/{page}",
            false => "/*",
        };
        let message = "there is nothing at this path; the page for inspectors is at /inspector/";
        (template, ApiError::not_found(message).with_reason(Reason::NoSuchPath))
    }

    fn trusted_proxies(&self) -> &TrustedProxies {
        &self.0.trusted_proxies
    }

    async fn answer_outside(
        &self,
        _: &RequestInfo,
        destination: &Destination<Self>,
        head: &Parts,
    ) -> Outcome<Option<Response<Body>>, Self> {
        match destination.found() {
            Ok(_) => Ok(None),
            Err(error) => match page::answer(&self.0.context.service().storage, &self.0.policy, head).await {
                Some(page) => Ok(Some(page)),
                None => Err(error),
            },
        }
    }

    async fn identify(&self, destination: &Destination<Self>, head: &Parts) -> Outcome<Option<Inspector>, Self> {
        self.inspector(destination.found()?, head).await
    }

    fn body_limit(&self, route: Option<&'static Route>) -> Option<BodyLimit> {
        let route = route.filter(|route| route.operation.has_body)?;
        let bytes = match (route.operation.security.is_empty(), has_photo(route)) {
            (true, _) => ANONYMOUS_BYTES,
            (_, true) => PHOTO_BYTES,
            _ => JSON_BYTES,
        };
        Some(BodyLimit {
            bytes,
            timeout: self.0.body_timeout,
            remedy: has_photo(route).then_some("reduce the photo's resolution"),
        })
    }

    /// Waits for memory, for a photo.
    async fn hold_body(
        &self,
        _: &RequestInfo,
        route: Option<&'static Route>,
    ) -> Outcome<Option<OwnedSemaphorePermit>, Self> {
        if !route.is_some_and(has_photo) {
            return Ok(None);
        }
        let waiting = self.0.photos.clone().acquire_owned();
        match tokio::time::timeout(PHOTO_WAIT, waiting).await {
            Ok(Ok(permit)) => Ok(Some(permit)),
            _ => Err(ApiError::unavailable(Reason::AllBodies)),
        }
    }

    async fn verify(
        &self,
        request: Unverified<'_, Self>,
        inspector: Option<Inspector>,
        _: &mut Option<OwnedSemaphorePermit>,
    ) -> Outcome<(Option<Inspector>, DecodedQuery), Self> {
        // The body may have taken so long that the session has ended meanwhile.
        let inspector = match request.route.filter(|route| route.operation.has_body) {
            Some(route) => self.inspector(route, request.head).await?,
            None => inspector,
        };
        Ok((inspector, request.query.decode()?))
    }

    fn request_timeout(&self) -> Duration {
        REQUEST_TIMEOUT
    }

    async fn admit(
        &self,
        info: &RequestInfo,
        headers: &HeaderMap,
        _: Option<&'static Route>,
        inspector: Option<Inspector>,
    ) -> Admission<Self> {
        Admission {
            rate_limit: None,
            caller: Ok(Caller::admitted(inspector, info.address, session::is_secure(headers))),
        }
    }

    fn call<'r>(&'r self, route: &'static Route, caller: &'r Caller, request: &'r Request) -> Answer<'r, Self> {
        (route.call)(&self.0.context, caller, request)
    }

    /// Nobody may show an answer inside of another page, or learn its address from a link.
    fn finish(headers: &mut HeaderMap) {
        for (name, value) in [
            (header::REFERRER_POLICY, "no-referrer"),
            (
                header::CONTENT_SECURITY_POLICY,
                "default-src 'none'; frame-ancestors 'none'",
            ),
        ] {
            headers.entry(name).or_insert(HeaderValue::from_static(value));
        }
    }
}
