//! What is logged of a request: no query, no body, no secret, no personal data (SVC-5). The path may hold any of them, so its
//! template stands for it.

use dropshot::Body;
use http::{Method, Response, header};
use hyper::body::Body as _;

use super::Seen;
use crate::generated::errors::ErrorCode;
use crate::request_log::{Reason, Record};

/// The record of a request whose answer is made.
pub(super) fn of(seen: Seen, response: &Response<Body>, error: Option<(ErrorCode, Option<Reason>)>) -> Record {
    let (method, route) = seen.line;
    let (code, reason) = error.unzip();
    let (key_id, partner) = seen.named.map(|named| (named.key_id, named.partner)).unzip();
    Record {
        request_id: seen.request_id,
        arrived: seen.since,
        took: seen.since.elapsed(),
        method,
        route,
        operation: seen.operation.map(|operation| operation.id),
        status: response.status().as_u16(),
        code: code.map(ErrorCode::as_str),
        reason: reason.flatten(),
        key_id,
        partner: partner.flatten(),
        address: seen.address,
        agent: seen.agent,
        received_bytes: seen.received_bytes,
        sent_bytes: length(response),
    }
}

/// Writes the record's line to the log of the process.
pub(super) fn say(record: &Record) {
    tracing::info!(
        target: "requests",
        request_id = %record.request_id,
        method = record.method,
        route = record.route,
        operation = record.operation,
        status = record.status,
        code = record.code,
        reason = record.reason.map(Reason::word),
        key_id = record.key_id.as_deref(),
        partner = record.partner.as_ref().map(|partner| partner.name.as_str()),
        address = %record.address,
        took_us = u64::try_from(record.took.as_micros()).unwrap_or(u64::MAX),
        "answered"
    );
}

/// A method of HTTP's: any other may be what a careless client wrote there.
pub fn method(method: &Method) -> &'static str {
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

/// The length of the answer's body, of a stream as its head announces it.
pub fn length(response: &Response<Body>) -> Option<u64> {
    response.body().size_hint().exact().or_else(|| {
        let announced = response.headers().get(header::CONTENT_LENGTH)?;
        announced.to_str().ok()?.parse().ok()
    })
}
