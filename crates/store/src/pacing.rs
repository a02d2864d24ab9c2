//! Paced connection attempts.
//!
//! While the database does not respond, every caller of a pool would start an attempt to connect, give up at its own deadline and
//! start another one. PostgreSQL then has to process hundreds of abandoned attempts when it returns. So all pools of a process
//! share a [`Pacer`]:
//!
//! - An attempt is a task of its own. It continues after its caller has given up, and the next caller gets its connection.
//! - If an attempt fails or takes longer than [`PACE`], the pacer holds back all further callers. From then on it starts one
//!   attempt per [`PACE`], until one of them succeeds. An attempt that hangs does not delay the next one, so the first success
//!   follows soon after the database's return, whether connections were refused, lost or frozen. Callers wait for an attempt that
//!   hangs. After one that failed, they get an error at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, Config, Error};

use deadpool_postgres::Connect;

/// The interval of attempts while the database does not respond, and the time after which an attempt counts as hanging.
pub const PACE: Duration = Duration::from_millis(500);

/// The time limit of an attempt. It allows for a database that is slow because it has just started.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of attempts at a time while the database responds.
const CONCURRENT_ATTEMPTS: usize = 8;

/// The number of connections that are kept for callers after theirs have given up.
const SPARES: usize = 2;

/// Paces the connection attempts of all pools to one database server. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Pacer(Arc<State>);

#[derive(Debug)]
struct State {
    /// The number of changes between holding callers back and releasing them. It is odd while they are held back.
    changes: watch::Sender<u64>,
    /// Permits for attempts that have not taken longer than [`PACE`].
    running: Arc<Semaphore>,
    started: AtomicU64,
    /// Whether the last attempt failed, as opposed to one that hangs.
    has_failed: AtomicBool,
}

impl Default for State {
    fn default() -> Self {
        State {
            changes: watch::Sender::new(0),
            running: Arc::new(Semaphore::new(CONCURRENT_ATTEMPTS)),
            started: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
        }
    }
}

impl Pacer {
    /// Returns the number of attempts that were started.
    pub fn attempts(&self) -> u64 {
        self.0.started.load(Ordering::Relaxed)
    }

    /// Waits until callers are not held back. Returns false at once if they are and the last attempt failed.
    async fn released(&self) -> bool {
        if self.0.has_failed.load(Ordering::Relaxed) {
            return false;
        }
        // The sender is not dropped while `self` exists.
        let _ = self.0.changes.subscribe().wait_for(|changes| changes % 2 == 0).await;
        true
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

/// The connections of one pool, which are established at the pace of a [`Pacer`].
#[derive(Debug)]
struct Paced<T> {
    pacer: Pacer,
    spares: Mutex<Vec<T>>,
}

impl<T: Send + 'static> Paced<T> {
    fn new(pacer: Pacer) -> Arc<Self> {
        Arc::new(Paced {
            pacer,
            spares: Mutex::default(),
        })
    }

    fn spares(&self) -> MutexGuard<'_, Vec<T>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a connection from `attempt`, which other callers may have started, or `unavailable` after a failed attempt. If the attempt exceeds its time limit, this
    /// waits forever; the pool has a shorter limit.
    async fn connect<E, F>(
        self: Arc<Self>,
        attempt: impl Fn() -> F + Clone + Send + Sync + 'static,
        is_usable: impl Fn(&T) -> bool + Send,
        unavailable: impl Fn() -> E + Send,
    ) -> Result<T, E>
    where
        E: Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        if !self.pacer.released().await {
            return Err(unavailable());
        }
        while let Some(spare) = { self.spares().pop() } {
            if is_usable(&spare) {
                return Ok(spare);
            }
        }
        // The semaphore is never closed.
        let permit = self.pacer.0.running.clone().acquire_owned().await.ok();
        if !self.pacer.released().await {
            return Err(unavailable());
        }
        let (reply, outcome) = oneshot::channel();
        self.clone().start(attempt, permit, reply);
        match outcome.await {
            Ok(outcome) => outcome,
            Err(_) => std::future::pending().await,
        }
    }

