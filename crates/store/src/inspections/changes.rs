//! The SQL of the list of changes (`updated_from`, `updated_to`), and of the list by report number or VIN.
//!
//! A list of changes is ordered by the reports' own `updated_at`, oldest first. An index for each organization and each branch
//! has this order. The cost of a page therefore does not depend on the size of the range. `organizations.reports_changed_at`,
//! the time at which all reports of an organization changed, decides whether the reports are in the range, but not their order.
//!
//! The parameters of all statements:
//!
//! - `$1`: the organizations granted in full
//! - `$2`: the branches granted individually
//! - `$3`, `$4`: the row after which the page begins
//! - `$5`, `$6`: the bounds of `updated_at`
//! - `$7`: the statuses
//! - `$8`, `$9`: the bounds of `published_at`; null for no bound
//! - `$10`, `$11`: the bounds of `created_at`; null for no bound
//! - `$12`: the maximum number of rows
//!
//! `CHANGES_OF_BRANCH` also has `$13`, the branch. The statements by report number or VIN also have `$13`, the branch or null;
//! `$14`, the privacy modes that show VINs; and `$15`, the VIN, which may be null in `BY_NUMBER`. `BY_NUMBER` also has `$16`, the
//! report number.

use chrono::{DateTime, Utc};
use partner_api_domain::cursor::Position;
use partner_api_domain::grants::Grants;
use partner_api_domain::privacy::PiiMode;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::list::{EARLIEST, ListFilter, Page, exceed, items, round_down, round_up, start};
use super::row::Status;
use super::statements::columns;
use crate::statement;
use crate::{DbError, standby::Reader, statement::Statement};

/// The column `is_in` of `f`: whether the organization's own time is in the range, and so all of its reports are.
macro_rules! whole_organization {
    () => {
        " CROSS JOIN LATERAL (SELECT $5::timestamptz IS NULL OR $3::timestamptz >= $5 OR o.reports_changed_at >= $5 AS is_in) f"
    };
}

/// The first rows of one organization or branch, in order. `$of` is the condition that selects them; `o` is the organization.
macro_rules! first_changes {
    ($of:literal, $limit:literal) => {
        concat!(
            "SELECT i.id, i.updated_at FROM inspections i WHERE ",
            $of,
            " AND i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED')",
            " AND (i.updated_at, i.id) > (CASE WHEN f.is_in THEN $3 ELSE $5 - interval '1 microsecond' END,",
            " CASE WHEN f.is_in THEN $4::uuid ELSE 'ffffffff-ffff-ffff-ffff-ffffffffffff' END)",
            " AND i.updated_at <= coalesce($6::timestamptz, 'infinity')",
            " AND i.status = ANY ($7::text[])",
            " AND ($8::timestamptz IS NULL OR i.published_at >= $8) AND ($9::timestamptz IS NULL OR i.published_at <= $9)",
            " AND ($10::timestamptz IS NULL OR i.created_at >= $10) AND ($11::timestamptz IS NULL OR i.created_at <= $11)",
            " ORDER BY i.updated_at, i.id LIMIT ",
            $limit
        )
    };
}

/// The same as a join, without the reports of organizations whose own time is after the range.
macro_rules! changed {
    ($of:literal, $limit:literal) => {
        concat!(
            whole_organization!(),
            " CROSS JOIN LATERAL (",
            first_changes!($of, $limit),
            ") n WHERE o.reports_changed_at <= coalesce($6, 'infinity')"
        )
    };
}

/// The page from `$found`. Each row has its own time after the columns of the page.
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

