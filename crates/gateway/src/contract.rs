//! The trait that an API contract implements to be served through the gateway.

use std::pin::Pin;
use std::time::Duration;

use codegen_runtime::call::Request;
use dropshot::Body;
use http::request::Parts;
use http::{HeaderMap, Method, Response};
use partner_api_store::directory::ClaimedKey;

use crate::{
    Admission, ApiError, BodyLimit, DecodedQuery, Destination, ErrorCode, RequestInfo, TrustedProxies, Unverified,
};

/// The result of a contract's step.
pub type Outcome<T, C> = Result<T, ApiError<<C as Contract>::Code>>;

/// The future response of an endpoint.
pub type ResponseFuture<'r, C> = Pin<Box<dyn Future<Output = Outcome<Response<Body>, C>> + Send + 'r>>;

/// An operation of the contract's document, as far as the gateway needs it.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// `operationId`
    pub id: &'static str,
    /// The HTTP method.
    pub method: &'static str,
    /// The path template.
    pub path: &'static str,
    /// The names of the query parameters.
    pub query_parameters: &'static [&'static str],
    /// Whether the operation has a request body.
    pub has_body: bool,
    /// The `x-` members with text values.
    pub extensions: &'static [(&'static str, &'static str)],
}

impl Operation {
    /// Returns the text of an `x-` member.
    pub fn extension(&self, name: &str) -> Option<&'static str> {
        let mut members = self.extensions.iter();
        members.find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// An API contract: its operations, and who may call them. The gateway calls the methods in the order in which they are listed.
pub trait Contract: Sized + Send + Sync + 'static {
    /// The error codes of the contract's document.
    type Code: ErrorCode;
    /// An operation and the function that calls its endpoint.
    type Route: Send + Sync + 'static;
    /// The caller's identity as the head of the request claims it.
    type Identity: Send;
    /// A reservation of memory for the body of a request.
    type BodyReservation: Send;
    /// A verified identity.
    type Verified: Send;
    /// The caller as endpoints see it.
    type Caller: Send + Sync;

    /// Returns all operations.
    fn routes() -> &'static [Self::Route];

    /// Returns the operation of a route.
    fn operation(route: &Self::Route) -> Operation;

    /// Returns the text that the log shows instead of a path that matches no template, and the error.
    fn unknown_path(path: &str) -> (&'static str, ApiError<Self::Code>);

    /// Returns a remedy for a method that a path with this template does not have.
    fn method_hint(_method: &Method, _template: &str) -> Option<&'static str> {
        None
    }

    /// Returns the proxies whose `X-Forwarded-For` is trusted.
    fn trusted_proxies(&self) -> &TrustedProxies;

    /// Limits the rate of a client's requests, and responds to requests outside the API, such as those for static pages. Returns
    /// `None` if the request is for the API.
    ///
    /// # Errors
    /// If the client is over its limit, or nothing exists at the path.
    fn respond_outside(
        &self,
        info: &RequestInfo,
        destination: &Destination<Self>,
        head: &Parts,
    ) -> impl Future<Output = Outcome<Option<Response<Body>>, Self>> + Send;

    /// Reads the caller's identity from the head.
    ///
    /// # Errors
    /// If the credentials are missing or not accepted.
    fn identify(
        &self,
        destination: &Destination<Self>,
        head: &Parts,
    ) -> impl Future<Output = Outcome<Self::Identity, Self>> + Send;

    /// Returns the key that the log shows for an identified request.
    fn identified_key(_identity: &Self::Identity) -> Option<ClaimedKey> {
        None
    }

    /// Returns the key that the log shows if the identification has failed.
    fn claimed_key(&self, _headers: &HeaderMap) -> Option<ClaimedKey> {
        None
    }

    /// Returns the limits of the body, or `None` if the body is not read.
    fn body_limit(&self, route: Option<&'static Self::Route>) -> Option<BodyLimit>;

    /// Reserves memory for a body before it is read.
    ///
    /// # Errors
    /// If no memory is available.
    fn reserve_body(
        &self,
        info: &RequestInfo,
        identity: &Self::Identity,
        route: Option<&'static Self::Route>,
    ) -> impl Future<Output = Outcome<Self::BodyReservation, Self>> + Send;

    /// Extends the reservation to this number of bytes in total.
    ///
    /// # Errors
    /// If no more memory is available.
    fn extend_reservation(
        _reservation: &mut Self::BodyReservation,
        _bytes: usize,
    ) -> impl Future<Output = Outcome<(), Self>> + Send {
        std::future::ready(Ok(()))
    }

    /// Verifies the identity after the body has arrived, and decodes the query.
    ///
    /// # Errors
    /// If the verification fails, or the query cannot be decoded.
    fn verify(
        &self,
        request: Unverified<'_, Self>,
        identity: Self::Identity,
        reservation: &mut Self::BodyReservation,
    ) -> impl Future<Output = Outcome<(Self::Verified, DecodedQuery), Self>> + Send;

    /// Returns the time limit for the remaining steps, including the endpoint.
    fn request_timeout(&self) -> Duration;

    /// Admits a verified request.
    fn admit(
        &self,
        info: &RequestInfo,
        headers: &HeaderMap,
        route: Option<&'static Self::Route>,
        verified: Self::Verified,
    ) -> impl Future<Output = Admission<Self>> + Send;

    /// Returns a response that the caller has requested instead of the endpoint's.
    ///
    /// # Errors
    /// The error that the caller has requested.
    fn prepared(&self, _route: &'static Self::Route, _headers: &HeaderMap) -> Outcome<Option<Response<Body>>, Self> {
        Ok(None)
    }

    /// Checks that the caller may call the operation.
    ///
    /// # Errors
    /// If it may not.
    fn authorize(&self, _caller: &Self::Caller, _route: &'static Self::Route) -> Outcome<(), Self> {
        Ok(())
    }

    /// Returns a remedy for a query parameter that is repeated, or is none of the operation's `known` parameters.
    fn parameter_hint(_name: &str, _known: &[&str]) -> Option<&'static str> {
        None
    }

    /// Reads the arguments and calls the endpoint.
    fn call<'r>(
        &'r self,
        route: &'static Self::Route,
        caller: &'r Self::Caller,
        request: &'r Request,
    ) -> ResponseFuture<'r, Self>;

    /// Adds headers to a response, before the gateway adds the headers of all contracts.
    fn finish(_headers: &mut HeaderMap) {}
}