    /// Starts an attempt in a task of its own.
    fn start<E, F>(
        self: Arc<Self>,
        attempt: impl Fn() -> F + Clone + Send + Sync + 'static,
        permit: Option<OwnedSemaphorePermit>,
        reply: oneshot::Sender<Result<T, E>>,
    ) where
        E: Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.pacer.0.started.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let mut connecting = tokio::spawn(timeout(ATTEMPT_TIMEOUT, attempt()));
            let in_time = timeout(PACE, &mut connecting).await;
            if in_time.is_err() {
                self.hold(&attempt);
            }
            drop(permit);
            let outcome = match in_time {
                Ok(outcome) => outcome,
                Err(_) => connecting.await,
            };
            match outcome {
                Ok(Ok(Ok(connection))) => {
                    if let Err(Ok(connection)) = reply.send(Ok(connection)) {
                        let mut spares = self.spares();
                        if spares.len() < SPARES {
                            spares.push(connection);
                        }
                    }
                    self.pacer.release();
                }
                Ok(Ok(Err(error))) => {
                    self.pacer.0.has_failed.store(true, Ordering::Relaxed);
                    self.hold(&attempt);
                    // The caller may have given up.
                    let _ = reply.send(Err(error));
                }
                // The time limit, or a panic, which is logged.
                Ok(Err(_)) | Err(_) => self.hold(&attempt),
            }
        });
    }

    /// Holds callers back, and starts attempts at the pace until one succeeds. Does nothing if they are held back already.
    fn hold<E, F>(self: &Arc<Self>, attempt: &(impl Fn() -> F + Clone + Send + Sync + 'static))
    where
        E: Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let Some(change) = self.pacer.hold() else { return };
        let (paced, attempt) = (Arc::downgrade(self), attempt.clone());
        tokio::spawn(async move {
            loop {
                sleep(PACE).await;
                // The pool may have been closed.
                let Some(paced) = paced.upgrade() else { return };
                if *paced.pacer.0.changes.borrow() != change {
                    return;
                }
                let (reply, _) = oneshot::channel();
                paced.start(attempt.clone(), None, reply);
            }
        });
    }
}

impl<T> Drop for Paced<T> {
    fn drop(&mut self) {
        // Another pool then starts attempts.
        self.pacer.release();
    }
}

/// Connects the connections of a pool at the pace of a [`Pacer`].
pub(super) struct PacedConnect {
    connect: Arc<dyn Connect>,
    paced: Arc<Paced<(Client, JoinHandle<()>)>>,
}

impl PacedConnect {
    pub fn new(connect: impl Connect + 'static, pacer: Pacer) -> Self {
        PacedConnect {
            connect: Arc::new(connect),
            paced: Paced::new(pacer),
        }
    }
}

impl Connect for PacedConnect {
    fn connect(
        &self,
        config: &Config,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        let (connect, config) = (self.connect.clone(), config.clone());
        let attempt = move || {
            let (connect, config) = (connect.clone(), config.clone());
            async move { connect.connect(&config).await }
        };
        // The driver has no other public constructor of an error.
        let unavailable = Error::__private_api_timeout;
        let is_usable = |(client, _): &(Client, JoinHandle<()>)| !client.is_closed();
        Box::pin(self.paced.clone().connect(attempt, is_usable, unavailable))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use futures::future::join_all;
    use tokio::time::Instant;

    use super::*;

    /// A database that refuses connections, or does not respond to them, until it is back.
    #[derive(Default)]
    struct Outage {
        is_over: AtomicBool,
        hangs: bool,
        attempts: AtomicUsize,
    }

    async fn attempt(outage: Arc<Outage>) -> Result<(), &'static str> {
        outage.attempts.fetch_add(1, Ordering::Relaxed);
        match (outage.is_over.load(Ordering::Relaxed), outage.hangs) {
            (true, _) => Ok(()),
            (false, true) => std::future::pending().await,
            (false, false) => Err("refused"),
        }
    }

