//! The SQL of the list of changes (`updated_from`, `updated_to`), and of the list by report number or VIN.
//!
//! A list of changes is ordered by the reports' own `updated_at`, oldest first. An index for each organization and each branch
//! has this order. The cost of a page therefore does not depend on the size of the range. `organizations.reports_changed_at`,
//! the time at which all reports of an organization changed, decides whether the reports are in the range, but not their order.
//!
//! As for the other list, there are statements for up to 16 organizations or branches (see [`places`](super::places)), which read only
//! the rows of the page, and do not support other filters. The parameters of the others:
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
//! `CHANGES_OF_BRANCH` also has `$13`, the branch; `CHANGES_OF_MANY` the number of rows of each organization and branch that are
//! read first; `CHANGES_BY_ORGANIZATION` all organizations with a grant, and as `$14` the maximum number of rows read from each
//! of them. The statements by report number or VIN also have `$13`, the branch or null; `$14`, the privacy modes that show VINs;
//! and `$15`, the VIN, which may be null in `BY_NUMBER`. `BY_NUMBER` also has `$16`, the report number.

use partner_api_domain::cursor::Position;
use partner_api_domain::grants::Grants;
use partner_api_domain::privacy::PiiMode;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::list::{EARLIEST, ListFilter, Page, columns, items, part, round_down, round_up, start};
use super::newest_first::{are_many, rows_by_organization, rows_of_each};
use super::places::{self, Few};
use super::row::Status;
use crate::statement;
use crate::{DbError, standby::Reader, statement::Statement};

/// The column `is_in` of `f`: whether the organization's own time is in the range, and so all of its reports are.
macro_rules! whole_organization {
    () => {
        " CROSS JOIN LATERAL (SELECT $5::timestamptz IS NULL OR $3::timestamptz >= $5 OR o.reports_changed_at >= $5 AS is_in) f"
    };
}

/// The conditions of the filters on a report `$i`, except the range of `updated_at`.
macro_rules! filters {
    ($i:literal) => {
        concat!(
            " AND ",
            $i,
            ".status = ANY ($7::text[]) AND ($8::timestamptz IS NULL OR ",
            $i,
            ".published_at >= $8) AND ($9::timestamptz IS NULL OR ",
            $i,
            ".published_at <= $9) AND ($10::timestamptz IS NULL OR ",
            $i,
            ".created_at >= $10) AND ($11::timestamptz IS NULL OR ",
            $i,
            ".created_at <= $11)"
        )
    };
}

/// The position before the first change of an organization, of which `f` says whether it is in the range itself.
macro_rules! before_first {
    () => {
        "(CASE WHEN f.is_in THEN $3 ELSE $5 - interval '1 microsecond' END,\
         CASE WHEN f.is_in THEN $4::uuid ELSE 'ffffffff-ffff-ffff-ffff-ffffffffffff' END)"
    };
}

/// The first rows of one organization or branch, in order. `$of` is the condition that selects them, `$start` the position before them,
/// and `$latest` a bound of their `updated_at`.
macro_rules! first_changes {
    ($of:literal, $limit:literal, $start:expr, $latest:literal) => {
        concat!(
            "SELECT i.id, i.updated_at FROM inspections i WHERE ",
            $of,
            " AND i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') AND (i.updated_at, i.id) > ",
            $start,
            " AND i.updated_at <= ",
            $latest,
            filters!("i"),
            " ORDER BY i.updated_at, i.id LIMIT ",
            $limit
        )
    };
}

/// The first rows as a join, each with its place, without the reports of organizations whose own time is after the range. `o` is the
/// organization.
macro_rules! changed {
    ($of:literal, $limit:literal) => {
        concat!(
            whole_organization!(),
            " CROSS JOIN LATERAL (SELECT id, updated_at, row_number() OVER (ORDER BY updated_at, id) AS place FROM (",
            first_changes!($of, $limit, before_first!(), "coalesce($6::timestamptz, 'infinity')"),
            ") first) n WHERE o.reports_changed_at <= coalesce($6, 'infinity')"
        )
    };
}