/// Reports by report number or VIN, which are few. `$number` is the condition that finds them, `$order` the rest of the query
/// from the position.
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
    /// Reports of all granted organizations and branches, in the order of their changes.
    pub(super) CHANGES = page_of_changes!(concat!(
        "SELECT n.id, n.updated_at FROM unnest($1::uuid[]) AS granted (id) JOIN organizations o ON o.id = granted.id",
        changed!("i.organization_id = o.id", "$12::bigint"),
        " UNION ALL SELECT n.id, n.updated_at FROM unnest($2::uuid[]) AS granted (id) JOIN branches b ON b.id = granted.id",
        " JOIN organizations o ON o.id = b.organization_id",
        changed!("i.branch_id = b.id", "$12::bigint")
    ));
    /// The same for more organizations and branches than the page has rows: reads the first row of each of them, and further rows
    /// only of those with the first of these.
    pub(super) CHANGES_OF_MANY = page_of_changes!(concat!(
        "SELECT n.id, n.updated_at FROM (SELECT * FROM (",
        "SELECT o.id, NULL::uuid AS branch_id, o.reports_changed_at, n.id AS first_id, n.updated_at",
        " FROM unnest($1::uuid[]) AS granted (id) JOIN organizations o ON o.id = granted.id",
        changed!("i.organization_id = o.id", "1"),
        " UNION ALL SELECT NULL, b.id, o.reports_changed_at, n.id, n.updated_at",
        " FROM unnest($2::uuid[]) AS granted (id) JOIN branches b ON b.id = granted.id",
        " JOIN organizations o ON o.id = b.organization_id",
        changed!("i.branch_id = b.id", "1"),
        ") firsts ORDER BY updated_at, first_id LIMIT $12::bigint) o",
        whole_organization!(),
        " CROSS JOIN LATERAL ((",
        first_changes!("i.organization_id = o.id", "$12::bigint"),
        ") UNION ALL (",
        first_changes!("i.branch_id = o.branch_id", "$12::bigint"),
        ")) n"
    ));
    /// The same for one branch.
    pub(super) CHANGES_OF_BRANCH = page_of_changes!(concat!(
        "SELECT n.id, n.updated_at FROM branches b JOIN organizations o ON o.id = b.organization_id",
        changed!("i.branch_id = b.id", "$12::bigint"),
        " AND b.id = $13::uuid AND (b.organization_id = ANY ($1::uuid[]) OR b.id = ANY ($2::uuid[]))"
    ));
    /// The report with a report number.
    pub(super) BY_NUMBER = numbered!(
        "r.report_number = $16::text AND ($15::text IS NULL OR v.vin = $15 AND o.pii_mode = ANY ($14::text[]))",
        newest_first!()
    );
    /// The reports with a VIN, newest first.
    pub(super) BY_VIN = numbered!("v.vin = $15::text AND o.pii_mode = ANY ($14::text[])", newest_first!());
    /// The same in the order of their changes.
    pub(super) CHANGES_BY_VIN = numbered!(
        "v.vin = $15::text AND o.pii_mode = ANY ($14::text[])",
        oldest_change_first!()
    );
}

/// Returns the statuses that the filter selects.
fn statuses(filter: &ListFilter) -> &'static [Status] {
    match filter.status {
        Some(Status::Published) => &[Status::Published],
        Some(Status::Archived) => &[Status::Archived],
        Some(Status::Cancelled) => &[Status::Cancelled],
        // The cancellation of a report is also a change.
        None if filter.is_of_changes() => &[Status::Published, Status::Archived, Status::Cancelled],
        None => &[Status::Published, Status::Archived],
    }
}

/// Returns at most `rows` reports after `after`, for a filter by changes, report number or VIN.
///
/// # Errors
/// If the query fails.
pub(super) async fn page(
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
    let from = |time: Option<DateTime<Utc>>| time.map(round_up);
    let to = |time: Option<DateTime<Utc>>| time.map(round_down);
    let bounds = [
        from(filter.updated_from),
        to(filter.updated_to),
        from(filter.published_from),
        to(filter.published_to),
        from(filter.created_from),
        to(filter.created_to),
    ];
    let modes: Vec<&str> = PiiMode::SHOWING_VINS.iter().map(|mode| mode.as_str()).collect();
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
            None if exceed(grants, rows) => CHANGES_OF_MANY,
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
