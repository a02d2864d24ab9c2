//! The gateway: the steps that every request to an API passes before its endpoint, for any contract and caller.
//!
//! A [`Contract`] says who may call and what the operations are; the gateway defines the order of the steps, reads the body, finds
//! the operation, checks the query, and makes the error response and the log record. Each stage of a request is a distinct type
//! that only the previous stage can construct: arrived → identified → received → verified → admitted → routed → authorized →
//! callable → answered. The function `pass` lists the steps in order (REQ-1).

mod admit;
mod authorize;
mod body;
mod call;
mod client_address;
mod contract;
mod envelope;
mod error;
mod identify;
pub mod pages;
mod query;
mod reason;
mod record;
mod request;
mod response;
mod route;
mod routing;
mod sunset;
mod verify;

use std::net::IpAddr;

use bytes::Bytes;
use dropshot::Body;
use http::{Request, Response};
use hyper::body::Body as HttpBody;
use partner_api_store::stages::{Stage, stage};
use tracing::Instrument;
use uuid::Uuid;

pub use admit::{Admission, RateLimitStatus};
pub use body::BodyLimit;
pub use client_address::TrustedProxies;
pub use contract::{Answer, Contract, Operation, Outcome};
pub use error::{ApiError, ErrorCode};
pub use query::{DecodedQuery, InvalidQuery, RawQuery};
pub use reason::Reason;
pub use record::Record;
pub use request::RequestInfo;
pub use route::Destination;
pub use routing::near_miss;
pub use verify::Unverified;

use authorize::Authorized;
use request::{Answered, Arrived, Refused};

/// Answers a request to a contract's API; returns the response, and the record of the request for the log.
pub async fn answer<C, B>(contract: &C, request_id: Uuid, peer: IpAddr, request: Request<B>) -> (Response<Body>, Record)
where
    C: Contract,
    B: HttpBody<Data = Bytes> + Send + Unpin,
{
    let arrived = Arrived::new(contract, request_id, peer, request);
    let info = arrived.info.clone();
    // Whatever is logged on the way names the request.
    let span = tracing::info_span!("request", %request_id);
    let outcome = response::or_internal_error(pass(contract, arrived), &info)
        .instrument(span)
        .await;
    let (info, error, mut response) = match outcome {
        Ok(Answered { info, response }) => (info, None, response),
        Err(refused) => {
            let Refused { info, error } = *refused;
            let response = error.response(request_id);
            (info, Some((error.code.as_str(), error.reason)), response)
        }
    };
    C::finish(response.headers_mut());
    let response = response::finished(response, &info);
    let record = record::of(info, &response, error);
    (response, record)
}

/// The order of checks.
async fn pass<C, B>(contract: &C, arrived: Arrived<C, B>) -> Result<Answered, Box<Refused<C::Code>>>
where
    C: Contract,
    B: HttpBody<Data = Bytes> + Send + Unpin,
{
    let arrived = match arrived.answer_outside(contract).await? {
        Ok(arrived) => arrived,
        Err(answered) => return Ok(answered),
    };
    let identified = identify::identify(contract, arrived).await?;
    let received = stage(Stage::Body, body::receive(contract, identified)).await?;
    let verified = verify::verify(contract, received).await?;
    let so_far = verified.info.clone();
    let answered = async {
        let admitted = stage(Stage::Admission, admit::admit(contract, verified)).await?;
        let routed = route::route(admitted)?;
        let authorized = match authorize::authorize(contract, routed)? {
            Authorized::Prepared(answered) => return Ok(answered),
            Authorized::Call(authorized) => authorized,
        };
        let callable = call::arguments(authorized)?;
        callable.call(contract).await
    };
    // A panic is caught here as well, where the caller is known.
    let answered = response::or_internal_error(answered, &so_far);
    match tokio::time::timeout(contract.request_timeout(), answered).await {
        Ok(answered) => answered,
        Err(_) => Err(so_far.refused(ApiError::unavailable(Reason::RequestOverdue))),
    }
}
