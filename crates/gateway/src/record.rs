//! The record of a request for the request log. It contains no query, body, secret or personal data (SVC-5). It contains the
//! template of the path, because the path itself may contain any of these.

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

/// The data about a request in the request log.
#[derive(Clone, Debug)]
pub struct Record {
    /// The request ID.
    pub request_id: Uuid,
    /// The time at which the head arrived.
    pub arrived: Instant,
    /// The time from the arrival of the head to the beginning of the response.
    pub took: Duration,
    /// The method, or `OTHER`.
    pub method: &'static str,
    /// The template of the path, or a constant such as `/*` if the path is unknown.
    pub route: &'static str,
    /// The operation, if there is one.
    pub operation: Option<&'static str>,
    /// The status of the response.
    pub status: u16,
    /// The error code that the caller saw.
    pub code: Option<&'static str>,
    /// The reason, which is not sent to the caller.
    pub reason: Option<Reason>,
    /// The key ID in the request.
    pub key_id: Option<Arc<str>>,
    /// The partner that the key belongs to.
    pub partner: Option<Arc<Partner>>,
    /// The client's address.
    pub address: IpAddr,
    /// The `User-Agent` ([`user_agent`](partner_api_domain::user_agent)).
    pub agent: Option<Arc<str>>,
    /// The number of bytes of the body that arrived.
    pub received_bytes: u64,
    /// The number of bytes of the response's body, if it was known before it was sent.
    pub sent_bytes: Option<u64>,
}

/// Builds the record of a request with its response and, if it failed, the error code and the reason.
pub(super) fn of(
    info: RequestInfo,
    response: &Response<Body>,
    error: Option<(&'static str, Option<Reason>)>,
) -> Record {
    let (code, reason) = error.unzip();
    let (key_id, partner) = info.key.map(|key| (key.key_id, key.partner)).unzip();
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

/// Returns the name of a standard method, or `OTHER`, because a client may send any text.
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

/// Returns the length of the response's body; for a stream, the announced length.
fn length(response: &Response<Body>) -> Option<u64> {
    response.body().size_hint().exact().or_else(|| {
        let announced = response.headers().get(header::CONTENT_LENGTH)?;
        announced.to_str().ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_method_has_its_name_in_the_log_and_other_text_has_not() {
        for name in [
            "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT", "PATCH", "TRACE",
        ] {
            assert_eq!(method(&name.parse().unwrap()), name);
        }
        assert_eq!(method(&"34ABC123".parse().unwrap()), "OTHER");
    }

    #[test]
    fn the_length_of_a_body_in_memory_is_known() {
        assert_eq!(length(&Response::new(Body::from("four".to_owned()))), Some(4));
    }
}
