//! A transaction of registered statements on a [`Connection`], which is closed if the transaction is not ended.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::{CopyInSink, Row};

use super::DbError;
use super::connection::{Connection, Parameters};
use super::statement::{Prepared, Statement};

/// A transaction. It begins with the first statement, in the same round trip, and ends with [`commit`](Self::commit) or
/// [`rollback`](Self::rollback). A connection with an open transaction is closed instead of being returned to the pool.
///
/// It executes only registered statements:
///
/// ```compile_fail,E0308
/// async fn anything(transaction: &partner_api_store::transaction::Transaction<'_>) {
///     let _ = transaction.prepare("SELECT 1").await;
/// }
/// ```
///
/// ```compile_fail,E0603
/// fn anything(prepared: tokio_postgres::Statement) -> partner_api_store::statement::Prepared {
///     partner_api_store::statement::Prepared(prepared)
/// }
/// ```
#[derive(Debug)]
pub struct Transaction<'c> {
    connection: &'c Connection,
    begin: String,
    is_begun: AtomicBool,
}

impl Connection {
    /// Returns a transaction, which begins with its first statement.
    pub fn transaction(&self) -> Transaction<'_> {
        Transaction {
            connection: self,
            begin: "BEGIN".to_owned(),
            is_begun: AtomicBool::new(false),
        }
    }
}

impl Transaction<'_> {
    /// Sets the lock timeout of this transaction.
    #[must_use]
    pub fn lock_timeout(self, timeout: Duration) -> Self {
        self.with("lock_timeout", timeout)
    }

    /// Sets the statement timeout of this transaction.
    #[must_use]
    pub fn statement_timeout(self, timeout: Duration) -> Self {
        self.with("statement_timeout", timeout)
    }

    fn with(mut self, setting: &str, timeout: Duration) -> Self {
        // Writing into a String cannot fail.
        let _ = write!(self.begin, "; SET LOCAL {setting} = {}", timeout.as_millis());
        self
    }

    /// Prepares a statement, unless it is cached on the connection. This does not begin the transaction.
    ///
    /// # Errors
    /// If the database reports an error, or does not respond in time.
    pub async fn prepare(&self, statement: &'static Statement) -> Result<Prepared, DbError> {
        self.connection.prepare(statement).await
    }

    /// Executes a statement and returns its rows.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub async fn query(&self, statement: &Prepared, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError> {
        let rows = self
            .connection
            .run(async |client| client.query(&statement.0, parameters).await);
        self.after_begin(rows).await
    }

    /// Executes a statement that returns at most one row.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare), and if the statement returns more than one row.
    pub async fn query_opt(&self, statement: &Prepared, parameters: &Parameters<'_>) -> Result<Option<Row>, DbError> {
        let row = self
            .connection
            .run(async |client| client.query_opt(&statement.0, parameters).await);
        self.after_begin(row).await
    }

    /// Executes a statement and returns the number of rows that it changed.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub async fn execute(&self, statement: &Prepared, parameters: &Parameters<'_>) -> Result<u64, DbError> {
        let changed = self
            .connection
            .run(async |client| client.execute(&statement.0, parameters).await);
        self.after_begin(changed).await
    }

    /// Begins a `COPY … FROM STDIN`.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub async fn copy_in(&self, statement: &Prepared) -> Result<CopyInSink<Bytes>, DbError> {
        let sink = self.connection.run(async |client| client.copy_in(&statement.0).await);
        self.after_begin(sink).await
    }

    /// Sends `work` after `BEGIN`, in the same round trip, if the transaction has not begun.
    async fn after_begin<T>(&self, work: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
        let begin = async {
            match self.is_begun.swap(true, Ordering::Relaxed) {
                true => Ok(()),
                false => {
                    self.connection.mark_started();
                    self.connection.batch(&self.begin).await
                }
            }
        };
        let (begun, done) = futures::join!(begin, work);
        begun.and(done)
    }

    /// Commits the transaction. After a failed statement this is a [`rollback`](Self::rollback) and not an error.
    ///
    /// # Errors
    /// If the database reports an error, or does not respond in time. In the latter case the outcome is unknown.
    pub async fn commit(&self) -> Result<(), DbError> {
        self.end("COMMIT").await
    }

    /// Rolls the transaction back.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). The transaction has no effect in any case.
    pub async fn rollback(&self) -> Result<(), DbError> {
        self.end("ROLLBACK").await
    }

    async fn end(&self, command: &'static str) -> Result<(), DbError> {
        if self.is_begun.load(Ordering::Relaxed) {
            self.connection.batch(command).await?;
            self.connection.mark_finished();
            self.is_begun.store(false, Ordering::Relaxed);
        }
        Ok(())
    }
}
