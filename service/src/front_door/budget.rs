//! How many bytes of bodies are held that nobody has proved to be theirs.
//!
//! A known key id is no secret: who knows one could have the service hold a megabyte a stream. So unverified bytes have a
//! budget, in all and for each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::MAX_BODY_BYTES;
use super::address::Neighbourhood;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;

/// Bytes in all: sixty-four of the largest bodies under way at once.
const IN_ALL: usize = 64 * MAX_BODY_BYTES;

/// Bytes of one address: stations of a chain that share one send packages of some kilobytes.
const PER_ADDRESS: usize = 8 * MAX_BODY_BYTES;

/// The budget of unverified bytes.
#[derive(Clone, Debug, Default)]
pub struct BodyBudget(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    in_all: usize,
    /// Only addresses that hold something are here, so there are never more than bodies under way.
    by_address: HashMap<Neighbourhood, usize>,
}

impl BodyBudget {
    /// Bytes that are held now.
    pub(super) fn held(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).in_all
    }

    /// A hold of nothing yet, for a body from this address.
    pub(super) fn hold(&self, address: IpAddr) -> Hold {
        Hold {
            budget: self.clone(),
            of: Neighbourhood::of(address),
            bytes: 0,
        }
    }
}

/// What one body takes; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    budget: BodyBudget,
    of: Neighbourhood,
    bytes: usize,
}

impl Hold {
    /// Takes so many bytes in all.
    ///
    /// # Errors
    /// 429 when the address holds too many, 503 when all do; nothing more is taken then.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let more = bytes.saturating_sub(self.bytes);
        let mut held = self.budget.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = held.by_address.get(&self.of).copied().unwrap_or(0);
        if of_address + more > PER_ADDRESS {
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
            tracing::warn!("the budget of unverified bytes is used up; a body is turned away");
            return Err(ApiError::unavailable(Reason::AllBodies));
        }
        held.in_all += more;
        held.by_address.insert(self.of, of_address + more);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut held = self.budget.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.in_all = held.in_all.saturating_sub(self.bytes);
        if let Some(of_address) = held.by_address.get_mut(&self.of) {
            *of_address = of_address.saturating_sub(self.bytes);
            if *of_address == 0 {
                held.by_address.remove(&self.of);
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
        let mut holds: Vec<Hold> = (0..8).map(|_| budget.hold(address("2001:db8::1"))).collect();
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
        assert_eq!((held.in_all, held.by_address.len()), (0, 0));
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
