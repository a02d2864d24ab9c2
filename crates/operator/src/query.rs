//! Queries inside and outside a change.

use partner_api_store::DbError;
use partner_api_store::connection::{Connection, Parameters};
use partner_api_store::statement::Statement;
use tokio_postgres::Row;

use crate::session::Change;

/// A source of rows: a connection, or a change, which sees its own modifications.
pub(crate) trait Query {
    /// Returns the rows of a statement.
    async fn query(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError>;
}

impl Query for Connection {
    async fn query(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError> {
        Connection::query(self, statement, parameters).await
    }
}

impl Query for Change<'_> {
    async fn query(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError> {
        Change::query(self, statement, parameters).await
    }
}
