//! Verification of the caller after the whole request has arrived.

use bytes::Bytes;
use http::request::Parts;

use crate::body::Received;
use crate::request::Rejected;
use crate::{Contract, DecodedQuery, Destination, RawQuery, RequestInfo};

/// A completely received request, for [`Contract::verify`].
pub struct Unverified<'r, C: Contract> {
    /// The known data about the request.
    pub info: &'r RequestInfo,
    /// The operation, if there is one.
    pub route: Option<&'static C::Route>,
    /// The head.
    pub head: &'r Parts,
    /// The exact bytes of the body.
    pub body: &'r [u8],
    /// The query, which the contract decodes.
    pub query: RawQuery<'r>,
}

/// A request whose caller is verified.
pub(super) struct Verified<C: Contract> {
    pub info: RequestInfo,
    pub destination: Destination<C>,
    pub head: Parts,
    pub query: DecodedQuery,
    pub body: Bytes,
    pub reservation: C::BodyReservation,
    pub verified: C::Verified,
    _stage: (),
}

/// Verifies the caller.
///
/// # Errors
/// Those of [`Contract::verify`].
pub(super) async fn verify<C: Contract>(
    contract: &C,
    received: Received<C>,
) -> Result<Verified<C>, Box<Rejected<C::Code>>> {
    let Received {
        info,
        destination,
        head,
        body,
        identity,
        mut reservation,
        ..
    } = received;
    let request = Unverified {
        info: &info,
        route: destination.route(),
        head: &head,
        body: &body,
        query: RawQuery::of(&head.uri),
    };
    match contract.verify(request, identity, &mut reservation).await {
        Ok((verified, query)) => Ok(Verified {
            info,
            destination,
            head,
            query,
            body,
            reservation,
            verified,
            _stage: (),
        }),
        Err(error) => Err(info.rejected(error)),
    }
}
