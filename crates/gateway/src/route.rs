//! The operation that a request leads to. It is found when the request arrives, because the way in depends on it, and the caller
//! learns of it when the request is admitted.

use bytes::Bytes;
use http::{HeaderMap, Method};

use crate::admit::Admitted;
use crate::request::Refused;
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

    /// The operation.
    pub fn route(&self) -> Option<&'static C::Route> {
        self.found.as_ref().ok().map(|found| found.route)
    }

    /// The operation.
    ///
    /// # Errors
    /// 404, or 405 with the methods that the path has.
    pub fn found(&self) -> Outcome<&'static C::Route, C> {
        self.found.as_ref().map(|found| found.route).map_err(Clone::clone)
    }

    /// The path's template for the log, or how much of the path is the service's own.
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
    pub hold: C::BodyHold,
    pub caller: C::Caller,
    _stage: (),
}

/// Uncovers the operation.
///
/// # Errors
/// 404, or 405 with the methods that the path has.
pub(super) fn route<C: Contract>(admitted: Admitted<C>) -> Result<Routed<C>, Box<Refused<C::Code>>> {
    let Admitted {
        info,
        destination,
        head,
        query,
        body,
        hold,
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
            hold,
            caller,
            _stage: (),
        }),
        Err(error) => Err(info.refused(error)),
    }
}
