//! What has changed among the reports that somebody watches.

use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use uuid::Uuid;

use super::report::version;

statement! {
    /// The reports at the branches `$1` that are being worked on, of the last thirty days, and what changes with each change of
    /// them: the version, the status, and which measurements wait, as far as they are among the newest hundred.
    STATE = concat!("\
SELECT i.id, i.branch_id, concat_ws(' ', ", version!(), ", i.status,
    (SELECT concat_ws(' ', count(*), max(w.received_at)) FROM (
        SELECT m.received_at FROM measurements m WHERE m.branch_id = i.branch_id AND m.plate = i.plate AND m.status = 'PENDING'
        ORDER BY m.received_at DESC LIMIT 100) AS w)) AS state
FROM inspections i
WHERE i.branch_id = ANY ($1::uuid[]) AND i.status IN ('DRAFT', 'IN_REVIEW', 'REVISION_REQUESTED', 'CANCEL_REQUESTED')
  AND i.created_at > now() - interval '30 days'");
}

/// A report, and what differs when it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Its id.
    pub report: Uuid,
    /// Its branch.
    pub branch: Uuid,
    /// Equal as long as nothing has changed.
    pub state: String,
}

/// The state of the reports that are being worked on at these branches.
///
/// # Errors
/// What the database says.
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
