//! A connection's activity: its protocol, its requests, its deadlines, and the commands that are sent to it.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::client_network::ClientNetwork;
use super::clock::{Clock, micros};
use super::counts::Event;
use super::limits::Limits;

/// How long an idle connection may take to close gracefully.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// How long an HTTP/1 connection keeps its buffers after a request, for the next one.
const BUFFERED: Duration = Duration::from_millis(100);

/// A command to a connection. A greater command overrides a smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Command {
    Serve,
    /// Close at once if idle, because a new connection needs the slot; otherwise like `Finish`.
    Evict,
    /// Finish running requests and accept no new ones.
    Finish,
    /// Close at once.
    Abort,
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Protocol {
    /// No request has arrived yet.
    Unknown,
    Http1,
    Http2,
}

/// The result of checking a connection's deadlines.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Deadline {
    /// Check again at this time.
    Pending(u64),
    /// The connection must close. There is no event if it was already closing.
    Expired(Option<Event>),
}

/// The activity of one connection, shared by its task, its requests and its slot.
#[derive(Debug)]
pub(super) struct Activity {
    pub id: u64,
    /// The network under which the connection is counted; `None` if its address is exempt.
    pub address: Option<ClientNetwork>,
    /// Permits for requests of the network that are in progress; `None` if its address is exempt.
    pub permits: Option<Arc<Semaphore>>,
    clock: Clock,
    opened: u64,
    protocol: AtomicU8,
    /// Requests whose response is not completely sent yet.
    requests: AtomicUsize,
    /// The end of the last request, or the start of the connection.
    idle_since: AtomicU64,
    /// When the first byte of the next HTTP/1 head arrived; 0 if none has.
    head_since: AtomicU64,
    /// Whether a response was sent before the request's body was read.
    unread: AtomicBool,
    /// Whether further input is discarded before the connection closes.
    lingering: AtomicBool,
    /// Whether bytes wait until the peer has read those before them.
    unsent: AtomicBool,
    responses: Mutex<Vec<Weak<ResponseProgress>>>,
    /// Bytes of responses that are in memory until they are sent.
    held: AtomicU64,
    memory: Arc<Memory>,
    command: AtomicU8,
    waker: AtomicWaker,
}

/// The bytes of responses that are in memory until they are sent, of all connections of a listener.
#[derive(Debug)]
pub(super) struct Memory {
    held: AtomicU64,
    limit: u64,
    exceeded: Notify,
}

impl Memory {
    pub fn with_limit(limit: u64) -> Arc<Self> {
        Arc::new(Memory {
            held: AtomicU64::new(0),
            limit,
            exceeded: Notify::new(),
        })
    }

    /// Waits until more bytes were held than the limit permits.
    pub async fn exceeded(&self) {
        self.exceeded.notified().await;
    }
}

impl Activity {
    pub fn new(
        id: u64,
        address: Option<ClientNetwork>,
        permits: Option<Arc<Semaphore>>,
        clock: Clock,
        memory: Arc<Memory>,
    ) -> Self {
        let now = clock.now();
        Activity {
            id,
            address,
            permits,
            clock,
            opened: now,
            protocol: AtomicU8::new(Protocol::Unknown as u8),
            requests: AtomicUsize::new(0),
            idle_since: AtomicU64::new(now),
            head_since: AtomicU64::new(0),
            unread: AtomicBool::new(false),
            lingering: AtomicBool::new(false),
            unsent: AtomicBool::new(false),
            responses: Mutex::new(Vec::new()),
            held: AtomicU64::new(0),
            memory,
            command: AtomicU8::new(Command::Serve as u8),
            waker: AtomicWaker::new(),
        }
    }

    /// Returns the clock of all times.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Records that a request's head is complete.
    pub fn begin(self: &Arc<Self>, http2: bool) -> InFlight {
        self.requests.fetch_add(1, AcqRel);
        self.head_since.store(0, Relaxed);
        let protocol = if http2 { Protocol::Http2 } else { Protocol::Http1 };
        self.protocol.store(protocol as u8, Release);
        InFlight {
            activity: self.clone(),
            permit: None,
        }
    }

    /// Returns the protocol as far as it is known.
    pub fn protocol(&self) -> Protocol {
        match self.protocol.load(Acquire) {
            0 => Protocol::Unknown,
            1 => Protocol::Http1,
            _ => Protocol::Http2,
        }
    }

