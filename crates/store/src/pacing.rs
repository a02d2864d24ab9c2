//! Paced connection attempts.
//!
//! While the database does not respond, every caller of a pool would start an attempt to connect, give up at its own deadline and
//! start another one. PostgreSQL then has to process hundreds of abandoned attempts when it returns: each one costs it a process, and
//! occupies one of its connections. So all pools of a process share a [`Pacer`]:
//!
//! - An attempt is a task of its own. It continues after its caller has given up, and the next caller gets its connection.
//! - If an attempt fails or takes longer than [`HANGING`], the pacer holds back all further callers until an attempt succeeds.
//! - After an attempt that failed, callers get an error at once, and a new attempt starts every [`PACE`].
//! - An attempt that hangs is not abandoned, and callers wait for it. A server that was frozen serves the oldest attempts first, so
//!   each pool keeps one. In case the network or a proxy has lost them, the pacer asks the server every [`PACE`] whether it supports
//!   TLS, which costs it little, and starts a new attempt as soon as it responds.
//!
//! The file is long because the tests, which count attempts of servers that hang, refuse and return, are beside the pacer.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, Error};

use deadpool_postgres::Connect;

/// The interval of attempts while the database does not respond.
pub const PACE: Duration = Duration::from_millis(250);

/// The time after which an attempt counts as hanging.
const HANGING: Duration = Duration::from_millis(500);

/// The time limit of an attempt whose TCP connection is established.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(300);

/// The number of attempts at a time while the database responds.
const CONCURRENT_ATTEMPTS: usize = 8;

/// The number of connections that are kept for callers after theirs have given up.
const SPARES: usize = 2;

/// The message that asks a server whether it supports TLS: its length, and the code of `SSLRequest`.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Paces the connection attempts of all pools to one database server. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Pacer(Arc<State>);

#[derive(Debug)]
struct State {
    /// The number of changes between holding callers back and releasing them. It is odd while they are held back.
    changes: watch::Sender<u64>,
    /// Permits for attempts that have not taken longer than [`HANGING`].
    running: Arc<Semaphore>,
    started: AtomicU64,
    /// Whether the last attempt failed, as opposed to one that hangs.
    has_failed: AtomicBool,
    /// Notified when an attempt fails that hung: the server, or a proxy before it, has probably returned.
    retry: Notify,
}

impl Default for State {
    fn default() -> Self {
        State {
            changes: watch::Sender::new(0),
            running: Arc::new(Semaphore::new(CONCURRENT_ATTEMPTS)),
            started: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            retry: Notify::new(),
        }
    }
}

impl Pacer {
    /// Returns the number of attempts that were started.
    pub fn attempts(&self) -> u64 {
        self.0.started.load(Ordering::Relaxed)
    }

    fn is_holding(&self) -> bool {
        *self.0.changes.borrow() % 2 == 1
    }

    fn has_failed(&self) -> bool {
        self.0.has_failed.load(Ordering::Relaxed)
    }

    /// Waits until callers are not held back.
    async fn released(&self) {
        // The sender is not dropped while `self` exists.
        let _ = self.0.changes.subscribe().wait_for(|changes| changes % 2 == 0).await;
    }

    /// Holds callers back, and returns the number of the change; `None` if they are held back already.
    fn hold(&self) -> Option<u64> {
        let mut change = None;
        self.0.changes.send_if_modified(|changes| {
            let is_new = *changes % 2 == 0;
            if is_new {
                *changes += 1;
                change = Some(*changes);
            }
            is_new
        });
        change
    }

    fn release(&self) {
        self.0.has_failed.store(false, Ordering::Relaxed);
        self.0.changes.send_if_modified(|changes| {
            let is_held = *changes % 2 == 1;
            *changes += u64::from(is_held);
            is_held
        });
    }
}

/// A database server.
trait Server: Send + Sync + 'static {
    type Connection: Send + 'static;
    type Error: Send + 'static;

    /// Attempts to connect.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Self::Error>> + Send;

    /// Returns whether the server responds.
    fn responds(&self) -> impl Future<Output = bool> + Send;

    /// Returns whether a connection is still open.
    fn is_open(connection: &Self::Connection) -> bool;

    /// Returns the error of callers that are held back after an attempt that failed.
    fn unavailable() -> Self::Error;
}

/// The connections of one pool, which are established at the pace of a [`Pacer`].
struct Paced<S: Server> {
    server: S,
    pacer: Pacer,
    /// The attempts of this pool that have not ended.
    in_progress: AtomicUsize,
    spares: Mutex<Vec<S::Connection>>,
}

