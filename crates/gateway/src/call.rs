//! Calling the endpoint.

use codegen_runtime::call::Request;

use crate::Reason;
use crate::authorize::AuthorizedCall;
use crate::request::{Answered, Refused};
use crate::route::Routed;
use crate::{Contract, RequestInfo};

/// A request that is ready for its endpoint.
pub(super) struct Callable<C: Contract> {
    info: RequestInfo,
    route: &'static C::Route,
    request: Request,
    /// The reason for the log if the query has errors, which are reported together with those found when it is read.
    query_error: Option<Reason>,
    caller: C::Caller,
    /// Kept until the endpoint has answered, because the body is in memory until then.
    _hold: C::BodyHold,
}

/// Checks the query as far as possible without reading its values.
///
/// # Errors
/// 400 that names each parameter that is wrong.
pub(super) fn arguments<C: Contract>(authorized: AuthorizedCall<C>) -> Result<Callable<C>, Box<Refused<C::Code>>> {
    let Routed {
        info,
        route,
        variables,
        query,
        headers,
        body,
        hold,
        caller,
        ..
    } = authorized.into_routed();
    match query.of_operation(C::operation(route).query_parameters) {
        Err(error) => Err(info.refused(error.into())),
        Ok((query, query_error)) => Ok(Callable {
            info,
            route,
            request: Request {
                variables,
                query,
                headers,
                body,
            },
            query_error,
            caller,
            _hold: hold,
        }),
    }
}

impl<C: Contract> Callable<C> {
    /// Reads the arguments and calls the endpoint.
    ///
    /// # Errors
    /// 400 for arguments that the document does not allow, and the endpoint's own.
    pub async fn call(self, contract: &C) -> Result<Answered, Box<Refused<C::Code>>> {
        match contract.call(self.route, &self.caller, &self.request).await {
            Ok(response) => Ok(Answered {
                info: self.info,
                response,
            }),
            Err(error) => Err(self.info.refused(match self.query_error {
                Some(reason) => error.with_reason(reason),
                None => error,
            })),
        }
    }
}
