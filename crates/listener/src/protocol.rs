//! The protocol of a connection, and its buffers, which exist only while they are needed.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use hyper::body::{Body, Incoming};
use hyper::rt::Executor;
use hyper::rt::bounds::Http2ServerConnExec;
use hyper::server::conn::{http1, http2};
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::Protocol;
use super::counts::Event;
use super::io::TrackedIo;
use super::limits::Limits;
use super::{BoxError, Shared};

/// The first bytes of an HTTP/2 connection (RFC 9113, section 3.4).
const HTTP2_PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

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

/// hyper's settings for both protocols. Its timeout for request heads is disabled: `activity` measures heads without an allocation
/// per request, and also measures the times between requests and the reading of responses.
pub(super) struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<Streams>,
}

impl Protocols {
    pub fn new(shared: &Arc<Shared>) -> Self {
        let Limits {
            http1_buffer,
            http2_streams,
            http2_header_list,
            http2_ping,
            http2_pong,
            ..
        } = shared.limits;
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_buf_size(http1_buffer);
        let mut http2 = http2::Builder::new(Streams(shared.clone()));
        http2
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
        Self { http1, http2 }
    }
}

/// A connection of either protocol. hyper's buffers of an HTTP/1 connection take 16 KiB, which is most of what a connection
/// occupies. They are allocated when the first bytes of a request arrive, and [`Connection::free_buffers`] frees them.
pub(super) struct Connection<T, S: HttpService<Incoming>> {
    protocols: Arc<Protocols>,
    state: State<T, S>,
}

enum State<T, S: HttpService<Incoming>> {
    Waiting(Waiting<T, S>),
    Http1(Box<http1::Connection<TokioIo<TrackedIo<T>>, S>>),
    Http2(Box<http2::Connection<TokioIo<TrackedIo<T>>, S, Streams>>),
    Closed,
}

/// A connection that waits for the first bytes of a request.
struct Waiting<T, S> {
    io: TrackedIo<T>,
    service: S,
    /// HTTP/1 if requests have arrived already, otherwise unknown.
    protocol: Protocol,
    start: [u8; HTTP2_PREFACE.len()],
    filled: usize,
}

impl<T, S, B> Connection<T, S>
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<BoxError>,
    B: Body + 'static,
    B::Error: Into<BoxError>,
    Streams: Http2ServerConnExec<S::Future, B>,
{
    /// Returns a connection that waits for its first bytes.
    pub fn new(protocols: Arc<Protocols>, io: TrackedIo<T>, service: S) -> Self {
        let waiting = Waiting::new(io, service, Protocol::Unknown);
        Self {
            protocols,
            state: State::Waiting(waiting),
        }
    }

    /// Serves requests until the connection must be closed. Errors are ignored, because the peer caused them.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let protocol = match &mut self.state {
                State::Http1(connection) => return Pin::new(&mut **connection).poll(cx).map(drop),
                State::Http2(connection) => return Pin::new(&mut **connection).poll(cx).map(drop),
                State::Closed => return Poll::Ready(()),
                State::Waiting(waiting) => ready!(waiting.poll_protocol(cx)),
            };
            let State::Waiting(mut waiting) = std::mem::replace(&mut self.state, State::Closed) else {
                continue;
            };
            waiting.io.rewind(&waiting.start[..waiting.filled]);
            let (io, service) = (TokioIo::new(waiting.io), waiting.service);
            self.state = match protocol {
                Some(Protocol::Http2) => State::Http2(Box::new(self.protocols.http2.serve_connection(io, service))),
                Some(_) => State::Http1(Box::new(self.protocols.http1.serve_connection(io, service))),
                None => State::Closed,
            };
        }
    }

    /// Starts to close the connection: running requests can finish.
    pub fn graceful_shutdown(&mut self) {
        match &mut self.state {
            State::Waiting(_) => self.state = State::Closed,
            State::Http1(connection) => Pin::new(&mut **connection).graceful_shutdown(),
            State::Http2(connection) => Pin::new(&mut **connection).graceful_shutdown(),
            State::Closed => {}
        }
    }

    /// Returns whether [`Connection::free_buffers`] would free anything.
    pub fn has_buffers(&self) -> bool {
        matches!(self.state, State::Http1(_))
    }

    /// Frees the buffers of an HTTP/1 connection that waits for a request. Bytes that have arrived, but were not processed yet, are
    /// kept.
    pub fn free_buffers(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Http1(connection) => {
                let parts = connection.into_parts();
                let mut io = parts.io.into_inner();
                io.rewind(&parts.read_buf);
                State::Waiting(Waiting::new(io, parts.service, Protocol::Http1))
            }
            other => other,
        };
    }
}