    /// Fifty callers that want a connection, give up after 200 ms and try again, for a minute.
    async fn callers(paced: &Arc<Paced<()>>, outage: &Arc<Outage>) {
        let caller = async || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(60) {
                let attempt = {
                    let outage = outage.clone();
                    move || attempt(outage.clone())
                };
                let _ = timeout(
                    Duration::from_millis(200),
                    paced.clone().connect(attempt, |()| true, || "held back"),
                )
                .await;
                sleep(Duration::from_millis(10)).await;
            }
        };
        join_all((0..50).map(|_| caller())).await;
    }

    #[tokio::test(start_paused = true)]
    async fn during_an_outage_attempts_are_shared_by_all_callers_and_paced() {
        for hangs in [false, true] {
            let outage = Arc::new(Outage {
                hangs,
                ..Outage::default()
            });
            let paced = Paced::new(Pacer::default());
            callers(&paced, &outage).await;
            let attempts = outage.attempts.load(Ordering::Relaxed);
            println!("attempts of fifty callers in a minute, hanging {hangs}: {attempts}");
            assert!(attempts <= CONCURRENT_ATTEMPTS + 120, "{attempts}");
            assert!(attempts >= 100, "{attempts}");
            assert_eq!(paced.pacer.attempts(), attempts as u64);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_attempt_after_the_databases_return_releases_all_callers() {
        for hangs in [false, true] {
            let outage = Arc::new(Outage {
                hangs,
                ..Outage::default()
            });
            let paced = Paced::new(Pacer::default());
            callers(&paced, &outage).await;
            outage.is_over.store(true, Ordering::Relaxed);
            let before = outage.attempts.load(Ordering::Relaxed);
            let caller = async || loop {
                let outage = outage.clone();
                let attempt = move || attempt(outage.clone());
                if paced.clone().connect(attempt, |()| true, || "held back").await.is_ok() {
                    return;
                }
                sleep(Duration::from_millis(10)).await;
            };
            let all = timeout(PACE * 2, join_all((0..50).map(|_| caller()))).await;
            assert!(all.is_ok(), "hanging {hangs}");
            // Each caller has a connection of its own; the first one is that of the attempt that succeeded.
            assert_eq!(outage.attempts.load(Ordering::Relaxed) - before, 50, "hanging {hangs}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_outlives_its_caller_and_the_next_caller_gets_its_connection() {
        let paced = Paced::<u8>::new(Pacer::default());
        let attempt = || async {
            sleep(PACE / 2).await;
            Ok::<u8, ()>(1)
        };
        let gave_up = timeout(PACE / 4, paced.clone().connect(attempt, |_| true, || ())).await;
        assert!(gave_up.is_err());
        sleep(PACE).await;
        assert_eq!(paced.clone().connect(attempt, |_| true, || ()).await, Ok(1));
        assert_eq!(paced.pacer.attempts(), 1);
        // A connection that was lost meanwhile is not used.
        let gave_up = timeout(PACE / 4, paced.clone().connect(attempt, |_| true, || ())).await;
        assert!(gave_up.is_err());
        sleep(PACE).await;
        assert_eq!(paced.clone().connect(attempt, |_| false, || ()).await, Ok(1));
        assert_eq!(paced.pacer.attempts(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_pools_of_a_process_share_their_pace() {
        let pacer = Pacer::default();
        let outage = Arc::new(Outage::default());
        let pools: Vec<_> = (0..5).map(|_| Paced::new(pacer.clone())).collect();
        join_all(pools.iter().map(|paced| callers(paced, &outage))).await;
        let attempts = outage.attempts.load(Ordering::Relaxed);
        println!("attempts of five pools in a minute: {attempts}");
        assert!(attempts <= CONCURRENT_ATTEMPTS + 120, "{attempts}");
    }
}
