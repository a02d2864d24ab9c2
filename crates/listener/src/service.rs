//! The call of the handler for a request. The handler may panic, runs to its end if the client disconnects, may respond before it
//! has read the body, and may drop the connection instead.

use std::any::Any;
use std::fmt;
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
use tokio::sync::{AcquireError, OwnedSemaphorePermit};

use super::Shared;
use super::activity::{Activity, InFlight};
use super::counts::Event;
use super::in_progress::RequestPermit;
use super::request::{Exchange, RequestBody};
use super::response::TrackedBody;

/// An extension of a response that is not sent: the listener closes an HTTP/1.1 connection, or resets an HTTP/2 stream. It is also
/// the error with which hyper does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropConnection;

impl fmt::Display for DropConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the handler dropped the connection")
    }
}

impl std::error::Error for DropConnection {}

/// The maximum size of the unread rest of a body that is read after the response. Rejecting a small request then does not cost
/// a new connection.
const MAX_UNREAD_REST: u64 = 64 * 1024;

/// The hyper service of one connection.
pub(super) struct ConnectionService<H> {
    pub shared: Arc<Shared>,
    pub activity: Arc<Activity>,
    pub peer: SocketAddr,
    pub handler: Arc<H>,
}

type Work<B> = Pin<Box<dyn Future<Output = Result<Response<B>, Box<dyn Any + Send>>> + Send>>;

/// The wait for a permit, which fails only if the semaphore is closed.
type Waiting = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// A request that is passed to its handler as soon as there is a permit. A running handler takes far more memory.
struct Pending<H> {
    request: Request<RequestBody>,
    handler: Arc<H>,
    peer: SocketAddr,
    waiting: Option<Waiting>,
    starts: Starts,
}

/// When a request's handler starts, once the request has a permit of its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starts {
    /// When the first bytes of the body have arrived. They often arrive together with the head, and hyper has them at the next poll.
    WithBody,
    /// The same, at this poll.
    WithBodyNow,
    /// When the request has a permit to be in progress.
    WithPermit,
    /// At once: the handler waits for the body, and reads it when the request has a permit.
    AtOnce,
}

#[expect(
    clippy::large_enum_variant,
    reason = "only a request that waits needs the space, and almost all start at once"
)]
enum State<H, B> {
    Pending(Pending<H>),
    Running(Work<B>),
    Finished,
}

impl<H, F, B> Service<Request<Incoming>> for ConnectionService<H>
where
    H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<TrackedBody<B>>;
    type Error = DropConnection;
    type Future = RequestFuture<H, B>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let version = request.version();
        let expects = request.headers().contains_key(EXPECT);
        let (parts, incoming) = request.into_parts();
        let permit = RequestPermit::new(self.shared.clone());
        let queued = permit.queued();
        let (body, exchange) = RequestBody::new(incoming, permit);
        let mut request = Request::from_parts(parts, body);
        request.extensions_mut().insert(queued);
        let pending = Pending {
            // The client does not send its body before the handler asks for it.
            starts: if expects { Starts::AtOnce } else { Starts::WithBody },
            request,
            handler: self.handler.clone(),
            peer: self.peer,
            waiting: None,
        };
        RequestFuture {
            shared: self.shared.clone(),
            in_flight: Some(self.activity.begin(version == Version::HTTP_2)),
            exchange,
            // HTTP/1.0 closes by default. After an expected 100 that was not sent, the client may or may not send its body.
            may_keep_alive: version == Version::HTTP_11 && !expects,
            version,
            state: State::Pending(pending),
        }
    }
}

/// A running request. The handler runs in its connection's task, and is moved to a separate task only if the connection closes
/// before it has finished.
pub(super) struct RequestFuture<H, B: 'static> {
    shared: Arc<Shared>,
    in_flight: Option<InFlight>,
    exchange: Exchange,
    may_keep_alive: bool,
    version: Version,
    state: State<H, B>,
}

impl<H, B: 'static> Unpin for RequestFuture<H, B> {}

