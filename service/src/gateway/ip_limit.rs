//! The limit per client address: checked before authentication, in the process; every request counts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::request_log::Reason;
use bounded_listener::ClientNetwork;

/// The fixed window of an address.
const WINDOW: Duration = Duration::from_secs(60);

/// Networks of one generation: some megabytes. An attacker with more networks than this makes windows be forgotten early,
/// which costs the service less than remembering all of them.
const GENERATION: usize = 50_000;

/// Counts requests per [`ClientNetwork`] in fixed windows of 60 s.
///
/// Windows live in two generations: the older one is dropped whole when it can hold none that is open, or when the younger
/// one is full. So counting takes the same time whatever there is, and memory has a bound.
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
    /// A limit of `per_minute` requests; 0 disables it.
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
    /// 429 `ip_rate_limited` with the time to the window's end.
    pub(super) fn check(&self, address: IpAddr) -> Result<(), ApiError> {
        self.count(address, Instant::now())
    }

    fn count(&self, address: IpAddr, now: Instant) -> Result<(), ApiError> {
        if self.per_minute == 0 {
            return Ok(());
        }
        let of = ClientNetwork::of(address);
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(generations.opened) >= WINDOW || generations.young.len() >= GENERATION {
            generations.old = std::mem::take(&mut generations.young);
            generations.opened = now;
        }
        let known = generations.old.remove(&of);
        let fresh = Window { opened: now, used: 0 };
        let window = generations.young.entry(of).or_insert(known.unwrap_or(fresh));
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
    fn a_window_counts_exactly_runs_out_and_is_kept_across_generations() {
        let limit = IpLimit::new(3);
        let began = Instant::now();
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let at = |seconds| limit.count(address, began + Duration::from_secs(seconds));
        assert!(at(50).is_ok() && at(55).is_ok());
        // The generation that began with the limit has run out; the window has not.
        assert!(at(61).is_ok());
        let refused = at(62).unwrap_err();
        assert_eq!(refused.retry_after, Some(Duration::from_secs(48)));
        assert!(at(110).is_ok(), "60 s after the first one");
    }

    /// LIM-2
    #[test]
    fn a_v6_network_is_one_address() {
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
    fn memory_has_a_bound() {
        let limit = IpLimit::new(1);
        let now = Instant::now();
        for number in 0..(3 * GENERATION as u128) {
            let _ = limit.count(IpAddr::V6(Ipv6Addr::from_bits(number << 64)), now);
        }
        let generations = limit.generations.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 2 * GENERATION);
    }
}