type Outcome<S> = Result<<S as Server>::Connection, <S as Server>::Error>;

impl<S: Server> Paced<S> {
    fn new(server: S, pacer: Pacer) -> Arc<Self> {
        Arc::new(Paced {
            server,
            pacer,
            in_progress: AtomicUsize::new(0),
            spares: Mutex::default(),
        })
    }

    fn spares(&self) -> MutexGuard<'_, Vec<S::Connection>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a connection, whose attempt other callers may have started, or an error after a failed attempt. While an attempt
    /// hangs, this waits; the pool has a time limit.
    async fn connect(self: Arc<Self>) -> Outcome<S> {
        self.released().await?;
        while let Some(spare) = { self.spares().pop() } {
            if S::is_open(&spare) {
                return Ok(spare);
            }
        }
        // The semaphore is never closed.
        let permit = self.pacer.0.running.clone().acquire_owned().await.ok();
        self.released().await?;
        let (reply, outcome) = oneshot::channel();
        self.start(permit, Some(reply));
        match outcome.await {
            Ok(outcome) => outcome,
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits until callers are not held back. Fails at once if they are and the last attempt failed. If it hangs, this pool has an
    /// attempt of its own in progress.
    async fn released(self: &Arc<Self>) -> Result<(), S::Error> {
        if self.pacer.is_holding() {
            if self.pacer.has_failed() {
                return Err(S::unavailable());
            }
            if self.in_progress.load(Ordering::Relaxed) == 0 {
                self.start(None, None);
            }
            self.pacer.released().await;
        }
        Ok(())
    }

    /// Starts an attempt in a task of its own.
    fn start(self: &Arc<Self>, permit: Option<OwnedSemaphorePermit>, reply: Option<oneshot::Sender<Outcome<S>>>) {
        self.pacer.0.started.fetch_add(1, Ordering::Relaxed);
        self.in_progress.fetch_add(1, Ordering::Relaxed);
        let paced = self.clone();
        tokio::spawn(async move {
            let connecting = paced.clone();
            let mut connecting =
                tokio::spawn(async move { timeout(ATTEMPT_TIMEOUT, connecting.server.connect()).await });
            let in_time = timeout(HANGING, &mut connecting).await;
            let hung = in_time.is_err();
            if hung {
                paced.pacer.0.has_failed.store(false, Ordering::Relaxed);
                paced.hold();
            }
            drop(permit);
            let outcome = match in_time {
                Ok(outcome) => outcome,
                Err(_) => connecting.await,
            };
            paced.in_progress.fetch_sub(1, Ordering::Relaxed);
            match outcome {
                Ok(Ok(Ok(connection))) => {
                    paced.deliver(connection, reply);
                    paced.pacer.release();
                }
                Ok(Ok(Err(error))) => {
                    paced.pacer.0.has_failed.store(true, Ordering::Relaxed);
                    paced.hold();
                    if hung {
                        paced.pacer.0.retry.notify_one();
                    }
                    // The caller may have given up.
                    let _ = reply.map(|reply| reply.send(Err(error)));
                }
                // The time limit, or a panic, which is logged.
                Ok(Err(_)) | Err(_) => paced.hold(),
            }
        });
    }

    /// Passes a connection to its caller, or keeps it for the next one.
    fn deliver(&self, connection: S::Connection, reply: Option<oneshot::Sender<Outcome<S>>>) {
        let undelivered = match reply {
            Some(reply) => reply.send(Ok(connection)).err(),
            None => Some(Ok(connection)),
        };
        let mut spares = self.spares();
        if let Some(Ok(connection)) = undelivered
            && spares.len() < SPARES
        {
            spares.push(connection);
        }
    }

    /// Holds callers back, and starts attempts at the pace until one succeeds. Does nothing if they are held back already.
    fn hold(self: &Arc<Self>) {
        let Some(change) = self.pacer.hold() else { return };
        let (paced, pacer) = (Arc::downgrade(self), self.pacer.clone());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = sleep(PACE) => {}
                    () = pacer.0.retry.notified() => {}
                }
                // The pool may have been closed.
                let Some(paced) = paced.upgrade() else { return };
                if *pacer.0.changes.borrow() != change {
                    return;
                }
                if paced.in_progress.load(Ordering::Relaxed) == 0
                    || timeout(PACE, paced.server.responds()).await.unwrap_or(false)
                {
                    paced.start(None, None);
                }
            }
        });
    }
}

impl<S: Server> Drop for Paced<S> {
    fn drop(&mut self) {
        // Another pool then starts attempts.
        self.pacer.release();
    }
}

