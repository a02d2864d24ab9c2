//! Admission of a verified request.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;

use crate::request::Rejected;
use crate::verify::Verified;
use crate::{Contract, DecodedQuery, Destination, Outcome, RequestInfo};

/// The rate-limit status of a caller, including the position of a request in its window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimitStatus {
    /// Requests per window.
    pub limit: u32,
    /// The request's number in the window, from 1.
    pub position: u32,
    /// The time to the window's end.
    pub resets_in: Duration,
}

impl RateLimitStatus {
    /// Returns the number of requests left in the window.
    pub fn remaining(&self) -> u32 {
        self.limit.saturating_sub(self.position)
    }

    /// Returns whether the request is over the limit.
    pub fn is_exceeded(&self) -> bool {
        self.position > self.limit
    }
}

/// The outcome of [`Contract::admit`].
pub struct Admission<C: Contract> {
    /// The caller's rate-limit status, if the request was counted.
    pub rate_limit: Option<RateLimitStatus>,
    /// The caller, or why it is not admitted.
    pub caller: Outcome<C::Caller, C>,
}

/// An admitted request.
pub(super) struct Admitted<C: Contract> {
    pub info: RequestInfo,
    pub destination: Destination<C>,
    pub head: Parts,
    pub query: DecodedQuery,
    pub body: Bytes,
    pub reservation: C::BodyReservation,
    pub caller: C::Caller,
    _stage: (),
}

/// Admits the request.
///
/// # Errors
/// Those of [`Contract::admit`].
pub(super) async fn admit<C: Contract>(
    contract: &C,
    verified: Verified<C>,
) -> Result<Admitted<C>, Box<Rejected<C::Code>>> {
    let Verified {
        mut info,
        destination,
        head,
        query,
        body,
        reservation,
        verified,
        ..
    } = verified;
    let admission = contract
        .admit(&info, &head.headers, destination.route(), verified)
        .await;
    info.rate_limit = admission.rate_limit;
    match admission.caller {
        Ok(caller) => Ok(Admitted {
            info,
            destination,
            head,
            query,
            body,
            reservation,
            caller,
            _stage: (),
        }),
        Err(error) => Err(info.rejected(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-1
    #[test]
    fn the_last_request_within_the_limit_is_not_over_it() {
        let status = |position| RateLimitStatus {
            limit: 3,
            position,
            resets_in: Duration::ZERO,
        };
        for (position, remaining, is_exceeded) in [(1, 2, false), (3, 0, false), (4, 0, true)] {
            let status = status(position);
            assert_eq!(
                (status.remaining(), status.is_exceeded()),
                (remaining, is_exceeded),
                "{position}"
            );
        }
    }
}
