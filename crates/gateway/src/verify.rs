//! Proving who calls, now that the whole request has arrived.

use bytes::Bytes;
use http::request::Parts;

use crate::body::Received;
use crate::request::Refused;
use crate::{Contract, DecodedQuery, Destination, RawQuery, RequestInfo};

/// A request that has arrived whole, for [`Contract::verify`] to look at.
pub struct Unverified<'r, C: Contract> {
    /// What is known of it.
    pub info: &'r RequestInfo,
    /// The operation that it will reach.
    pub route: Option<&'static C::Route>,
    /// Its head.
    pub head: &'r Parts,
    /// Its body, byte for byte as sent.
    pub body: &'r [u8],
    /// Its query, which the contract decodes.
    pub query: RawQuery<'r>,
}

/// A request whose caller is proved.
pub(super) struct Verified<C: Contract> {
    pub info: RequestInfo,
    pub destination: Destination<C>,
    pub head: Parts,
    pub query: DecodedQuery,
    pub body: Bytes,
    pub hold: C::BodyHold,
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
) -> Result<Verified<C>, Box<Refused<C::Code>>> {
    let Received {
        info,
        destination,
        head,
        body,
        identity,
        mut hold,
        ..
    } = received;
    let request = Unverified {
        info: &info,
        route: destination.route(),
        head: &head,
        body: &body,
        query: RawQuery::of(&head.uri),
    };
    match contract.verify(request, identity, &mut hold).await {
        Ok((verified, query)) => Ok(Verified {
            info,
            destination,
            head,
            query,
            body,
            hold,
            verified,
            _stage: (),
        }),
        Err(error) => Err(info.refused(error)),
    }
}
