//! A request's body that returns its unread rest to the listener.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// Receives a body that was dropped before its end.
pub(super) type Leftover = Arc<Mutex<Option<Incoming>>>;

/// A request's body.
#[derive(Debug)]
pub struct RequestBody {
    incoming: Option<Incoming>,
    leftover: Option<Leftover>,
}

impl RequestBody {
    /// Returns the body and the place where its unread rest will be found. The latter is `None` for an empty body.
    pub(super) fn new(incoming: Incoming) -> (Self, Option<Leftover>) {
        if incoming.is_end_stream() {
            let empty = RequestBody {
                incoming: None,
                leftover: None,
            };
            return (empty, None);
        }
        let leftover = Leftover::default();
        let body = RequestBody {
            incoming: Some(incoming),
            leftover: Some(leftover.clone()),
        };
        (body, Some(leftover))
    }
}

/// Takes the unread rest of a body.
pub(super) fn take(leftover: &Leftover) -> Option<Incoming> {
    leftover.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(incoming) = &mut self.incoming else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(incoming).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            self.incoming = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if self.is_end_stream() {
            return;
        }
        if let Some(leftover) = &self.leftover {
            *leftover.lock().unwrap_or_else(PoisonError::into_inner) = self.incoming.take();
        }
    }
}
