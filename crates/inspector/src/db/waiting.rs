//! Measurements that wait, as far as they are the inspector's to settle.

use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::measurements::{self, Status};
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
use uuid::Uuid;

use super::row;
use super::writing::Locked;
use crate::caller::Inspector;

statement! {
    /// The status of the measurement `$1` for the plate `$3` at the branch `$2`.
    OF_REPORT = "SELECT status FROM measurements WHERE id = $1 AND branch_id = $2 AND plate = $3";

    /// Whether there is the measurement `$1` at one of the branches `$2`.
    IS_THERE = "SELECT EXISTS (SELECT FROM measurements WHERE id = $1 AND branch_id = ANY ($2::uuid[]))";
}

/// The status of a measurement for a locked report's plate at its branch; `None` where there is none.
///
/// # Errors
/// What the database says.
pub async fn status(
    transaction: &Transaction<'_>,
    report: &Locked,
    measurement: Uuid,
) -> Result<Option<Status>, DbError> {
    let found = row(
        transaction,
        OF_REPORT,
        &[&measurement, &report.branch_id, &report.plate],
    )
    .await?;
    found.map(|row| Ok(row.try_get(0)?)).transpose()
}

/// What became of a measurement that was to be discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discarded {
    /// It waits no more.
    Done,
    /// It waited no more.
    Settled,
    /// There is none at a branch of the inspector's.
    None,
}

/// Settles a waiting measurement as ignored by the inspector.
///
/// # Errors
/// What the database says.
pub async fn discard(client: &Connection, inspector: &Inspector, measurement: Uuid) -> Result<Discarded, DbError> {
    let branches = inspector.branch_ids();
    if measurements::discard(client, measurement, inspector.name(), &branches).await? {
        return Ok(Discarded::Done);
    }
    let row = client.query_one(IS_THERE, &[&measurement, &branches]).await?;
    Ok(match row.try_get(0)? {
        true => Discarded::Settled,
        false => Discarded::None,
    })
}
