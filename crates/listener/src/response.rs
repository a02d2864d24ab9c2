//! A response's body that measures how fast the peer reads it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, SizeHint};

use super::activity::{InFlight, ResponseProgress};

/// Bytes of a response. hyper and h2 advance them as the socket accepts them, and drop them once they are sent. So the request
/// ends when its last byte was sent, not when it was buffered.
#[derive(Debug)]
pub(super) struct CountedBytes {
    bytes: Bytes,
    /// The bytes of memory that are freed with this value.
    held: u64,
    progress: Arc<ResponseProgress>,
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
        self.progress.record_sent(count as u64);
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        if self.bytes.has_remaining() {
            self.progress.discard_unsent(self.bytes.remaining() as u64);
        }
        self.progress.activity().release(self.held);
    }
}

/// A response's body that records its progress.
#[derive(Debug)]
pub(super) struct TrackedBody<B>(State<B>);

#[derive(Debug)]
enum State<B> {
    /// No body; the request ends when hyper has the head.
    Empty {
        _request: InFlight,
    },
    Body {
        body: B,
        progress: Arc<ResponseProgress>,
    },
}

impl<B: Body> TrackedBody<B> {
    /// Wraps a body. The peer's time restarts after `restart_after` sent bytes, and the request ends with the body. A body of unknown
    /// size, such as a stream of events, may never end, so it keeps no permit.
    pub fn new(body: B, mut request: InFlight, restart_after: u64) -> Self {
        if body.is_end_stream() {
            return Self::empty(request);
        }
        if body.size_hint().exact().is_none() {
            request.permit = None;
        }
        TrackedBody(State::Body {
            body,
            progress: ResponseProgress::start(request, restart_after),
        })
    }

    /// Returns an empty body.
    pub fn empty(request: InFlight) -> Self {
        TrackedBody(State::Empty { _request: request })
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for TrackedBody<B> {
    type Data = CountedBytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let State::Body { body, progress } = &mut self.0 else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|bytes| {
                    progress.add_unsent(bytes.len() as u64);
                    // Static bytes, and those that others share, stay in memory anyway.
                    let held = if bytes.is_unique() { bytes.len() as u64 } else { 0 };
                    progress.activity().hold(held);
                    CountedBytes {
                        bytes,
                        held,
                        progress: progress.clone(),
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
