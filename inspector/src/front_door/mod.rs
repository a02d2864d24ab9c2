//! The one place every request of an inspector passes.
//!
//! The order: the path's operation, the session, the token against forged requests, the body, the arguments, the endpoint. Which
//! of the two are asked for is what the document says (`security`).

mod answer;
mod body;
mod caller;

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codegen_runtime::call::Request;
use dropshot::Body;
use futures::FutureExt;
use http::request::Parts;
use http::{HeaderMap, Response};
use partner_api::deadline::Deadline;
use partner_api::front_door::paths::{self, Found, Unrouted};
use partner_api::front_door::{arguments, record};
use partner_api::listener::RequestBody;
use partner_api::request_log::{Reason, Record};
use partner_api::rules::user_agent;
use tracing::Instrument;
use uuid::Uuid;

pub(crate) use caller::Cookie;
pub use caller::{Caller, Inspector};

use crate::context::Context;
use crate::error::ApiError;
use crate::generated::calls::{ROUTES, Route};
use crate::generated::errors::ErrorCode;
use crate::generated::operations::Operation;
use crate::page;

/// The path under which everything is.
pub const API_ROOT: &str = "/inspector/v1";

/// How long a request may take in all, once its body is there.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// What is known of a request from its head alone.
struct Seen {
    request_id: Uuid,
    since: Instant,
    line: (&'static str, &'static str),
    operation: Option<&'static Operation>,
    address: std::net::IpAddr,
    agent: Option<Arc<str>>,
    received_bytes: u64,
}

/// Answers a request, whatever it is.
pub async fn answer(context: &Context, peer: SocketAddr, request: http::Request<RequestBody>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let (template, found) = find(&head);
    let agent = head.headers.get(http::header::USER_AGENT);
    let mut seen = Seen {
        request_id: Uuid::now_v7(),
        since: Instant::now(),
        line: (record::method(&head.method), template),
        operation: found.as_ref().ok().map(|found| found.route.operation),
        address: context.service().front_door.client_address(peer.ip(), &head.headers),
        agent: agent.and_then(|agent| user_agent::looked_at(agent.as_bytes())),
        received_bytes: 0,
    };
    let span = tracing::info_span!("request", request_id = %seen.request_id);
    let work = AssertUnwindSafe(pass(context, found, head, body, &mut seen)).catch_unwind();
    let outcome = work.instrument(span).await.unwrap_or_else(|_| {
        tracing::error!("a handler panicked");
        Err(ApiError::internal().because(Reason::Panicked))
    });
    let (response, code, reason) = match outcome {
        Ok(response) => (response, None, None),
        Err(error) => (
            error.refusal().response(seen.request_id),
            Some(error.code.as_str()),
            error.reason,
        ),
    };
    let response = answer::finished(response, seen.request_id);
    let record = Record {
        request_id: seen.request_id,
        arrived: seen.since,
        took: seen.since.elapsed(),
        method: seen.line.0,
        route: seen.line.1,
        operation: seen.operation.map(|operation| operation.id),
        status: response.status().as_u16(),
        code,
        reason,
        key_id: None,
        partner: None,
        address: seen.address,
        agent: seen.agent,
        received_bytes: seen.received_bytes,
        sent_bytes: record::length(&response),
    };
    context.service().front_door.answered(context.service(), record);
    response
}

async fn pass(
    context: &Context,
    found: Result<Found<Route>, ApiError>,
    head: Parts,
    body: RequestBody,
    seen: &mut Seen,
) -> Result<Response<Body>, ApiError> {
    let Found { route, variables } = match found {
        Ok(found) => found,
        Err(error) => {
            return page::answer(context, &head).await.ok_or(error);
        }
    };
    let inspector = caller::admit(context, route.operation, &head).await?;
    let _place = body::place(context, route.operation).await?;
    let body = body::read(
        route.operation,
        &head.headers,
        body,
        context.body_timeout(),
        &mut seen.received_bytes,
    )
    .await?;
    // The body may have taken so long that its session has ended meanwhile.
    let inspector = match route.operation.has_body {
        true => caller::admit(context, route.operation, &head).await?,
        false => inspector,
    };
    let caller = Caller::new(inspector, Deadline::begin(), seen.address, &head.headers);
    let pairs = arguments::pairs(head.uri.query().unwrap_or_default())?;
    let (query, refused_for) = arguments::query(route.operation.query_parameters, pairs)?;
    let request = Request {
        variables,
        query,
        headers: head.headers,
        body,
    };
    match tokio::time::timeout(REQUEST_WITHIN, (route.call)(context, &caller, &request)).await {
        Ok(outcome) => outcome.map_err(|error| match refused_for {
            Some(reason) => error.because(reason),
            None => error,
        }),
        Err(_) => Err(ApiError::unavailable(Reason::RequestOverdue)),
    }
}

/// The operation that a request is for, and its path without what may be somebody's, for the log.
fn find(head: &Parts) -> (&'static str, Result<Found<Route>, ApiError>) {
    let line = |route: &Route| (route.operation.method, route.operation.path);
    let path = head.uri.path();
    match paths::find(ROUTES, line, &head.method, path) {
        Ok(found) => (found.route.operation.path, Ok(found)),
        Err(Unrouted::NoSuchPath) => {
            let message = "there is nothing at this path; the page for inspectors is at /inspector/";
            let template = match path.starts_with("/inspector/") {
                true => "/inspector/{page}",
                false => "/*",
            };
            let error = ApiError::new(ErrorCode::NotFound, message);
            (template, Err(error.because(Reason::NoSuchPath)))
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
            (template, Err(error.because(Reason::NoSuchMethod)))
        }
    }
}

/// A header that is there once, as text.
fn single(headers: &HeaderMap, name: impl http::header::AsHeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}
