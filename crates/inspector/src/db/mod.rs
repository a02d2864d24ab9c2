//! The SQL of the inspectors' room: registered statements beside their row mapping; nothing of HTTP.
//!
//! That a report is one of the inspector's branches is a condition in every statement about it.

pub mod attempts;
pub mod changes;
pub mod listing;
pub mod moves;
pub mod opening;
pub mod photos;
pub mod report;
pub mod sessions;
pub mod waiting;
pub mod writing;

use partner_api_store::DbError;
use partner_api_store::connection::Parameters;
use partner_api_store::statement::Statement;
use partner_api_store::transaction::Transaction;
use tokio_postgres::Row;

/// The rows of a statement of a transaction.
async fn rows(
    transaction: &Transaction<'_>,
    statement: &'static Statement,
    parameters: &Parameters<'_>,
) -> Result<Vec<Row>, DbError> {
    let prepared = transaction.prepare(statement).await?;
    transaction.query(&prepared, parameters).await
}

/// The row of a statement of a transaction that gives at most one.
async fn row(
    transaction: &Transaction<'_>,
    statement: &'static Statement,
    parameters: &Parameters<'_>,
) -> Result<Option<Row>, DbError> {
    let prepared = transaction.prepare(statement).await?;
    transaction.query_opt(&prepared, parameters).await
}

/// Executes a statement of a transaction; returns how many rows it changed.
async fn execute(
    transaction: &Transaction<'_>,
    statement: &'static Statement,
    parameters: &Parameters<'_>,
) -> Result<u64, DbError> {
    let prepared = transaction.prepare(statement).await?;
    transaction.execute(&prepared, parameters).await
}