impl<T: AsyncRead + Unpin, S> Waiting<T, S> {
    fn new(io: TrackedIo<T>, service: S, protocol: Protocol) -> Self {
        Self {
            io,
            service,
            protocol,
            start: [0; HTTP2_PREFACE.len()],
            filled: 0,
        }
    }

    /// Reads until the protocol is known. Returns `None` if the stream failed. At its end, HTTP/1 closes it.
    fn poll_protocol(&mut self, cx: &mut Context<'_>) -> Poll<Option<Protocol>> {
        loop {
            let mut buffer = ReadBuf::new(&mut self.start[self.filled..]);
            if ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer)).is_err() {
                return Poll::Ready(None);
            }
            let count = buffer.filled().len();
            self.filled += count;
            let may_be_http2 =
                self.protocol == Protocol::Unknown && HTTP2_PREFACE.starts_with(&self.start[..self.filled]);
            if count == 0 || !may_be_http2 {
                return Poll::Ready(Some(Protocol::Http1));
            }
            if self.filled == HTTP2_PREFACE.len() {
                return Poll::Ready(Some(Protocol::Http2));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use bytes::Bytes;
    use futures::FutureExt;
    use http::{Request, Response};
    use http_body_util::Full;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;
    use crate::request::RequestBody;
    use crate::service::ConnectionService;

    /// The first bytes of a request that [`LAST`] completes.
    const FIRST: &[u8] = b"GET / HTTP/1.1\r\nHo";
    const LAST: &[u8] = b"st: a\r\n\r\n";

    async fn respond(_: SocketAddr, request: Request<RequestBody>) -> Response<Full<Bytes>> {
        let host = request.headers().get("host").map(|host| host.as_bytes().to_vec());
        Response::new(Full::from(host.unwrap_or_default()))
    }

    /// Polls a connection until it waits.
    macro_rules! run {
        ($connection:expr) => {
            std::future::poll_fn(|cx| Poll::Ready($connection.poll(cx).is_pending())).await
        };
    }

    async fn response(client: &mut DuplexStream) -> String {
        let mut bytes = vec![0; 4096];
        let count = client.read(&mut bytes).now_or_never();
        bytes.truncate(count.map_or(0, Result::unwrap_or_default));
        String::from_utf8(bytes).unwrap_or_default()
    }

    #[tokio::test]
    async fn bytes_that_have_arrived_are_kept_when_the_buffers_are_freed() {
        let shared = Arc::new(Shared::new(Limits::default()));
        let peer: SocketAddr = (Ipv4Addr::LOCALHOST, 1).into();
        let acquired = shared.slots.acquire(peer.ip(), &shared.limits, &shared.counts);
        let activity = acquired.expect("a free slot");
        let (mut client, server) = duplex(64 * 1024);
        let service = ConnectionService {
            shared: shared.clone(),
            activity: activity.clone(),
            peer,
            handler: Arc::new(respond),
        };
        let io = TrackedIo::new(server, activity.clone(), shared.clone());
        let mut connection = Connection::new(Arc::new(Protocols::new(&shared)), io, service);

        assert!(
            run!(connection) && !connection.has_buffers(),
            "before the first request"
        );
        client.write_all(&[FIRST, LAST, FIRST].concat()).await.expect("a write");
        assert!(run!(connection) && connection.has_buffers());
        assert!(response(&mut client).await.ends_with("\r\n\r\na"));
        assert!(activity.buffered_until().is_some());

        connection.free_buffers();
        assert!(!connection.has_buffers());
        assert!(run!(connection) && connection.has_buffers());
        assert_eq!(activity.buffered_until(), None, "half a head has arrived");
        client.write_all(LAST).await.expect("a write");
        assert!(run!(connection));
        assert!(response(&mut client).await.ends_with("\r\n\r\na"));

        connection.free_buffers();
        assert!(run!(connection) && !connection.has_buffers());
        client.write_all(&[FIRST, LAST].concat()).await.expect("a write");
        assert!(run!(connection) && connection.has_buffers());
        assert!(response(&mut client).await.ends_with("\r\n\r\na"));
    }
}
