//! A clock that can be corrected to the service's time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};
use reqwest::header::{DATE, HeaderMap};

/// This machine's clock and the number of seconds by which the service's clock is ahead of it. Clones share the correction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    ahead: Arc<AtomicI64>,
}

impl Clock {
    /// Returns the corrected time in UNIX seconds. A time before 1970 becomes 0, which the service rejects with its own time.
    pub(crate) fn now(&self) -> u64 {
        Utc::now()
            .timestamp()
            .saturating_add(self.ahead())
            .try_into()
            .unwrap_or_default()
    }

    /// Returns the number of seconds by which the service's clock is ahead; negative if it is behind.
    pub(crate) fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Corrects the clock from the `Date` header of a response. Returns false if the header is missing or invalid.
    pub(crate) fn correct(&self, headers: &HeaderMap, now: DateTime<Utc>) -> bool {
        let Some(date) = date(headers) else { return false };
        self.ahead
            .store(date.timestamp().saturating_sub(now.timestamp()), Ordering::Relaxed);
        true
    }
}

/// Returns the `Date` of a response: the service's time in whole seconds.
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
    fn a_date_corrects_all_clones_of_a_clock() {
        let clock = Clock::default();
        let copy = clock.clone();
        let now = "2026-06-15T09:30:00Z".parse().unwrap();
        assert!(clock.correct(&dated("Mon, 15 Jun 2026 09:40:00 GMT"), now));
        assert_eq!(copy.ahead(), 600);
        assert!(clock.correct(&dated("Mon, 15 Jun 2026 09:20:00 GMT"), now));
        assert_eq!(copy.ahead(), -600);
    }

    #[test]
    fn a_missing_or_invalid_date_does_not_change_the_clock() {
        let clock = Clock::default();
        for headers in [HeaderMap::new(), dated("tomorrow")] {
            assert!(!clock.correct(&headers, Utc::now()));
        }
        assert_eq!(clock.ahead(), 0);
    }
}
