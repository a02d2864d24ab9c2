//! The SQL of the list of changes (`updated_from`, `updated_to`), and of the list by a report's or a vehicle's number.
//!
//! A list of changes is in the order of the reports' own times, oldest first, which an index has for each organisation and each
//! branch: every page is read from where it begins, however many reports the range holds. A time of the organisation, at which
//! all of its reports changed, says whether they are in the range, and not where they stand.
//!
//! Parameters: `$1` organisations granted whole, `$2` branches granted alone, (`$3`, `$4`) the row after which the page
//! begins, `$5` and `$6` the bounds of `updated_at`, `$7` the statuses, `$8` and `$9` the bounds of `published_at`, `$10` and
//! `$11` those of `created_at` (null: open), `$12` the most rows; of `CHANGES_OF_BRANCH` `$13` the branch; of those by a
//! number `$13` the branch or null, `$14` the modes that show VINs and `$15` the VIN, of `BY_NUMBER` or null, and there `$16`
//! the report's number.

use chrono::{DateTime, Utc};
use partner_api_domain::cursor::Position;
use partner_api_domain::grants::Grants;
use partner_api_domain::privacy::PiiMode;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::list::{EARLIEST, ListFilter, Page, ceiling, floor, items, start};
use super::row::Status;
use super::statements::columns;
use crate::statement;
use crate::{DbError, standby::Reader, statement::Statement};

/// The rows of one organisation or branch, in order; `$of` is the condition that ties them to it. `o` is the organisation.
macro_rules! changed {
    ($of:literal) => {
        concat!(
            // Where the organisation's own time is in the range, so are all of its reports.
            " CROSS JOIN LATERAL (SELECT $5::timestamptz IS NULL OR $3::timestamptz >= $5 OR o.reports_changed_at >= $5 AS is_in) f",
            " CROSS JOIN LATERAL (SELECT i.id, i.updated_at FROM inspections i WHERE ",
            $of,
            " AND i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED')",
            " AND (i.updated_at, i.id) > (CASE WHEN f.is_in THEN $3 ELSE $5 - interval '1 microsecond' END,",
            " CASE WHEN f.is_in THEN $4::uuid ELSE 'ffffffff-ffff-ffff-ffff-ffffffffffff' END)",
            " AND i.updated_at <= coalesce($6::timestamptz, 'infinity')",
            " AND i.status = ANY ($7::text[])",
            " AND ($8::timestamptz IS NULL OR i.published_at >= $8) AND ($9::timestamptz IS NULL OR i.published_at <= $9)",
            " AND ($10::timestamptz IS NULL OR i.created_at >= $10) AND ($11::timestamptz IS NULL OR i.created_at <= $11)",
            " ORDER BY i.updated_at, i.id LIMIT $12::bigint) n",
            " WHERE o.reports_changed_at <= coalesce($6, 'infinity')"
        )
    };
}

/// The page out of `$found`, each row with its own time behind the page's columns.
macro_rules! page_of_changes {
    ($found:expr) => {
        concat!(
            "WITH found AS (",
            $found,
            "), page AS MATERIALIZED (SELECT id, updated_at FROM (SELECT id, updated_at FROM found",
            " ORDER BY updated_at, id LIMIT $12::bigint) bounded LIMIT 101) SELECT ",
            columns!("o.pii_mode", "o.reports_changed_at"),
            ", page.updated_at FROM page JOIN inspections r ON r.id = page.id",
            " JOIN vehicles v ON v.id = r.vehicle_id JOIN organizations o ON o.id = r.organization_id",
            " ORDER BY page.updated_at, page.id"
        )
    };
}

/// Reports by a number, which are few; `$number` is the condition that finds them, `$order` their order behind the position.
macro_rules! numbered {
    ($number:literal, $order:expr) => {
        concat!(
            "SELECT ",
            columns!("o.pii_mode", "o.reports_changed_at"),
            ", r.updated_at FROM inspections r JOIN vehicles v ON v.id = r.vehicle_id",
            " JOIN organizations o ON o.id = r.organization_id WHERE ",
            $number,
            " AND (r.organization_id = ANY ($1::uuid[]) OR r.branch_id = ANY ($2::uuid[]))",
            " AND r.status = ANY ($7::text[]) AND r.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED')",
            " AND ($13::uuid IS NULL OR r.branch_id = $13)",
            " AND ($5::timestamptz IS NULL OR greatest(r.updated_at, o.reports_changed_at) >= $5)",
            " AND ($6::timestamptz IS NULL OR greatest(r.updated_at, o.reports_changed_at) <= $6)",
            " AND ($8::timestamptz IS NULL OR r.published_at >= $8) AND ($9::timestamptz IS NULL OR r.published_at <= $9)",
            " AND ($10::timestamptz IS NULL OR r.created_at >= $10) AND ($11::timestamptz IS NULL OR r.created_at <= $11)",
            $order,
            " LIMIT $12::bigint"
        )
    };
}

macro_rules! newest_first {
    () => {
        " AND (r.created_at, r.id) < ($3::timestamptz, $4::uuid) ORDER BY r.created_at DESC, r.id DESC"
    };
}

