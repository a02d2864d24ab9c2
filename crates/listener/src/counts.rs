//! Counts of rejected and closed connections, with rate-limited log lines.

use std::array;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::clock::{Clock, micros};

/// The minimum time between two log lines about the same event. A line states how many events it summarizes, so a flood of
/// connections does not flood the log.
pub(super) const LOG_EVERY: Duration = Duration::from_secs(10);

/// An outcome of a connection or request other than a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Full,
    AddressFull,
    Evicted,
    NoRequest,
    SlowHead,
    Idle,
    Stalled,
    Unread,
    HandshakeFailed,
    AcceptFailed,
    Panicked,
    Abandoned,
    Late,
}

const EVENTS: [(Event, &str); 13] = [
    (Event::Full, "rejected connections: all connection slots are busy"),
    (
        Event::AddressFull,
        "rejected connections: all connection slots of their address are busy",
    ),
    (Event::Evicted, "evicted idle connections for new ones"),
    (Event::NoRequest, "closed connections: no request arrived in time"),
    (
        Event::SlowHead,
        "closed connections: a request head did not arrive in time",
    ),
    (Event::Idle, "closed idle connections"),
    (
        Event::Stalled,
        "closed connections: the peer did not read its response in time",
    ),
    (
        Event::Unread,
        "closed connections: too many responses of their address, or of all addresses, were not read",
    ),
    (Event::HandshakeFailed, "closed connections: the handshake failed"),
    (Event::AcceptFailed, "failed to accept connections"),
    (Event::Panicked, "request handlers panicked"),
    (
        Event::Abandoned,
        "dropped unfinished requests: too many are running whose clients have disconnected",
    ),
    (
        Event::Late,
        "requests waited for too long: too many requests of all addresses are running; check the load of the processors and the database",
    ),
];

/// Current numbers of a listener, and counts since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Open connections.
    pub connections: usize,
    /// Running requests whose clients have disconnected.
    pub detached: usize,
    /// Requests that wait because too many are running.
    pub waiting: usize,
    /// Accepted connections.
    pub accepted: u64,
    /// Connections closed at once because all connection slots, or all of their address, were busy.
    pub rejected: u64,
    /// Idle connections closed to free their slot for a new connection.
    pub evicted: u64,
    /// Connections closed because the handshake or the first request head was not complete in time.
    pub no_request: u64,
    /// Connections closed because a later request head was not complete in time.
    pub slow_head: u64,
    /// Connections closed because they were idle for too long.
    pub idle: u64,
    /// Connections closed because the peer did not read its response in time.
    pub stalled: u64,
    /// Connections closed because too many responses to their address, or to all addresses, were not read.
    pub unread: u64,
    /// Connections closed because the TLS handshake failed, for example on plain HTTP or without a common cipher suite.
    pub handshake_failed: u64,
    /// Connections that the operating system failed to accept.
    pub accept_failed: u64,
    /// Handlers that panicked.
    pub panicked: u64,
    /// Requests dropped unfinished because their clients had disconnected and too many such requests were running.
    pub abandoned: u64,
    /// Requests that waited for the whole of [`Limits::queue_wait`](super::Limits::queue_wait).
    pub late: u64,
}

/// Counters of events, and how many of them have been logged.
#[derive(Debug)]
pub(super) struct Counts {
    clock: Clock,
    accepted: AtomicU64,
    kinds: [EventCount; EVENTS.len()],
}

#[derive(Debug, Default)]
struct EventCount {
    count: AtomicU64,
    logged: AtomicU64,
    logged_at: AtomicU64,
}

impl Counts {
    pub fn new(clock: Clock) -> Self {
        Counts {
            clock,
            accepted: AtomicU64::new(0),
            kinds: array::from_fn(|_| EventCount::default()),
        }
    }

    /// Counts an accepted connection.
    pub fn accepted(&self) {
        self.accepted.fetch_add(1, Relaxed);
    }

    /// Counts an event, and logs it unless the same event was logged within [`LOG_EVERY`].
    pub fn record(&self, event: Event) {
        self.record_with_reason(event, "");
    }

    /// Like [`Counts::record`], with a reason for the log.
    pub fn record_with_reason(&self, event: Event, reason: impl fmt::Display) {
        self.kinds[event as usize].count.fetch_add(1, Relaxed);
        self.log(event as usize, reason);
    }

    /// Logs the events since the last line, if that is old enough.
    pub fn log_pending(&self) {
        (0..EVENTS.len()).for_each(|kind| self.log(kind, ""));
    }

    fn log(&self, index: usize, reason: impl fmt::Display) {
        let kind = &self.kinds[index];
        let (total, logged) = (kind.count.load(Relaxed), kind.logged.load(Relaxed));
        let (now, last) = (self.clock.now(), kind.logged_at.load(Relaxed));
        if total == logged || (last != 0 && now < last + micros(LOG_EVERY)) {
            return;
        }
        // Only the task that sets the time writes the line.
        if kind.logged_at.compare_exchange(last, now, Relaxed, Relaxed).is_err() {
            return;
        }
        kind.logged.store(total, Relaxed);
        let (event, meaning) = EVENTS[index];
        let count = total - logged;
        match event {
            Event::Idle => tracing::debug!(count, %reason, "{meaning}"),
            Event::Panicked => tracing::error!(count, %reason, "{meaning}"),
            _ => tracing::warn!(count, %reason, "{meaning}"),
        }
    }

    /// Returns all counts, together with the numbers that the caller provides: open connections, and detached and waiting requests.
    pub fn metrics(&self, connections: usize, detached: usize, waiting: usize) -> Metrics {
        let count = |event: Event| self.kinds[event as usize].count.load(Relaxed);
        Metrics {
            connections,
            detached,
            waiting,
            accepted: self.accepted.load(Relaxed),
            rejected: count(Event::Full) + count(Event::AddressFull),
            evicted: count(Event::Evicted),
            no_request: count(Event::NoRequest),
            slow_head: count(Event::SlowHead),
            idle: count(Event::Idle),
            stalled: count(Event::Stalled),
            unread: count(Event::Unread),
            handshake_failed: count(Event::HandshakeFailed),
            accept_failed: count(Event::AcceptFailed),
            panicked: count(Event::Panicked),
            abandoned: count(Event::Abandoned),
            late: count(Event::Late),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_events() {
        for (index, (event, _)) in EVENTS.iter().enumerate() {
            assert_eq!(*event as usize, index);
        }
    }

    #[test]
    fn a_thousand_events_at_once_are_counted_and_logged_in_one_line() {
        let counts = Counts::new(Clock::start());
        for _ in 0..1000 {
            counts.record(Event::Full);
        }
        let kind = &counts.kinds[Event::Full as usize];
        assert_eq!((kind.count.load(Relaxed), kind.logged.load(Relaxed)), (1000, 1));
        kind.logged_at.store(0, Relaxed);
        counts.log_pending();
        assert_eq!(kind.logged.load(Relaxed), 1000);
    }
}
