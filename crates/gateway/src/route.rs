//! The operation of a request. It is found when the request arrives, because the steps depend on it, and is revealed to the caller
//! only after admission.

use bytes::Bytes;
use http::{HeaderMap, Method};

use crate::admit::Admitted;
use crate::request::Rejected;
use crate::routing::{self, Found};
use crate::{Contract, DecodedQuery, Outcome, RequestInfo};

/// The operation of a request, or the error if there is none.
pub struct Destination<C: Contract> {
    found: Outcome<Found<C::Route>, C>,
    template: &'static str,
}

impl<C: Contract> Destination<C> {
    pub(super) fn of(method: &Method, path: &str) -> Self {
        let (template, found) = routing::find::<C>(method, path);
        Destination { found, template }
    }

    /// Returns the operation, if there is one.
    pub fn route(&self) -> Option<&'static C::Route> {
        self.found.as_ref().ok().map(|found| found.route)
    }

    /// Returns the operation.
    ///
    /// # Errors
    /// 404, or 405 with the methods of the path.
    pub fn found(&self) -> Outcome<&'static C::Route, C> {
        self.found.as_ref().map(|found| found.route).map_err(Clone::clone)
    }

    /// Returns the template of the path for the log, or a constant such as `/*` if the path is unknown.
    pub(super) fn template(&self) -> &'static str {
        self.template
    }
}

/// An admitted request with its operation.
pub(super) struct Routed<C: Contract> {
    pub info: RequestInfo,
    pub route: &'static C::Route,
    pub variables: Vec<(&'static str, String)>,
    pub query: DecodedQuery,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub reservation: C::BodyReservation,
    pub caller: C::Caller,
    _stage: (),
}

/// Reveals the operation.
///
/// # Errors
/// 404, or 405 with the methods of the path.
pub(super) fn route<C: Contract>(admitted: Admitted<C>) -> Result<Routed<C>, Box<Rejected<C::Code>>> {
    let Admitted {
        info,
        destination,
        head,
        query,
        body,
        reservation,
        caller,
        ..
    } = admitted;
    match destination.found {
        Ok(Found { route, variables }) => Ok(Routed {
            info,
            route,
            variables,
            query,
            headers: head.headers,
            body,
            reservation,
            caller,
            _stage: (),
        }),
        Err(error) => Err(info.rejected(error)),
    }
}
