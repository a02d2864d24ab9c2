//! A running listener and its shutdown.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::activity::Command;
use super::counts::Metrics;
use super::request::RequestBody;
use super::{BoxError, Shared, accept};

/// How long a stop waits for aborted tasks. A task that takes longer blocks its thread and cannot be aborted.
const ABORT_TIMEOUT: Duration = Duration::from_secs(5);

/// A running listener. Dropping it without [`Running::stop`] aborts all connections and requests at once.
#[derive(Debug)]
pub struct Running {
    /// The bound address.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// Starts accepting connections. Each connection passes `handshake`, and each of its requests is passed to `handler`.
pub(super) fn start<K, S, T, H, F, B>(
    tcp: TcpListener,
    address: SocketAddr,
    shared: Shared,
    handshake: K,
    handler: H,
) -> Running
where
    K: Fn(TcpStream) -> S + Send + Sync + 'static,
    S: Future<Output = io::Result<T>> + Send + 'static,
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(SocketAddr, Request<RequestBody>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let shared = Arc::new(shared);
    let accepting = accept::accept(tcp, shared.clone(), handshake, handler);
    let watched = shared.clone();
    let accepting = tokio::spawn(async move {
        tokio::select! {
            () = accepting => {}
            () = watched.slots.limit_unread(&watched.limits, &watched.counts) => {}
        }
    });
    Running {
        address,
        shared,
        accepting,
    }
}

/// A handle that reads the counts of a listener.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Shared>);

impl Watch {
    /// Returns the current counts, like [`Running::metrics`].
    pub fn metrics(&self) -> Metrics {
        self.0.metrics()
    }
}

impl Shared {
    fn metrics(&self) -> Metrics {
        let detached = self.detached.load(Acquire);
        self.counts
            .metrics(self.slots.count(), detached, self.in_progress.waiting())
    }
}

impl Running {
    /// Returns the current counts.
    pub fn metrics(&self) -> Metrics {
        self.shared.metrics()
    }

    /// Returns a handle that reads the counts. It does not keep the listener running.
    pub fn watch(&self) -> Watch {
        Watch(self.shared.clone())
    }

    /// Stops accepting connections. Responds to all requests that have arrived, including those in the operating system's
    /// buffers and on connections in the backlog, and closes idle connections. Waits until `deadline` for running requests,
    /// including detached ones, and aborts the rest. Returns whether all requests finished.
    pub async fn stop(mut self, deadline: Duration) -> bool {
        self.shared.stopping.cancel();
        let _ = (&mut self.accepting).await;
        self.shared.slots.send(Command::Finish);
        self.shared.tasks.close();
        let all = timeout(deadline, self.shared.tasks.wait()).await.is_ok();
        if !all {
            self.abort();
            let _ = timeout(ABORT_TIMEOUT, self.shared.tasks.wait()).await;
        }
        self.shared.counts.log_pending();
        all
    }

    fn abort(&self) {
        self.accepting.abort();
        self.shared.abort.cancel();
        self.shared.slots.send(Command::Abort);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.abort();
    }
}