macro_rules! oldest_change_first {
    () => {
        " AND (r.updated_at, r.id) > ($3::timestamptz, $4::uuid) ORDER BY r.updated_at, r.id"
    };
}

statement! {
    /// Reports of all organisations and branches granted, by their changes.
    pub(super) CHANGES = page_of_changes!(concat!(
        "SELECT n.id, n.updated_at FROM unnest($1::uuid[]) AS granted (id) JOIN organizations o ON o.id = granted.id",
        changed!("i.organization_id = o.id"),
        " UNION ALL SELECT n.id, n.updated_at FROM unnest($2::uuid[]) AS granted (id) JOIN branches b ON b.id = granted.id",
        " JOIN organizations o ON o.id = b.organization_id",
        changed!("i.branch_id = b.id")
    ));
    /// The same, of one branch.
    pub(super) CHANGES_OF_BRANCH = page_of_changes!(concat!(
        "SELECT n.id, n.updated_at FROM branches b JOIN organizations o ON o.id = b.organization_id",
        changed!("i.branch_id = b.id"),
        " AND b.id = $13::uuid AND (b.organization_id = ANY ($1::uuid[]) OR b.id = ANY ($2::uuid[]))"
    ));
    /// The report of a number.
    pub(super) BY_NUMBER = numbered!(
        "r.report_number = $16::text AND ($15::text IS NULL OR v.vin = $15 AND o.pii_mode = ANY ($14::text[]))",
        newest_first!()
    );
    /// The reports of a vehicle's number, newest first.
    pub(super) BY_VIN = numbered!("v.vin = $15::text AND o.pii_mode = ANY ($14::text[])", newest_first!());
    /// The same, by their changes.
    pub(super) CHANGES_BY_VIN = numbered!(
        "v.vin = $15::text AND o.pii_mode = ANY ($14::text[])",
        oldest_change_first!()
    );
}

/// The statuses that are asked for.
fn statuses(filter: &ListFilter) -> &'static [Status] {
    match filter.status {
        Some(Status::Published) => &[Status::Published],
        Some(Status::Archived) => &[Status::Archived],
        Some(Status::Cancelled) => &[Status::Cancelled],
        // That a report was cancelled is a change like any other.
        None if filter.is_of_changes() => &[Status::Published, Status::Archived, Status::Cancelled],
        None => &[Status::Published, Status::Archived],
    }
}

/// At most `rows` of what `filter` finds after `after`, where it asks for changes or for a number.
///
/// # Errors
/// [`DbError`] when the query fails.
pub(super) async fn found(
    client: &Reader,
    grants: &Grants,
    filter: &ListFilter,
    after: Option<Position>,
    rows: i64,
) -> Result<Page, DbError> {
    let is_by_change = filter.is_of_changes() && filter.report_number.is_none();
    let (time, id) = match after {
        _ if !is_by_change => start(filter, after),
        Some(position) => (position.time, position.id),
        None => (EARLIEST, Uuid::nil()),
    };
    let (whole, branches, statuses) = (grants.whole(), grants.branches(), statuses(filter));
    let from = |time: Option<DateTime<Utc>>| time.map(ceiling);
    let to = |time: Option<DateTime<Utc>>| time.map(floor);
    let bounds = [
        from(filter.updated_from),
        to(filter.updated_to),
        from(filter.published_from),
        to(filter.published_to),
        from(filter.created_from),
        to(filter.created_to),
    ];
    let modes: Vec<&str> = PiiMode::SHOWING_VINS.iter().map(|mode| mode.word()).collect();
    let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![
        (&whole, Type::UUID_ARRAY),
        (&branches, Type::UUID_ARRAY),
        (&time, Type::TIMESTAMPTZ),
        (&id, Type::UUID),
        (&bounds[0], Type::TIMESTAMPTZ),
        (&bounds[1], Type::TIMESTAMPTZ),
        (&statuses, Type::TEXT_ARRAY),
        (&bounds[2], Type::TIMESTAMPTZ),
        (&bounds[3], Type::TIMESTAMPTZ),
        (&bounds[4], Type::TIMESTAMPTZ),
        (&bounds[5], Type::TIMESTAMPTZ),
        (&rows, Type::INT8),
    ];
    let statement: &Statement = match (&filter.report_number, &filter.vin) {
        (None, None) => match &filter.branch_id {
            None => CHANGES,
            Some(branch) => {
                parameters.push((branch, Type::UUID));
                CHANGES_OF_BRANCH
            }
        },
        (number, vin) => {
            parameters.extend([
                (&filter.branch_id as &(dyn ToSql + Sync), Type::UUID),
                (&modes, Type::TEXT_ARRAY),
                (vin, Type::TEXT),
            ]);
            match number {
                Some(number) => {
                    parameters.push((number, Type::TEXT));
                    BY_NUMBER
                }
                None if is_by_change => CHANGES_BY_VIN,
                None => BY_VIN,
            }
        }
    };
    items(&client.query_typed(statement, &parameters).await?, is_by_change)
}
