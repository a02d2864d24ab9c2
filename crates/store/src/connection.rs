//! A pooled connection with a client-side deadline for every wait.
//!
//! A server-side timeout depends on the server process, which may hang. Each statement therefore has a deadline on the
//! client. If the deadline passes or the request is dropped, the connection has unfinished work. It is then closed instead of being
//! returned to the pool, where it would block the next request.

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
use super::shared::SharedConnection;
use super::statement::{Prepared, Statement};
use crate::deadline::Deadline;
use crate::stages::{Stage, stage};

/// Values of a statement's parameters.
pub type Parameters<'p> = [&'p (dyn ToSql + Sync)];

/// A connection from the pool, for a limited time. It executes only registered statements:
///
/// ```compile_fail,E0308
/// async fn anything(client: &partner_api_store::connection::Connection) {
///     let _ = client.query("SELECT 1", &[]).await;
/// }
/// ```
#[derive(Debug)]
pub struct Connection {
    /// Counts this connection against the quota of the key.
    _quota_permit: Option<OwnedSemaphorePermit>,
    source: Source,
    deadline: Instant,
}

/// The connection of the driver.
#[derive(Debug)]
enum Source {
    /// One for this value alone.
    Own {
        // `None` only while the connection is dropped. Boxed, because most reads use a shared connection and would have the space for it.
        object: Option<Box<Object>>,
        // A count, because statements may run concurrently.
        unfinished: AtomicUsize,
    },
    /// One that several requests use.
    Shared(Arc<SharedConnection>),
}

impl Connection {
    /// Takes a connection from the pool that is valid for `timeout`, including the wait for it.
    ///
    /// # Errors
    /// If no connection becomes available in time.
    pub async fn take(pool: &Pool, timeout: Duration) -> Result<Self, DbError> {
        Self::take_until(pool, Instant::now() + timeout).await
    }

    /// Takes a connection that is valid until `deadline`.
    pub(super) async fn take_until(pool: &Pool, deadline: Instant) -> Result<Self, DbError> {
        // Boxed, because this future is large, and most reads use a shared connection instead.
        #[expect(clippy::disallowed_methods, reason = "all other code takes a `Connection`")]
        let taking = Box::pin(pool.get());
        let object = tokio::time::timeout_at(deadline, taking)
            .await
            .map_err(|_| DbError::TimedOut)??;
        Ok(Connection {
            _quota_permit: None,
            source: Source::Own {
                object: Some(Box::new(object)),
                unfinished: AtomicUsize::new(0),
            },
            deadline,
        })
    }

    /// Uses a shared connection until `deadline`. It cannot begin transactions.
    pub(super) fn shared(connection: Arc<SharedConnection>, deadline: Instant) -> Self {
        Connection {
            _quota_permit: None,
            source: Source::Shared(connection),
            deadline,
        }
    }

    /// Returns the connection of the driver, unless it is shared.
    pub(super) fn into_object(mut self) -> Option<Object> {
        match &mut self.source {
            Source::Own { object, .. } => object.take().map(|object| *object),
            Source::Shared(_) => None,
        }
    }

    /// Takes a connection for a request until its `deadline`, within the key's `quota` of connections.
    ///
    /// # Errors
    /// If the quota or the pool is still exhausted after [`POOL_WAIT`] or at the deadline.
    pub async fn take_within_quota(pool: &Pool, quota: &Arc<Semaphore>, deadline: Deadline) -> Result<Self, DbError> {
        let permit = Self::quota_permit(quota, deadline).await?;
        let mut connection = Self::take_until(pool, deadline.instant()).await?;
        connection._quota_permit = Some(permit);
        Ok(connection)
    }

    /// Waits for a permit of the key's connection quota.
    pub(super) async fn quota_permit(
        quota: &Arc<Semaphore>,
        deadline: Deadline,
    ) -> Result<OwnedSemaphorePermit, DbError> {
        let deadline = deadline.instant().min(Instant::now() + POOL_WAIT);
        let permit = tokio::time::timeout_at(deadline, quota.clone().acquire_owned()).await;
        // The inner error means that the semaphore was closed, which never happens.
        permit.ok().and_then(Result::ok).ok_or(DbError::TimedOut)
    }

    /// Executes a statement and returns its rows.
    ///
    /// # Errors
    /// If the database reports an error, or does not respond in time.
    pub async fn query(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError> {
        let work = async {
            let prepared = self.prepare(statement).await?;
            self.run(async |client| client.query(&prepared.0, parameters).await)
                .await
        };
        stage(Stage::Statement(statement), work).await
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
        let work = async {
            let prepared = self.prepare(statement).await?;
            self.run(async |client| client.query_opt(&prepared.0, parameters).await)
                .await
        };
        stage(Stage::Statement(statement), work).await
    }

    /// Executes a statement that returns exactly one row.
    ///
    /// # Errors
    /// As [`query`](Self::query), and if the statement returns any other number of rows.
    pub async fn query_one(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Row, DbError> {
        let work = async {
            let prepared = self.prepare(statement).await?;
            self.run(async |client| client.query_one(&prepared.0, parameters).await)
                .await
        };
        stage(Stage::Statement(statement), work).await
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
        let types: Vec<Type> = parameters.iter().map(|(_, kind)| kind.clone()).collect();
        let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|(value, _)| *value).collect();
        let work = self.run(async |client| {
            let prepared = client.prepare_typed_cached(statement.sql(), &types).await?;
            client.query(&prepared, &values).await
        });
        stage(Stage::Statement(statement), work).await
    }

    /// Executes a statement and returns the number of rows that it changed.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn execute(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<u64, DbError> {
        let work = async {
            let prepared = self.prepare(statement).await?;
            self.run(async |client| client.execute(&prepared.0, parameters).await)
                .await
        };
        stage(Stage::Statement(statement), work).await
    }

    /// Prepares a statement, unless it is cached on this connection.
    pub(super) async fn prepare(&self, statement: &'static Statement) -> Result<Prepared, DbError> {
        self.run(async |client| client.prepare_cached(statement.sql()).await)
            .await
            .map(Prepared)
    }

    /// Executes SQL outside of the registry: the commands that begin and end a transaction.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), DbError> {
        self.run(async |client| client.batch_execute(sql).await).await
    }

    /// Runs `work` until the deadline, and records whether it finished. Unless it succeeds or the database rejects it, the
    /// state of the connection is unknown.
    pub(super) async fn run<T>(
        &self,
        work: impl AsyncFnOnce(&Object) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, DbError> {
        let object = match &self.source {
            Source::Own {
                object: Some(object), ..
            } => object,
            Source::Own { object: None, .. } => return Err(DbError::TimedOut),
            Source::Shared(connection) => return connection.run(self.deadline, work).await,
        };
        self.mark_started();
        let result = tokio::time::timeout_at(self.deadline, work(object)).await;
        let result = result.map_err(|_| DbError::TimedOut)?.map_err(DbError::from);
        if result.as_ref().err().is_none_or(|error| error.rejection().is_some()) {
            self.mark_finished();
        }
        result
    }

    /// Records the start of work that must finish before the connection may be returned to the pool.
    pub(super) fn mark_started(&self) {
        if let Source::Own { unfinished, .. } = &self.source {
            unfinished.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records the end of that work.
    pub(super) fn mark_finished(&self) {
        if let Source::Own { unfinished, .. } = &self.source {
            unfinished.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Source::Own { object, unfinished } = &mut self.source
            && *unfinished.get_mut() > 0
            && let Some(object) = object.take()
        {
            drop(Object::take(*object));
        }
    }
}