impl<H, F, B> Future for RequestFuture<H, B>
where
    H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Output = Result<Response<TrackedBody<B>>, DropConnection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let State::Pending(pending) = &mut this.state {
            ready!(pending.poll_address_permit(this.in_flight.as_mut(), cx));
            ready!(pending.poll_start(&this.exchange, cx));
            if let State::Pending(pending) = std::mem::replace(&mut this.state, State::Finished) {
                this.state = State::Running(pending.start());
            }
        }
        let State::Running(work) = &mut this.state else {
            return Poll::Pending;
        };
        let outcome = ready!(work.as_mut().poll(cx));
        this.state = State::Finished;
        let Some(in_flight) = this.in_flight.take() else {
            return Poll::Pending;
        };
        let closes = this
            .exchange
            .take_rest()
            .is_some_and(|rest| this.finish_body(rest, &in_flight, cx));
        let mut response = match outcome {
            Ok(response) if response.extensions().get::<DropConnection>().is_some() => {
                return Poll::Ready(Err(DropConnection));
            }
            Ok(response) => {
                let (parts, body) = response.into_parts();
                Response::from_parts(
                    parts,
                    TrackedBody::new(body, in_flight, this.shared.limits.response_bytes),
                )
            }
            Err(_) => {
                this.shared.counts.record(Event::Panicked);
                let mut response = Response::new(TrackedBody::empty(in_flight));
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                response
            }
        };
        let is_last = this.version != Version::HTTP_2 && this.shared.stopping.is_cancelled();
        if closes || is_last {
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(response))
    }
}

impl<H> Pending<H> {
    /// Waits for a permit of the peer's address, unless it is exempt.
    fn poll_address_permit(&mut self, in_flight: Option<&mut InFlight>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(in_flight) = in_flight else {
            return Poll::Ready(());
        };
        let Some(permits) = in_flight
            .activity()
            .permits
            .as_ref()
            .filter(|_| in_flight.permit.is_none())
        else {
            return Poll::Ready(());
        };
        let permit = match &mut self.waiting {
            None => match permits.clone().try_acquire_owned() {
                Ok(permit) => Some(permit),
                Err(_) => {
                    let waiting = self.waiting.insert(Box::pin(permits.clone().acquire_owned()));
                    ready!(waiting.as_mut().poll(cx)).ok()
                }
            },
            Some(waiting) => ready!(waiting.as_mut().poll(cx)).ok(),
        };
        in_flight.permit = permit;
        Poll::Ready(())
    }

    /// Waits until the request's handler may start.
    fn poll_start(&mut self, exchange: &Exchange, cx: &mut Context<'_>) -> Poll<()> {
        if matches!(self.starts, Starts::WithBody | Starts::WithBodyNow) {
            self.starts = match (self.request.body_mut().poll_arrival(cx), self.starts) {
                (Poll::Ready(()), _) => Starts::WithPermit,
                (Poll::Pending, Starts::WithBody) => {
                    self.starts = Starts::WithBodyNow;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                (Poll::Pending, _) => Starts::AtOnce,
            };
        }
        match self.starts {
            Starts::WithPermit => exchange.poll_permit(cx),
            _ => Poll::Ready(()),
        }
    }

    /// Returns the future of the handler.
    fn start<F, B>(self) -> Work<B>
    where
        H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
    {
        let Pending {
            request, handler, peer, ..
        } = self;
        // Called inside the future, so that a panic of the handler function itself is caught as well.
        let work = async move { handler(peer, request).await };
        Box::pin(AssertUnwindSafe(work).catch_unwind())
    }
}

impl<H, B: 'static> RequestFuture<H, B> {
    /// Handles the part of the body that the handler did not read. Returns whether the connection must close after the
    /// response.
    fn finish_body(&self, mut rest: Incoming, in_flight: &InFlight, cx: &mut Context<'_>) -> bool {
        if self.version == Version::HTTP_2 {
            // Dropping the rest makes h2 release the window and reset the stream with NO_ERROR after the response.
            return false;
        }
        if !self.may_keep_alive || rest.size_hint().upper().is_none_or(|left| left > MAX_UNREAD_REST) {
            in_flight.activity().mark_body_unread();
            return true;
        }
        // The part that arrived together with the head is available immediately.
        while let Poll::Ready(frame) = Pin::new(&mut rest).poll_frame(cx) {
            if !matches!(frame, Some(Ok(_))) {
                return false;
            }
        }
        let request = in_flight.activity().begin(false);
        let time = self.shared.limits.linger_pause;
        self.shared.tasks.spawn(async move {
            // If the rest does not arrive in time, it is dropped, and hyper closes a connection whose body was not read.
            let drained = tokio::time::timeout(time, async { while let Some(Ok(_)) = rest.frame().await {} });
            if drained.await.is_err() {
                request.activity().mark_body_unread();
            }
        });
        false
    }
}

impl<H, B: 'static> Drop for RequestFuture<H, B> {
    fn drop(&mut self) {
        // A handler that has not started has done nothing that must be finished.
        if let State::Running(work) = std::mem::replace(&mut self.state, State::Finished) {
            // It stays in progress.
            let permit = self.in_flight.as_mut().and_then(|in_flight| in_flight.permit.take());
            let exchange = self.exchange.clone();
            self.shared.detach(work.map(move |_| drop((permit, exchange))));
        }
    }
}