/// Connects the connections of a pool at the pace of a [`Pacer`].
pub(super) struct PacedConnect(Arc<Paced<Database>>);

impl PacedConnect {
    /// Paces `connect`, whose server is that of `config`.
    pub fn new(connect: impl Connect + 'static, config: Config, pacer: Pacer) -> Self {
        let database = Database {
            connect: Box::new(connect),
            config,
        };
        PacedConnect(Paced::new(database, pacer))
    }
}

impl Connect for PacedConnect {
    fn connect(
        &self,
        _: &Config,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(self.0.clone().connect())
    }
}

/// The servers of a connection string.
struct Database {
    connect: Box<dyn Connect>,
    config: Config,
}

impl Server for Database {
    type Connection = (Client, JoinHandle<()>);
    type Error = Error;

    fn connect(&self) -> impl Future<Output = Outcome<Self>> + Send {
        self.connect.connect(&self.config)
    }

    /// Returns whether at least one server responds, and none accepts connections without responding.
    async fn responds(&self) -> bool {
        let (hosts, addresses) = (self.config.get_hosts(), self.config.get_hostaddrs());
        let mut has_responded = false;
        for index in 0..hosts.len().max(addresses.len()) {
            let ports = self.config.get_ports();
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            let responded = match (addresses.get(index), hosts.get(index)) {
                (Some(address), _) => ask(TcpStream::connect((*address, port)).await).await,
                (None, Some(Host::Tcp(name))) => ask(TcpStream::connect((name.as_str(), port)).await).await,
                (None, Some(Host::Unix(folder))) => {
                    ask(UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await).await
                }
                (None, None) => false,
            };
            has_responded |= responded;
        }
        has_responded
    }

    fn is_open((client, _): &Self::Connection) -> bool {
        !client.is_closed()
    }

    fn unavailable() -> Error {
        // The driver has no other public constructor of an error.
        Error::__private_api_timeout()
    }
}

