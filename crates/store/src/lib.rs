//! Access to the PostgreSQL database.
//!
//! Each resource has a module with its registered SQL statements and its row mapping. This crate does not depend on HTTP.

use thiserror::Error;
use tokio_postgres::error::SqlState;

pub mod branches;
pub mod column;
pub mod connection;
pub mod deadline;
pub mod deployment;
pub mod directory;
pub mod forms;
pub mod inspections;
pub mod measurements;
pub mod migrate;
pub mod organizations;
pub mod orphaned_objects;
pub mod pacing;
pub mod partitions;
pub mod photos;
pub mod pool;
pub mod public_reports;
pub mod renderings;
pub mod roles;
pub mod schema;
pub mod secrets;
pub mod shared;
pub mod stages;
pub mod standby;
pub mod statement;
pub mod thresholds;
pub mod transaction;

/// An error of a database query.
#[derive(Debug, Error)]
pub enum DbError {
    /// No connection became free in time, or none could be established.
    #[error("failed to get a database connection: {}", pool_cause(.0))]
    Pool(#[from] deadpool_postgres::PoolError),
    /// The database rejected a statement, or the connection was lost.
    #[error("failed to execute a statement: {}", cause(.0))]
    Query(#[from] tokio_postgres::Error),
    /// The database did not respond before the client-side deadline. The statement may or may not have taken effect.
    #[error("the database did not respond in time")]
    TimedOut,
    /// A row contains a value that the schema rules out.
    #[error("unexpected data in {table}: {detail}")]
    Data {
        /// The table that the row belongs to.
        table: &'static str,
        /// The problem with the row, without personal data.
        detail: String,
    },
}

impl DbError {
    /// Returns whether a retry may succeed: there was no connection, it was lost, a statement timed out, or the database
    /// is starting, stopping or read-only.
    pub fn is_unavailable(&self) -> bool {
        match self {
            DbError::Pool(_) | DbError::TimedOut => true,
            DbError::Query(error) => match error.code() {
                // Classes 08 connection, 40 transaction rollback, 53 resources, 57 operator intervention, 58 system error;
                // 55P03 lock not available, 25006 read-only, 25P03 idle in transaction.
                Some(state) => {
                    ["08", "40", "53", "57", "58"].contains(&&state.code()[..2])
                        || ["55P03", "25006", "25P03"].contains(&state.code())
                }
                // Without a code, the connection failed or a value could not be converted.
                None => {
                    error.is_closed()
                        || std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
                }
            },
            DbError::Data { .. } => false,
        }
    }

    /// Returns whether the statement may have taken effect despite the error, because no response arrived.
    pub fn outcome_is_unknown(&self) -> bool {
        match self {
            DbError::TimedOut => true,
            DbError::Query(_) => self.rejection().is_none(),
            DbError::Pool(_) | DbError::Data { .. } => false,
        }
    }

    /// Returns the SQLSTATE if the database rejected the statement, which then had no effect.
    ///
    /// A terminated session is not a rejection, because it does not show whether its last commit succeeded.
    pub fn rejection(&self) -> Option<&SqlState> {
        let DbError::Query(error) = self else { return None };
        error.code().filter(|code| {
            ![
                SqlState::ADMIN_SHUTDOWN,
                SqlState::CRASH_SHUTDOWN,
                SqlState::CANNOT_CONNECT_NOW,
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            ]
            .contains(code)
        })
    }
}

/// Formats a database error for the log, because the driver's own text is only `db error`.
///
/// For an error of the server, the text has the severity, the SQLSTATE and the message. It omits the detail, which
/// quotes values of the row.
pub fn cause(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("{} {}: {}", error.severity(), error.code().code(), error.message());
    }
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn pool_cause(error: &deadpool_postgres::PoolError) -> String {
    match error {
        deadpool_postgres::PoolError::Backend(error) => cause(error),
        error => error.to_string(),
    }
}
