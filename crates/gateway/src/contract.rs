//! What an API contract provides to be served through the gateway.

use std::pin::Pin;
use std::time::Duration;

use codegen_runtime::call::Request;
use dropshot::Body;
use http::request::Parts;
use http::{HeaderMap, Response};
use partner_api_store::directory::Named;

use crate::{
    Admission, ApiError, BodyLimit, DecodedQuery, Destination, ErrorCode, RequestInfo, TrustedProxies, Unverified,
};

/// The outcome of a contract's step.
pub type Outcome<T, C> = Result<T, ApiError<<C as Contract>::Code>>;

/// The pending answer of an endpoint.
pub type Answer<'r, C> = Pin<Box<dyn Future<Output = Outcome<Response<Body>, C>> + Send + 'r>>;

/// The facts about an operation that the gateway uses, from the contract's document.
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
    /// The text of an `x-` member.
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
    /// What the head of a request says of its caller.
    type Identity: Send;
    /// The memory that a request's body has been granted.
    type BodyHold: Send;
    /// An identity that has been proved.
    type Verified: Send;
    /// Who called, as endpoints see it.
    type Caller: Send + Sync;

    /// All operations.
    fn routes() -> &'static [Self::Route];

    /// The facts about a route's operation.
    fn operation(route: &Self::Route) -> Operation;

    /// What the log shows in place of a path that fits no template, and the error.
    fn unknown_path(path: &str) -> (&'static str, ApiError<Self::Code>);

    /// The proxies whose `X-Forwarded-For` is believed.
    fn trusted_proxies(&self) -> &TrustedProxies;

    /// Limits a client before its request is looked at further, and answers requests that are for no operation of the API, such
    /// as those for static pages; `None` if the request is for the API.
    ///
    /// # Errors
    /// When the client is over its limit, or there is nothing to be found outside the API.
    fn answer_outside(
        &self,
        info: &RequestInfo,
        destination: &Destination<Self>,
        head: &Parts,
    ) -> impl Future<Output = Outcome<Option<Response<Body>>, Self>> + Send;

    /// Reads from the head who calls.
    ///
    /// # Errors
    /// When the credentials are missing or not accepted.
    fn identify(
        &self,
        destination: &Destination<Self>,
        head: &Parts,
    ) -> impl Future<Output = Outcome<Self::Identity, Self>> + Send;

    /// Whose key the log shows for an identified request.
    fn named(_identity: &Self::Identity) -> Option<Named> {
        None
    }

    /// Whose key the log shows for a request whose identification failed.
    fn claimed(&self, _headers: &HeaderMap) -> Option<Named> {
        None
    }

    /// How large the body may be and how long it may take; `None` if the body is not read.
    fn body_limit(&self, route: Option<&'static Self::Route>) -> Option<BodyLimit>;

    /// Reserves memory for a body, before any of it is read.
    ///
    /// # Errors
    /// When there is none to be had.
    fn hold_body(
        &self,
        info: &RequestInfo,
        route: Option<&'static Self::Route>,
    ) -> impl Future<Output = Outcome<Self::BodyHold, Self>> + Send;

    /// Extends the reservation to this many bytes in all.
    ///
    /// # Errors
    /// When there is no more memory to be had.
    fn extend_hold(_hold: &mut Self::BodyHold, _bytes: usize) -> Outcome<(), Self> {
        Ok(())
    }

    /// Proves the identity, now that the body has arrived, and decodes the query.
    ///
    /// # Errors
    /// When the proof fails, or the query cannot be decoded.
    fn verify(
        &self,
        request: Unverified<'_, Self>,
        identity: Self::Identity,
        hold: &mut Self::BodyHold,
    ) -> impl Future<Output = Outcome<(Self::Verified, DecodedQuery), Self>> + Send;

    /// How long the remaining steps may take, the endpoint included.
    fn request_timeout(&self) -> Duration;

    /// Admits a verified request.
    fn admit(
        &self,
        info: &RequestInfo,
        headers: &HeaderMap,
        route: Option<&'static Self::Route>,
        verified: Self::Verified,
    ) -> impl Future<Output = Admission<Self>> + Send;

    /// A response that the caller has asked for in place of the endpoint's.
    ///
    /// # Errors
    /// The error that the caller has asked for.
    fn prepared(&self, _route: &'static Self::Route, _headers: &HeaderMap) -> Outcome<Option<Response<Body>>, Self> {
        Ok(None)
    }

    /// Checks that the caller may call the operation.
    ///
    /// # Errors
    /// When it may not.
    fn authorize(&self, _caller: &Self::Caller, _route: &'static Self::Route) -> Outcome<(), Self> {
        Ok(())
    }

    /// Reads the arguments and calls the endpoint.
    fn call<'r>(
        &'r self,
        route: &'static Self::Route,
        caller: &'r Self::Caller,
        request: &'r Request,
    ) -> Answer<'r, Self>;

    /// Adds headers to a response before the gateway adds those that every contract has.
    fn finish(_headers: &mut HeaderMap) {}
}
