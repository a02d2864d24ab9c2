//! Reads on hot standbys, which are behind by a bounded time or are not asked.
//!
//! How far a standby is behind is told by places in the write-ahead log, not by clocks, which differ, nor by the age of the
//! last transaction, which on an idle primary is any age at all. A replica notes, several times within the bound, how far
//! the primary has written. A standby that has replayed what was noted at a moment shows everything that was committed
//! before it. Each connection is asked for itself, for behind one address there may be several standbys.

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
use super::statement::Statement;
use crate::deadline::Deadline;
use crate::statement;

/// The smallest bound on the lag: below it, a standby would seldom be close enough to be worth the question.
pub const SMALLEST_LAG: Duration = Duration::from_millis(100);
/// How many notes are taken within the bound, so that a standby is asked for little more than it must have.
const NOTES: u32 = 8;
/// How often notes are taken at most, and at least.
const EVERY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
/// How long a note, or a look at a standby that failed, may take.
const LOOK: Duration = Duration::from_secs(1);

statement! {
    /// How far the primary has written what it has committed, and which cluster and database it is.
    WRITTEN = "SELECT pg_current_wal_flush_lsn(), system_identifier, d.oid \
               FROM pg_control_system(), pg_database d WHERE d.datname = current_database()";
    /// Whether this is a standby of that cluster and database, and has come so far. A primary is none, whatever it was
    /// before.
    HAS_COME_TO = "SELECT pg_is_in_recovery() AND coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false) \
                   AND system_identifier = $2::bigint AND d.oid = $3::oid \
                   FROM pg_control_system(), pg_database d WHERE d.datname = current_database()";
}

/// Why a standby's answer is not used.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// It is behind by more than may be.
    #[error("it is behind by more than {0:?}, or is no standby of the database")]
    Behind(Duration),
    /// It does not answer, or refuses.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// A place in the write-ahead log of a cluster, of which one database is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    written: PgLsn,
    cluster: i64,
    database: u32,
}

/// The standbys behind one address, and how far they may be behind.
#[derive(Debug)]
pub struct Standbys {
    pool: Pool,
    lag: Duration,
    notes: Mutex<VecDeque<(Instant, Place)>>,
    is_fit: AtomicBool,
}

impl Standbys {
    /// Connections to them, to be looked at.
    pub fn pool(&self) -> Pool {
        self.pool.clone()
    }

    /// Standbys that are reached through `pool` and asked only while they are behind by at most `lag`. Until
    /// [`watch`](Self::watch) has looked at one, none is.
    pub fn new(pool: Pool, lag: Duration) -> Arc<Self> {
        Arc::new(Self {
            pool,
            lag,
            notes: Mutex::default(),
            is_fit: AtomicBool::new(false),
        })
    }

    /// Whether reads go there: the last one did not fail, nor did the last look.
    pub fn is_fit(&self) -> bool {
        self.is_fit.load(Ordering::Relaxed)
    }

    /// Closes the connections.
    pub fn close(&self) {
        self.pool.close();
    }

