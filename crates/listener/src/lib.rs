//! Where connections come in: a listener that nobody can hold up by holding on.
//!
//! It knows nothing of the API. It takes connections, bounds how many there are and how long each may do nothing, speaks
//! HTTP/1.1 and HTTP/2 (by prior knowledge) with them on one port, and calls a function with every request.
//!
//! - Every connection has a [`pulse`]: what it is doing and since when. Its task looks at that by the server's own clock,
//!   and ends it when its time is up. Bytes alone buy no time; [`Limits`] says what does.
//! - [`seats`] are bounded, in all and per address. Whoever has been without a request the longest gives way.
//! - A handler is finished when its client goes ([`service`]), a panic is a 500, and an answer that comes before the body
//!   was read reaches the client ([`io`]).
//! - What was turned away or cut is counted, and logged now and then ([`counts`]).
//!
//! What a handler waits for, its request's body included, is the handler's to bound: no clock here runs while it works.

mod accept;
mod client_network;
mod connection;
mod counts;
mod descriptors;
mod io;
mod limits;
mod pulse;
mod request;
mod response;
mod running;
mod seats;
mod service;
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
pub use counts::Tally;
pub use limits::Limits;
pub use request::RequestBody;
pub use running::{Running, Watch};

use crate::tls::Tls;
use counts::{Counts, Event};
use descriptors::Descriptors;
use pulse::Clock;
use seats::Seats;

/// The error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connections that the operating system keeps until they are accepted.
const BACKLOG: u32 = 1024;

/// An address that is listened on; connections wait until [`Listener::serve`] takes them.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
    limits: Limits,
}

impl Listener {
    /// Listens, after raising the process's limit of descriptors as far as it goes; port 0 takes a free one. The
    /// connections of `limits` are bounded further where the descriptors do not suffice for them.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn bind(address: SocketAddr, limits: Limits) -> Result<Self> {
        let descriptors = Descriptors::raise()?;
        let wanted = limits.connections;
        let limits = limits.fitted(descriptors);
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // A restart does not wait for the connections of the process before it.
        socket.set_reuseaddr(true)?;
        inherited(&socket, &limits)?;
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves connections: each request is given to `handler` with the address of its peer. A handler that has begun is
    /// finished even when its client goes.
    pub fn serve<H, F, B>(self, handler: H) -> Running
    where
        H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        self.serve_with(|stream| std::future::ready(Ok(stream)), handler)
    }

    /// Like [`Listener::serve`], over TLS.
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

    /// Like [`Listener::serve`], with a handshake in front: each connection's own task completes it, within
    /// [`Limits::handshake`].
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
        let clock = Clock::start();
        let shared = Shared {
            counts: Counts::new(clock),
            seats: Seats::new(clock),
            limits: self.limits,
            tasks: TaskTracker::new(),
            abort: CancellationToken::new(),
            detached: AtomicUsize::new(0),
        };
        running::start(self.tcp, self.address, shared, handshake, handler)
    }
}

/// Sets what accepted connections inherit. An answer's last packet does not wait for an acknowledgement of the one before;
/// and what a peer does not take is dropped by the operating system too, which otherwise keeps it for minutes after the
/// connection was closed.
fn inherited(socket: &TcpSocket, limits: &Limits) -> Result<()> {
    socket.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    {
        let patience = u32::try_from(limits.stalled_answer.as_millis()).unwrap_or(u32::MAX);
        nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::TcpUserTimeout, &patience)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = limits;
    Ok(())
}

/// What the connections of a listener share.
#[derive(Debug)]
struct Shared {
    limits: Limits,
    counts: Counts,
    seats: Seats,
    /// Everything that a stop waits for.
    tasks: TaskTracker,
    /// Ends the handlers whose connections have gone.
    abort: CancellationToken,
    detached: AtomicUsize,
}

impl Shared {
    /// Finishes work whose connection has gone.
    fn detach(self: &std::sync::Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        // The last connections go with their runtime.
        if self.abort.is_cancelled() || Handle::try_current().is_err() {
            return;
        }
        let one = Detached::new(self.clone());
        if one.before >= self.limits.detached {
            self.counts.note(Event::Abandoned);
            return;
        }
        self.tasks.spawn(async move {
            one.shared.abort.run_until_cancelled(work).await;
        });
    }
}

/// One of the requests whose clients have gone.
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
