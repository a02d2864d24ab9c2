//! Taking connections from the operating system, whatever it says.

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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::counts::{Event, LOG_EVERY};
use super::request::RequestBody;
use super::{BoxError, Shared, connection};

/// The pause after a failed accept, doubled with each in a row.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Accepts until it is dropped.
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
    let protocols = Arc::new(connection::protocols(&shared));
    let (handshake, handler) = (Arc::new(handshake), Arc::new(handler));
    let mut log = interval(LOG_EVERY);
    log.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut door = Accepting::new(tcp);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = door.next(&shared) => accepted,
            _ = log.tick() => {
                shared.counts.log_pending();
                continue;
            }
        };
        let Some(pulse) = shared.seats.take(peer.ip(), &shared.limits, &shared.counts) else {
            continue;
        };
        let (protocols, handler, handshake) = (protocols.clone(), handler.clone(), handshake.clone());
        let shared = shared.clone();
        shared.clone().tasks.spawn(async move {
            let _seat = shared.seats.sit(&pulse);
            if let Some(io) = connection::shake_hands(&shared, &pulse, handshake(stream)).await {
                connection::serve(&protocols, io, peer, &pulse, &shared, handler).await;
            }
        });
    }
}

/// The socket that is listened on, with a descriptor to spare. Without descriptors, the operating system does not even say
/// whether there is a connection to accept: with the spare one given up, it does.
struct Accepting {
    tcp: TcpListener,
    spare: Option<OwnedFd>,
    pause: Duration,
}

impl Accepting {
    fn new(tcp: TcpListener) -> Self {
        let spare = spare(&tcp).ok();
        Accepting {
            tcp,
            spare,
            pause: PAUSE,
        }
    }

    /// The next connection. No error ends the listener, and none makes it spin.
    async fn next(&mut self, shared: &Shared) -> (TcpStream, SocketAddr) {
        loop {
            self.regain_spare(shared).await;
            let error = match self.tcp.accept().await {
                Ok(accepted) => {
                    self.pause = PAUSE;
                    return accepted;
                }
                Err(error) => error,
            };
            if is_exhaustion(&error) {
                self.spare = None;
                // Nothing is lost as long as nobody waits. Otherwise somebody idle gives way to who does, who is closed
                // at once where there is none.
                let Some(waiting) = self.tcp.accept().now_or_never() else {
                    continue;
                };
                shared.counts.note_because(Event::AcceptFailed, &error);
                if let Some(accepted) = waiting.ok().filter(|_| shared.seats.free_one(&shared.counts)) {
                    return accepted;
                }
                continue;
            }
            shared.counts.note_because(Event::AcceptFailed, &error);
            if !concerns_one(&error) {
                self.pause().await;
            }
        }
    }

    /// Waits for a descriptor to spare, which those who gave way leave in a moment.
    async fn regain_spare(&mut self, shared: &Shared) {
        self.spare = self.spare.take().or_else(|| spare(&self.tcp).ok());
        while self.spare.is_none() {
            self.pause().await;
            match spare(&self.tcp) {
                Ok(descriptor) => {
                    self.spare = Some(descriptor);
                    self.pause = PAUSE;
                }
                Err(error) => {
                    shared.counts.note_because(Event::AcceptFailed, &error);
                    shared.seats.free_one(&shared.counts);
                }
            }
        }
    }

    async fn pause(&mut self) {
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

fn spare(tcp: &TcpListener) -> io::Result<OwnedFd> {
    tcp.as_fd().try_clone_to_owned()
}

/// Whether an error says something of the connection that would have been accepted, which is gone with it. Linux hands over
/// here what the network has already reported of the new connection.
fn concerns_one(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset
    )
}

/// Whether the process, or the machine, has no descriptor left.
fn is_exhaustion(error: &io::Error) -> bool {
    error
        .raw_os_error()
        .is_some_and(|code| matches!(Errno::from_raw(code), Errno::EMFILE | Errno::ENFILE))
}