    /// Returns the time since which no request is running; `None` while one is.
    pub fn idle_since(&self) -> Option<u64> {
        (self.requests.load(Acquire) == 0).then(|| self.idle_since.load(Acquire))
    }

    /// Returns whether the connection can be closed without a graceful shutdown.
    pub fn is_idle_http1(&self) -> bool {
        self.protocol() != Protocol::Http2 && self.idle_since().is_some() && !self.lingering.load(Relaxed)
    }

    /// Records that bytes arrived.
    pub fn record_received(&self) {
        if self.requests.load(Relaxed) == 0 && self.protocol() != Protocol::Http2 && self.head_since.load(Relaxed) == 0
        {
            self.head_since.store(self.clock.now(), Relaxed);
        }
    }

    /// Records that bytes were sent. While a request runs, [`ResponseProgress`] counts them. The rest of an HTTP/1 response can
    /// be sent after its request has ended, because hyper may copy it together with the head; it postpones the idle timeout.
    pub fn record_sent(&self) {
        if self.protocol() == Protocol::Http1 && self.requests.load(Relaxed) == 0 {
            self.idle_since.store(self.clock.now(), Release);
        }
    }

    /// Records whether bytes wait until the peer has read those before them.
    pub fn record_unsent(&self, unsent: bool) {
        if self.unsent.load(Relaxed) != unsent {
            self.unsent.store(unsent, Relaxed);
        }
    }

    /// Returns when the buffers of an HTTP/1 connection that waits for its next request may be freed; `None` for other
    /// connections, and while bytes are left to read or to send.
    pub fn buffered_until(&self) -> Option<u64> {
        let may_free = self.protocol() == Protocol::Http1
            && !self.has_unread_input()
            && !self.lingering.load(Relaxed)
            && !self.unsent.load(Relaxed);
        let idle_since = self.idle_since().filter(|_| may_free);
        idle_since.map(|since| since + micros(BUFFERED))
    }

    /// Records that a response was sent before the request's body was read, so that the connection closes after it.
    pub fn mark_body_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    /// Returns whether input may still arrive that will not be processed: an unread body, or an invalid head. Closing the
    /// socket then would discard the response.
    pub fn has_unread_input(&self) -> bool {
        self.unread.load(Relaxed) || (self.protocol() != Protocol::Http2 && self.head_since.load(Relaxed) != 0)
    }

    /// Records that further input is discarded.
    pub fn start_lingering(&self) {
        self.lingering.store(true, Relaxed);
    }

    /// Adds a response whose progress is checked.
    pub fn add_response(&self, response: &Arc<ResponseProgress>) {
        self.responses().push(Arc::downgrade(response));
    }

    /// Removes responses that were sent or dropped.
    pub fn remove_finished_responses(&self) {
        self.responses().retain(|response| response.strong_count() > 0);
    }

    /// Returns how many responses have waited for the peer since `time` or before, and the start of the longest wait; `None` if
    /// none has.
    pub fn unread_since(&self, time: u64) -> Option<(usize, u64)> {
        let responses = self.responses();
        let waiting = responses
            .iter()
            .filter_map(|response| response.upgrade()?.unsent_since())
            .filter(|since| *since <= time);
        waiting.fold(None, |found, since| match found {
            None => Some((1, since)),
            Some((count, longest)) => Some((count + 1, longest.min(since))),
        })
    }

    fn responses(&self) -> std::sync::MutexGuard<'_, Vec<Weak<ResponseProgress>>> {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes of responses that are in memory until they are sent.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// Records that bytes are in memory until they are sent.
    pub fn hold(&self, bytes: u64) {
        self.held.fetch_add(bytes, Relaxed);
        if self.memory.held.fetch_add(bytes, Relaxed) + bytes > self.memory.limit {
            self.memory.exceeded.notify_one();
        }
    }

