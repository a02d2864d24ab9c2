//! A request's body: it releases the [`RequestPermit`] while it has not arrived, and returns its unread rest to the listener.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::in_progress::RequestPermit;

/// The state that a request shares with its body.
#[derive(Clone)]
pub(super) struct Exchange(Arc<Mutex<ExchangeState>>);

struct ExchangeState {
    permit: RequestPermit,
    /// A body that was dropped before its end.
    rest: Option<Incoming>,
}

impl Exchange {
    /// Waits until the request may run; see [`RequestPermit::poll`].
    pub fn poll_permit(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.lock().permit.poll(cx)
    }

    /// Takes the unread rest of the body.
    pub fn take_rest(&self) -> Option<Incoming> {
        self.lock().rest.take()
    }

    fn lock(&self) -> MutexGuard<'_, ExchangeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exchange")
    }
}

type FrameResult = Option<Result<Frame<Bytes>, hyper::Error>>;

/// A request's body.
#[derive(Debug)]
pub struct RequestBody {
    incoming: Option<Incoming>,
    exchange: Exchange,
    /// A frame that arrived, and that the handler gets when the request has a permit again.
    arrived: Option<FrameResult>,
}

impl RequestBody {
    /// Returns the body, and the state that it shares with its request.
    pub(super) fn new(incoming: Incoming, permit: RequestPermit) -> (Self, Exchange) {
        let exchange = Exchange(Arc::new(Mutex::new(ExchangeState { permit, rest: None })));
        let body = RequestBody {
            incoming: Some(incoming).filter(|incoming| !incoming.is_end_stream()),
            exchange: exchange.clone(),
            arrived: None,
        };
        (body, exchange)
    }

    /// Waits for the first bytes or the end of the body.
    pub(super) fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.arrived.is_none()
            && let Some(incoming) = &mut self.incoming
        {
            self.arrived = Some(ready!(Pin::new(incoming).poll_frame(cx)));
        }
        Poll::Ready(())
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<FrameResult> {
        let this = &mut *self;
        if this.is_end_stream() {
            return Poll::Ready(None);
        }
        if this.poll_arrival(cx).is_pending() {
            this.exchange.lock().permit.release();
            return Poll::Pending;
        }
        ready!(this.exchange.poll_permit(cx));
        let frame = this.arrived.take().flatten();
        if !matches!(frame, Some(Ok(_))) {
            this.incoming = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.arrived.is_none() && self.incoming.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let exact = |bytes| SizeHint::with_exact(bytes as u64);
        let hint = self.incoming.as_ref().map_or_else(|| exact(0), Body::size_hint);
        match &self.arrived {
            Some(Some(Ok(frame))) => {
                let own = frame.data_ref().map_or(0, |data| data.len() as u64);
                let mut whole = SizeHint::new();
                whole.set_lower(hint.lower() + own);
                if let Some(upper) = hint.upper() {
                    whole.set_upper(upper + own);
                }
                whole
            }
            _ => hint,
        }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(incoming) = self.incoming.take().filter(|incoming| !incoming.is_end_stream()) {
            self.exchange.lock().rest = Some(incoming);
        }
    }
}
