//! The budget for bodies whose signatures are not verified yet.
//!
//! A key id is not a secret: whoever knows one could make the service hold a megabyte per stream. So unverified bytes have a
//! budget, in all and per client network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::MAX_BODY_BYTES;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;
use bounded_listener::ClientNetwork;

/// Bytes in all: sixty-four of the largest bodies at once.
const IN_ALL: usize = 64 * MAX_BODY_BYTES;

/// Bytes of one client network: stations of a chain that share one send packages of some kilobytes.
const PER_NETWORK: usize = 8 * MAX_BODY_BYTES;

/// The budget of unverified bytes.
#[derive(Clone, Debug, Default)]
pub struct BodyBudget(Arc<Mutex<Used>>);

#[derive(Debug, Default)]
struct Used {
    in_all: usize,
    /// Only networks that hold something are here, so there are never more entries than bodies on their way.
    by_network: HashMap<ClientNetwork, usize>,
}

impl BodyBudget {
    /// Bytes that are held now.
    pub(super) fn held(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).in_all
    }

    /// A reservation of nothing yet, for a body from this address.
    pub(super) fn hold(&self, address: IpAddr) -> BodyHold {
        BodyHold {
            budget: self.clone(),
            of: ClientNetwork::of(address),
            bytes: 0,
        }
    }
}

/// The bytes that one body has reserved; given back when it is dropped.
#[derive(Debug)]
pub struct BodyHold {
    budget: BodyBudget,
    of: ClientNetwork,
    bytes: usize,
}

impl BodyHold {
    /// Extends the reservation to this many bytes in all.
    ///
    /// # Errors
    /// 429 when the client's network holds too many, 503 when all networks do; nothing more is reserved then.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let more = bytes.saturating_sub(self.bytes);
        let mut held = self.budget.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_network = held.by_network.get(&self.of).copied().unwrap_or(0);
        if of_network + more > PER_NETWORK {
            return Err(ApiError {
                retry_after: Some(Duration::from_secs(1)),
                reason: Some(Reason::AddressBodies),
                ..ApiError::new(
                    ErrorCode::IpRateLimited,
                    "too many bodies are on their way from your address at once; send fewer at a time, and this one again \
                     after Retry-After",
                )
            });
        }
        if held.in_all + more > IN_ALL {
            tracing::warn!("the budget for unverified bodies is used up; a request is rejected");
            return Err(ApiError::unavailable(Reason::AllBodies));
        }
        held.in_all += more;
        held.by_network.insert(self.of, of_network + more);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for BodyHold {
    fn drop(&mut self) {
        self.release();
    }
}

impl BodyHold {
    /// Gives the bytes back.
    pub fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes == 0 {
            return;
        }
        let mut held = self.budget.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.in_all = held.in_all.saturating_sub(bytes);
        if let Some(of_network) = held.by_network.get_mut(&self.of) {
            *of_network = of_network.saturating_sub(bytes);
            if *of_network == 0 {
                held.by_network.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// REQ-9
    #[test]
    fn an_address_has_a_budget_and_gets_it_back() {
        let budget = BodyBudget::default();
        let mut holds: Vec<BodyHold> = (0..8).map(|_| budget.hold(address("2001:db8::1"))).collect();
        for hold in &mut holds {
            hold.grow_to(MAX_BODY_BYTES).unwrap();
        }
        let mut neighbour = budget.hold(address("2001:db8::ffff"));
        assert_eq!(neighbour.grow_to(1).unwrap_err().code, ErrorCode::IpRateLimited);
        budget.hold(address("192.0.2.1")).grow_to(MAX_BODY_BYTES).unwrap();
        holds.pop();
        neighbour.grow_to(MAX_BODY_BYTES).unwrap();
        drop((holds, neighbour));
        let held = budget.0.lock().unwrap();
        assert_eq!((held.in_all, held.by_network.len()), (0, 0));
    }

    /// REQ-9
    #[test]
    fn all_addresses_together_have_a_budget() {
        let budget = BodyBudget::default();
        let mut holds = Vec::new();
        for number in 0..64_u8 {
            let mut hold = budget.hold(IpAddr::from([192, 0, 2, number]));
            hold.grow_to(MAX_BODY_BYTES).unwrap();
            holds.push(hold);
        }
        let mut late = budget.hold(address("198.51.100.1"));
        assert_eq!(late.grow_to(1).unwrap_err().code, ErrorCode::ServiceUnavailable);
        holds.pop();
        late.grow_to(1).unwrap();
    }
}
