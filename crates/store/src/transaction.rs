//! A transaction on a [`Connection`]: of registered statements, and closed with its connection if nobody ends it.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::{CopyInSink, Row};

use super::DbError;
use super::connection::{Connection, Parameters};
use super::statement::Statement;

/// A statement that a connection has prepared: sending it takes no other round trip before, so that several of them can be
/// sent one right behind the other, in the order in which their futures are first polled (`futures::join!` keeps it).
#[derive(Clone, Debug)]
pub struct Prepared(pub(super) tokio_postgres::Statement);

/// A transaction. It begins with the first statement, in the same round trip, and ends with [`commit`](Self::commit) or
/// [`rollback`](Self::rollback): a connection on which one was begun and not ended is closed, not pooled.
///
/// It executes what is registered, and nothing else:
///
/// ```compile_fail,E0308
/// async fn anything(transaction: &partner_api_store::transaction::Transaction<'_>) {
///     let _ = transaction.prepare("SELECT 1").await;
/// }
/// ```
///
/// ```compile_fail,E0603
/// fn anything(prepared: tokio_postgres::Statement) -> partner_api_store::transaction::Prepared {
///     partner_api_store::transaction::Prepared(prepared)
/// }
/// ```
#[derive(Debug)]
pub struct Transaction<'c> {
    connection: &'c Connection,
    begin: String,
    is_begun: AtomicBool,
}

impl<'c> Transaction<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Transaction {
            connection,
            begin: "BEGIN".to_owned(),
            is_begun: AtomicBool::new(false),
        }
    }

    /// With a bound of its own on the wait for each lock, in place of the session's.
    #[must_use]
    pub fn lock_timeout(self, bound: Duration) -> Self {
        self.with("lock_timeout", bound)
    }

    /// With a bound of its own on each statement, in place of the session's.
    #[must_use]
    pub fn statement_timeout(self, bound: Duration) -> Self {
        self.with("statement_timeout", bound)
    }

    fn with(mut self, setting: &str, bound: Duration) -> Self {
        // Writing into a String cannot fail.
        let _ = write!(self.begin, "; SET LOCAL {setting} = {}", bound.as_millis());
        self
    }

    /// Prepares a statement, unless the connection has it; the transaction does not begin by it.
    ///
    /// # Errors
    /// What the database says, or that it said nothing in time.
    pub async fn prepare(&self, statement: &'static Statement) -> Result<Prepared, DbError> {
        self.connection.prepare(statement).await
    }

    /// The rows of a statement.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub async fn query(&self, statement: &Prepared, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError> {
        let rows = self
            .connection
            .finish(async |client| client.query(&statement.0, parameters).await);
        self.behind_begin(rows).await
    }

    /// The row of a statement that gives at most one.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare), and for more than one row.
    pub async fn query_opt(&self, statement: &Prepared, parameters: &Parameters<'_>) -> Result<Option<Row>, DbError> {
        let row = self
            .connection
            .finish(async |client| client.query_opt(&statement.0, parameters).await);
        self.behind_begin(row).await
    }

    /// Executes a statement; returns how many rows it changed.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub async fn execute(&self, statement: &Prepared, parameters: &Parameters<'_>) -> Result<u64, DbError> {
        let changed = self
            .connection
            .finish(async |client| client.execute(&statement.0, parameters).await);
        self.behind_begin(changed).await
    }

    /// Begins a `COPY … FROM STDIN`.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub async fn copy_in(&self, statement: &Prepared) -> Result<CopyInSink<Bytes>, DbError> {
        let sink = self
            .connection
            .finish(async |client| client.copy_in(&statement.0).await);
        self.behind_begin(sink).await
    }

    async fn behind_begin<T>(&self, work: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
        let begin = async {
            match self.is_begun.swap(true, Ordering::Relaxed) {
                true => Ok(()),
                false => {
                    self.connection.leave_unfinished();
                    self.connection.batch(&self.begin).await
                }
            }
        };
        let (begun, done) = futures::join!(begin, work);
        begun.and(done)
    }

    /// Makes what was done stand. Behind a statement that failed it is a [`rollback`](Self::rollback), and no error.
    ///
    /// # Errors
    /// What the database says, or that it said nothing in time: then what was done may stand or not.
    pub async fn commit(&self) -> Result<(), DbError> {
        self.end("COMMIT").await
    }

    /// Undoes what was done.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); nothing of it stands in any case.
    pub async fn rollback(&self) -> Result<(), DbError> {
        self.end("ROLLBACK").await
    }

    async fn end(&self, how: &'static str) -> Result<(), DbError> {
        if self.is_begun.load(Ordering::Relaxed) {
            self.connection.batch(how).await?;
            self.connection.note_finished();
            self.is_begun.store(false, Ordering::Relaxed);
        }
        Ok(())
    }
}
