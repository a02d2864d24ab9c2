//! The gateway: the steps that every request passes before its endpoint, and the error envelope of the response.
//!
//! A [`Contract`] defines the operations and the callers. The gateway defines the order of the steps, reads the body, finds the
//! operation, checks the query, and builds the error response and the log record. Each stage of a request is a distinct type
//! (typestate) that only the previous stage can construct: arrived → identified → received → verified → admitted → routed →
//! authorized → callable → completed. The function `run_steps` lists the steps in order (REQ-1).

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
pub use contract::{Contract, Operation, Outcome, ResponseFuture};
pub use error::{ApiError, ErrorCode};
pub use query::{DecodedQuery, InvalidQuery, RawQuery};
pub use reason::Reason;
pub use record::Record;
pub use request::{RequestInfo, host_problem};
pub use route::Destination;
pub use routing::near_miss;
pub use verify::Unverified;

use authorize::Authorized;
use request::{Arrived, Completed, Rejected};

/// Processes a request to a contract's API. Returns the response and the record for the request log.
pub async fn respond<C, B>(
    contract: &C,
    request_id: Uuid,
    peer: IpAddr,
    request: Request<B>,
) -> (Response<Body>, Record)
where
    C: Contract,
    B: HttpBody<Data = Bytes> + Send + Unpin,
{
    let arrived = Arrived::new(contract, request_id, peer, request);
    let info = arrived.info.clone();
    // Log lines during the request contain the request ID.
    let span = tracing::info_span!("request", %request_id);
    // Boxed here and in `run_steps`, because a future is about twice as large as one that it takes by value. Otherwise each request
    // that waits would occupy 80 KB in a debug build.
    let outcome = response::or_internal_error(Box::pin(run_steps(contract, arrived)), &info)
        .instrument(span)
        .await;
    let (info, error, mut response) = match outcome {
        Ok(Completed { info, response }) => (info, None, response),
        Err(rejected) => {
            let Rejected { info, error } = *rejected;
            let response = error.response(request_id);
            (info, Some((error.code.as_str(), error.reason)), response)
        }
    };
    C::finish(response.headers_mut());
    let response = response::finished(response, &info);
    let record = record::of(info, &response, error);
    (response, record)
}

/// Runs the steps in order.
async fn run_steps<C, B>(contract: &C, arrived: Arrived<C, B>) -> Result<Completed, Box<Rejected<C::Code>>>
where
    C: Contract,
    B: HttpBody<Data = Bytes> + Send + Unpin,
{
    let arrived = arrived.check_host()?;
    let arrived = match arrived.respond_outside(contract).await? {
        Ok(arrived) => arrived,
        Err(completed) => return Ok(completed),
    };
    let identified = identify::identify(contract, arrived).await?;
    let received = stage(Stage::Body, body::receive(contract, identified)).await?;
    let verified = verify::verify(contract, received).await?;
    let info = verified.info.clone();
    let completed = Box::pin(async {
        let admitted = stage(Stage::Admission, admit::admit(contract, verified)).await?;
        let routed = route::route(admitted)?;
        let authorized = match authorize::authorize(contract, routed)? {
            Authorized::Prepared(completed) => return Ok(completed),
            Authorized::Call(authorized) => authorized,
        };
        let callable = call::arguments(authorized)?;
        callable.call(contract).await
    });
    // Panics are caught here as well, so that the log record includes the caller.
    let completed = response::or_internal_error(completed, &info);
    match tokio::time::timeout(contract.request_timeout(), completed).await {
        Ok(completed) => completed,
        Err(_) => Err(info.rejected(ApiError::unavailable(Reason::RequestOverdue))),
    }
}
