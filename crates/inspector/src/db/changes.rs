//! The state of open reports, in which event streams look for changes.

use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use uuid::Uuid;

use super::report::version;

statement! {
    /// The open reports of the last thirty days at the branches `$1`, each with a text that differs after every change. The text
    /// consists of the version, the status, and the number and newest time of the pending measurements, up to a hundred of them.
    STATE = concat!("\
SELECT i.id, i.branch_id, concat_ws(' ', ", version!("i.organization_id"), ", i.status,
    (SELECT concat_ws(' ', count(*), max(w.received_at)) FROM (
        SELECT m.received_at FROM measurements m
        WHERE m.branch_id = i.branch_id AND m.organization_id = i.organization_id AND m.plate = i.plate AND m.status = 'PENDING'
        ORDER BY m.received_at DESC LIMIT 100) AS w)) AS state
FROM inspections i
WHERE i.branch_id = ANY ($1::uuid[]) AND i.status IN ('DRAFT', 'IN_REVIEW', 'REVISION_REQUESTED', 'CANCEL_REQUESTED')
  AND i.created_at > now() - interval '30 days'");
}

/// A report, and a text that differs after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The report's ID.
    pub report: Uuid,
    /// The ID of its branch.
    pub branch: Uuid,
    /// A text that stays equal until the report changes.
    pub state: String,
}

/// Returns the state of the open reports at these branches.
///
/// # Errors
/// The database failed.
pub async fn state(client: &Connection, branches: &[Uuid]) -> Result<Vec<State>, DbError> {
    let rows = client.query(STATE, &[&branches]).await?;
    rows.iter()
        .map(|row| {
            Ok(State {
                report: row.try_get("id")?,
                branch: row.try_get("branch_id")?,
                state: row.try_get("state")?,
            })
        })
        .collect()
}
