//! One connection: its handshake, its requests and its deadlines.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use hyper::body::Body;
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep, sleep_until, timeout};

use super::activity::{Activity, Command, Deadline, Protocol};
use super::counts::Event;
use super::io::TrackedIo;
use super::limits::Limits;
use super::request::RequestBody;
use super::service::ConnectionService;
use super::{BoxError, Shared};

/// Bytes of request bodies that HTTP/2 buffers for handlers that do not read, per stream and per connection.
const HTTP2_STREAM_WINDOW: u32 = 256 * 1024;
const HTTP2_CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Bytes of a response that HTTP/2 takes from its body before the peer has read the bytes before them. The rest of the last frame
/// is in addition.
const HTTP2_SEND_BUFFER: usize = 4 * 1024;

/// How many streams the peer may reset before they are accepted, and how many may fail because of its errors. Beyond these
/// numbers the connection is closed as a "rapid reset" attack.
const HTTP2_PENDING_RESETS: usize = 20;
const HTTP2_ERRORS: usize = 64;

/// How long a connection without a request stays open after the listener has stopped. A request that has arrived, or that is on its
/// way, gets its response.
const DRAIN: Duration = Duration::from_millis(200);

/// Spawns the tasks of HTTP/2 streams in the listener's task tracker, so that a stop waits for them.
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
                shared.counts.record(Event::Panicked);
            }
        });
    }
}

/// Configures hyper. Its timeout for request heads is disabled: `activity` measures heads without an allocation per request,
/// and also measures the times between requests and the reading of responses.
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
        .max_send_buf_size(HTTP2_SEND_BUFFER)
        .max_pending_accept_reset_streams(HTTP2_PENDING_RESETS)
        .max_local_error_reset_streams(HTTP2_ERRORS)
        .keep_alive_interval(http2_ping)
        .keep_alive_timeout(http2_pong);
    builder
}

/// Completes the connection's handshake within its timeout. Returns `None` if the connection must be closed.
pub(super) async fn complete_handshake<T>(
    shared: &Shared,
    activity: &Activity,
    handshake: impl Future<Output = std::io::Result<T>>,
) -> Option<T> {
    let mut handshake = pin!(handshake);
    let mut drain = Drain::default();
    let until_commanded = poll_fn(|cx| match activity.poll_command(cx.waker()) {
        Command::Serve => handshake.as_mut().poll(cx).map(Some),
        Command::Finish => match handshake.as_mut().poll(cx) {
            Poll::Pending => drain.poll(cx).map(|()| None),
            done => done.map(Some),
        },
        Command::Evict | Command::Abort => Poll::Ready(None),
    });
    match timeout(
        shared.limits.handshake.min(shared.limits.first_request),
        until_commanded,
    )
    .await
    {
        Ok(Some(Ok(io))) => return Some(io),
        Ok(Some(Err(error))) => shared.counts.record_with_reason(Event::HandshakeFailed, error),
        Ok(None) => {}
        Err(_) => shared.counts.record(Event::NoRequest),
    }
    None
}

/// The end of [`DRAIN`], which begins with the first poll.
#[derive(Default)]
struct Drain(Option<Pin<Box<Sleep>>>);

impl Drain {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.get_or_insert_with(|| Box::pin(sleep(DRAIN))).as_mut().poll(cx)
    }
}

/// Serves a connection until the peer closes it, a deadline expires, or a command ends it.
pub(super) async fn serve<T, H, F, B>(
    protocols: &auto::Builder<Streams>,
    io: T,
    peer: SocketAddr,
    activity: &Arc<Activity>,
    shared: &Arc<Shared>,
    handler: Arc<H>,
) where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let service = ConnectionService {
        shared: shared.clone(),
        activity: activity.clone(),
        peer,
        handler,
    };
    let io = TokioIo::new(TrackedIo::new(io, activity.clone(), shared.clone()));
    let mut connection = pin!(protocols.serve_connection(io, service));
    let clock = activity.clock();
    let mut timer = pin!(sleep_until(clock.at(clock.now())));
    let mut closing_since = None;
    let mut drain = Drain::default();
    poll_fn(|cx| {
        let mut is_draining = false;
        match activity.poll_command(cx.waker()) {
            Command::Abort => return Poll::Ready(()),
            Command::Evict if closing_since.is_none() && activity.is_idle_http1() => return Poll::Ready(()),
            // hyper would close an idle connection without reading a request that is in the socket's buffer.
            Command::Finish if closing_since.is_none() && activity.is_idle_http1() => is_draining = true,
            command @ (Command::Evict | Command::Finish) if closing_since.is_none() => {
                closing_since = Some(clock.now());
                connection.as_mut().graceful_shutdown();
                if command == Command::Evict && activity.idle_since().is_some() {
                    // A single poll sends the GOAWAY of HTTP/2.
                    let _ = connection.as_mut().poll(cx);
                    return Poll::Ready(());
                }
                timer.as_mut().reset(clock.at(clock.now()));
            }
            Command::Evict | Command::Finish | Command::Serve => {}
        }
        loop {
            match catch_unwind(AssertUnwindSafe(|| connection.as_mut().poll(cx))) {
                Ok(Poll::Pending) => {}
                // Errors are ignored: the peer caused them.
                Ok(Poll::Ready(_)) => return Poll::Ready(()),
                Err(_) => {
                    shared.counts.record(Event::Panicked);
                    return Poll::Ready(());
                }
            }
            if is_draining {
                if !activity.is_idle_http1() {
                    is_draining = false;
                    closing_since = Some(clock.now());
                    connection.as_mut().graceful_shutdown();
                    continue;
                }
                if drain.poll(cx).is_ready() {
                    return Poll::Ready(());
                }
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            match activity.check_deadline(&shared.limits, closing_since) {
                Deadline::Pending(time) => timer.as_mut().reset(clock.at(time)),
                Deadline::Expired(event) => {
                    if let Some(event) = event {
                        shared.counts.record(event);
                    }
                    // GOAWAY names the last request that was processed. The peer has a moment to read it.
                    if event != Some(Event::Idle) || activity.protocol() != Protocol::Http2 {
                        return Poll::Ready(());
                    }
                    closing_since = Some(clock.now());
                    connection.as_mut().graceful_shutdown();
                    timer.as_mut().reset(clock.at(clock.now()));
                }
            }
        }
    })
    .await;
}
