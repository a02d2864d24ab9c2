//! The inspectors' SQL statements and their row mapping, without HTTP.
//!
//! Every statement that finds a report has the inspector's branches as a condition.

pub mod attempts;
pub mod changes;
pub mod listing;
pub mod moves;
pub mod opening;
pub mod pdf;
pub mod photos;
pub mod report;
pub mod sessions;
pub mod vehicle;
pub mod waiting;
pub mod writing;

use std::sync::Arc;

use deadpool_postgres::Pool;
use partner_api_store::DbError;
use partner_api_store::connection::{Connection, Parameters};
use partner_api_store::deadline::Deadline;
use partner_api_store::statement::Statement;
use partner_api_store::transaction::Transaction;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio_postgres::Row;
use tokio_postgres::types::Json;

/// The maximum number of the pool's connections that inspectors use at a time. The rest stays available to partners.
const MAX_CONNECTIONS: usize = 6;

/// The inspectors' share of the connections in the partners' pool; cheap to clone.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool,
    share: Arc<Semaphore>,
}

impl Connections {
    /// A share of this pool.
    pub fn of(pool: Pool) -> Self {
        let share = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Connections { pool, share }
    }

    /// Takes a connection, waiting until the deadline.
    pub async fn take(&self, deadline: Deadline) -> Result<Connection, DbError> {
        Connection::take_within_quota(&self.pool, &self.share, deadline).await
    }
}

/// Returns the list in a column; an empty one if the column is null.
fn listed<T: DeserializeOwned>(row: &Row, column: &str) -> Result<Vec<T>, DbError> {
    let list: Option<Json<Vec<T>>> = row.try_get(column)?;
    Ok(list.map_or_else(Vec::new, |Json(list)| list))
}

/// Executes a statement in a transaction and returns its rows.
async fn rows(
    transaction: &Transaction<'_>,
    statement: &'static Statement,
    parameters: &Parameters<'_>,
) -> Result<Vec<Row>, DbError> {
    let prepared = transaction.prepare(statement).await?;
    transaction.query(&prepared, parameters).await
}

/// Executes a statement in a transaction and returns its row, of which there is at most one.
async fn row(
    transaction: &Transaction<'_>,
    statement: &'static Statement,
    parameters: &Parameters<'_>,
) -> Result<Option<Row>, DbError> {
    let prepared = transaction.prepare(statement).await?;
    transaction.query_opt(&prepared, parameters).await
}

/// Executes a statement in a transaction and returns the number of changed rows.
async fn execute(
    transaction: &Transaction<'_>,
    statement: &'static Statement,
    parameters: &Parameters<'_>,
) -> Result<u64, DbError> {
    let prepared = transaction.prepare(statement).await?;
    transaction.execute(&prepared, parameters).await
}
