//! Reads on hot standbys that lag by at most a configured time.
//!
//! The lag is measured by positions in the write-ahead log. Clocks differ between machines, and the age of the last
//! transaction is meaningless on an idle primary. Each replica samples the position of the primary several times within the
//! maximum lag. A standby that has replayed the log up to a sampled position shows everything that was committed before
//! that sample. Each connection is checked individually, because there may be several standbys behind one address.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::{PgLsn, ToSql, Type};

use super::DbError;
use super::connection::{Connection, Parameters};
use super::shared::SharedConnections;
use super::statement::Statement;
use crate::deadline::Deadline;
use crate::statement;

/// The smallest maximum lag that can be configured. With a smaller one, a standby would rarely be usable.
pub const MIN_LAG_LIMIT: Duration = Duration::from_millis(100);
/// The number of samples within the maximum lag. With more samples, the position that a standby must have replayed is closer
/// to the oldest allowed one.
const SAMPLES_PER_LAG: u32 = 8;
/// The minimum and the maximum interval between samples.
const SAMPLE_INTERVAL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
/// The time limit for a sample of the primary or a check of a standby.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

statement! {
    /// The position up to which the primary has flushed its log, and the identifiers of the cluster and the database.
    PRIMARY_POSITION = "SELECT pg_current_wal_flush_lsn(), system_identifier, d.oid \
               FROM pg_control_system(), pg_database d WHERE d.datname = current_database()";
    /// Whether this server is a standby of that cluster and database, and has replayed the log up to the position `$1`. A
    /// promoted standby is not a standby anymore.
    HAS_REPLAYED = "SELECT pg_is_in_recovery() AND coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false) \
                   AND system_identifier = $2::bigint AND d.oid = $3::oid \
                   FROM pg_control_system(), pg_database d WHERE d.datname = current_database()";
}

/// Why a standby is not used.
#[derive(Debug, thiserror::Error)]
pub enum StandbyError {
    /// The standby lags too far.
    #[error("the standby lags by more than {0:?}, or belongs to another database")]
    Behind(Duration),
    /// The standby does not respond, or reports an error.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// A position in the write-ahead log of a cluster, and the database that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogPosition {
    lsn: PgLsn,
    cluster: i64,
    database: u32,
}

/// The standbys behind one address, and their maximum lag.
#[derive(Debug)]
pub struct Standbys {
    pool: Pool,
    max_lag: Duration,
    samples: Mutex<VecDeque<(Instant, LogPosition)>>,
    is_usable: AtomicBool,
}

impl Standbys {
    /// Returns the connection pool, for metrics.
    pub fn pool(&self) -> Pool {
        self.pool.clone()
    }

    /// Creates standbys that are reached through `pool` and used while they lag by at most `max_lag`. They are not used until
    /// [`watch`](Self::watch) has checked one.
    pub fn new(pool: Pool, max_lag: Duration) -> Arc<Self> {
        Arc::new(Self {
            pool,
            max_lag,
            samples: Mutex::default(),
            is_usable: AtomicBool::new(false),
        })
    }

    /// Returns whether reads use a standby: neither the last read nor the last check has failed.
    pub fn is_usable(&self) -> bool {
        self.is_usable.load(Ordering::Relaxed)
    }

    /// Closes the connection pool.
    pub fn close(&self) {
        self.pool.close();
    }

