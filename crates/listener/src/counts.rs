//! What a listener has turned away or cut, counted, and told to the log now and then.

use std::array;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::pulse::{Clock, micros};

/// A kind of event is logged at most this often, with how many there were: a flood of connections is no
/// flood of lines.
pub(super) const LOG_EVERY: Duration = Duration::from_secs(10);

/// What happened to a connection or a request, other than being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Full,
    AddressFull,
    GaveWay,
    NoRequest,
    SlowHead,
    Idle,
    Stalled,
    HandshakeFailed,
    AcceptFailed,
    Panicked,
    Abandoned,
}

const EVENTS: [(Event, &str); 11] = [
    (
        Event::Full,
        "connections closed at once: all are taken, and none is idle",
    ),
    (
        Event::AddressFull,
        "connections closed at once: their address has its share, and none of it is idle",
    ),
    (Event::GaveWay, "idle connections closed: others needed their place"),
    (Event::NoRequest, "connections closed: no request came in time"),
    (
        Event::SlowHead,
        "connections closed: a request's head did not come in time",
    ),
    (Event::Idle, "connections closed: idle"),
    (Event::Stalled, "connections closed: the peer does not take its answer"),
    (Event::HandshakeFailed, "connections closed: the handshake failed"),
    (Event::AcceptFailed, "connections could not be accepted"),
    (Event::Panicked, "request handlers panicked"),
    (
        Event::Abandoned,
        "requests dropped unfinished: their clients have gone, and too many such are running",
    ),
];

/// What is, and how often each thing has happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Connections that are open now.
    pub connections: usize,
    /// Requests that are running now although their clients have gone.
    pub detached: usize,
    /// Connections that were taken in.
    pub accepted: u64,
    /// Connections closed at once, because all were taken or their address had its share.
    pub refused: u64,
    /// Idle connections closed, because others needed their place.
    pub gave_way: u64,
    /// Connections closed, because their handshake or their first request did not come to its end in time.
    pub no_request: u64,
    /// Connections closed, because a later head did not come in time.
    pub slow_head: u64,
    /// Connections closed, because they were without a request for too long.
    pub idle: u64,
    /// Connections closed, because the peer did not take its answer.
    pub stalled: u64,
    /// Connections closed, because their TLS handshake failed: plain HTTP, for example, or nothing that both sides can do.
    pub handshake_failed: u64,
    /// Connections that the operating system could not hand over.
    pub accept_failed: u64,
    /// Handlers that panicked.
    pub panicked: u64,
    /// Requests dropped unfinished after their clients had gone, because too many such were running.
    pub abandoned: u64,
}

/// How often what has happened, and what of it the log has been told.
#[derive(Debug)]
pub(super) struct Counts {
    clock: Clock,
    accepted: AtomicU64,
    kinds: [Kind; EVENTS.len()],
}

#[derive(Debug, Default)]
struct Kind {
    seen: AtomicU64,
    logged: AtomicU64,
    logged_at: AtomicU64,
}

impl Counts {
    pub fn new(clock: Clock) -> Self {
        Counts {
            clock,
            accepted: AtomicU64::new(0),
            kinds: array::from_fn(|_| Kind::default()),
        }
    }

    /// A connection got a seat.
    pub fn accepted(&self) {
        self.accepted.fetch_add(1, Relaxed);
    }

    /// Counts an event, and logs it unless one of its kind was logged a moment ago.
    pub fn note(&self, event: Event) {
        self.note_because(event, "");
    }

    /// Like [`Counts::note`], with the reason of the one that is logged.
    pub fn note_because(&self, event: Event, reason: impl fmt::Display) {
        self.kinds[event as usize].seen.fetch_add(1, Relaxed);
        self.log(event as usize, reason);
    }

    /// Logs what has come since the last line, where the last line is old enough.
    pub fn log_pending(&self) {
        (0..EVENTS.len()).for_each(|kind| self.log(kind, ""));
    }

    fn log(&self, index: usize, reason: impl fmt::Display) {
        let kind = &self.kinds[index];
        let (seen, logged) = (kind.seen.load(Relaxed), kind.logged.load(Relaxed));
        let (now, last) = (self.clock.now(), kind.logged_at.load(Relaxed));
        if seen == logged || (last != 0 && now < last + micros(LOG_EVERY)) {
            return;
        }
        // Whoever sets the time writes the line.
        if kind.logged_at.compare_exchange(last, now, Relaxed, Relaxed).is_err() {
            return;
        }
        kind.logged.store(seen, Relaxed);
        let (event, meaning) = EVENTS[index];
        let count = seen - logged;
        match event {
            Event::Idle => tracing::debug!(count, %reason, "{meaning}"),
            Event::Panicked => tracing::error!(count, %reason, "{meaning}"),
            _ => tracing::warn!(count, %reason, "{meaning}"),
        }
    }

    /// What is counted here, beside what its callers count: open connections, and requests that run on without a client.
    pub fn tally(&self, connections: usize, detached: usize) -> Tally {
        let seen = |event: Event| self.kinds[event as usize].seen.load(Relaxed);
        Tally {
            connections,
            detached,
            accepted: self.accepted.load(Relaxed),
            refused: seen(Event::Full) + seen(Event::AddressFull),
            gave_way: seen(Event::GaveWay),
            no_request: seen(Event::NoRequest),
            slow_head: seen(Event::SlowHead),
            idle: seen(Event::Idle),
            stalled: seen(Event::Stalled),
            handshake_failed: seen(Event::HandshakeFailed),
            accept_failed: seen(Event::AcceptFailed),
            panicked: seen(Event::Panicked),
            abandoned: seen(Event::Abandoned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_stands_at_its_own_place() {
        for (index, (event, _)) in EVENTS.iter().enumerate() {
            assert_eq!(*event as usize, index);
        }
    }

    #[test]
    fn a_thousand_events_at_once_are_one_line_and_lose_none() {
        let counts = Counts::new(Clock::start());
        for _ in 0..1000 {
            counts.note(Event::Full);
        }
        let kind = &counts.kinds[Event::Full as usize];
        assert_eq!((kind.seen.load(Relaxed), kind.logged.load(Relaxed)), (1000, 1));
        kind.logged_at.store(0, Relaxed);
        counts.log_pending();
        assert_eq!(kind.logged.load(Relaxed), 1000);
    }
}
