//! Reading from a request's head who calls.

use http::request::Parts;

use crate::request::{Arrived, Refused};
use crate::{Contract, Destination, RequestInfo};

/// A request whose caller is named in its head; nothing is proved yet.
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
) -> Result<Identified<C, B>, Box<Refused<C::Code>>> {
    let Arrived {
        mut info,
        destination,
        head,
        body,
        ..
    } = arrived;
    match contract.identify(&destination, &head).await {
        Ok(identity) => {
            info.named = C::named(&identity);
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
            info.named = contract.claimed(&head.headers);
            Err(info.refused(error))
        }
    }
}