    /// Samples the position of the `primary` periodically, and checks a standby again after it has failed. No request then has
    /// to test whether a standby has recovered.
    pub async fn watch(self: Arc<Self>, primary: Pool) {
        let interval = (self.max_lag / SAMPLES_PER_LAG).clamp(SAMPLE_INTERVAL.0, SAMPLE_INTERVAL.1);
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // Without samples, the standbys soon become unusable. Other connections to the primary log the cause.
            if let Err(reason) = self.step(&primary).await {
                tracing::debug!(%reason, "the standby is not usable for reads");
            }
        }
    }

    /// Performs one step of [`watch`](Self::watch).
    ///
    /// # Errors
    /// Why no standby is used.
    pub async fn step(&self, primary: &Pool) -> Result<(), StandbyError> {
        self.sample(primary).await?;
        if self.is_usable() { Ok(()) } else { self.probe().await }
    }

    async fn sample(&self, primary: &Pool) -> Result<(), DbError> {
        // Read before the query, so that the position covers everything that was committed before this time.
        let at = Instant::now();
        let connection = Connection::take(primary, CHECK_TIMEOUT).await?;
        let row = connection.query_one(PRIMARY_POSITION, &[]).await?;
        let position = LogPosition {
            lsn: row.try_get(0)?,
            cluster: row.try_get(1)?,
            database: row.try_get(2)?,
        };
        self.add_sample(at, position);
        Ok(())
    }

    fn add_sample(&self, at: Instant, position: LogPosition) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.push_back((at, position));
        while samples.front().is_some_and(|(at, _)| at.elapsed() > self.max_lag) {
            samples.pop_front();
        }
    }

    /// Returns the position that a standby must have replayed: the oldest sample within the maximum lag. Returns `None` if
    /// there is no sample, because the primary has not responded.
    fn required(&self) -> Option<LogPosition> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples
            .iter()
            .find(|(at, _)| at.elapsed() <= self.max_lag)
            .map(|(_, position)| *position)
    }

    async fn probe(&self) -> Result<(), StandbyError> {
        let connection = Connection::take(&self.pool, CHECK_TIMEOUT).await?;
        self.check(&connection).await?;
        if !self.is_usable.swap(true, Ordering::Relaxed) {
            tracing::info!("reads use a standby");
        }
        Ok(())
    }

    /// Checks that the server of this connection may be used now.
    async fn check(&self, connection: &Connection) -> Result<(), StandbyError> {
        let required = self.required().ok_or(StandbyError::Behind(self.max_lag))?;
        let row = connection
            .query_one(HAS_REPLAYED, &[&required.lsn, &required.cluster, &required.database])
            .await?;
        if row.try_get(0).map_err(DbError::from)? {
            Ok(())
        } else {
            Err(StandbyError::Behind(self.max_lag))
        }
    }

    fn failed(&self, reason: &StandbyError) {
        if self.is_usable.swap(false, Ordering::Relaxed) {
            tracing::warn!(%reason, "the standby is not usable for reads; using the primary until it recovers");
        }
    }
}

/// A read-only connection for a request: to a standby if one is usable, and otherwise a [shared one](super::shared) to the primary. If
/// that fails, it is one of the pool. Writing requires a [`Connection`].
#[derive(Debug)]
pub struct Reader {
    /// Counts this reader against the quota of the key.
    _quota_permit: Option<OwnedSemaphorePermit>,
    standby: Option<StandbyConnection>,
    shared: Option<SharedRead>,
    primary: Primary,
}

/// A shared connection to the primary.
#[derive(Debug)]
struct SharedRead {
    connection: Connection,
    has_failed: AtomicBool,
}

#[derive(Debug)]
struct StandbyConnection {
    standbys: Arc<Standbys>,
    /// Half of the request's remaining time, so that there is time left to use the primary.
    until: Instant,
    /// A connection that passed the check; `None` if no standby was usable.
    connection: OnceCell<Option<Connection>>,
    has_failed: AtomicBool,
}

/// The connection to the primary, which is taken from the pool only when it is needed.
#[derive(Debug)]
enum Primary {
    Connected(Connection),
    Lazy {
        pool: Pool,
        until: Instant,
        connection: OnceCell<Connection>,
    },
}

/// Executes a query on the first connection that works: to the standby, the shared one, or one of the pool. A macro, because a
/// function with an asynchronous closure is not general enough over lifetimes to be `Send`.
macro_rules! read {
    ($reader:ident, $query:ident($($argument:ident),*)) => {{
        if let Some(standby) = $reader.standby().await {
            match standby.$query($($argument),*).await {
                Ok(rows) => return Ok(rows),
                Err(error) => $reader.standby_failed(&error.into()),
            }
        }
        if let Some(shared) = $reader.shared() {
            match shared.connection.$query($($argument),*).await {
                Err(error) if error.rejection().is_none() => shared.has_failed.store(true, Ordering::Relaxed),
                result => return result,
            }
        }
        $reader.primary().await?.$query($($argument),*).await
    }};
}

impl From<Connection> for Reader {
    /// Reads on this connection only.
    fn from(connection: Connection) -> Self {
        Self {
            _quota_permit: None,
            standby: None,
            shared: None,
            primary: Primary::Connected(connection),
        }
    }
}

