//! The memory budget for bodies whose signatures are not verified yet.
//!
//! A key ID is not a secret, and anyone who knows one could make the service hold a megabyte per stream. So unverified bytes are
//! limited in total and per client network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::MAX_BODY_BYTES;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;
use bounded_listener::ClientNetwork;

/// The total budget in bytes: 64 bodies of the maximum size.
const CAPACITY: usize = 64 * MAX_BODY_BYTES;

/// The quota of one client network in bytes. It suffices for the stations of a chain that share a network, because they send
/// packages of some kilobytes.
const NETWORK_QUOTA: usize = 8 * MAX_BODY_BYTES;

/// The budget of unverified bytes.
#[derive(Clone, Debug, Default)]
pub struct BodyBudget(Arc<Mutex<Reserved>>);

#[derive(Debug, Default)]
struct Reserved {
    total: usize,
    /// Contains only networks with reserved bytes, so it never has more entries than there are bodies.
    by_network: HashMap<ClientNetwork, usize>,
}

impl BodyBudget {
    /// Returns the reserved bytes.
    pub(super) fn reserved(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).total
    }

    /// Creates an empty reservation for a body from this address.
    pub(super) fn reserve(&self, address: IpAddr) -> BodyReservation {
        BodyReservation {
            budget: self.clone(),
            network: ClientNetwork::of(address),
            bytes: 0,
        }
    }
}

/// The reservation of one body, released when it is dropped.
#[derive(Debug)]
pub struct BodyReservation {
    budget: BodyBudget,
    network: ClientNetwork,
    bytes: usize,
}

impl BodyReservation {
    /// Extends the reservation to `bytes` in total.
    ///
    /// # Errors
    /// 429 if the quota of the client's network is used up, 503 if the total budget is. The reservation is then unchanged.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let more = bytes.saturating_sub(self.bytes);
        let mut reserved = self.budget.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_network = reserved.by_network.get(&self.network).copied().unwrap_or(0);
        if of_network + more > NETWORK_QUOTA {
            return Err(ApiError {
                retry_after: Some(Duration::from_secs(1)),
                reason: Some(Reason::AddressBodies),
                ..ApiError::new(
                    ErrorCode::IpRateLimited,
                    "your address is sending too many bodies at once; send fewer at a time, and retry this request after \
                     Retry-After",
                )
            });
        }
        if reserved.total + more > CAPACITY {
            tracing::warn!("rejected a request because the budget for unverified bodies is used up");
            return Err(ApiError::unavailable(Reason::AllBodies));
        }
        reserved.total += more;
        reserved.by_network.insert(self.network, of_network + more);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        self.release();
    }
}

impl BodyReservation {
    /// Releases the bytes.
    pub fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes == 0 {
            return;
        }
        let mut reserved = self.budget.0.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.total = reserved.total.saturating_sub(bytes);
        if let Some(of_network) = reserved.by_network.get_mut(&self.network) {
            *of_network = of_network.saturating_sub(bytes);
            if *of_network == 0 {
                reserved.by_network.remove(&self.network);
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
    fn a_client_network_has_a_quota_and_regains_it() {
        let budget = BodyBudget::default();
        let mut reservations: Vec<BodyReservation> = (0..8).map(|_| budget.reserve(address("2001:db8::1"))).collect();
        for reservation in &mut reservations {
            reservation.grow_to(MAX_BODY_BYTES).unwrap();
        }
        let mut neighbor = budget.reserve(address("2001:db8::ffff"));
        assert_eq!(neighbor.grow_to(1).unwrap_err().code, ErrorCode::IpRateLimited);
        budget.reserve(address("192.0.2.1")).grow_to(MAX_BODY_BYTES).unwrap();
        reservations.pop();
        neighbor.grow_to(MAX_BODY_BYTES).unwrap();
        drop((reservations, neighbor));
        let reserved = budget.0.lock().unwrap();
        assert_eq!((reserved.total, reserved.by_network.len()), (0, 0));
    }

    /// REQ-9
    #[test]
    fn all_client_networks_together_have_a_budget() {
        let budget = BodyBudget::default();
        let mut reservations = Vec::new();
        for number in 0..64_u8 {
            let mut reservation = budget.reserve(IpAddr::from([192, 0, 2, number]));
            reservation.grow_to(MAX_BODY_BYTES).unwrap();
            reservations.push(reservation);
        }
        let mut late = budget.reserve(address("198.51.100.1"));
        assert_eq!(late.grow_to(1).unwrap_err().code, ErrorCode::ServiceUnavailable);
        reservations.pop();
        late.grow_to(1).unwrap();
    }
}
