//! Pending measurements at the inspector's branches.

use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::measurements::{self, Status};
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::writing::LockedReport;
use super::{execute, row};
use crate::caller::Inspector;

statement! {
    /// The status of the measurement `$1` for the plate `$3` at the branch `$2` of the organization `$4`.
    OF_REPORT = "SELECT status FROM measurements WHERE id = $1 AND branch_id = $2 AND organization_id = $4 AND plate = $3";

    /// The measurement `$1` at one of the branches `$2` of the organization `$3`: its status, and the report to which it was
    /// applied.
    SETTLED = "\
SELECT status, inspection_id FROM measurements WHERE id = $1 AND organization_id = $3 AND branch_id = ANY ($2::uuid[])";

    /// Makes the discarded measurement `$1` of the organization `$2` pending.
    UNDO_DISCARD = "\
UPDATE measurements SET status = 'PENDING', settled_at = NULL, settled_by = NULL
WHERE id = $1 AND organization_id = $2 AND status = 'DISCARDED'";

    /// Gives each point of the report `$2` of the organization `$3` that has a value of the measurement `$1` the answer that it had
    /// before, or none. An answer was replaced by the measurement, and not removed before, if it was replaced after the
    /// measurement's value was written.
    RESTORE = "\
WITH mine AS (
    SELECT a.* FROM inspection_forms f
    JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.organization_id = f.organization_id
    WHERE f.inspection_id = $2 AND f.organization_id = $3 AND a.measurement_id = $1
), before AS (
    SELECT DISTINCT ON (h.inspection_form_id, h.point_id) h.*
    FROM mine
    JOIN inspection_form_answer_history h ON h.inspection_form_id = mine.inspection_form_id AND h.point_id = mine.point_id
    WHERE h.organization_id = $3 AND h.measurement_id IS DISTINCT FROM $1 AND h.replaced_at >= mine.written_at
    ORDER BY h.inspection_form_id, h.point_id, h.replaced_at DESC, h.ordinal DESC
), kept AS (
    INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, organization_id, status_code, status_label, severity,
                                                numeric_value, note, by_device, measurement_id, written_by, written_at)
    SELECT inspection_form_id, point_id, organization_id, status_code, status_label, severity, numeric_value, note, by_device,
           measurement_id, written_by, written_at
    FROM mine
), restored AS (
    UPDATE inspection_form_answers a
    SET status_code = b.status_code, status_label = b.status_label, severity = b.severity, numeric_value = b.numeric_value,
        by_device = b.by_device, measurement_id = b.measurement_id, written_by = b.written_by, written_at = b.written_at
    FROM before b
    WHERE a.inspection_form_id = b.inspection_form_id AND a.point_id = b.point_id AND a.organization_id = $3
)
DELETE FROM inspection_form_answers a USING mine
WHERE a.inspection_form_id = mine.inspection_form_id AND a.point_id = mine.point_id AND a.organization_id = $3 AND NOT EXISTS (
    SELECT 1 FROM before b WHERE b.inspection_form_id = a.inspection_form_id AND b.point_id = a.point_id)";

    /// Makes the measurement `$1` pending that was applied to the report `$2` of the organization `$3`. Points that were computed
    /// are no longer its points.
    UNDO_APPLY = "\
UPDATE measurements m
SET status = 'PENDING', inspection_id = NULL, settled_at = NULL, settled_by = NULL, point_outcomes = NULL,
    (point_codes, point_texts) = (
        SELECT coalesce(array_agg(c.code ORDER BY c.place), '{}'), coalesce(array_agg(c.sent ORDER BY c.place), '{}')
        FROM unnest(m.point_codes, m.point_texts) WITH ORDINALITY AS c (code, sent, place)
        WHERE convert_from(m.raw, 'UTF8')::json #> ARRAY['measurements', c.code] IS NOT NULL)
WHERE m.id = $1 AND m.organization_id = $3 AND m.inspection_id = $2 AND m.status = 'APPLIED'";

    /// Whether the measurement `$1` exists at one of the branches `$2` of the organization `$3`.
    EXISTS_AT = "\
SELECT EXISTS (SELECT 1 FROM measurements WHERE id = $1 AND organization_id = $3 AND branch_id = ANY ($2::uuid[]))";
}

/// Returns the status of a measurement for a locked report's plate at its branch; `None` if there is no such measurement.
///
/// # Errors
/// The database failed.
pub async fn status(
    transaction: &Transaction<'_>,
    report: &LockedReport,
    measurement: Uuid,
) -> Result<Option<Status>, DbError> {
    let found = row(
        transaction,
        OF_REPORT,
        &[&measurement, &report.branch_id, &report.plate, &report.organization_id],
    )
    .await?;
    found.map(|row| Ok(row.try_get(0)?)).transpose()
}

/// The result of discarding a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discarded {
    /// The measurement was discarded.
    Done,
    /// It had already been applied or discarded.
    Settled,
    /// It does not exist at the inspector's branches.
    NotFound,
}

/// Discards a pending measurement on behalf of the inspector.
///
/// # Errors
/// The database failed.
pub async fn discard(client: &Connection, inspector: &Inspector, measurement: Uuid) -> Result<Discarded, DbError> {
    let branches = inspector.branch_ids();
    let (organization, name) = (inspector.organization_id(), inspector.name());
    if measurements::discard(client, organization, measurement, name, &branches).await? {
        return Ok(Discarded::Done);
    }
    let row = client
        .query_one(EXISTS_AT, &[&measurement, &branches, &organization])
        .await?;
    Ok(match row.try_get(0)? {
        true => Discarded::Settled,
        false => Discarded::NotFound,
    })
}

/// A measurement at the inspector's branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its status.
    pub status: Status,
    /// The report to which it was applied.
    pub report: Option<Uuid>,
}

/// Returns a measurement at the inspector's branches; `None` if there is no such measurement.
///
/// # Errors
/// The database failed.
pub async fn find(client: &Connection, inspector: &Inspector, measurement: Uuid) -> Result<Option<Found>, DbError> {
    let found = client
        .query_opt(
            SETTLED,
            &[&measurement, &inspector.branch_ids(), &inspector.organization_id()],
        )
        .await?;
    found
        .map(|row| {
            Ok(Found {
                status: row.try_get("status")?,
                report: row.try_get("inspection_id")?,
            })
        })
        .transpose()
}

/// Makes a discarded measurement of the inspector's organization pending again. Returns false if it is not discarded.
///
/// # Errors
/// The database failed.
pub async fn undo_discard(client: &Connection, inspector: &Inspector, measurement: Uuid) -> Result<bool, DbError> {
    let parameters: [&(dyn ToSql + Sync); 2] = [&measurement, &inspector.organization_id()];
    Ok(client.execute(UNDO_DISCARD, &parameters).await? == 1)
}

/// Makes a measurement pending again that was applied to a locked report, and restores the answers from before. Returns false if it
/// is not applied to the report; the transaction must not be committed then.
///
/// # Errors
/// The database failed.
pub async fn undo_apply(
    transaction: &Transaction<'_>,
    report: &LockedReport,
    measurement: Uuid,
) -> Result<bool, DbError> {
    let parameters: [&(dyn ToSql + Sync); 3] = [&measurement, &report.id, &report.organization_id];
    execute(transaction, RESTORE, &parameters).await?;
    report.increment_version(transaction).await?;
    Ok(execute(transaction, UNDO_APPLY, &parameters).await? == 1)
}