    /// Records that bytes are not in memory any more.
    pub fn release(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Relaxed);
        self.memory.held.fetch_sub(bytes, Relaxed);
    }

    /// Sends a command, unless it or a greater one was sent already. Returns whether it was sent.
    pub fn send(&self, command: Command) -> bool {
        let before = self.command.fetch_max(command as u8, AcqRel);
        self.waker.wake();
        before < command as u8
    }

    /// Returns the current command, and wakes `waker` when it changes.
    pub fn poll_command(&self, waker: &Waker) -> Command {
        self.waker.register(waker);
        match self.command.load(Acquire) {
            0 => Command::Serve,
            1 => Command::Evict,
            2 => Command::Finish,
            _ => Command::Abort,
        }
    }

    /// Checks the deadlines. `closing_since` is the time at which a graceful shutdown began.
    pub fn check_deadline(&self, limits: &Limits, closing_since: Option<u64>) -> Deadline {
        let now = self.clock.now();
        let (deadline, event) = self.deadline(limits, closing_since, now);
        if now >= deadline {
            Deadline::Expired(event)
        } else {
            Deadline::Pending(deadline.min(now + micros(limits.tick())))
        }
    }

    fn deadline(&self, limits: &Limits, closing_since: Option<u64>, now: u64) -> (u64, Option<Event>) {
        let Some(idle_since) = self.idle_since() else {
            let stalled = self
                .responses()
                .iter()
                .filter_map(|response| response.upgrade()?.unsent_since())
                .min();
            return match stalled {
                Some(since) => (since + micros(limits.stalled_response), Some(Event::Stalled)),
                None => (u64::MAX, None),
            };
        };
        if let Some(closing_since) = closing_since {
            return (closing_since.max(idle_since) + micros(SHUTDOWN_GRACE), None);
        }
        if self.lingering.load(Relaxed) {
            // `io` enforces the limits of lingering.
            return (now + micros(limits.linger), None);
        }
        let idle = (idle_since + micros(limits.idle), Some(Event::Idle));
        match (self.protocol(), self.head_since.load(Relaxed)) {
            (Protocol::Unknown, _) => (self.opened + micros(limits.first_request), Some(Event::NoRequest)),
            (Protocol::Http1, head) if head != 0 => {
                let head = (head + micros(limits.head), Some(Event::SlowHead));
                if head.0 < idle.0 { head } else { idle }
            }
            _ => idle,
        }
    }
}

/// A request, from the end of its head to the last byte of its response.
#[derive(Debug)]
pub(super) struct InFlight {
    activity: Arc<Activity>,
    /// See [`Limits::in_progress_per_address`].
    pub permit: Option<OwnedSemaphorePermit>,
}

impl InFlight {
    /// Returns the activity of the request's connection.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // The time is stored first, so that no reader sees an idle connection with an old time.
        self.activity.idle_since.store(self.activity.clock.now(), Release);
        self.activity.requests.fetch_sub(1, AcqRel);
    }
}

/// The bytes of a response between the handler and the peer. The peer's time runs only while bytes wait to be sent, not while
/// the handler produces them.
#[derive(Debug)]
pub(super) struct ResponseProgress {
    request: InFlight,
    /// The number of sent bytes that restarts the peer's time.
    restart_after: u64,
    unsent: AtomicU64,
    since: AtomicU64,
    sent: AtomicU64,
}

impl ResponseProgress {
    pub fn start(request: InFlight, restart_after: u64) -> Arc<Self> {
        let progress = Arc::new(ResponseProgress {
            request,
            restart_after,
            unsent: AtomicU64::new(0),
            since: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        });
        progress.request.activity().add_response(&progress);
        progress
    }

    /// Returns the activity of the response's connection.
    pub fn activity(&self) -> &Activity {
        self.request.activity()
    }

    /// Returns the start of the peer's current time; `None` if no bytes wait to be sent.
    pub fn unsent_since(&self) -> Option<u64> {
        (self.unsent.load(Relaxed) > 0).then(|| self.since.load(Relaxed))
    }

    fn restart(&self) {
        self.sent.store(0, Relaxed);
        self.since.store(self.request.activity().clock().now(), Relaxed);
    }

    /// Records that bytes wait to be sent.
    pub fn add_unsent(&self, bytes: u64) {
        if self.unsent.load(Relaxed) == 0 {
            self.restart();
        }
        self.unsent.fetch_add(bytes, Relaxed);
    }

    /// Records that bytes were sent.
    pub fn record_sent(&self, bytes: u64) {
        let left = self.unsent.fetch_sub(bytes, Relaxed) - bytes;
        if left == 0 || self.sent.fetch_add(bytes, Relaxed) + bytes >= self.restart_after {
            self.restart();
        }
    }

    /// Records that bytes will not be sent.
    pub fn discard_unsent(&self, bytes: u64) {
        self.unsent.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for ResponseProgress {
    fn drop(&mut self) {
        self.request.activity().remove_finished_responses();
    }
}
