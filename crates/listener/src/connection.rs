//! One connection: its handshake, its requests and its deadlines.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep, sleep_until, timeout};

use super::activity::{Activity, Command, Deadline, Protocol};
use super::counts::Event;
use super::io::TrackedIo;
use super::protocol::{self, Protocols};
use super::request::RequestBody;
use super::service::ConnectionService;
use super::{BoxError, Shared};

/// How long a connection without a request stays open after the listener has stopped. A request that has arrived, or that is on its
/// way, gets its response.
const DRAIN: Duration = Duration::from_millis(200);

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
    protocols: Arc<Protocols>,
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
    let io = TrackedIo::new(io, activity.clone(), shared.clone());
    let mut connection = protocol::Connection::new(protocols, io, service);
    let clock = activity.clock();
    let mut timer_ends = clock.now();
    let mut timer = pin!(sleep_until(clock.at(timer_ends)));
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
                connection.graceful_shutdown();
                if command == Command::Evict && activity.idle_since().is_some() {
                    // A single poll sends the GOAWAY of HTTP/2.
                    let _ = connection.poll(cx);
                    return Poll::Ready(());
                }
                timer.as_mut().reset(clock.at(clock.now()));
            }
            Command::Evict | Command::Finish | Command::Serve => {}
        }
        loop {
            match catch_unwind(AssertUnwindSafe(|| connection.poll(cx))) {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(())) => return Poll::Ready(()),
                Err(_) => {
                    shared.counts.record(Event::Panicked);
                    return Poll::Ready(());
                }
            }
            if is_draining {
                if !activity.is_idle_http1() {
                    is_draining = false;
                    closing_since = Some(clock.now());
                    connection.graceful_shutdown();
                    continue;
                }
                if drain.poll(cx).is_ready() {
                    return Poll::Ready(());
                }
            }
            let may_free = closing_since.is_none() && !is_draining && connection.has_buffers();
            let buffered_until = activity.buffered_until().filter(|_| may_free);
            if let Some(time) = buffered_until
                && time < timer_ends
            {
                timer_ends = time;
                timer.as_mut().reset(clock.at(time));
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if buffered_until.is_some_and(|time| clock.now() >= time) {
                connection.free_buffers();
                continue;
            }
            match activity.check_deadline(&shared.limits, closing_since) {
                Deadline::Pending(time) => {
                    timer_ends = time;
                    timer.as_mut().reset(clock.at(time));
                }
                Deadline::Expired(event) => {
                    if let Some(event) = event {
                        shared.counts.record(event);
                    }
                    // GOAWAY names the last request that was processed. The peer has a moment to read it.
                    if event != Some(Event::Idle) || activity.protocol() != Protocol::Http2 {
                        return Poll::Ready(());
                    }
                    closing_since = Some(clock.now());
                    connection.graceful_shutdown();
                    timer.as_mut().reset(clock.at(clock.now()));
                }
            }
        }
    })
    .await;
}
