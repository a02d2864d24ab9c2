//! Connections on which several requests read at the same time.
//!
//! On a shared connection, the driver sends the statements of several requests together, which takes less processor time than a
//! connection for each (docs/benchmarks.md). PostgreSQL executes them one after the other, so a statement waits for those before it. If
//! none has finished for a while, the requests that wait use connections of their own, and the shared connection gets no further
//! statements.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio::time::{Instant, timeout_at};

use super::DbError;
use super::connection::Connection;

/// One of this many connections of the pool is shared. The others remain for statements that write or take long.
const POOL_PER_SHARED: usize = 4;

/// The time without a finished statement after which a connection gets no further ones, and those that wait go elsewhere.
const STALLED_AFTER: Duration = Duration::from_millis(250);

/// The time without a finished statement after which another connection replaces a shared one. The database has canceled
/// a statement that waits for a lock by then ([`LOCK_TIMEOUT`](super::pool::LOCK_TIMEOUT)).
const REPLACED_AFTER: Duration = Duration::from_secs(4);

/// The shared connections of a pool.
pub struct SharedConnections {
    pool: Pool,
    slots: Box<[Slot]>,
    started: Instant,
}

/// The slot of one shared connection, which is opened when it is first needed.
#[derive(Default)]
struct Slot {
    connection: Mutex<Option<Arc<SharedConnection>>>,
    opening: tokio::sync::Mutex<()>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<SharedConnection>>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SharedConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedConnections")
            .field("slots", &self.slots.len())
            .finish_non_exhaustive()
    }
}

impl SharedConnections {
    /// Shares a quarter of the pool's connections. A pool of fewer than four has none.
    pub fn new(pool: Pool) -> Self {
        let slots = Self::number(pool.status().max_size);
        SharedConnections {
            pool,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            started: Instant::now(),
        }
    }

    /// Returns how many connections of a pool of this size are shared.
    pub fn number(pool_size: usize) -> usize {
        pool_size / POOL_PER_SHARED
    }

    /// Returns the pool.
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns a connection that has just been opened, if a slot is free, or else the usable one with the fewest requests. Returns
    /// `None` if all are stalled or being opened.
    ///
    /// # Errors
    /// If none is usable, and the one that must be opened does not become available in time.
    pub(super) async fn take(&self, deadline: Instant) -> Result<Option<Arc<SharedConnection>>, DbError> {
        let mut found: Option<Arc<SharedConnection>> = None;
        let mut opening = None;
        for slot in &self.slots {
            let mut connection = slot.lock();
            if connection.as_ref().is_none_or(|known| known.must_be_replaced()) {
                *connection = None;
                // If several requests arrive at once, each opens another one.
                opening = opening.or_else(|| Some((slot, slot.opening.try_lock().ok()?)));
            } else if let Some(known) = connection.as_ref().filter(|known| !known.is_stalled())
                && found.as_ref().is_none_or(|found| known.requests() < found.requests())
            {
                found = Some(known.clone());
            }
        }
        let Some((slot, _opening)) = opening else {
            return Ok(found);
        };
        let object = match Connection::take_until(&self.pool, deadline).await {
            Ok(connection) => connection.into_object(),
            // The pool may be exhausted.
            Err(error) => return found.map(Some).ok_or(error),
        };
        let opened = object.map(|object| Arc::new(SharedConnection::new(object, self.started)));
        slot.lock().clone_from(&opened);
        Ok(opened)
    }
}

/// A connection on which several requests read at the same time.
pub(super) struct SharedConnection {
    // `None` only while the connection is dropped.
    object: Option<Object>,
    /// The statements that have not finished. One that was abandoned counts until the connection is closed.
    unfinished: AtomicUsize,
    started: Instant,
    /// When a statement last finished, or began while there was no other, in microseconds since the start.
    progressed_at: AtomicU64,
}

impl fmt::Debug for SharedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedConnection")
            .field("unfinished", &self.unfinished)
            .finish_non_exhaustive()
    }
}

impl SharedConnection {
    fn new(object: Object, started: Instant) -> Self {
        SharedConnection {
            object: Some(object),
            unfinished: AtomicUsize::new(0),
            started,
            progressed_at: AtomicU64::new(0),
        }
    }

    /// Returns the number of requests that use the connection.
    fn requests(self: &Arc<Self>) -> usize {
        Arc::strong_count(self)
    }

    /// Returns the time without a finished statement, if there are unfinished ones.
    fn time_without_progress(&self) -> Option<Duration> {
        let now = Instant::now() - self.started;
        let progressed_at = Duration::from_micros(self.progressed_at.load(Relaxed));
        (self.unfinished.load(Relaxed) > 0).then(|| now.saturating_sub(progressed_at))
    }

    fn is_stalled(&self) -> bool {
        self.time_without_progress().is_some_and(|time| time >= STALLED_AFTER)
    }

    fn must_be_replaced(&self) -> bool {
        self.object.as_ref().is_none_or(|object| object.is_closed())
            || self.time_without_progress().is_some_and(|time| time >= REPLACED_AFTER)
    }

    fn record_progress(&self) {
        let now = Instant::now() - self.started;
        let micros = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        self.progressed_at.store(micros, Relaxed);
    }

    /// Runs `work` until the deadline, or until the connection is stalled.
    pub(super) async fn run<T>(
        &self,
        deadline: Instant,
        work: impl AsyncFnOnce(&Object) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, DbError> {
        let Some(object) = &self.object else {
            return Err(DbError::TimedOut);
        };
        // Before the count, so that the connection does not seem to have stalled since its last statement.
        if self.unfinished.load(Relaxed) == 0 {
            self.record_progress();
        }
        self.unfinished.fetch_add(1, Relaxed);
        let mut work = std::pin::pin!(work(object));
        let result = loop {
            let until = deadline.min(Instant::now() + STALLED_AFTER);
            match timeout_at(until, work.as_mut()).await {
                Ok(result) => break result.map_err(DbError::from),
                Err(_) if until == deadline || self.is_stalled() => return Err(DbError::TimedOut),
                Err(_) => {}
            }
        };
        if result.as_ref().err().is_none_or(|error| error.rejection().is_some()) {
            self.record_progress();
            self.unfinished.fetch_sub(1, Relaxed);
        }
        result
    }
}

impl Drop for SharedConnection {
    fn drop(&mut self) {
        if self.unfinished.load(Relaxed) > 0
            && let Some(object) = self.object.take()
        {
            drop(Object::take(object));
        }
    }
}
