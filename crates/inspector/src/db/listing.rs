//! The list of reports that are being worked on.

use chrono::{DateTime, Utc};
use partner_api_domain::cursor::Position;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use uuid::Uuid;

use crate::caller::Inspector;
use crate::rules::moves::Status;

statement! {
    /// Reports at the branches `$1` in the statuses `$2`, the newest first, behind the time `$3` and id `$4`, at most `$5`, with how
    /// many measurements wait for each, up to a hundred.
    LIST = "\
SELECT i.id, i.report_number, i.status, i.branch_id, i.plate, v.brand, v.model, v.year, i.created_at,
       (SELECT count(*) FROM (SELECT FROM measurements m
        WHERE m.branch_id = i.branch_id AND m.plate = i.plate AND m.status = 'PENDING' LIMIT 100) AS w)::integer AS waiting
FROM inspections i JOIN vehicles v ON v.id = i.vehicle_id
WHERE i.branch_id = ANY ($1::uuid[]) AND i.status = ANY ($2::text[])
  AND ($3::timestamptz IS NULL OR (i.created_at, i.id) < ($3, $4::uuid))
ORDER BY i.created_at DESC, i.id DESC LIMIT $5";
}

/// A report in the list.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its id.
    pub id: Uuid,
    /// Its number.
    pub report_number: String,
    /// Its status.
    pub status: Status,
    /// Its branch.
    pub branch_id: Uuid,
    /// The plate under which it was opened.
    pub plate: String,
    /// Brand, model and year.
    pub vehicle: String,
    /// Measurements that wait for its plate at its branch.
    pub waiting: i32,
    /// When it was opened.
    pub created_at: DateTime<Utc>,
}

/// What of the list is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Only this branch.
    pub branch: Option<Uuid>,
    /// Only this status.
    pub status: Option<Status>,
    /// Behind this report.
    pub after: Option<Position>,
    /// The most reports.
    pub limit: i64,
}

/// A page of the inspector's reports.
///
/// # Errors
/// What the database says.
pub async fn list(client: &Connection, inspector: &Inspector, asked: &Asked) -> Result<Vec<Line>, DbError> {
    let mut branches = inspector.branch_ids();
    branches.retain(|id| asked.branch.is_none_or(|branch| branch == *id));
    let statuses: Vec<&str> = Status::OPEN
        .iter()
        .filter(|status| asked.status.is_none_or(|wanted| wanted == **status))
        .map(|status| status.word())
        .collect();
    let (time, id) = asked.after.map(|after| (after.time, after.id)).unzip();
    let rows = client
        .query(LIST, &[&branches, &statuses, &time, &id, &asked.limit])
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
