//! The record of a request for the log: no query, no body, no secret, no personal data (SVC-5). The path may hold any of them, so
//! the record has its template.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dropshot::Body;
use http::{Method, Response, header};
use hyper::body::Body as _;
use uuid::Uuid;

use crate::Reason;
use crate::RequestInfo;
use partner_api_domain::grants::Partner;

/// What the log keeps of a request.
#[derive(Clone, Debug)]
pub struct Record {
    /// The id that the answer carries.
    pub request_id: Uuid,
    /// When the head arrived, by the process's clock.
    pub arrived: Instant,
    /// The time from then until the beginning of the answer.
    pub took: Duration,
    /// The method, or `OTHER`.
    pub method: &'static str,
    /// The path's template, or how much of the path is the service's own.
    pub route: &'static str,
    /// The operation, if there is one.
    pub operation: Option<&'static str>,
    /// The answer's status.
    pub status: u16,
    /// The error code, as the caller saw it.
    pub code: Option<&'static str>,
    /// The reason, which the caller is not told.
    pub reason: Option<Reason>,
    /// The key that the request named.
    pub key_id: Option<Arc<str>>,
    /// Whose key that is.
    pub partner: Option<Arc<Partner>>,
    /// The client's address.
    pub address: IpAddr,
    /// The client's software as it names itself ([`user_agent`](partner_api_domain::user_agent)).
    pub agent: Option<Arc<str>>,
    /// Bytes of the body that arrived.
    pub received_bytes: u64,
    /// Bytes of the answer's body, if they were known before it was sent.
    pub sent_bytes: Option<u64>,
}

/// The record of a request that has its answer; `error` is its code and reason.
pub(super) fn of(
    info: RequestInfo,
    response: &Response<Body>,
    error: Option<(&'static str, Option<Reason>)>,
) -> Record {
    let (code, reason) = error.unzip();
    let (key_id, partner) = info.named.map(|named| (named.key_id, named.partner)).unzip();
    Record {
        request_id: info.request_id,
        arrived: info.arrived,
        took: info.arrived.elapsed(),
        method: info.method,
        route: info.route,
        operation: info.operation.map(|operation| operation.id),
        status: response.status().as_u16(),
        code,
        reason: reason.flatten(),
        key_id,
        partner: partner.flatten(),
        address: info.address,
        agent: info.agent,
        received_bytes: info.received_bytes,
        sent_bytes: length(response),
    }
}

/// A method of HTTP; `OTHER` for any other, which may be anything that a client wrote there.
pub(super) fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::CONNECT => "CONNECT",
        Method::PATCH => "PATCH",
        Method::TRACE => "TRACE",
        _ => "OTHER",
    }
}

/// The length of the answer's body, or of a stream as its head announces it.
fn length(response: &Response<Body>) -> Option<u64> {
    response.body().size_hint().exact().or_else(|| {
        let announced = response.headers().get(header::CONTENT_LENGTH)?;
        announced.to_str().ok()?.parse().ok()
    })
}
