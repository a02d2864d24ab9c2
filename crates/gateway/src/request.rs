//! A request as it moves through the gateway: what is known of it so far, and how it ends.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use dropshot::Body;
use http::request::Parts;
use http::{Request, Response, header};
use uuid::Uuid;

use crate::{ApiError, Contract, Destination, Operation, RateLimitStatus, record};
use partner_api_domain::user_agent;
use partner_api_store::directory::Named;

/// What is known of a request so far. It moves through all stages, and into the log.
#[derive(Clone, Debug)]
pub struct RequestInfo {
    /// The id of the request in its response and in the log.
    pub request_id: Uuid,
    /// When the head arrived.
    pub arrived: Instant,
    /// The method, `OTHER` if it is not one of HTTP's.
    pub method: &'static str,
    /// The path's template, or how much of the path is the service's own.
    pub route: &'static str,
    /// The client's software as it names itself, if the log keeps it.
    pub agent: Option<Arc<str>>,
    /// Bytes of the body that have arrived.
    pub received_bytes: u64,
    /// The client's address.
    pub address: IpAddr,
    /// Whose key the request names, once that was looked up.
    pub named: Option<Named>,
    /// The operation. The caller learns nothing of it before the request is admitted.
    pub operation: Option<Operation>,
    /// The caller's rate-limit status, once the request is counted.
    pub rate_limit: Option<RateLimitStatus>,
}

impl RequestInfo {
    /// The same request, refused.
    pub(super) fn refused<E>(self, error: ApiError<E>) -> Box<Refused<E>> {
        Box::new(Refused { info: self, error })
    }
}

/// A request that has its response.
pub(super) struct Answered {
    pub info: RequestInfo,
    pub response: Response<Body>,
}

/// A request that was refused, at any stage.
pub(super) struct Refused<E> {
    pub info: RequestInfo,
    pub error: ApiError<E>,
}

/// A request whose head has arrived.
pub(super) struct Arrived<C: Contract, B> {
    pub info: RequestInfo,
    pub destination: Destination<C>,
    pub head: Parts,
    pub body: B,
    // Private, so that no other module can construct the stage; the same in the other stages.
    _stage: (),
}

impl<C: Contract, B> Arrived<C, B> {
    pub fn new(contract: &C, request_id: Uuid, peer: IpAddr, request: Request<B>) -> Self {
        let (head, body) = request.into_parts();
        let destination = Destination::of(&head.method, head.uri.path());
        let agent = head.headers.get(header::USER_AGENT);
        let info = RequestInfo {
            request_id,
            arrived: Instant::now(),
            method: record::method(&head.method),
            route: destination.template(),
            agent: agent.and_then(|agent| user_agent::looked_at(agent.as_bytes())),
            received_bytes: 0,
            address: contract.trusted_proxies().client_address(peer, &head.headers),
            named: None,
            operation: destination.route().map(C::operation),
            rate_limit: None,
        };
        Arrived {
            info,
            destination,
            head,
            body,
            _stage: (),
        }
    }

    /// Answers a request that is not for the API; returns any other.
    ///
    /// # Errors
    /// Those of [`Contract::answer_outside`].
    pub async fn answer_outside(self, contract: &C) -> Result<Result<Self, Answered>, Box<Refused<C::Code>>> {
        let outside = contract.answer_outside(&self.info, &self.destination, &self.head);
        match outside.await {
            Ok(None) => Ok(Ok(self)),
            Ok(Some(response)) => Ok(Err(Answered {
                info: self.info,
                response,
            })),
            Err(error) => Err(self.info.refused(error)),
        }
    }
}