/// Asks a server whether it supports TLS; returns whether it responds.
async fn ask(stream: std::io::Result<impl AsyncRead + AsyncWrite + Unpin>) -> bool {
    let Ok(mut stream) = stream else { return false };
    stream.write_all(&SSL_REQUEST).await.is_ok() && stream.read_u8().await.is_ok()
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::Instant;

    use super::*;

    /// A database that refuses connections, or does not respond to them, until it is back.
    #[derive(Debug)]
    struct Outage {
        is_over: watch::Sender<bool>,
        hangs: bool,
        /// Whether it responds to attempts that hung when it is back.
        is_frozen: bool,
        attempts: AtomicUsize,
    }

    impl Outage {
        fn new(hangs: bool, is_frozen: bool) -> Arc<Self> {
            Arc::new(Outage {
                is_over: watch::Sender::new(false),
                hangs,
                is_frozen,
                attempts: AtomicUsize::new(0),
            })
        }

        fn attempts(&self) -> usize {
            self.attempts.load(Ordering::Relaxed)
        }
    }

    const OUTAGES: [(bool, bool); 3] = [(false, false), (true, false), (true, true)];

    impl Server for Arc<Outage> {
        type Connection = ();
        type Error = &'static str;

        async fn connect(&self) -> Outcome<Self> {
            self.attempts.fetch_add(1, Ordering::Relaxed);
            let is_over = *self.is_over.borrow();
            if !is_over && self.is_frozen {
                let _ = self.is_over.subscribe().wait_for(|is_over| *is_over).await;
                return Ok(());
            }
            match (is_over, self.hangs) {
                (true, _) => Ok(()),
                (false, true) => std::future::pending().await,
                (false, false) => Err("refused"),
            }
        }

        async fn responds(&self) -> bool {
            *self.is_over.borrow()
        }

        fn is_open((): &()) -> bool {
            true
        }

        fn unavailable() -> &'static str {
            "held back"
        }
    }

    /// Fifty callers that want a connection, give up after 200 ms and try again, for a minute.
    async fn callers(paced: &Arc<Paced<Arc<Outage>>>) {
        let caller = async || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(60) {
                let _ = timeout(Duration::from_millis(200), paced.clone().connect()).await;
                sleep(Duration::from_millis(10)).await;
            }
        };
        join_all((0..50).map(|_| caller())).await;
    }

    #[tokio::test(start_paused = true)]
    async fn during_an_outage_attempts_are_shared_by_all_callers_and_paced() {
        for (hangs, is_frozen) in OUTAGES {
            let outage = Outage::new(hangs, is_frozen);
            let paced = Paced::new(outage.clone(), Pacer::default());
            callers(&paced).await;
            let attempts = outage.attempts();
            println!("attempts of fifty callers in a minute, hanging {hangs}: {attempts}");
            if hangs {
                assert!((1..=CONCURRENT_ATTEMPTS).contains(&attempts), "{attempts}");
            } else {
                assert!((200..=CONCURRENT_ATTEMPTS + 240).contains(&attempts), "{attempts}");
            }
            assert_eq!(paced.pacer.attempts(), attempts as u64);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_attempt_after_the_databases_return_releases_all_callers() {
        for (hangs, is_frozen) in OUTAGES {
            let outage = Outage::new(hangs, is_frozen);
            let paced = Paced::new(outage.clone(), Pacer::default());
            callers(&paced).await;
            outage.is_over.send_replace(true);
            let caller = async || {
                while paced.clone().connect().await.is_err() {
                    sleep(Duration::from_millis(10)).await;
                }
            };
            let all = timeout(PACE * 2, join_all((0..50).map(|_| caller()))).await;
            assert!(all.is_ok(), "hanging {hangs}, frozen {is_frozen}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_that_was_frozen_completes_the_attempts_that_hung_one_of_each_pool() {
        let outage = Outage::new(true, true);
        let pacer = Pacer::default();
        let pools: Vec<_> = (0..5).map(|_| Paced::new(outage.clone(), pacer.clone())).collect();
        join_all(pools.iter().map(callers)).await;
        let before = outage.attempts();
        outage.is_over.send_replace(true);
        // Sooner than the next attempt.
        let connected = join_all(pools.iter().map(|paced| timeout(PACE / 10, paced.clone().connect()))).await;
        assert!(
            connected.iter().all(|connected| *connected == Ok(Ok(()))),
            "{connected:?}"
        );
        assert_eq!(outage.attempts(), before);
        assert!(before <= CONCURRENT_ATTEMPTS + pools.len(), "{before}");
    }

    /// A database that responds after a part of [`HANGING`].
    #[derive(Debug)]
    struct Slow {
        stays_open: Arc<AtomicBool>,
    }

    impl Server for Slow {
        type Connection = Arc<AtomicBool>;
        type Error = ();

        async fn connect(&self) -> Outcome<Self> {
            sleep(HANGING / 2).await;
            Ok(self.stays_open.clone())
        }

        async fn responds(&self) -> bool {
            true
        }

        fn is_open(connection: &Self::Connection) -> bool {
            connection.load(Ordering::Relaxed)
        }

        fn unavailable() {}
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_outlives_its_caller_and_the_next_caller_gets_its_connection() {
        let stays_open = Arc::new(AtomicBool::new(true));
        let server = Slow {
            stays_open: stays_open.clone(),
        };
        let paced = Paced::new(server, Pacer::default());
        let gives_up = async || timeout(HANGING / 4, paced.clone().connect()).await.is_err();
        assert!(gives_up().await);
        sleep(HANGING).await;
        assert!(paced.clone().connect().await.is_ok());
        assert_eq!(paced.pacer.attempts(), 1);
        // A connection that was lost meanwhile is not used.
        assert!(gives_up().await);
        sleep(HANGING).await;
        stays_open.store(false, Ordering::Relaxed);
        assert!(paced.clone().connect().await.is_ok());
        assert_eq!(paced.pacer.attempts(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_pools_of_a_process_share_their_pace() {
        let pacer = Pacer::default();
        let outage = Outage::new(false, false);
        let pools: Vec<_> = (0..5).map(|_| Paced::new(outage.clone(), pacer.clone())).collect();
        join_all(pools.iter().map(callers)).await;
        let attempts = outage.attempts();
        println!("attempts of five pools in a minute: {attempts}");
        assert!(attempts <= CONCURRENT_ATTEMPTS + 240, "{attempts}");
    }

    #[tokio::test]
    async fn a_server_that_accepts_connections_without_responding_does_not_respond() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgresql://u@{}/d", listener.local_addr().unwrap());
        let config = crate::pool::parse_url(&url).unwrap();
        let database = Database {
            connect: Box::new(deadpool_postgres::ConfigConnectImpl {
                tls: tokio_postgres::NoTls,
            }),
            config,
        };
        assert!(timeout(PACE, database.responds()).await.is_err());
        let answer = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = [0; SSL_REQUEST.len()];
                // The first connection was closed before.
                if stream.read_exact(&mut asked).await.is_ok() && stream.write_all(b"N").await.is_ok() {
                    assert_eq!(asked, SSL_REQUEST);
                }
            }
        };
        tokio::select! {
            responds = database.responds() => assert!(responds),
            () = answer => {}
        }
        drop(listener);
        assert!(!database.responds().await);
    }
}
