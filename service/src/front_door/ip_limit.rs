//! The limit per address: before authentication, in the process, every request counts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::ApiError;
use crate::generated::errors::ErrorCode;

/// The fixed window of an address.
const WINDOW: Duration = Duration::from_secs(60);

/// Addresses kept before windows that have run out are swept.
const SWEEP_AT: usize = 10_000;

/// Counts requests per address in fixed windows of 60 s.
#[derive(Debug)]
pub struct IpLimit {
    per_minute: u32,
    windows: Mutex<HashMap<IpAddr, (Instant, u32)>>,
}

impl IpLimit {
    /// A limit of `per_minute` requests; 0 is none.
    pub fn new(per_minute: u32) -> Self {
        IpLimit {
            per_minute,
            windows: Mutex::default(),
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// 429 `ip_rate_limited` with the time to the window's end.
    pub fn count(&self, address: IpAddr) -> Result<(), ApiError> {
        if self.per_minute == 0 {
            return Ok(());
        }
        let now = Instant::now();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= SWEEP_AT {
            windows.retain(|_, (opened, _)| now.duration_since(*opened) < WINDOW);
        }
        let (opened, used) = windows.entry(address).or_insert((now, 0));
        if now.duration_since(*opened) >= WINDOW {
            (*opened, *used) = (now, 0);
        }
        *used = used.saturating_add(1);
        if *used <= self.per_minute {
            return Ok(());
        }
        let left = WINDOW.saturating_sub(now.duration_since(*opened));
        Err(ApiError {
            retry_after: Some(left),
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