/// The other rows of an organization or branch that may be on the page.
macro_rules! after_heads {
    ($of:literal) => {
        first_changes!(
            $of,
            "$12::bigint",
            "(h.updated_at, h.id)",
            "least($6, (SELECT updated_at FROM bound), 'infinity')"
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
            " AND r.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED')",
            filters!("r"),
            " AND ($13::uuid IS NULL OR r.branch_id = $13)",
            " AND ($5::timestamptz IS NULL OR greatest(r.updated_at, o.reports_changed_at) >= $5)",
            " AND ($6::timestamptz IS NULL OR greatest(r.updated_at, o.reports_changed_at) <= $6)",
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
    /// The same for many organizations and branches, in two steps as in `many` of the list.
    pub(super) CHANGES_OF_MANY = page_of_changes!(concat!(
        "WITH heads AS MATERIALIZED (SELECT o.id AS organization_id, NULL::uuid AS branch_id, n.*",
        " FROM unnest($1::uuid[]) AS granted (id) JOIN organizations o ON o.id = granted.id",
        changed!("i.organization_id = o.id", "$13::bigint"),
        " UNION ALL SELECT NULL, b.id, n.* FROM unnest($2::uuid[]) AS granted (id) JOIN branches b ON b.id = granted.id",
        " JOIN organizations o ON o.id = b.organization_id",
        changed!("i.branch_id = b.id", "$13::bigint"),
        "), bound AS (SELECT updated_at, id FROM heads ORDER BY updated_at, id OFFSET $12 - 1 LIMIT 1)",
        " SELECT id, updated_at FROM heads UNION ALL SELECT n.id, n.updated_at FROM heads h CROSS JOIN LATERAL ((",
        after_heads!("i.organization_id = h.organization_id"),
        ") UNION ALL (",
        after_heads!("i.branch_id = h.branch_id"),
        ")) n WHERE h.place = $13 AND ((h.updated_at, h.id) < (SELECT updated_at, id FROM bound)) IS NOT FALSE"
    ));
    /// The same for many granted branches, before `CHANGES_OF_MANY`: reads a few of the first rows of each organization, and keeps those
    /// of granted organizations and branches, as `by_organization` of the list does.
    pub(super) CHANGES_BY_ORGANIZATION = concat!(
        "WITH first AS MATERIALIZED (SELECT n.* FROM unnest($13::uuid[]) AS granted (id) JOIN organizations o ON o.id = granted.id",
        whole_organization!(),
        " CROSS JOIN LATERAL (SELECT i.id, i.updated_at, i.published_at, i.created_at, i.status, i.branch_id, i.organization_id",
        " FROM inspections i WHERE i.organization_id = o.id AND i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED')",
        " AND (i.updated_at, i.id) > ",
        before_first!(),
        " AND i.updated_at <= coalesce($6::timestamptz, 'infinity') ORDER BY i.updated_at, i.id LIMIT $14::bigint) n",
        " WHERE o.reports_changed_at <= coalesce($6, 'infinity')),",
        " partial AS MATERIALIZED (SELECT max(updated_at) AS latest FROM first GROUP BY organization_id HAVING count(*) = $14),",
        " page AS MATERIALIZED (SELECT id, updated_at FROM (SELECT n.id, n.updated_at FROM first n",
        " WHERE (n.organization_id = ANY ($1::uuid[]) OR n.branch_id IN (SELECT unnest($2::uuid[])))",
        filters!("n"),
        " AND n.updated_at < coalesce((SELECT min(latest) FROM partial), 'infinity')",
        " ORDER BY n.updated_at, n.id LIMIT $12::bigint) bounded LIMIT 101) SELECT ",
        columns!("o.pii_mode", "o.reports_changed_at"),
        ", page.updated_at, NOT EXISTS (SELECT FROM partial) AS is_complete",
        " FROM (SELECT) always LEFT JOIN (page JOIN inspections r ON r.id = page.id",
        " JOIN vehicles v ON v.id = r.vehicle_id JOIN organizations o ON o.id = r.organization_id) ON true",
        " ORDER BY page.updated_at, page.id"
    );
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
    let bounds = [
        filter.updated_from.map(round_up),
        filter.updated_to.map(round_down),
        filter.published_from.map(round_up),
        filter.published_to.map(round_down),
        filter.created_from.map(round_up),
        filter.created_to.map(round_down),
    ];
    if let Some(few) = Few::of(grants).filter(|_| is_plain(filter)) {
        return places::changes(client, &few, (time, id), (bounds[0], bounds[1]), rows).await;
    }
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
    let organizations = grants.organizations();
    let first = rows_of_each(grants, rows);
    let statement: &Statement = match (&filter.report_number, &filter.vin) {
        (None, None) => match &filter.branch_id {
            None => {
                if let Some(read) = rows_by_organization(grants, rows) {
                    let mut parameters = parameters.clone();
                    parameters.extend([(&organizations as _, Type::UUID_ARRAY), (&read as _, Type::INT8)]);
                    let found = client.query_typed(CHANGES_BY_ORGANIZATION, &parameters).await?;
                    if let Some(items) = part(&found, true)?.into_page(rows) {
                        return Ok(items);
                    }
                }
                if are_many(grants, rows) {
                    parameters.push((&first, Type::INT8));
                    CHANGES_OF_MANY
                } else {
                    CHANGES
                }
            }
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

/// Returns whether the filter has only a range of `updated_at`.
fn is_plain(filter: &ListFilter) -> bool {
    let all = ListFilter::default();
    let (updated_from, updated_to) = (filter.updated_from, filter.updated_to);
    *filter
        == ListFilter {
            updated_from,
            updated_to,
            ..all
        }
}
