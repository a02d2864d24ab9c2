//! The rate limit per client address. It is checked in memory before authentication and counts every request.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;
use bounded_listener::ClientNetwork;

/// The length of an address's fixed window.
const WINDOW: Duration = Duration::from_secs(60);

/// The maximum number of networks in a generation: some megabytes. If more networks send requests, their windows are dropped early,
/// which is better than keeping all of them in memory.
const MAX_GENERATION_SIZE: usize = 50_000;

/// Counts requests per [`ClientNetwork`] in fixed windows of 60 s.
///
/// Windows are stored in two generations. The older one is dropped as a whole when all its windows have ended, or when the younger
/// one is full. So counting takes constant time, and memory is bounded.
#[derive(Debug)]
pub struct IpLimit {
    per_minute: u32,
    generations: Mutex<Generations>,
}

#[derive(Debug)]
struct Generations {
    opened: Instant,
    young: HashMap<ClientNetwork, Window>,
    old: HashMap<ClientNetwork, Window>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    opened: Instant,
    used: u32,
}

impl IpLimit {
    /// Creates a limit of `per_minute` requests; 0 disables it.
    pub fn new(per_minute: u32) -> Self {
        IpLimit {
            per_minute,
            generations: Mutex::new(Generations {
                opened: Instant::now(),
                young: HashMap::new(),
                old: HashMap::new(),
            }),
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// 429 `ip_rate_limited` with the time until the window ends.
    pub(super) fn check(&self, address: IpAddr) -> Result<(), ApiError> {
        self.count(address, Instant::now())
    }

    fn count(&self, address: IpAddr, now: Instant) -> Result<(), ApiError> {
        if self.per_minute == 0 {
            return Ok(());
        }
        let network = ClientNetwork::of(address);
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(generations.opened) >= WINDOW || generations.young.len() >= MAX_GENERATION_SIZE {
            generations.old = std::mem::take(&mut generations.young);
            generations.opened = now;
        }
        let existing = generations.old.remove(&network);
        let fresh = Window { opened: now, used: 0 };
        let window = generations.young.entry(network).or_insert(existing.unwrap_or(fresh));
        if now.duration_since(window.opened) >= WINDOW {
            *window = fresh;
        }
        window.used = window.used.saturating_add(1);
        if window.used <= self.per_minute {
            return Ok(());
        }
        let left = WINDOW.saturating_sub(now.duration_since(window.opened));
        Err(ApiError {
            retry_after: Some(left),
            reason: Some(Reason::AddressOverLimit),
            ..ApiError::new(
                ErrorCode::IpRateLimited,
                format!(
                    "more than {} requests a minute came from your address {address}; wait for Retry-After",
                    self.per_minute
                ),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn a_window_counts_exactly_and_is_kept_across_generations() {
        let limit = IpLimit::new(3);
        let began = Instant::now();
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let at = |seconds| limit.count(address, began + Duration::from_secs(seconds));
        assert!(at(50).is_ok() && at(55).is_ok());
        // The generation that was opened with the limit has ended, and the window has not.
        assert!(at(61).is_ok());
        let rejected = at(62).unwrap_err();
        assert_eq!(rejected.retry_after, Some(Duration::from_secs(48)));
        assert!(at(110).is_ok(), "60 s after the first one");
    }

    /// LIM-2
    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let limit = IpLimit::new(10);
        let now = Instant::now();
        let of_network = |host: u128| IpAddr::V6(Ipv6Addr::from_bits((0x2001_0db8 << 96) | host));
        let passed = (0..1_000)
            .filter(|host| limit.count(of_network(*host), now).is_ok())
            .count();
        assert_eq!(passed, 10);
        assert!(limit.count(of_network(1 << 64), now).is_ok(), "the next network");
    }

    #[test]
    fn memory_is_bounded() {
        let limit = IpLimit::new(1);
        let now = Instant::now();
        for number in 0..(3 * MAX_GENERATION_SIZE as u128) {
            let _ = limit.count(IpAddr::V6(Ipv6Addr::from_bits(number << 64)), now);
        }
        let generations = limit.generations.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 2 * MAX_GENERATION_SIZE);
    }
}
