//! The service's time, as far as this machine's clock does not tell it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};
use reqwest::header::{DATE, HeaderMap};

/// This machine's clock, and by how many seconds the service's is ahead of it. Copies share what one of them learns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    ahead: Arc<AtomicI64>,
}

impl Clock {
    /// UNIX seconds for a timestamp. A clock before 1970 counts as 1970, which the service refuses with its own time.
    pub(crate) fn now(&self) -> u64 {
        Utc::now()
            .timestamp()
            .saturating_add(self.ahead())
            .try_into()
            .unwrap_or_default()
    }

    /// By how many seconds the service's clock was found to be ahead; negative when it is behind.
    pub(crate) fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Takes the service's time from an answer's `Date`; false without a usable one.
    pub(crate) fn learn(&self, headers: &HeaderMap, now: DateTime<Utc>) -> bool {
        let Some(date) = date(headers) else { return false };
        self.ahead
            .store(date.timestamp().saturating_sub(now.timestamp()), Ordering::Relaxed);
        true
    }
}

/// An answer's `Date`: the service's clock, in whole seconds.
pub(crate) fn date(headers: &HeaderMap) -> Option<DateTime<Utc>> {
    let text = headers.get(DATE)?.to_str().ok()?;
    Some(DateTime::parse_from_rfc2822(text).ok()?.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dated(date: &str) -> HeaderMap {
        [(DATE, date.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn a_date_moves_all_copies_of_a_clock_either_way() {
        let clock = Clock::default();
        let copy = clock.clone();
        let now = "2026-06-15T09:30:00Z".parse().unwrap();
        assert!(clock.learn(&dated("Mon, 15 Jun 2026 09:40:00 GMT"), now));
        assert_eq!(copy.ahead(), 600);
        assert!(clock.learn(&dated("Mon, 15 Jun 2026 09:20:00 GMT"), now));
        assert_eq!(copy.ahead(), -600);
    }

    #[test]
    fn without_a_usable_date_nothing_is_learnt() {
        let clock = Clock::default();
        for headers in [HeaderMap::new(), dated("tomorrow")] {
            assert!(!clock.learn(&headers, Utc::now()));
        }
        assert_eq!(clock.ahead(), 0);
    }
}
