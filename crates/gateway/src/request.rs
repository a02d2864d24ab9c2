//! The state of a request in the gateway, and its outcomes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use codegen_runtime::validation::ValidationError;
use dropshot::Body;
use http::request::Parts;
use http::{HeaderMap, Request, Response, Version, header};
use uuid::Uuid;

use crate::{ApiError, Contract, Destination, Operation, RateLimitStatus, record};
use partner_api_domain::user_agent;
use partner_api_store::directory::ClaimedKey;

/// The data known about a request so far. Each stage passes it on, and the log record is built from it.
#[derive(Clone, Debug)]
pub struct RequestInfo {
    /// The ID of the request in its response and in the log.
    pub request_id: Uuid,
    /// The time at which the head arrived.
    pub arrived: Instant,
    /// The method, or `OTHER` if it is not a standard method.
    pub method: &'static str,
    /// The template of the path, or a constant such as `/*` if the path is unknown.
    pub route: &'static str,
    /// The `User-Agent`, truncated.
    pub agent: Option<Arc<str>>,
    /// The number of bytes of the body that have arrived.
    pub received_bytes: u64,
    /// The client's address.
    pub address: IpAddr,
    /// The key in the request, once it has been looked up.
    pub key: Option<ClaimedKey>,
    /// The operation. It is not revealed to the caller before the request is admitted.
    pub operation: Option<Operation>,
    /// The caller's rate-limit status, once the request is counted.
    pub rate_limit: Option<RateLimitStatus>,
}

impl RequestInfo {
    /// Ends the request with an error.
    pub(super) fn rejected<E>(self, error: ApiError<E>) -> Box<Rejected<E>> {
        Box::new(Rejected { info: self, error })
    }
}

/// A request with its response.
pub(super) struct Completed {
    pub info: RequestInfo,
    pub response: Response<Body>,
}

/// A request that failed at any stage.
pub(super) struct Rejected<E> {
    pub info: RequestInfo,
    pub error: ApiError<E>,
}

/// A request whose head has arrived.
pub(super) struct Arrived<C: Contract, B> {
    pub info: RequestInfo,
    pub destination: Destination<C>,
    pub head: Parts,
    pub body: B,
    // A private field, so that no other module can construct the stage. The other stages have it as well.
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
            agent: agent.and_then(|agent| user_agent::truncate(agent.as_bytes())),
            received_bytes: 0,
            address: contract.trusted_proxies().client_address(peer, &head.headers),
            key: None,
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

    /// Checks that the request names its host exactly once.
    ///
    /// # Errors
    /// 400 for a request with a [`host_problem`].
    pub fn check_host(self) -> Result<Self, Box<Rejected<C::Code>>> {
        match host_problem(self.head.version, &self.head.headers) {
            None => Ok(self),
            Some(problem) => {
                let error = ApiError::invalid_request(ValidationError::of_parameter("Host", problem));
                Err(self.info.rejected(error))
            }
        }
    }

    /// Responds to a request that is not for the API, and returns any other request unchanged.
    ///
    /// # Errors
    /// Those of [`Contract::respond_outside`].
    pub async fn respond_outside(self, contract: &C) -> Result<Result<Self, Completed>, Box<Rejected<C::Code>>> {
        let outside = contract.respond_outside(&self.info, &self.destination, &self.head);
        match outside.await {
            Ok(None) => Ok(Ok(self)),
            Ok(Some(response)) => Ok(Err(Completed {
                info: self.info,
                response,
            })),
            Err(error) => Err(self.info.rejected(error)),
        }
    }
}

/// Returns the problem with the `Host` of a request, or `None` (RFC 9112, section 3.2). If there are two, a proxy in front might
/// use the other one.
pub fn host_problem(version: Version, headers: &HeaderMap) -> Option<&'static str> {
    match (version, headers.get_all(header::HOST).iter().count()) {
        (_, 2..) => Some("was sent more than once; send it once"),
        (Version::HTTP_11, 0) => Some("is missing; HTTP/1.1 requires it, with the host and port of the URL"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_names_its_host_once_and_may_omit_it_except_in_http_1_1() {
        for (version, hosts, problem) in [
            (Version::HTTP_11, 0, Some("is missing")),
            (Version::HTTP_2, 0, None),
            (Version::HTTP_11, 1, None),
            (Version::HTTP_11, 2, Some("was sent more than once")),
            (Version::HTTP_2, 2, Some("was sent more than once")),
        ] {
            let mut headers = HeaderMap::new();
            for _ in 0..hosts {
                headers.append(header::HOST, HeaderValue::from_static("example.org"));
            }
            let found = host_problem(version, &headers).and_then(|found| found.split([',', ';']).next());
            assert_eq!(found, problem, "{version:?} with {hosts}");
        }
    }
}
