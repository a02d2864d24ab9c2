//! Reading within a change and without one.

use partner_api::db::DbError;
use partner_api::db::connection::{Connection, Parameters};
use partner_api::db::statement::Statement;
use tokio_postgres::Row;

use crate::session::Change;

/// What rows can be asked of: a connection, or a change that is under way and so sees what it did.
pub(crate) trait Query {
    /// The rows of a statement.
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