    /// Notes how far `primary` has written, again and again; and looks at a standby after one has failed, so that no request
    /// need find out that it is back.
    pub async fn watch(self: Arc<Self>, primary: Pool) {
        let mut ticks = tokio::time::interval((self.lag / NOTES).clamp(EVERY.0, EVERY.1));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // Without notes the standbys are not asked for long; why there are none, the primary's own connections say.
            if let Err(reason) = self.step(&primary).await {
                tracing::debug!(%reason, "the standby is not fit for reads");
            }
        }
    }

    /// What [`watch`](Self::watch) does again and again.
    ///
    /// # Errors
    /// Why no standby is asked.
    pub async fn step(&self, primary: &Pool) -> Result<(), Unfit> {
        self.note(primary).await?;
        if self.is_fit() { Ok(()) } else { self.look().await }
    }

    async fn note(&self, primary: &Pool) -> Result<(), DbError> {
        // Of before the question: what the answer does not cover was committed later.
        let at = Instant::now();
        let row = Connection::take(primary, LOOK).await?.query_one(WRITTEN, &[]).await?;
        let place = Place {
            written: row.try_get(0)?,
            cluster: row.try_get(1)?,
            database: row.try_get(2)?,
        };
        self.noted(at, place);
        Ok(())
    }

    fn noted(&self, at: Instant, place: Place) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push_back((at, place));
        while notes.front().is_some_and(|(at, _)| at.elapsed() > self.lag) {
            notes.pop_front();
        }
    }

    /// What a standby that may be asked must have replayed: the oldest note within the bound. `None`: the primary has not
    /// said anything for as long.
    fn required(&self) -> Option<Place> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes
            .iter()
            .find(|(at, _)| at.elapsed() <= self.lag)
            .map(|(_, place)| *place)
    }

    async fn look(&self) -> Result<(), Unfit> {
        let connection = Connection::take(&self.pool, LOOK).await?;
        self.check(&connection).await?;
        if !self.is_fit.swap(true, Ordering::Relaxed) {
            tracing::info!("reads go to a standby");
        }
        Ok(())
    }

    /// Whether what this connection leads to may be asked now.
    async fn check(&self, connection: &Connection) -> Result<(), Unfit> {
        let required = self.required().ok_or(Unfit::Behind(self.lag))?;
        let row = connection
            .query_one(HAS_COME_TO, &[&required.written, &required.cluster, &required.database])
            .await?;
        if row.try_get(0).map_err(DbError::from)? {
            Ok(())
        } else {
            Err(Unfit::Behind(self.lag))
        }
    }

    fn failed(&self, reason: &Unfit) {
        if self.is_fit.swap(false, Ordering::Relaxed) {
            tracing::warn!(%reason, "a standby is not fit for reads; they go to the primary until one is");
        }
    }
}

/// What a request reads with: a standby, where there is one that is fit; else, and when that fails, the primary. It only
/// reads: what changes something needs a [`Connection`].
#[derive(Debug)]
pub struct Reader {
    /// What it takes of its key's share of the pool.
    _share: Option<OwnedSemaphorePermit>,
    standby: Option<OnStandby>,
    primary: Primary,
}

#[derive(Debug)]
struct OnStandby {
    standbys: Arc<Standbys>,
    /// Half of the request's time that is left, so that the primary can still be asked.
    until: Instant,
    /// One that was fit when it was taken; `None`: there was none.
    connection: OnceCell<Option<Connection>>,
    has_failed: AtomicBool,
}

/// The primary, which is there already, or is connected to when it is first needed.
#[derive(Debug)]
enum Primary {
    Here(Connection),
    Later {
        pool: Pool,
        until: Instant,
        connection: OnceCell<Connection>,
    },
}

impl From<Connection> for Reader {
    /// On this connection alone.
    fn from(connection: Connection) -> Self {
        Self {
            _share: None,
            standby: None,
            primary: Primary::Here(connection),
        }
    }
}

impl Reader {
    /// For a request until its `deadline`, out of its key's `share` of the pool.
    ///
    /// # Errors
    /// When the key has as many connections as it may have, or there is neither a standby nor a connection to the primary
    /// in time.
    pub async fn take_of_share(
        pool: &Pool,
        standbys: Option<&Arc<Standbys>>,
        share: &Arc<Semaphore>,
        deadline: Deadline,
    ) -> Result<Self, DbError> {
        let Some(standbys) = standbys.filter(|standbys| standbys.is_fit()) else {
            return Ok(Connection::take_of_share(pool, share, deadline).await?.into());
        };
        let now = Instant::now();
        let until = deadline.instant();
        Ok(Self {
            _share: Some(Connection::share(share, deadline).await?),
            standby: Some(OnStandby {
                standbys: standbys.clone(),
                until: now + until.saturating_duration_since(now) / 2,
                connection: OnceCell::new(),
                has_failed: AtomicBool::new(false),
            }),
            primary: Primary::Later {
                pool: pool.clone(),
                until,
                connection: OnceCell::new(),
            },
        })
    }

