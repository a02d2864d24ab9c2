//! Acceptance of connections, even if no file descriptors are left.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use hyper::body::Body;
use nix::errno::Errno;
#[cfg(target_os = "linux")]
use socket2::{SockFilter, SockRef};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::counts::{Event, LOG_EVERY};
use super::protocol::Protocols;
use super::request::RequestBody;
use super::{BoxError, Shared, connection};

/// The pause after a failed accept. It doubles with each consecutive failure.
const PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// How long a stop waits for clients to complete the TCP handshakes that have begun.
const HANDSHAKES: Duration = Duration::from_millis(20);

/// Accepts connections until the listener stops. Connections that are in the backlog then are accepted as well.
pub(super) async fn accept<K, S, T, H, F, B>(tcp: TcpListener, shared: Arc<Shared>, handshake: K, handler: H)
where
    K: Fn(TcpStream) -> S + Send + Sync + 'static,
    S: Future<Output = io::Result<T>> + Send + 'static,
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let protocols = Arc::new(Protocols::new(&shared));
    let (handshake, handler) = (Arc::new(handshake), Arc::new(handler));
    let mut log = interval(LOG_EVERY);
    log.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut acceptor = Acceptor::new(tcp);
    let serve = |(stream, peer): (TcpStream, SocketAddr)| {
        let Some(activity) = shared.slots.acquire(peer.ip(), &shared.limits, &shared.counts) else {
            return;
        };
        let (protocols, handler, handshake) = (protocols.clone(), handler.clone(), handshake.clone());
        let shared = shared.clone();
        shared.clone().tasks.spawn(async move {
            let _slot = shared.slots.guard(&activity);
            if let Some(io) = connection::complete_handshake(&shared, &activity, handshake(stream)).await {
                connection::serve(protocols, io, peer, &activity, &shared, handler).await;
            }
        });
    };
    loop {
        tokio::select! {
            accepted = acceptor.next(&shared) => serve(accepted),
            _ = log.tick() => shared.counts.log_pending(),
            () = shared.stopping.cancelled() => break,
        }
    }
    // The operating system resets connections in the backlog of a socket that is closed. No connection may therefore be established
    // between the last accept and the close.
    acceptor.ignore_new_connections();
    let _ = timeout(HANDSHAKES, async {
        loop {
            serve(acceptor.next(&shared).await);
        }
    })
    .await;
    acceptor.backlog().into_iter().for_each(serve);
}

/// A listening socket with a spare descriptor. A process without free descriptors cannot detect whether a connection
/// waits to be accepted. Closing the spare descriptor makes that possible.
struct Acceptor {
    tcp: TcpListener,
    spare: Option<OwnedFd>,
    pause: Duration,
}

impl Acceptor {
    fn new(tcp: TcpListener) -> Self {
        let spare = spare(&tcp).ok();
        Acceptor {
            tcp,
            spare,
            pause: PAUSE,
        }
    }

    /// Returns the next connection. Errors neither end the listener nor make it spin.
    async fn next(&mut self, shared: &Shared) -> (TcpStream, SocketAddr) {
        loop {
            self.restore_spare(shared).await;
            let error = match self.tcp.accept().await {
                Ok(accepted) => {
                    self.pause = PAUSE;
                    return accepted;
                }
                Err(error) => error,
            };
            if is_exhaustion(&error) {
                self.spare = None;
                // If a client waits, an idle connection is evicted for it. If none is idle, the new one is closed.
                let Some(waiting) = self.tcp.accept().now_or_never() else {
                    continue;
                };
                shared.counts.record_with_reason(Event::AcceptFailed, &error);
                if let Some(accepted) = waiting.ok().filter(|_| shared.slots.evict_one(&shared.counts)) {
                    return accepted;
                }
                continue;
            }
            shared.counts.record_with_reason(Event::AcceptFailed, &error);
            if !is_connection_error(&error) {
                self.pause().await;
            }
        }
    }

    /// Makes the operating system ignore new connections. Clients repeat them after a second, when the socket is closed and another
    /// process may serve its port. Handshakes that have begun can complete.
    #[cfg(target_os = "linux")]
    fn ignore_new_connections(&self) {
        /// A Berkeley Packet Filter that drops segments with SYN and without ACK.
        const FILTER: [SockFilter; 5] = [
            // Load the flags, which are the 14th byte of the TCP header.
            SockFilter::new(0x30, 0, 0, 13),
            // Keep SYN and ACK.
            SockFilter::new(0x54, 0, 0, 0x12),
            // Skip the next instruction unless only SYN is set.
            SockFilter::new(0x15, 0, 1, 0x02),
            SockFilter::new(0x06, 0, 0, 0),
            SockFilter::new(0x06, 0, 0, u32::MAX),
        ];
        if let Err(error) = SockRef::from(&self.tcp).attach_filter(&FILTER) {
            tracing::debug!(%error, "failed to ignore new connections; those that arrive now may be reset");
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn ignore_new_connections(&self) {}

    /// Closes the socket, and returns the connections in its backlog.
    fn backlog(self) -> Vec<(TcpStream, SocketAddr)> {
        let Ok(tcp) = self.tcp.into_std() else {
            return Vec::new();
        };
        // The socket does not block. An error ends the backlog as well, because nothing more can be accepted.
        std::iter::from_fn(|| tcp.accept().ok())
            .filter_map(|(stream, peer)| {
                stream.set_nonblocking(true).ok()?;
                Some((TcpStream::from_std(stream).ok()?, peer))
            })
            .collect()
    }

    /// Waits for a free descriptor. An evicted connection frees its descriptor within moments.
    async fn restore_spare(&mut self, shared: &Shared) {
        self.spare = self.spare.take().or_else(|| spare(&self.tcp).ok());
        while self.spare.is_none() {
            self.pause().await;
            match spare(&self.tcp) {
                Ok(descriptor) => {
                    self.spare = Some(descriptor);
                    self.pause = PAUSE;
                }
                Err(error) => {
                    shared.counts.record_with_reason(Event::AcceptFailed, &error);
                    shared.slots.evict_one(&shared.counts);
                }
            }
        }
    }

    async fn pause(&mut self) {
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
    }
}

fn spare(tcp: &TcpListener) -> io::Result<OwnedFd> {
    tcp.as_fd().try_clone_to_owned()
}

/// Returns whether an error is about the one connection that would have been accepted. On Linux, `accept` returns pending
/// network errors of the new connection.
fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset
    )
}

/// Returns whether the process or the machine has no descriptor left.
fn is_exhaustion(error: &io::Error) -> bool {
    error
        .raw_os_error()
        .is_some_and(|code| matches!(Errno::from_raw(code), Errno::EMFILE | Errno::ENFILE))
}
