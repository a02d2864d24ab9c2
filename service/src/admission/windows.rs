//! The rate-limit windows known to this process. They count requests that are admitted without the database, and reject requests
//! over the limit without a query.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::{Counted, WINDOW};

/// The window of a key.
#[derive(Clone, Copy, Debug)]
struct Window {
    ends_at: Instant,
    /// The requests counted by this process or by the database, whichever is more.
    used: u32,
    /// The requests that the database has counted in this window.
    confirmed: u32,
    /// The requests that wait for a batch.
    waiting: u32,
}

type ByKey = HashMap<Arc<str>, Window>;

/// The windows of all keys.
#[derive(Debug, Default)]
pub(super) struct Windows(Arc<Mutex<ByKey>>);

/// The result of adding a request to the queue for a batch.
pub(super) enum Enqueue {
    /// The request may join the queue.
    Queued(QueueSlot),
    /// The key is over its limit: the database has counted as many requests as the limit allows, or more requests wait than the
    /// limit allows in this window and the next.
    OverLimit(Counted),
    /// The key's quota of the queue is used up.
    QuotaExhausted,
}

/// The slot of a waiting request in its key's quota of the queue, released when it is dropped.
pub(super) struct QueueSlot {
    key_id: Arc<str>,
    windows: Arc<Mutex<ByKey>>,
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = windows.get_mut(&self.key_id) {
            window.waiting = window.waiting.saturating_sub(1);
        }
    }
}

impl Windows {
    /// Counts a request that is admitted without the database; returns its number.
    pub fn count(&self, key_id: &Arc<str>) -> Counted {
        let now = Instant::now();
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window(&mut windows, key_id, now);
        window.used = window.used.saturating_add(1);
        Counted {
            position: window.used,
            resets_in: window.ends_at - now,
        }
    }

    /// Checks whether a request may join the queue for a batch, and takes a slot for it. At most `quota` requests of a key may
    /// wait, and at most as many as could be admitted in this window and the next. `SLACK` raises the latter for small limits,
    /// because some of the waiting requests may be replays.
    pub fn enqueue(&self, key_id: &Arc<str>, limit: u32, quota: usize) -> Enqueue {
        const SLACK: u32 = 16;
        let now = Instant::now();
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window(&mut windows, key_id, now);
        let ahead = if window.waiting >= limit.saturating_mul(2).saturating_add(SLACK) {
            window.waiting
        } else {
            0
        };
        if window.confirmed >= limit || ahead > 0 {
            return Enqueue::OverLimit(Counted {
                position: window.confirmed.saturating_add(ahead).saturating_add(1),
                resets_in: window.ends_at - now,
            });
        }
        if window.waiting as usize >= quota {
            return Enqueue::QuotaExhausted;
        }
        Enqueue::Queued(self.take_slot(window, key_id))
    }

    /// Takes a slot for a nonce that is recorded after the response. Returns `None` if the key's `quota` is used up.
    pub fn slot(&self, key_id: &Arc<str>, quota: usize) -> Option<QueueSlot> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window(&mut windows, key_id, Instant::now());
        ((window.waiting as usize) < quota).then(|| self.take_slot(window, key_id))
    }

    fn take_slot(&self, window: &mut Window, key_id: &Arc<str>) -> QueueSlot {
        window.waiting += 1;
        QueueSlot {
            key_id: key_id.clone(),
            windows: self.0.clone(),
        }
    }

    /// Updates a key's window with the count of all replicas in the database, for the window that ends at `ends_at` or a little
    /// later.
    ///
    /// Within the same window the larger count wins, because requests counted here may not have reached the database yet.
    pub fn update(&self, key_id: &str, confirmed: u32, ends_at: Instant) {
        /// The ends of one window, as computed for two batches, differ by the round trip to the database.
        const SAME_WINDOW: std::time::Duration = std::time::Duration::from_secs(5);
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let updated = Window {
            ends_at,
            used: confirmed,
            confirmed,
            waiting: 0,
        };
        match windows.get_mut(key_id) {
            Some(window) if window.ends_at.max(ends_at) - window.ends_at.min(ends_at) < SAME_WINDOW => {
                *window = Window {
                    ends_at,
                    used: window.used.max(confirmed),
                    confirmed: window.confirmed.max(confirmed),
                    waiting: window.waiting,
                };
            }
            Some(window) => {
                *window = Window {
                    waiting: window.waiting,
                    ..updated
                };
            }
            None => {
                windows.insert(key_id.into(), updated);
            }
        }
    }
}