    /// The rows of a statement.
    ///
    /// # Errors
    /// What the primary says, or that it said nothing in time.
    pub async fn query(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError> {
        if let Some(standby) = self.standby().await {
            match standby.query(statement, parameters).await {
                Ok(rows) => return Ok(rows),
                Err(error) => self.standby_failed(&error.into()),
            }
        }
        self.primary().await?.query(statement, parameters).await
    }

    /// The row of a statement that gives at most one.
    ///
    /// # Errors
    /// As [`query`](Self::query), and for more than one row.
    pub async fn query_opt(
        &self,
        statement: &'static Statement,
        parameters: &Parameters<'_>,
    ) -> Result<Option<Row>, DbError> {
        if let Some(standby) = self.standby().await {
            match standby.query_opt(statement, parameters).await {
                Ok(row) => return Ok(row),
                Err(error) => self.standby_failed(&error.into()),
            }
        }
        self.primary().await?.query_opt(statement, parameters).await
    }

    /// The rows of a statement whose parameters have types that the database could not tell.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn query_typed(
        &self,
        statement: &'static Statement,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, DbError> {
        if let Some(standby) = self.standby().await {
            match standby.query_typed(statement, parameters).await {
                Ok(rows) => return Ok(rows),
                Err(error) => self.standby_failed(&error.into()),
            }
        }
        self.primary().await?.query_typed(statement, parameters).await
    }

    /// The standby's connection, if there is one that is fit, and none has failed this request.
    async fn standby(&self) -> Option<&Connection> {
        let standby = self.standby.as_ref()?;
        if standby.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        let connect = async || {
            let taken = async {
                let connection = Connection::take_until(&standby.standbys.pool, standby.until).await?;
                standby.standbys.check(&connection).await?;
                Ok(connection)
            };
            taken.await.map_err(|reason| self.standby_failed(&reason)).ok()
        };
        standby.connection.get_or_init(connect).await.as_ref()
    }

    fn standby_failed(&self, reason: &Unfit) {
        if let Some(standby) = &self.standby {
            standby.has_failed.store(true, Ordering::Relaxed);
            standby.standbys.failed(reason);
        }
    }

    async fn primary(&self) -> Result<&Connection, DbError> {
        match &self.primary {
            Primary::Here(connection) => Ok(connection),
            Primary::Later {
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

    fn place(written: u64) -> Place {
        Place {
            written: PgLsn::from(written),
            cluster: 1,
            database: 1,
        }
    }

    fn standbys(lag: Duration) -> Arc<Standbys> {
        let nowhere = parse_url("postgresql://u@127.0.0.1:1/d").unwrap();
        Standbys::new(pool(nowhere, &PoolSettings::default()).unwrap(), lag)
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_note_within_the_bound_is_required_and_none_when_the_primary_is_silent() {
        let standbys = standbys(Duration::from_secs(2));
        assert_eq!(standbys.required(), None);
        for written in [10_u64, 20, 30] {
            standbys.noted(Instant::now(), place(written));
            tokio::time::advance(Duration::from_millis(900)).await;
        }
        // Noted 2.7, 1.8 and 0.9 s ago.
        assert_eq!(standbys.required(), Some(place(20)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(standbys.required(), Some(place(30)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(standbys.required(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn notes_that_are_too_old_are_forgotten() {
        let standbys = standbys(Duration::from_secs(2));
        for written in 0..1_000_u64 {
            standbys.noted(Instant::now(), place(written));
            tokio::time::advance(Duration::from_millis(250)).await;
        }
        assert!(standbys.notes.lock().unwrap().len() <= 9);
    }
}
