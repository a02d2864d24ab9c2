//! A listener at work, and its end.

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

use super::counts::Tally;
use super::pulse::Order;
use super::request::RequestBody;
use super::{BoxError, Shared, accept};

/// What is aborted is waited for this long; what does not yield by then blocks its thread, and nothing helps.
const ABORTING: Duration = Duration::from_secs(5);

/// A listener at work. Dropped without [`Running::stop`], it ends everything at once.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// Begins to accept: each connection goes through `handshake`, each of its requests to `handler`.
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
    let accepting = tokio::spawn(accept::accept(tcp, shared.clone(), handshake, handler));
    Running {
        address,
        shared,
        accepting,
    }
}

/// Tells what a listener has done.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Shared>);

impl Watch {
    /// As [`Running::tally`].
    pub fn tally(&self) -> Tally {
        self.0.tally()
    }
}

impl Shared {
    fn tally(&self) -> Tally {
        self.counts.tally(self.seats.count(), self.detached.load(Acquire))
    }
}

impl Running {
    /// What is, and what has happened since the start.
    pub fn tally(&self) -> Tally {
        self.shared.tally()
    }

    /// Tells the tally for as long as it is kept, and keeps nothing at work.
    pub fn watch(&self) -> Watch {
        Watch(self.shared.clone())
    }

    /// Takes no more connections and no more requests, closes what is idle, and lets requests under way finish until
    /// `deadline`, those whose clients have gone included. Returns whether all did; the rest is aborted.
    pub async fn stop(mut self, deadline: Duration) -> bool {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
        self.shared.seats.order(Order::Finish);
        self.shared.tasks.close();
        let all = timeout(deadline, self.shared.tasks.wait()).await.is_ok();
        if !all {
            self.abort();
            let _ = timeout(ABORTING, self.shared.tasks.wait()).await;
        }
        self.shared.counts.log_pending();
        all
    }

    fn abort(&self) {
        self.accepting.abort();
        self.shared.abort.cancel();
        self.shared.seats.order(Order::Abort);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.abort();
    }
}
