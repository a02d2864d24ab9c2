//! What is known of a connection from outside: what it is doing, since when, and what is asked of it.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio::time::Instant;

use super::client_network::ClientNetwork;
use super::counts::Event;
use super::limits::Limits;
use super::response::Answer;

/// How long a connection without a request may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// Microseconds since the listener's start, which fit into an atomic; never 0, which means "not".
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    /// One that starts now.
    pub fn start() -> Self {
        Clock(Instant::now())
    }

    /// The time, in this clock's microseconds.
    pub fn now(self) -> u64 {
        micros(self.0.elapsed()) + 1
    }

    /// The moment of a time of this clock.
    pub fn at(self, time: u64) -> Instant {
        self.0 + Duration::from_micros(time - 1)
    }
}

/// A duration in the clock's unit; one that is beyond it is as good as for ever.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 4)
}

/// What is asked of a connection; what is greater overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Order {
    Serve,
    /// Like `Finish`, but at once where nothing is under way: somebody waits for the place.
    GiveWay,
    /// Finish what is under way, take nothing new.
    Finish,
    /// End at once.
    Abort,
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    /// No request has come yet.
    New,
    Http1,
    Http2,
}

/// What a look at a connection's clocks says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing before this time.
    Until(u64),
    /// It has used up its time; the event is missing where it was told to go anyway.
    Cut(Option<Event>),
}

/// What is known of one connection, shared by all that have a part in it.
#[derive(Debug)]
pub(super) struct Pulse {
    pub id: u64,
    /// Under which its address's connections are counted; `None` for exempt ones.
    pub address: Option<ClientNetwork>,
    clock: Clock,
    opened: u64,
    stage: AtomicU8,
    /// Requests that are not answered yet, or whose answer is still being taken.
    requests: AtomicUsize,
    /// Since when there has been no request.
    quiet_since: AtomicU64,
    /// When the first byte of an HTTP/1 head came; 0 while none has.
    head_since: AtomicU64,
    /// The answer came before the body was read.
    unread: AtomicBool,
    /// The answer is out, and what still comes is dropped.
    lingering: AtomicBool,
    answers: Mutex<Vec<Weak<Answer>>>,
    order: AtomicU8,
    waker: AtomicWaker,
}

impl Pulse {
    pub fn new(id: u64, address: Option<ClientNetwork>, clock: Clock) -> Self {
        let now = clock.now();
        Pulse {
            id,
            address,
            clock,
            opened: now,
            stage: AtomicU8::new(Stage::New as u8),
            requests: AtomicUsize::new(0),
            quiet_since: AtomicU64::new(now),
            head_since: AtomicU64::new(0),
            unread: AtomicBool::new(false),
            lingering: AtomicBool::new(false),
            answers: Mutex::new(Vec::new()),
            order: AtomicU8::new(Order::Serve as u8),
            waker: AtomicWaker::new(),
        }
    }

    /// The clock of all its times.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// A request's head is complete.
    pub fn begin(self: &Arc<Self>, http2: bool) -> InFlight {
        self.requests.fetch_add(1, AcqRel);
        self.head_since.store(0, Relaxed);
        let stage = if http2 { Stage::Http2 } else { Stage::Http1 };
        self.stage.store(stage as u8, Release);
        InFlight(self.clone())
    }

