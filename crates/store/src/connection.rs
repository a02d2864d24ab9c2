//! A pooled connection whose every wait ends by the waiter's own clock.
//!
//! A server-side time-out is enforced by the very process that may hang. So each statement has a bound here, and a
//! connection on which something was not finished, because its bound passed or its request was dropped, is closed instead
//! of going back to the pool, where it would hang the next request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::DbError;
use super::pool::POOL_WAIT;
use super::statement::Statement;
use super::transaction::{Prepared, Transaction};
use crate::deadline::Deadline;
use crate::stages::{Stage, stage};

/// Values of a statement's parameters.
pub type Parameters<'p> = [&'p (dyn ToSql + Sync)];

/// A connection of the pool, for a bounded time. It executes what is registered, and nothing else:
///
/// ```compile_fail,E0308
/// async fn anything(client: &partner_api_store::connection::Connection) {
///     let _ = client.query("SELECT 1", &[]).await;
/// }
/// ```
#[derive(Debug)]
pub struct Connection {
    /// What it takes of its key's share of the pool.
    _share: Option<OwnedSemaphorePermit>,
    // Empty only while it is being dropped.
    object: Option<Object>,
    deadline: Instant,
    // Statements may be sent side by side.
    unfinished: AtomicUsize,
}

impl Connection {
    /// A connection for the next `bound`, the wait for it included.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn take(pool: &Pool, bound: Duration) -> Result<Self, DbError> {
        Self::take_until(pool, Instant::now() + bound).await
    }

    /// A connection until `deadline`.
    pub(super) async fn take_until(pool: &Pool, deadline: Instant) -> Result<Self, DbError> {
        #[expect(clippy::disallowed_methods, reason = "this is what everybody else takes")]
        let object = tokio::time::timeout_at(deadline, pool.get())
            .await
            .map_err(|_| DbError::TimedOut)??;
        Ok(Connection {
            _share: None,
            object: Some(object),
            deadline,
            unfinished: AtomicUsize::new(0),
        })
    }

    /// A connection for a request until its `deadline`, out of its key's `share` of the pool.
    ///
    /// # Errors
    /// When the key has as many as it may have, or all are taken, for as long as a request waits for one.
    pub async fn take_of_share(pool: &Pool, share: &Arc<Semaphore>, deadline: Deadline) -> Result<Self, DbError> {
        let permit = Self::share(share, deadline).await?;
        let mut connection = Self::take_until(pool, deadline.instant()).await?;
        connection._share = Some(permit);
        Ok(connection)
    }

    /// A connection's part of a key's share of the pool.
    pub(super) async fn share(share: &Arc<Semaphore>, deadline: Deadline) -> Result<OwnedSemaphorePermit, DbError> {
        let patience = deadline.instant().min(Instant::now() + POOL_WAIT);
        let permit = tokio::time::timeout_at(patience, share.clone().acquire_owned()).await;
        // One that is closed has nothing to give either; this one never is.
        permit.ok().and_then(Result::ok).ok_or(DbError::TimedOut)
    }

    /// The rows of a statement.
    ///
    /// # Errors
    /// What the database says, or that it said nothing in time.
    pub async fn query(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError> {
        let work = async {
            let prepared = self.prepare(statement).await?;
            self.finish(async |client| client.query(&prepared.0, parameters).await)
                .await
        };
        stage(Stage::Statement(statement), work).await
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
        let work = async {
            let prepared = self.prepare(statement).await?;
            self.finish(async |client| client.query_opt(&prepared.0, parameters).await)
                .await
        };
        stage(Stage::Statement(statement), work).await
    }

    /// The row of a statement that gives one.
    ///
    /// # Errors
    /// As [`query`](Self::query), and for any other number of rows.
    pub async fn query_one(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Row, DbError> {
        let work = async {
            let prepared = self.prepare(statement).await?;
            self.finish(async |client| client.query_one(&prepared.0, parameters).await)
                .await
        };
        stage(Stage::Statement(statement), work).await
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
        let types: Vec<Type> = parameters.iter().map(|(_, kind)| kind.clone()).collect();
        let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|(value, _)| *value).collect();
        let work = self.finish(async |client| {
            let prepared = client.prepare_typed_cached(statement.sql(), &types).await?;
            client.query(&prepared, &values).await
        });
        stage(Stage::Statement(statement), work).await
    }

    /// Executes a statement; returns how many rows it changed.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn execute(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<u64, DbError> {
        let work = async {
            let prepared = self.prepare(statement).await?;
            self.finish(async |client| client.execute(&prepared.0, parameters).await)
                .await
        };
        stage(Stage::Statement(statement), work).await
    }

    /// A transaction, which is not begun yet.
    pub fn transaction(&self) -> Transaction<'_> {
        Transaction::new(self)
    }

    /// Prepares a statement, unless this connection has it.
    pub(super) async fn prepare(&self, statement: &'static Statement) -> Result<Prepared, DbError> {
        self.finish(async |client| client.prepare_cached(statement.sql()).await)
            .await
            .map(Prepared)
    }

    /// Executes words that are no statement of the registry: those that begin and end a transaction.
    pub(super) async fn batch(&self, words: &str) -> Result<(), DbError> {
        self.finish(async |client| client.batch_execute(words).await).await
    }

    /// Does `work`, and notes whether it came to an end: unless it is done, or was refused, nobody knows what state the
    /// connection is in.
    pub(super) async fn finish<T>(
        &self,
        work: impl AsyncFnOnce(&Object) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, DbError> {
        let Some(object) = &self.object else {
            return Err(DbError::TimedOut);
        };
        self.leave_unfinished();
        let done = tokio::time::timeout_at(self.deadline, work(object)).await;
        let done = done.map_err(|_| DbError::TimedOut)?.map_err(DbError::from);
        if done.as_ref().err().is_none_or(|error| error.refusal().is_some()) {
            self.note_finished();
        }
        done
    }

    /// Notes that something has begun which must come to an end before the connection may be pooled.
    pub(super) fn leave_unfinished(&self) {
        self.unfinished.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that it has.
    pub(super) fn note_finished(&self) {
        self.unfinished.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.unfinished.load(Ordering::Relaxed) > 0
            && let Some(object) = self.object.take()
        {
            drop(Object::take(object));
        }
    }
}
