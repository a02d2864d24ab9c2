//! Authorization of the call.

use crate::Contract;
use crate::Reason;
use crate::request::{Completed, Rejected};
use crate::route::Routed;

/// The outcome of authorization.
pub(super) enum Authorized<C: Contract> {
    /// The caller has requested this response instead of the endpoint's.
    Prepared(Completed),
    /// The endpoint has to be called.
    Call(AuthorizedCall<C>),
}

/// A request whose caller may call its operation.
pub(super) struct AuthorizedCall<C: Contract>(Routed<C>);

impl<C: Contract> AuthorizedCall<C> {
    /// Returns the request.
    pub fn into_routed(self) -> Routed<C> {
        self.0
    }
}

/// Authorizes the call.
///
/// # Errors
/// Those of [`Contract::prepared`] and [`Contract::authorize`].
pub(super) fn authorize<C: Contract>(contract: &C, routed: Routed<C>) -> Result<Authorized<C>, Box<Rejected<C::Code>>> {
    match contract.prepared(routed.route, &routed.headers) {
        Ok(None) => {}
        Ok(Some(response)) => {
            return Ok(Authorized::Prepared(Completed {
                info: routed.info,
                response,
            }));
        }
        Err(error) => {
            let mut info = routed.info;
            // Real errors with these statuses occur before a request is counted.
            if error.reason == Some(Reason::AnswerOrdered) && matches!(error.status(), 401 | 408 | 413) {
                info.rate_limit = None;
            }
            return Err(info.rejected(error));
        }
    }
    match contract.authorize(&routed.caller, routed.route) {
        Ok(()) => Ok(Authorized::Call(AuthorizedCall(routed))),
        Err(error) => Err(routed.info.rejected(error)),
    }
}
