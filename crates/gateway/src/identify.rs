//! Identification of the caller from the head of a request.

use http::request::Parts;

use crate::request::{Arrived, Rejected};
use crate::{Contract, Destination, RequestInfo};

/// A request with the identity that its head claims, which is not verified yet.
pub(super) struct Identified<C: Contract, B> {
    pub info: RequestInfo,
    pub destination: Destination<C>,
    pub head: Parts,
    pub body: B,
    pub identity: C::Identity,
    _stage: (),
}

/// Identifies the caller.
///
/// # Errors
/// Those of [`Contract::identify`].
pub(super) async fn identify<C: Contract, B: Send>(
    contract: &C,
    arrived: Arrived<C, B>,
) -> Result<Identified<C, B>, Box<Rejected<C::Code>>> {
    let Arrived {
        mut info,
        destination,
        head,
        body,
        ..
    } = arrived;
    match contract.identify(&destination, &head).await {
        Ok(identity) => {
            info.key = C::identified_key(&identity);
            Ok(Identified {
                info,
                destination,
                head,
                body,
                identity,
                _stage: (),
            })
        }
        Err(error) => {
            info.key = contract.claimed_key(&head.headers);
            Err(info.rejected(error))
        }
    }
}
