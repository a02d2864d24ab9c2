//! Sessions, limits and paths of the inspectors' API, as a contract of the [gateway](partner_api_gateway).
//!
//! The document says (`security`) whether an operation requires a session and a CSRF token. Both are checked before the body is
//! read, and again after it.

mod photo_places;
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
use partner_api::inspectors::{InspectorRoutes, InspectorState};
use partner_api::publishing;
use partner_api::request_log::Reason;
use partner_api_gateway::{
    Admission, BodyLimit, Contract, DecodedQuery, Destination, Operation, Outcome, RequestInfo, ResponseFuture,
    TrustedProxies, Unverified,
};
use partner_api_store::deadline::Deadline;
use uuid::Uuid;

pub use crate::caller::Caller;

use crate::caller::Inspector;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::calls::{ROUTES, Route};
use crate::generated::errors::ErrorCode;
use crate::page::{self, Policy};
use photo_places::{PhotoHold, PhotoPlaces};

/// The path of the API.
pub const API_ROOT: &str = "/inspector/v1";

/// The time limit of a request after its body has arrived.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of a JSON body, in bytes.
const JSON_BYTES: usize = 1_048_576;

/// The maximum size of a body without a session, in bytes.
const ANONYMOUS_BYTES: usize = 4_096;

/// The maximum size of a photo, in bytes.
const PHOTO_BYTES: usize = 10_485_760;

/// The time in which a body without a session must arrive, at most. It is one token, and anyone can send it slowly.
const ANONYMOUS_TIMEOUT: Duration = Duration::from_secs(5);

/// The gateway of the inspectors' API; cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    context: Context,
    policy: Policy,
    trusted_proxies: TrustedProxies,
    body_timeout: Duration,
    photos: PhotoPlaces,
    reporter: Reporter,
}

impl Gateway {
    /// Creates the gateway.
    pub fn new(state: InspectorState) -> Self {
        let InspectorState {
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
            photos: PhotoPlaces::default(),
            reporter,
        }))
    }

    /// Returns the gateway as routes of the inspectors' listener.
    pub fn into_routes(self) -> InspectorRoutes {
        Arc::new(move |peer, request| Box::pin(self.clone().respond(peer, request)))
    }

    /// Responds to any request: the listener's handler.
    pub async fn respond(self, peer: SocketAddr, request: http::Request<RequestBody>) -> Response<Body> {
        self.respond_with_id(Uuid::now_v7(), peer, request).await
    }

    /// Responds to a request that Dropshot's server has routed. This is the handler of each endpoint of
    /// [`dispatch::description`](crate::generated::dispatch::description).
    pub async fn serve(rqctx: RequestContext<Self>, request: http::Request<Body>) -> Response<Body> {
        // Dropshot sends its own ID in the header.
        let request_id = rqctx.request_id.parse().unwrap_or_else(|_| Uuid::now_v7());
        let peer = rqctx.request.remote_addr();
        rqctx.context().respond_with_id(request_id, peer, request).await
    }

    async fn respond_with_id<B>(&self, request_id: Uuid, peer: SocketAddr, request: http::Request<B>) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin,
    {
        let (response, record) = partner_api_gateway::respond(self, request_id, peer.ip(), request).await;
        self.0.reporter.report(record);
        response
    }

    /// Finds the session, and starts the deadline that this shares with the rest of the request.
    async fn identified(&self, route: &Route, head: &Parts) -> Result<Identified, ApiError> {
        let deadline = Deadline::begin();
        let inspector = session::inspector(&self.0.context, route.operation, head, deadline).await?;
        Ok(Identified { inspector, deadline })
    }
}

/// The inspector of a request, and the request's deadline. It starts when the body has arrived, or with the head if there is none.
pub struct Identified {
    inspector: Option<Inspector>,
    deadline: Deadline,
}

fn has_photo(route: &Route) -> bool {
    route.operation.id == "add_photo"
}

impl Contract for Gateway {
    type Code = ErrorCode;
    type Route = Route;
    type Identity = Identified;
    type BodyReservation = Option<PhotoHold>;
    type Verified = Identified;
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
        let message = "no such path; the inspectors' page is at /inspector/";
        (template, ApiError::not_found(message).with_reason(Reason::NoSuchPath))
    }

    fn trusted_proxies(&self) -> &TrustedProxies {
        &self.0.trusted_proxies
    }

    async fn respond_outside(
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

    async fn identify(&self, destination: &Destination<Self>, head: &Parts) -> Outcome<Identified, Self> {
        self.identified(destination.found()?, head).await
    }

    fn body_limit(&self, route: Option<&'static Route>) -> Option<BodyLimit> {
        let route = route.filter(|route| route.operation.has_body)?;
        let usual = self.0.body_timeout;
        let (bytes, timeout) = match (route.operation.security.is_empty(), has_photo(route)) {
            (true, _) => (ANONYMOUS_BYTES, usual.min(ANONYMOUS_TIMEOUT)),
            (_, true) => (PHOTO_BYTES, usual),
            _ => (JSON_BYTES, usual),
        };
        Some(BodyLimit {
            bytes,
            timeout,
            remedy: has_photo(route).then_some("reduce the photo's resolution"),
        })
    }

    async fn reserve_body(
        &self,
        _: &RequestInfo,
        identified: &Identified,
        route: Option<&'static Route>,
    ) -> Outcome<Option<PhotoHold>, Self> {
        let inspector = identified.inspector.as_ref().filter(|_| route.is_some_and(has_photo));
        Ok(inspector.map(|inspector| self.0.photos.hold(inspector.id())))
    }

    async fn extend_reservation(reservation: &mut Option<PhotoHold>, bytes: usize) -> Outcome<(), Self> {
        match reservation {
            Some(hold) => hold.grow_to(bytes).await,
            None => Ok(()),
        }
    }

    async fn verify(
        &self,
        request: Unverified<'_, Self>,
        identified: Identified,
        _: &mut Option<PhotoHold>,
    ) -> Outcome<(Identified, DecodedQuery), Self> {
        // The session may have ended while the body arrived.
        let identified = match request.route.filter(|route| route.operation.has_body) {
            Some(route) => self.identified(route, request.head).await?,
            None => identified,
        };
        Ok((identified, request.query.decode()?))
    }

    fn request_timeout(&self) -> Duration {
        REQUEST_TIMEOUT
    }

    async fn admit(
        &self,
        info: &RequestInfo,
        headers: &HeaderMap,
        _: Option<&'static Route>,
        Identified { inspector, deadline }: Identified,
    ) -> Admission<Self> {
        let is_secure = session::is_secure(headers);
        Admission {
            rate_limit: None,
            caller: Ok(Caller::admitted(inspector, deadline, info.address, is_secure)),
        }
    }

    fn call<'r>(&'r self, route: &'static Route, caller: &'r Caller, request: &'r Request) -> ResponseFuture<'r, Self> {
        (route.call)(&self.0.context, caller, request)
    }

    /// Forbids other pages to embed a response, and browsers to send its address to other sites. The page itself embeds a PDF to
    /// print it; the browser's viewer for PDFs loads parts of its own.
    fn finish(headers: &mut HeaderMap) {
        let is_pdf = headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind == publishing::MIME_TYPE);
        let policy = match is_pdf {
            true => "frame-ancestors 'self'",
            false => "default-src 'none'; frame-ancestors 'none'",
        };
        for (name, value) in [
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CONTENT_SECURITY_POLICY, policy),
        ] {
            headers.entry(name).or_insert(HeaderValue::from_static(value));
        }
    }
}
