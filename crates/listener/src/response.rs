//! An answer on its way out: how much of it waits for the peer, and since when.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, SizeHint};

use super::pulse::InFlight;

/// An answer's bytes between the handler and the peer. The clock runs only while some of them wait: a handler that takes
/// its time is not the peer's fault.
#[derive(Debug)]
pub(super) struct Answer {
    request: InFlight,
    /// How many bytes the peer must take for the clock to start anew.
    enough: u64,
    waiting: AtomicU64,
    since: AtomicU64,
    taken: AtomicU64,
}

impl Answer {
    fn start(request: InFlight, enough: u64) -> Arc<Self> {
        let answer = Arc::new(Answer {
            request,
            enough,
            waiting: AtomicU64::new(0),
            since: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        });
        answer.request.pulse().add_answer(&answer);
        answer
    }

    /// Since when bytes have been waiting for the peer without its taking enough; `None` while none wait.
    pub fn waiting_since(&self) -> Option<u64> {
        (self.waiting.load(Relaxed) > 0).then(|| self.since.load(Relaxed))
    }

    fn restart(&self) {
        self.taken.store(0, Relaxed);
        self.since.store(self.request.pulse().clock().now(), Relaxed);
    }

    fn hand_out(&self, bytes: u64) {
        if self.waiting.load(Relaxed) == 0 {
            self.restart();
        }
        self.waiting.fetch_add(bytes, Relaxed);
    }

    fn taken(&self, bytes: u64) {
        let left = self.waiting.fetch_sub(bytes, Relaxed) - bytes;
        if left == 0 || self.taken.fetch_add(bytes, Relaxed) + bytes >= self.enough {
            self.restart();
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.request.pulse().forget_ended_answers();
    }
}

/// Bytes of an answer. hyper and h2 advance them as the socket takes them, and drop them when they are out: so the
/// request ends when its last byte has left, not when some buffer has it.
#[derive(Debug)]
pub(super) struct CountedBytes {
    bytes: Bytes,
    answer: Arc<Answer>,
}

impl Buf for CountedBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.answer.taken(count as u64);
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        if self.bytes.has_remaining() {
            self.answer.waiting.fetch_sub(self.bytes.remaining() as u64, Relaxed);
        }
    }
}

/// The body of an answer, watched.
#[derive(Debug)]
pub(super) struct Tracked<B>(State<B>);

#[derive(Debug)]
enum State<B> {
    /// Nothing but a head; the request ends when hyper has it.
    Empty {
        _request: InFlight,
    },
    Body {
        body: B,
        answer: Arc<Answer>,
    },
}

impl<B: Body> Tracked<B> {
    /// A body of which the peer must take `enough` bytes for its clock to start anew; the request ends with it.
    pub fn new(body: B, request: InFlight, enough: u64) -> Self {
        if body.is_end_stream() {
            return Self::empty(request);
        }
        Tracked(State::Body {
            body,
            answer: Answer::start(request, enough),
        })
    }

    /// No body.
    pub fn empty(request: InFlight) -> Self {
        Tracked(State::Empty { _request: request })
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Tracked<B> {
    type Data = CountedBytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let State::Body { body, answer } = &mut self.0 else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|bytes| {
                    answer.hand_out(bytes.len() as u64);
                    CountedBytes {
                        bytes,
                        answer: answer.clone(),
                    }
                })
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            State::Empty { .. } => true,
            State::Body { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::Empty { .. } => SizeHint::with_exact(0),
            State::Body { body, .. } => body.size_hint(),
        }
    }
}
