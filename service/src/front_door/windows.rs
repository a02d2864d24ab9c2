//! The rate windows as this process knows them, for requests that must be answered without the database.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::admission::WINDOW;

/// A window's end, and the requests counted in it.
#[derive(Clone, Copy, Debug)]
struct Window {
    ends_at: Instant,
    used: u32,
}

/// Windows by key.
#[derive(Debug, Default)]
pub(super) struct Windows(Mutex<HashMap<String, Window>>);

impl Windows {
    /// Counts a request; returns its number in the window, and the time to the window's end.
    pub fn count(&self, key_id: &str) -> (u32, Duration) {
        let now = Instant::now();
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = Window {
            ends_at: now + WINDOW,
            used: 0,
        };
        let window = match windows.get_mut(key_id) {
            Some(window) => window,
            None => windows.entry(key_id.to_string()).or_insert(opened),
        };
        if window.ends_at <= now {
            *window = opened;
        }
        window.used = window.used.saturating_add(1);
        (window.used, window.ends_at - now)
    }

    /// Learns what the database counted, all replicas together.
    ///
    /// Requests that were counted here and are still on their way to the database must not be forgotten: in the same
    /// window the larger number holds.
    pub fn learn(&self, key_id: &str, used: u32, resets_in: Duration) {
        /// Two views of one window differ by the way to the database and back.
        const SAME_WINDOW: Duration = Duration::from_secs(5);
        let ends_at = Instant::now() + resets_in;
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match windows.get_mut(key_id) {
            Some(window) if window.ends_at.max(ends_at) - window.ends_at.min(ends_at) < SAME_WINDOW => {
                *window = Window {
                    ends_at,
                    used: window.used.max(used),
                };
            }
            Some(window) => *window = Window { ends_at, used },
            None => {
                windows.insert(key_id.to_string(), Window { ends_at, used });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_from_one_and_learns_what_other_replicas_counted() {
        let windows = Windows::default();
        assert_eq!(windows.count("k").0, 1);
        assert_eq!(windows.count("k").0, 2);
        assert_eq!(windows.count("other").0, 1);
        windows.learn("k", 7, Duration::from_millis(59_900));
        assert_eq!(windows.count("k").0, 8);
        windows.learn("k", 3, Duration::from_millis(59_800));
        assert_eq!(windows.count("k").0, 9, "a smaller number of the same window is older");
        windows.learn("k", 1, Duration::from_secs(20));
        let (position, resets_in) = windows.count("k");
        assert_eq!(position, 2, "another window is adopted");
        assert!(resets_in <= Duration::from_secs(20));
    }
}
