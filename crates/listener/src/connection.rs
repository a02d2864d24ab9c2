//! One connection, from its acceptance to its end.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use hyper::body::Body;
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep_until, timeout};

use super::counts::Event;
use super::io::Watched;
use super::limits::Limits;
use super::pulse::{Due, Order, Pulse, Stage};
use super::request::RequestBody;
use super::service::Door;
use super::{BoxError, Shared};

/// Bytes of request bodies that HTTP/2 holds for a handler that does not read, per stream and per connection.
const HTTP2_STREAM_WINDOW: u32 = 256 * 1024;
const HTTP2_CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Streams that the peer may have reset before they were looked at, and streams that may end by its errors: beyond them
/// the connection is closed as an attack ("rapid reset").
const HTTP2_PENDING_RESETS: usize = 20;
const HTTP2_ERRORS: usize = 64;

/// Spawns the tasks of HTTP/2's streams where they are waited for.
#[derive(Clone)]
pub(super) struct Streams(Arc<Shared>);

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let shared = self.0.clone();
        self.0.tasks.spawn(async move {
            if AssertUnwindSafe(stream).catch_unwind().await.is_err() {
                shared.counts.note(Event::Panicked);
            }
        });
    }
}

/// How connections are served. hyper's own clocks for heads are off: `pulse` measures them, without an allocation per
/// request, and measures what hyper does not.
pub(super) fn protocols(shared: &Arc<Shared>) -> auto::Builder<Streams> {
    let Limits {
        http1_buffer,
        http2_streams,
        http2_header_list,
        http2_ping,
        http2_pong,
        ..
    } = shared.limits;
    let mut builder = auto::Builder::new(Streams(shared.clone()));
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(http1_buffer);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(http2_streams)
        .max_header_list_size(http2_header_list)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(HTTP2_PENDING_RESETS)
        .max_local_error_reset_streams(HTTP2_ERRORS)
        .keep_alive_interval(http2_ping)
        .keep_alive_timeout(http2_pong);
    builder
}

/// Completes the connection's handshake, if it has one, in its time.
pub(super) async fn shake_hands<T>(
    shared: &Shared,
    pulse: &Pulse,
    handshake: impl Future<Output = std::io::Result<T>>,
) -> Option<T> {
    let mut handshake = pin!(handshake);
    let unless_told = poll_fn(|cx| match pulse.orders(cx.waker()) {
        Order::Serve => handshake.as_mut().poll(cx).map(Some),
        Order::GiveWay | Order::Finish | Order::Abort => Poll::Ready(None),
    });
    match timeout(shared.limits.handshake.min(shared.limits.first_request), unless_told).await {
        Ok(Some(Ok(io))) => return Some(io),
        Ok(Some(Err(error))) => shared.counts.note_because(Event::HandshakeFailed, error),
        Ok(None) => {}
        Err(_) => shared.counts.note(Event::NoRequest),
    }
    None
}

/// Serves a connection until its peer, its clocks or its orders end it.
pub(super) async fn serve<T, H, F, B>(
    protocols: &auto::Builder<Streams>,
    io: T,
    peer: SocketAddr,
    pulse: &Arc<Pulse>,
    shared: &Arc<Shared>,
    handler: Arc<H>,
) where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let door = Door {
        shared: shared.clone(),
        pulse: pulse.clone(),
        peer,
        handler,
    };
    let io = TokioIo::new(Watched::new(io, pulse.clone(), shared.clone()));
    let mut connection = pin!(protocols.serve_connection(io, door));
    let clock = pulse.clock();
    let mut timer = pin!(sleep_until(clock.at(clock.now())));
    let mut leaving = None;
    poll_fn(|cx| {
        match pulse.orders(cx.waker()) {
            Order::Abort => return Poll::Ready(()),
            order @ (Order::GiveWay | Order::Finish) if leaving.is_none() => {
                if pulse.is_idle_http1() {
                    return Poll::Ready(());
                }
                leaving = Some(clock.now());
                connection.as_mut().graceful_shutdown();
                if order == Order::GiveWay && pulse.quiet_since().is_some() {
                    // One look sends an HTTP/2 peer its GOAWAY.
                    let _ = connection.as_mut().poll(cx);
                    return Poll::Ready(());
                }
                timer.as_mut().reset(clock.at(clock.now()));
            }
            Order::GiveWay | Order::Finish | Order::Serve => {}
        }
        loop {
            match catch_unwind(AssertUnwindSafe(|| connection.as_mut().poll(cx))) {
                Ok(Poll::Pending) => {}
                // What ends a connection early is its peer's affair.
                Ok(Poll::Ready(_)) => return Poll::Ready(()),
                Err(_) => {
                    shared.counts.note(Event::Panicked);
                    return Poll::Ready(());
                }
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            match pulse.due(&shared.limits, leaving) {
                Due::Until(time) => timer.as_mut().reset(clock.at(time)),
                Due::Cut(event) => {
                    if let Some(event) = event {
                        shared.counts.note(event);
                    }
                    // An HTTP/2 peer is told which of its requests were taken up, and has a moment to hear it.
                    if event != Some(Event::Idle) || pulse.stage() != Stage::Http2 {
                        return Poll::Ready(());
                    }
                    leaving = Some(clock.now());
                    connection.as_mut().graceful_shutdown();
                    timer.as_mut().reset(clock.at(clock.now()));
                }
            }
        }
    })
    .await;
}
