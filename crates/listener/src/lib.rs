//! An HTTP listener with connection limits and timeouts that resist slow clients.
//!
//! The listener serves HTTP/1.1 and HTTP/2 (with prior knowledge) on one port, optionally over TLS, and calls a handler for
//! each request. It does not depend on the API.
//!
//! - Connections need a connection slot ([`slots`]). Slots are limited in total and per client network. If none is free,
//!   the connection that has been idle the longest is evicted.
//! - A connection that waits for a request keeps no buffers ([`protocol`]).
//! - Each connection records its [`activity`], and its task closes it when a deadline expires. Sending bytes does not extend a
//!   deadline, except where [`Limits`] documents it.
//! - A handler runs to its end even if its client disconnects ([`service`]). A panic becomes a response with status 500.
//!   A response that is sent before the request body was read still reaches the client ([`io`]). A response with the extension
//!   [`DropConnection`] is not sent.
//! - Requests in progress are limited per client network ([`service`]) and in total ([`in_progress`]). Further ones wait before their
//!   handlers start.
//! - Responses that their peers do not read are limited in total and per client network ([`slots`]).
//! - Rejected and closed connections are counted and logged ([`counts`]).
//!
//! No timeout runs while a handler works, so a handler must limit its own waits, including the one for the request body.

mod accept;
mod activity;
mod client_network;
mod clock;
mod connection;
mod counts;
mod in_progress;
mod io;
mod limits;
mod protocol;
mod request;
mod response;
mod running;
mod service;
mod slots;
pub mod tls;

use std::future::Future;
use std::io::Result;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use client_network::ClientNetwork;
pub use counts::Metrics;
pub use in_progress::Queued;
pub use limits::Limits;
pub use request::RequestBody;
pub use running::{Running, Watch};
pub use service::DropConnection;

use crate::tls::Tls;
use clock::Clock;
use counts::{Counts, Event};
use in_progress::InProgress;
use limits::Descriptors;
use slots::Slots;

/// The error type of bodies.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connections that the operating system queues until they are accepted.
const BACKLOG: u32 = 1024;

/// A bound socket. Connections wait in its backlog until [`Listener::serve`] is called.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
    limits: Limits,
}

impl Listener {
    /// Binds the address; port 0 picks a free port. Raises the process's limit of file descriptors to its maximum first, and
    /// lowers the connection limits if the descriptors do not suffice.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn bind(address: SocketAddr, limits: Limits) -> Result<Self> {
        let descriptors = Descriptors::raise()?;
        let wanted = limits.connections;
        let limits = limits.fit_to(descriptors);
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // So that a restart does not wait for the connections of the previous process.
        socket.set_reuseaddr(true)?;
        set_inherited_options(&socket, &limits)?;
        socket.bind(address)?;
        let tcp = socket.listen(BACKLOG)?;
        let address = tcp.local_addr()?;
        tracing::info!(
            %address,
            descriptors = descriptors.limit,
            descriptors_before = descriptors.before,
            connections = limits.connections,
            connections_wanted = wanted,
            connections_per_address = limits.connections_per_address,
            "listening"
        );
        Ok(Listener { tcp, address, limits })
    }

    /// Returns the bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves connections. Calls `handler` with the peer's address and the request. A handler that has started runs to its end
    /// even if the client disconnects.
    pub fn serve<H, F, B>(self, handler: H) -> Running
    where
        H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        self.serve_with(|stream| std::future::ready(Ok(stream)), handler)
    }

    /// Serves connections over TLS; otherwise like [`Listener::serve`].
    pub fn serve_tls<H, F, B>(self, tls: Tls, handler: H) -> Running
    where
        H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let handshake = move |stream| {
            let tls = tls.clone();
            async move { tls.accept(stream).await }
        };
        self.serve_with(handshake, handler)
    }

    /// Serves connections after a handshake, which each connection's task completes within [`Limits::handshake`]; otherwise
    /// like [`Listener::serve`].
    pub fn serve_with<K, S, T, H, F, B>(self, handshake: K, handler: H) -> Running
    where
        K: Fn(TcpStream) -> S + Send + Sync + 'static,
        S: Future<Output = Result<T>> + Send + 'static,
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        running::start(self.tcp, self.address, Shared::new(self.limits), handshake, handler)
    }
}

/// Sets the socket options that accepted connections inherit. `TCP_NODELAY` sends the last packet of a response at once.
/// `TCP_USER_TIMEOUT` makes the operating system drop unsent bytes, which it otherwise keeps for minutes after the close.
fn set_inherited_options(socket: &TcpSocket, limits: &Limits) -> Result<()> {
    socket.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    {
        let timeout = u32::try_from(limits.stalled_response.as_millis()).unwrap_or(u32::MAX);
        nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::TcpUserTimeout, &timeout)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = limits;
    Ok(())
}

/// The state that the connections of a listener share.
#[derive(Debug)]
struct Shared {
    limits: Limits,
    counts: Counts,
    slots: Slots,
    in_progress: InProgress,
    /// The tasks that a stop waits for.
    tasks: TaskTracker,
    /// Cancelled when the listener stops.
    stopping: CancellationToken,
    /// Aborts detached requests.
    abort: CancellationToken,
    /// How many detached requests are running.
    detached: AtomicUsize,
}

impl Shared {
    fn new(limits: Limits) -> Self {
        let clock = Clock::start();
        Self {
            counts: Counts::new(clock),
            slots: Slots::new(clock, &limits),
            in_progress: InProgress::new(&limits),
            limits,
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            abort: CancellationToken::new(),
            detached: AtomicUsize::new(0),
        }
    }

    /// Runs the rest of a request whose connection has closed, unless too many are running already.
    fn detach(self: &std::sync::Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        // The runtime is shutting down and drops its connections.
        if self.abort.is_cancelled() || Handle::try_current().is_err() {
            return;
        }
        let one = Detached::new(self.clone());
        if one.before >= self.limits.detached {
            self.counts.record(Event::Abandoned);
            return;
        }
        self.tasks.spawn(async move {
            one.shared.abort.run_until_cancelled(work).await;
        });
    }
}

/// Counts a detached request until it is dropped.
struct Detached {
    shared: std::sync::Arc<Shared>,
    before: usize,
}

impl Detached {
    fn new(shared: std::sync::Arc<Shared>) -> Self {
        let before = shared.detached.fetch_add(1, AcqRel);
        Detached { shared, before }
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        self.shared.detached.fetch_sub(1, AcqRel);
    }
}