/// Returns the current window of a key, which is a new one if the last has ended.
fn window<'w>(windows: &'w mut ByKey, key_id: &Arc<str>, now: Instant) -> &'w mut Window {
    let opened = Window {
        ends_at: now + WINDOW,
        used: 0,
        confirmed: 0,
        waiting: 0,
    };
    let window = windows.entry(key_id.clone()).or_insert(opened);
    if window.ends_at <= now {
        *window = Window {
            waiting: window.waiting,
            ..opened
        };
    }
    window
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_window_counts_from_one_and_adopts_the_count_of_all_replicas() {
        let (windows, now) = (Windows::default(), Instant::now());
        let (k, other): (Arc<str>, Arc<str>) = ("k".into(), "other".into());
        assert_eq!(windows.count(&k).position, 1);
        assert_eq!(windows.count(&k).position, 2);
        assert_eq!(windows.count(&other).position, 1);
        windows.update("k", 7, now + Duration::from_millis(59_900));
        assert_eq!(windows.count(&k).position, 8);
        windows.update("k", 3, now + Duration::from_millis(59_800));
        assert_eq!(
            windows.count(&k).position,
            9,
            "a smaller count of the same window is older"
        );
        windows.update("k", 1, now + Duration::from_secs(20));
        let Counted { position, resets_in } = windows.count(&k);
        assert_eq!(position, 2, "another window is adopted");
        assert!(resets_in <= Duration::from_secs(20));
    }

    /// KEY-10
    #[test]
    fn only_the_count_of_the_database_rejects_and_a_key_has_a_quota_of_the_queue() {
        let windows = Windows::default();
        let k: Arc<str> = "k".into();
        for _ in 0..100 {
            windows.count(&k);
        }
        let slots: Vec<Enqueue> = (0..20).map(|_| windows.enqueue(&k, 2, 1_000)).collect();
        assert!(slots.iter().all(|slot| matches!(slot, Enqueue::Queued(_))));
        let Enqueue::OverLimit(counted) = windows.enqueue(&k, 2, 1_000) else {
            panic!("more requests wait than two windows allow")
        };
        assert_eq!(counted.position, 21);
        assert!(
            matches!(windows.enqueue(&k, 60, 20), Enqueue::QuotaExhausted),
            "the quota is used up"
        );
        assert!(windows.slot(&k, 20).is_none() && windows.slot(&k, 21).is_some());
        drop(slots);
        assert!(matches!(windows.enqueue(&k, 2, 1_000), Enqueue::Queued(_)));
        windows.update("k", 2, Instant::now() + Duration::from_secs(30));
        let Enqueue::OverLimit(counted) = windows.enqueue(&k, 2, 1_000) else {
            panic!("over its limit")
        };
        assert_eq!(counted.position, 3);
        assert!(
            matches!(windows.enqueue(&k, 3, 1_000), Enqueue::Queued(_)),
            "the limit was raised"
        );
    }

    #[test]
    fn waiting_requests_still_count_when_a_window_is_replaced_or_begins_again() {
        let (windows, now) = (Windows::default(), Instant::now());
        let k: Arc<str> = "k".into();
        let _slot = windows.enqueue(&k, 1, 1);
        // The first is another window of the database; the second is a window that has ended.
        for ends_at in [now + Duration::from_secs(20), now] {
            windows.update("k", 0, ends_at);
            assert!(matches!(windows.enqueue(&k, 1, 1), Enqueue::QuotaExhausted));
        }
    }
}