impl Reader {
    /// Creates a reader for a request until its `deadline`, within the key's `quota` of connections.
    ///
    /// # Errors
    /// If the quota is exhausted, or neither a standby nor a connection to the primary is available in time.
    pub async fn take_within_quota(
        shared: &SharedConnections,
        standbys: Option<&Arc<Standbys>>,
        quota: &Arc<Semaphore>,
        deadline: Deadline,
    ) -> Result<Self, DbError> {
        let permit = Connection::quota_permit(quota, deadline).await?;
        let now = Instant::now();
        let until = deadline.instant();
        let standby = standbys
            .filter(|standbys| standbys.is_usable())
            .map(|standbys| StandbyConnection {
                standbys: standbys.clone(),
                until: now + until.saturating_duration_since(now) / 2,
                connection: OnceCell::new(),
                has_failed: AtomicBool::new(false),
            });
        let shared_read = match standby {
            Some(_) => None,
            None => shared.take(until).await?.map(|connection| SharedRead {
                connection: Connection::shared(connection, until),
                has_failed: AtomicBool::new(false),
            }),
        };
        let primary = match (&standby, &shared_read) {
            // Without another connection, the request waits for one before it does anything else.
            (None, None) => Primary::Connected(Connection::take_until(shared.pool(), until).await?),
            _ => Primary::Lazy {
                pool: shared.pool().clone(),
                until,
                connection: OnceCell::new(),
            },
        };
        Ok(Self {
            _quota_permit: Some(permit),
            standby,
            shared: shared_read,
            primary,
        })
    }

    /// Executes a statement and returns its rows.
    ///
    /// # Errors
    /// If the primary reports an error, or does not respond in time.
    pub async fn query(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError> {
        read!(self, query(statement, parameters))
    }

    /// Executes a statement that returns at most one row.
    ///
    /// # Errors
    /// As [`query`](Self::query), and if the statement returns more than one row.
    pub async fn query_opt(
        &self,
        statement: &'static Statement,
        parameters: &Parameters<'_>,
    ) -> Result<Option<Row>, DbError> {
        read!(self, query_opt(statement, parameters))
    }

    /// Executes a statement whose parameter types the database cannot infer, and returns its rows.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn query_typed(
        &self,
        statement: &'static Statement,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, DbError> {
        read!(self, query_typed(statement, parameters))
    }

    /// Returns the shared connection, if there is one and it has not failed during this request.
    fn shared(&self) -> Option<&SharedRead> {
        self.shared
            .as_ref()
            .filter(|shared| !shared.has_failed.load(Ordering::Relaxed))
    }

    /// Returns the connection to the standby, if one is usable and has not failed during this request.
    async fn standby(&self) -> Option<&Connection> {
        let standby = self.standby.as_ref()?;
        if standby.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        let connect = async || {
            // Boxed, because most reads have no standby or have connected to it.
            let checked = Box::pin(async {
                let connection = Connection::take_until(&standby.standbys.pool, standby.until).await?;
                standby.standbys.check(&connection).await?;
                Ok(connection)
            });
            checked.await.map_err(|reason| self.standby_failed(&reason)).ok()
        };
        standby.connection.get_or_init(connect).await.as_ref()
    }

    fn standby_failed(&self, reason: &StandbyError) {
        if let Some(standby) = &self.standby {
            standby.has_failed.store(true, Ordering::Relaxed);
            standby.standbys.failed(reason);
        }
    }

    async fn primary(&self) -> Result<&Connection, DbError> {
        match &self.primary {
            Primary::Connected(connection) => Ok(connection),
            Primary::Lazy {
                pool,
                until,
                connection,
            } => {
                connection
                    .get_or_try_init(|| Connection::take_until(pool, *until))
                    .await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{PoolSettings, parse_url, pool};

    fn position(lsn: u64) -> LogPosition {
        LogPosition {
            lsn: PgLsn::from(lsn),
            cluster: 1,
            database: 1,
        }
    }

    fn standbys(lag: Duration) -> Arc<Standbys> {
        let unreachable = parse_url("postgresql://u@127.0.0.1:1/d").unwrap();
        Standbys::new(pool(unreachable, &PoolSettings::default()).unwrap(), lag)
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_sample_within_the_maximum_lag_is_required() {
        let standbys = standbys(Duration::from_secs(2));
        assert_eq!(standbys.required(), None);
        for lsn in [10_u64, 20, 30] {
            standbys.add_sample(Instant::now(), position(lsn));
            tokio::time::advance(Duration::from_millis(900)).await;
        }
        // The samples are 2.7, 1.8 and 0.9 s old.
        assert_eq!(standbys.required(), Some(position(20)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(standbys.required(), Some(position(30)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(standbys.required(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn old_samples_are_removed() {
        let standbys = standbys(Duration::from_secs(2));
        for lsn in 0..1_000_u64 {
            standbys.add_sample(Instant::now(), position(lsn));
            tokio::time::advance(Duration::from_millis(250)).await;
        }
        assert!(standbys.samples.lock().unwrap().len() <= 9);
    }
}
