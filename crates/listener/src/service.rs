//! A request between hyper and its handler: finished when the client goes, survived when it panics, and not cut short
//! when it answers early.

use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::FutureExt;
use http::header::{CONNECTION, EXPECT, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::service::Service;

use super::Shared;
use super::counts::Event;
use super::pulse::{InFlight, Pulse};
use super::request::{self, Leftover, RequestBody};
use super::response::Tracked;

/// An unread rest of at most this many bytes is read behind the answer, so that the connection can be kept: a refusal of
/// a small request must not cost a new connection.
const SMALL_REST: u64 = 64 * 1024;

/// What answers the requests of one connection.
pub(super) struct Door<H> {
    pub shared: Arc<Shared>,
    pub pulse: Arc<Pulse>,
    pub peer: SocketAddr,
    pub handler: Arc<H>,
}

type Work<B> = Pin<Box<dyn Future<Output = Result<Response<B>, Box<dyn Any + Send>>> + Send>>;

impl<H, F, B> Service<Request<Incoming>> for Door<H>
where
    H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<Tracked<B>>;
    type Error = Infallible;
    type Future = Serving<B>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let version = request.version();
        let expects = request.headers().contains_key(EXPECT);
        let (parts, incoming) = request.into_parts();
        let (body, leftover) = RequestBody::new(incoming);
        let (handler, peer) = (self.handler.clone(), self.peer);
        // The handler is called inside, so that a panic of the function itself is caught as well.
        let work = async move { handler(peer, Request::from_parts(parts, body)).await };
        Serving {
            shared: self.shared.clone(),
            in_flight: Some(self.pulse.begin(version == Version::HTTP_2)),
            leftover,
            // HTTP/1.0 closes unless told otherwise, and an expected 100 that never came leaves open whether the body will
            // come: neither connection can be kept.
            may_keep: version == Version::HTTP_11 && !expects,
            version,
            work: Some(Box::pin(AssertUnwindSafe(work).catch_unwind())),
            started: false,
        }
    }
}

/// A request at work. The handler runs in its connection's task and is handed to a task of its own only when the connection
/// goes: what has been started is finished, and nobody pays for that as long as everybody stays.
pub(super) struct Serving<B: 'static> {
    shared: Arc<Shared>,
    in_flight: Option<InFlight>,
    leftover: Option<Leftover>,
    may_keep: bool,
    version: Version,
    work: Option<Work<B>>,
    started: bool,
}

impl<B: 'static> Unpin for Serving<B> {}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Future for Serving<B> {
    type Output = Result<Response<Tracked<B>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.started = true;
        let Some(work) = &mut this.work else {
            return Poll::Pending;
        };
        let outcome = ready!(work.as_mut().poll(cx));
        this.work = None;
        let Some(in_flight) = this.in_flight.take() else {
            return Poll::Pending;
        };
        let rest = this.leftover.take().and_then(|leftover| request::take(&leftover));
        let closes = rest.is_some_and(|rest| this.settle(rest, &in_flight, cx));
        let mut response = match outcome {
            Ok(response) => {
                let (parts, body) = response.into_parts();
                Response::from_parts(parts, Tracked::new(body, in_flight, this.shared.limits.answer_bytes))
            }
            Err(_) => {
                this.shared.counts.note(Event::Panicked);
                let mut response = Response::new(Tracked::empty(in_flight));
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                response
            }
        };
        if closes {
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(response))
    }
}

impl<B: 'static> Serving<B> {
    /// Sees to what the handler left unread of the body; returns whether the connection must end with the answer.
    fn settle(&self, mut rest: Incoming, in_flight: &InFlight, cx: &mut Context<'_>) -> bool {
        if self.version == Version::HTTP_2 {
            // Dropped, it makes h2 give the window back and, behind the answer, reset the stream with NO_ERROR.
            return false;
        }
        if !self.may_keep || rest.size_hint().upper().is_none_or(|left| left > SMALL_REST) {
            in_flight.pulse().leave_unread();
            return true;
        }
        // What came together with the head is here already.
        while let Poll::Ready(frame) = Pin::new(&mut rest).poll_frame(cx) {
            if !matches!(frame, Some(Ok(_))) {
                return false;
            }
        }
        let request = in_flight.pulse().begin(false);
        let time = self.shared.limits.linger_pause;
        self.shared.tasks.spawn(async move {
            // The connection ends where the rest does not come in time: hyper closes one whose body nobody reads.
            let drained = tokio::time::timeout(time, async { while let Some(Ok(_)) = rest.frame().await {} });
            if drained.await.is_err() {
                request.pulse().leave_unread();
            }
        });
        false
    }
}

impl<B: 'static> Drop for Serving<B> {
    fn drop(&mut self) {
        // What has not begun leaves nothing half-done.
        let Some(work) = self.work.take().filter(|_| self.started) else {
            return;
        };
        self.shared.detach(work.map(drop));
    }
}
