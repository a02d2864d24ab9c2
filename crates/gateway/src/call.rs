//! The call of the endpoint.

use codegen_runtime::call::Request;

use crate::Reason;
use crate::authorize::AuthorizedCall;
use crate::request::{Completed, Rejected};
use crate::route::Routed;
use crate::{Contract, RequestInfo};

/// A request that is ready for its endpoint.
pub(super) struct Callable<C: Contract> {
    info: RequestInfo,
    route: &'static C::Route,
    request: Request,
    /// The reason for the log if the query has errors. The response reports them together with those found when the query is read.
    query_error: Option<Reason>,
    caller: C::Caller,
    /// The memory reservation of the body, which stays in memory until the endpoint returns.
    _reservation: C::BodyReservation,
}

/// Checks the query as far as possible without reading its values.
///
/// # Errors
/// 400 with all invalid parameters.
pub(super) fn arguments<C: Contract>(authorized: AuthorizedCall<C>) -> Result<Callable<C>, Box<Rejected<C::Code>>> {
    let Routed {
        info,
        route,
        variables,
        query,
        headers,
        body,
        reservation,
        caller,
        ..
    } = authorized.into_routed();
    let known = C::operation(route).query_parameters;
    match query.of_operation(known, |name| C::parameter_hint(name, known)) {
        Err(error) => Err(info.rejected(error.into())),
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
            _reservation: reservation,
        }),
    }
}

impl<C: Contract> Callable<C> {
    /// Reads the arguments and calls the endpoint.
    ///
    /// # Errors
    /// 400 for arguments that the document does not allow, and the errors of the endpoint.
    pub async fn call(self, contract: &C) -> Result<Completed, Box<Rejected<C::Code>>> {
        match contract.call(self.route, &self.caller, &self.request).await {
            Ok(response) => Ok(Completed {
                info: self.info,
                response,
            }),
            Err(error) => Err(self.info.rejected(match self.query_error {
                Some(reason) => error.with_reason(reason),
                None => error,
            })),
        }
    }
}
