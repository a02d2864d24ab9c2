//! The rate windows as this process knows them: for requests that must be answered without the database, and to refuse what
//! is over its limit before it costs anything.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::{Counted, WINDOW};

/// A key's window.
#[derive(Clone, Copy, Debug)]
struct Window {
    ends_at: Instant,
    /// Requests counted here and learnt of, whichever is more.
    used: u32,
    /// Requests that the database has counted in this window.
    confirmed: u32,
    /// Requests that wait for a batch.
    waiting: u32,
}

type ByKey = HashMap<Arc<str>, Window>;

/// Windows by key.
#[derive(Debug, Default)]
pub(super) struct Windows(Arc<Mutex<ByKey>>);

/// What a request finds that wants to wait for a batch.
pub(super) enum Entered {
    /// It may wait.
    Placed(QueuePlace),
    /// The database has counted as many as the key may send, or more wait than it may send in this window and the next.
    Exceeded(Counted),
    /// The key's share of the queue is taken.
    Crowded,
}

/// A waiting request's place among its key's; left when it is dropped.
pub(super) struct QueuePlace {
    key_id: Arc<str>,
    windows: Arc<Mutex<ByKey>>,
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = windows.get_mut(&self.key_id) {
            window.waiting = window.waiting.saturating_sub(1);
        }
    }
}

impl Windows {
    /// Counts a request that is answered without the database.
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

    /// Lets a request wait for a batch, unless that is known to be useless or unfair: of one key, no more wait than could
    /// be admitted in this window and the next (with some room for a limit of a few: what waits may be replays), and never
    /// more than `share`.
    pub fn enter(&self, key_id: &Arc<str>, limit: u32, share: usize) -> Entered {
        const ROOM: u32 = 16;
        let now = Instant::now();
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window(&mut windows, key_id, now);
        let ahead = if window.waiting >= limit.saturating_mul(2).saturating_add(ROOM) {
            window.waiting
        } else {
            0
        };
        if window.confirmed >= limit || ahead > 0 {
            return Entered::Exceeded(Counted {
                position: window.confirmed.saturating_add(ahead).saturating_add(1),
                resets_in: window.ends_at - now,
            });
        }
        if window.waiting as usize >= share {
            return Entered::Crowded;
        }
        Entered::Placed(self.add(window, key_id))
    }

    /// A place for a nonce that is recorded behind its answer; `None` when the key has its `share` of the queue.
    pub fn place(&self, key_id: &Arc<str>, share: usize) -> Option<QueuePlace> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window(&mut windows, key_id, Instant::now());
        ((window.waiting as usize) < share).then(|| self.add(window, key_id))
    }

    fn add(&self, window: &mut Window, key_id: &Arc<str>) -> QueuePlace {
        window.waiting += 1;
        QueuePlace {
            key_id: key_id.clone(),
            windows: self.0.clone(),
        }
    }

    /// Learns what the database counted, all replicas together, in the window that ends at `ends_at` or a little later.
    ///
    /// Requests that were counted here and are still on their way to the database must not be forgotten: in the same
    /// window the larger number holds.
    pub fn learn(&self, key_id: &str, confirmed: u32, ends_at: Instant) {
        /// Two views of one window differ by the way to the database and back.
        const SAME_WINDOW: std::time::Duration = std::time::Duration::from_secs(5);
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let learnt = Window {
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
                    ..learnt
                };
            }
            None => {
                windows.insert(key_id.into(), learnt);
            }
        }
    }
}

/// A key's window at this moment; a new one where the last has run out.
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
    fn a_window_counts_from_one_and_learns_what_other_replicas_counted() {
        let (windows, now) = (Windows::default(), Instant::now());
        let (k, other): (Arc<str>, Arc<str>) = ("k".into(), "other".into());
        assert_eq!(windows.count(&k).position, 1);
        assert_eq!(windows.count(&k).position, 2);
        assert_eq!(windows.count(&other).position, 1);
        windows.learn("k", 7, now + Duration::from_millis(59_900));
        assert_eq!(windows.count(&k).position, 8);
        windows.learn("k", 3, now + Duration::from_millis(59_800));
        assert_eq!(
            windows.count(&k).position,
            9,
            "a smaller number of the same window is older"
        );
        windows.learn("k", 1, now + Duration::from_secs(20));
        let Counted { position, resets_in } = windows.count(&k);
        assert_eq!(position, 2, "another window is adopted");
        assert!(resets_in <= Duration::from_secs(20));
    }

    /// KEY-10
    #[test]
    fn only_what_the_database_has_counted_refuses_and_a_key_has_a_share_of_the_queue() {
        let windows = Windows::default();
        let k: Arc<str> = "k".into();
        for _ in 0..100 {
            windows.count(&k);
        }
        let places: Vec<Entered> = (0..20).map(|_| windows.enter(&k, 2, 1_000)).collect();
        assert!(places.iter().all(|entered| matches!(entered, Entered::Placed(_))));
        let Entered::Exceeded(counted) = windows.enter(&k, 2, 1_000) else {
            panic!("more wait than it may send in two windows")
        };
        assert_eq!(counted.position, 21);
        assert!(matches!(windows.enter(&k, 60, 20), Entered::Crowded), "the share");
        assert!(windows.place(&k, 20).is_none() && windows.place(&k, 21).is_some());
        drop(places);
        assert!(matches!(windows.enter(&k, 2, 1_000), Entered::Placed(_)));
        windows.learn("k", 2, Instant::now() + Duration::from_secs(30));
        let Entered::Exceeded(counted) = windows.enter(&k, 2, 1_000) else {
            panic!("over its limit")
        };
        assert_eq!(counted.position, 3);
        assert!(
            matches!(windows.enter(&k, 3, 1_000), Entered::Placed(_)),
            "the limit was raised"
        );
    }
}
