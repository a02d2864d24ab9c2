//! The list of open reports.

use chrono::{DateTime, Utc};
use partner_api_domain::cursor::Position;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use uuid::Uuid;

use crate::caller::Inspector;
use crate::rules::moves::Status;

statement! {
    /// Reports at the branches `$1` with the statuses `$2`, the newest first, after the time `$3` and ID `$4`, at most `$5`. Their
    /// plate, number or VIN contains `$6`, if it is not null. Each has the number of its pending measurements, up to a hundred.
    LIST = "\
SELECT i.id, i.report_number, i.status, i.branch_id, i.plate, v.brand, v.model, v.year, i.created_at,
       (SELECT count(*) FROM (SELECT 1 FROM measurements m
        WHERE m.branch_id = i.branch_id AND m.organization_id = i.organization_id AND m.plate = i.plate AND m.status = 'PENDING'
        LIMIT 100) AS w)::integer AS waiting
FROM inspections i JOIN vehicles v ON v.id = i.vehicle_id
WHERE i.branch_id = ANY ($1::uuid[]) AND i.status = ANY ($2::text[])
  AND ($3::timestamptz IS NULL OR (i.created_at, i.id) < ($3, $4::uuid))
  AND ($6::text IS NULL OR strpos(i.plate, $6) > 0 OR strpos(upper(i.snapshot_vin), $6) > 0
       OR strpos(replace(upper(i.report_number), '-', ''), $6) > 0)
ORDER BY i.created_at DESC, i.id DESC LIMIT $5";
}

/// A report in the list.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its ID.
    pub id: Uuid,
    /// Its number.
    pub report_number: String,
    /// Its status.
    pub status: Status,
    /// Its branch.
    pub branch_id: Uuid,
    /// The plate under which it was opened.
    pub plate: String,
    /// The vehicle's make, model and year.
    pub vehicle: String,
    /// The number of pending measurements for its plate at its branch.
    pub waiting: i32,
    /// The time at which it was opened.
    pub created_at: DateTime<Utc>,
}

/// The filter and the position of a page.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// Only this branch.
    pub branch: Option<Uuid>,
    /// Only this status.
    pub status: Option<Status>,
    /// Only reports whose plate, number or VIN contains this text: upper case, without spaces and hyphens.
    pub search: Option<String>,
    /// Only reports after this position.
    pub after: Option<Position>,
    /// The maximum number of reports.
    pub limit: i64,
}

/// Returns a page of the reports at the inspector's branches.
///
/// # Errors
/// The database failed.
pub async fn list(client: &Connection, inspector: &Inspector, request: &PageRequest) -> Result<Vec<Line>, DbError> {
    let mut branches = inspector.branch_ids();
    branches.retain(|id| request.branch.is_none_or(|branch| branch == *id));
    let statuses: Vec<&str> = match (request.status, &request.search) {
        (Some(status), _) => vec![status.as_str()],
        (None, Some(_)) => Status::ALL.iter().map(|status| status.as_str()).collect(),
        (None, None) => Status::OPEN.iter().map(|status| status.as_str()).collect(),
    };
    let (time, id) = request.after.map(|after| (after.time, after.id)).unzip();
    let rows = client
        .query(
            LIST,
            &[&branches, &statuses, &time, &id, &request.limit, &request.search],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let (brand, model, year): (String, String, i32) =
                (row.try_get("brand")?, row.try_get("model")?, row.try_get("year")?);
            Ok(Line {
                id: row.try_get("id")?,
                report_number: row.try_get("report_number")?,
                status: row.try_get("status")?,
                branch_id: row.try_get("branch_id")?,
                plate: row.try_get("plate")?,
                vehicle: format!("{brand} {model} {year}"),
                waiting: row.try_get("waiting")?,
                created_at: row.try_get("created_at")?,
            })
        })
        .collect()
}