    /// What is spoken on it so far.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Acquire) {
            0 => Stage::New,
            1 => Stage::Http1,
            _ => Stage::Http2,
        }
    }

    /// Since when there has been no request; `None` while there is one.
    pub fn quiet_since(&self) -> Option<u64> {
        (self.requests.load(Acquire) == 0).then(|| self.quiet_since.load(Acquire))
    }

    /// Whether it can be closed without a word.
    pub fn is_idle_http1(&self) -> bool {
        self.stage() != Stage::Http2 && self.quiet_since().is_some() && !self.lingering.load(Relaxed)
    }

    /// Bytes came.
    pub fn heard(&self) {
        if self.requests.load(Relaxed) == 0 && self.stage() != Stage::Http2 && self.head_since.load(Relaxed) == 0 {
            self.head_since.store(self.clock.now(), Relaxed);
        }
    }

    /// The peer took bytes. What belongs to a request is measured with its answer; the rest of an HTTP/1 answer, whose
    /// bytes may have been copied together with its head, keeps the connection from counting as idle.
    pub fn took(&self) {
        if self.stage() == Stage::Http1 && self.requests.load(Relaxed) == 0 {
            self.quiet_since.store(self.clock.now(), Release);
        }
    }

    /// The answer came before the body was read: the connection ends with it.
    pub fn leave_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    /// Whether more may come of which nothing will be made, so that closing now would take the answer away from the peer:
    /// a body that nobody read, or a head that was none.
    pub fn may_hear_more(&self) -> bool {
        self.unread.load(Relaxed) || (self.stage() != Stage::Http2 && self.head_since.load(Relaxed) != 0)
    }

    /// From now on what still comes is dropped, and the connection's end is near.
    pub fn linger(&self) {
        self.lingering.store(true, Relaxed);
    }

    /// Watches how an answer is taken.
    pub fn add_answer(&self, answer: &Arc<Answer>) {
        self.answers().push(Arc::downgrade(answer));
    }

    /// Watches no more what has been taken whole, or was given up.
    pub fn forget_ended_answers(&self) {
        self.answers().retain(|answer| answer.strong_count() > 0);
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Answer>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks something of the connection, unless more is asked of it already.
    pub fn order(&self, order: Order) {
        self.order.fetch_max(order as u8, AcqRel);
        self.waker.wake();
    }

    /// What is asked of the connection; `waker` is woken when that changes.
    pub fn orders(&self, waker: &Waker) -> Order {
        self.waker.register(waker);
        match self.order.load(Acquire) {
            0 => Order::Serve,
            1 => Order::GiveWay,
            2 => Order::Finish,
            _ => Order::Abort,
        }
    }

    /// Looks at the clocks. `leaving` is when the connection was told to finish.
    pub fn due(&self, limits: &Limits, leaving: Option<u64>) -> Due {
        let now = self.clock.now();
        let (deadline, event) = self.deadline(limits, leaving, now);
        if now >= deadline {
            Due::Cut(event)
        } else {
            Due::Until(deadline.min(now + micros(limits.tick())))
        }
    }

    fn deadline(&self, limits: &Limits, leaving: Option<u64>, now: u64) -> (u64, Option<Event>) {
        let Some(quiet) = self.quiet_since() else {
            let stalled = self
                .answers()
                .iter()
                .filter_map(|answer| answer.upgrade()?.waiting_since())
                .min();
            return match stalled {
                Some(since) => (since + micros(limits.stalled_answer), Some(Event::Stalled)),
                None => (u64::MAX, None),
            };
        };
        if let Some(leaving) = leaving {
            return (leaving.max(quiet) + micros(GOODBYE), None);
        }
        if self.lingering.load(Relaxed) {
            // It has clocks of its own: see `io`.
            return (now + micros(limits.linger), None);
        }
        let idle = (quiet + micros(limits.idle), Some(Event::Idle));
        match (self.stage(), self.head_since.load(Relaxed)) {
            (Stage::New, _) => (self.opened + micros(limits.first_request), Some(Event::NoRequest)),
            (Stage::Http1, head) if head != 0 => {
                let head = (head + micros(limits.head), Some(Event::SlowHead));
                if head.0 < idle.0 { head } else { idle }
            }
            _ => idle,
        }
    }
}

/// A request, from its head to the last byte of its answer.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Pulse>);

impl InFlight {
    /// That of its connection.
    pub fn pulse(&self) -> &Arc<Pulse> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // First the time, so that nobody sees a quiet connection with an old one.
        self.0.quiet_since.store(self.0.clock.now(), Release);
        self.0.requests.fetch_sub(1, AcqRel);
    }
}
