//! The SQL of the service, a module per resource: registered statements beside their row mapping; nothing of HTTP.

use thiserror::Error;
use tokio_postgres::error::SqlState;

pub mod branches;
pub mod column;
pub mod connection;
pub mod deadline;
pub mod directory;
pub mod forms;
pub mod inspections;
pub mod measurements;
pub mod migrate;
pub mod organizations;
pub mod partitions;
pub mod photos;
pub mod pool;
pub mod renderings;
pub mod report_settings;
pub mod secrets;
pub mod stages;
pub mod standby;
pub mod statement;
pub mod thresholds;
pub mod transaction;

/// Why a query could not be answered.
#[derive(Debug, Error)]
pub enum DbError {
    /// No connection within the bounded wait, or none could be made.
    #[error("no database connection: {}", pool_cause(.0))]
    Pool(#[from] deadpool_postgres::PoolError),
    /// The database refused or lost a statement.
    #[error("query failed: {}", cause(.0))]
    Query(#[from] tokio_postgres::Error),
    /// The database said nothing within the waiter's own bound: what was asked of it may have happened or not.
    #[error("the database did not answer in time")]
    TimedOut,
    /// A row does not hold what the schema promises.
    #[error("unexpected data in {table}: {detail}")]
    Data {
        /// The table the row came from.
        table: &'static str,
        /// What is wrong with it; no personal data.
        detail: String,
    },
}

impl DbError {
    /// Whether trying again may help: no connection, a lost one, a statement that took too long, a database that is
    /// starting, stopping or a standby.
    pub fn is_unavailable(&self) -> bool {
        match self {
            DbError::Pool(_) | DbError::TimedOut => true,
            DbError::Query(error) => match error.code() {
                // Classes 08 connection, 40 rolled back, 53 resources, 57 operator's doing, 58 system error;
                // 55P03 lock not available, 25006 read-only, 25P03 idle in transaction.
                Some(state) => {
                    ["08", "40", "53", "57", "58"].contains(&&state.code()[..2])
                        || ["55P03", "25006", "25P03"].contains(&state.code())
                }
                // Without a code the connection itself failed, or a value did not convert.
                None => {
                    error.is_closed()
                        || std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
                }
            },
            DbError::Data { .. } => false,
        }
    }

    /// Whether what was asked for may have happened all the same: the answer is missing, not negative.
    pub fn leaves_open(&self) -> bool {
        match self {
            DbError::TimedOut => true,
            DbError::Query(_) => self.refusal().is_none(),
            DbError::Pool(_) | DbError::Data { .. } => false,
        }
    }

    /// The database's refusal, after which nothing of what was asked for stands. A session that was ended says nothing of
    /// what it had committed.
    pub fn refusal(&self) -> Option<&SqlState> {
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

/// What the database or the connection said, for a log: the driver's own text ends at `db error`. Of a refusal the
/// severity, the SQLSTATE and the message, but not the detail, which quotes the row's values.
pub fn cause(error: &tokio_postgres::Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        return format!(
            "{} {}: {}",
            refusal.severity(),
            refusal.code().code(),
            refusal.message()
        );
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
