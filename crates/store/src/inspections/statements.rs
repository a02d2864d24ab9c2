//! The SQL of the list: a statement for each kind of grants and each status filter.
//!
//! `branch_id = ANY($1) ORDER BY created_at DESC, id DESC LIMIT 26` scans the whole list if the branches have had no recent
//! reports. Each statement here therefore starts from the granted organizations or branches, and takes the newest rows of
//! each from an index that begins with it. `script/bench-list` shows plans and times.
//!
//! - `whole`, `branches`: up to 16 organizations granted in full, or up to 16 branches, which are the common cases. Each is an
//!   ordered index scan, and the merge reads only the rows of the page. These statements do not support a range of
//!   `published_at`, because each row outside the range would be fetched from the table.
//! - `merge`: the newest rows of a few granted organizations and branches, merged.
//! - `many`: for many grants. Reads a few of the newest rows of each organization and branch first, together enough to fill a page,
//!   and then only the other rows that come before the last row of this page.
//! - `by_organization`: for many granted branches, before `many`. Reads a few of the newest rows of each organization, and keeps
//!   those of the granted branches. If these do not fill the page, `many` reads it.
//! - `branch`: one branch, if the filter has one. The statement checks once in `branches` that the branch is granted.
//! - `window`, `branch_window`: a range of `published_at` with few reports (the incremental sync), read from the index by
//!   `published_at`. A scan in the order of the list would pass all older reports to find them.
//!
//! Statuses are literals, because the planner uses a partial index only if it can see them.
//!
//! The parameters of the statements:
//!
//! - `$1`: the organizations granted in full
//! - `$2`: the branches granted individually
//! - `$3`, `$4`: the row after which the page begins
//! - `$5`: the earliest `created_at`
//! - `$6`, `$7`: the bounds of `published_at`; null for no bound
//! - `$8`: the maximum number of rows
//! - `$9`: the branch, in `branch` and `branch_window`; in `many`, the number of rows of each organization and branch that are
//!   read first
//!
//! `whole` and `branches` have no range: their `$2` to `$5` are `$3`, `$4`, `$5` and `$8` of this list, and `$1` is the
//! organization of each place. `$6` of `branches` is the branch of each place. In `by_organization`, `$7` is all organizations with
//! a grant, and `$9` the maximum number of rows read from each of them. `window` reads whole organizations too if there are very
//! many branches: `$1` and `$2` are what is read, and `$9` and `$10` the organizations and branches that are granted, or null if
//! these are the same.
//!
//! A page has at most 100 rows, plus one that shows whether there is a next page. The constant `LIMIT 101` gives this number to the
//! planner, which does not have the values of parameters in a generic plan.

use super::list::columns;
use super::places::{
    OfFew, branches, columns_of_place, first_of_places, newest_of_branch, newest_of_place, newest_of_whole,
    page_of_places, whole,
};
use crate::statement;
use crate::statement::Statement;

/// The newest rows of one organization or branch in the order of the list. `$of` is the condition that selects them. They come after
/// `$start` in the list, and were created at `$earliest` or later.
macro_rules! newest {
    ($of:expr, $status:literal, $limit:literal) => {
        newest!(
            $of,
            $status,
            $limit,
            "($3::timestamptz, $4::uuid)",
            "$5::timestamptz"
        )
    };
    ($of:expr, $status:literal, $limit:literal, $start:literal, $earliest:literal) => {
        concat!(
            "SELECT i.id, i.created_at FROM inspections i WHERE ",
            $of,
            " AND ",
            $status,
            " AND (i.created_at, i.id) < ",
            $start,
            " AND i.created_at >= ",
            $earliest,
            // Not a plain comparison, which the planner would consider selective, so it would not scan in the order of the list.
            " AND ($6::timestamptz IS NULL OR i.published_at >= $6)",
            " AND ($7::timestamptz IS NULL OR i.published_at <= $7)",
            " ORDER BY i.created_at DESC, i.id DESC LIMIT ",
            $limit
        )
    };
}

/// The rows with the IDs in `found`, in the order of the list.
macro_rules! page {
    ($found:expr) => {
        concat!(
            "WITH found AS (",
            $found,
            "), page AS MATERIALIZED (SELECT id, created_at FROM (SELECT id, created_at FROM found",
            " ORDER BY created_at DESC, id DESC LIMIT $8::bigint) bounded LIMIT 101) SELECT ",
            columns!("o.pii_mode", "o.reports_changed_at"),
            " FROM page JOIN inspections r ON r.id = page.id",
            " JOIN vehicles v ON v.id = r.vehicle_id JOIN organizations o ON o.id = r.organization_id",
            " ORDER BY page.created_at DESC, page.id DESC"
        )
    };
}

macro_rules! merge {
    ($status:literal) => {
        page!(concat!(
            "SELECT n.id, n.created_at FROM unnest($1::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
            newest!("i.organization_id = granted.id", $status, "$8::bigint"),
            ") n UNION ALL SELECT n.id, n.created_at FROM unnest($2::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
            newest!("i.branch_id = granted.id", $status, "$8::bigint"),
            ") n"
        ))
    };
}

/// The same, each with its place among them.
macro_rules! heads {
    ($of:literal, $status:literal) => {
        concat!(
            "SELECT id, created_at, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place FROM (",
            newest!($of, $status, "$9::bigint"),
            ") newest"
        )
    };
}

/// The other rows of an organization or branch that may be on the page.
macro_rules! after_heads {
    ($of:literal, $status:literal) => {
        newest!(
            $of,
            $status,
            "$8::bigint",
            "(h.created_at, h.id)",
            "greatest($5, (SELECT created_at FROM bound))"
        )
    };
}

macro_rules! many {
    ($status:literal) => {
        page!(concat!(
            "WITH heads AS MATERIALIZED (SELECT granted.id AS organization_id, NULL::uuid AS branch_id, n.*",
            " FROM unnest($1::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
            heads!("i.organization_id = granted.id", $status),
            ") n UNION ALL SELECT NULL, granted.id, n.* FROM unnest($2::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
            heads!("i.branch_id = granted.id", $status),
            ") n), bound AS (SELECT created_at, id FROM heads ORDER BY created_at DESC, id DESC OFFSET $8 - 1 LIMIT 1)",
            " SELECT id, created_at FROM heads UNION ALL SELECT n.id, n.created_at FROM heads h CROSS JOIN LATERAL ((",
            after_heads!("i.organization_id = h.organization_id", $status),
            ") UNION ALL (",
            after_heads!("i.branch_id = h.branch_id", $status),
            // Without a bound, the heads do not fill the page.
            ")) n WHERE h.place = $9 AND ((h.created_at, h.id) > (SELECT created_at, id FROM bound)) IS NOT FALSE"
        ))
    };
}

/// The rows of `page`, in the order of the list, each with `$is_complete`: whether the page has all rows that belong on it. There is
/// always at least one row; its other columns are null if the page is empty.
macro_rules! page_or_part {
    ($is_complete:expr) => {
        concat!(
            " SELECT ",
            columns!("o.pii_mode", "o.reports_changed_at"),
            ", ",
            $is_complete,
            " AS is_complete FROM (SELECT) always LEFT JOIN (page JOIN inspections r ON r.id = page.id",
            " JOIN vehicles v ON v.id = r.vehicle_id JOIN organizations o ON o.id = r.organization_id) ON true",
            " ORDER BY page.created_at DESC, page.id DESC"
        )
    };
}

/// The newest rows of each organization, and of these the rows of granted organizations and branches. If only some of an organization's
/// rows were read, its other rows may come after the oldest of them, so only rows before that one are certain.
macro_rules! by_organization {
    ($status:literal) => {
        concat!(
            "WITH newest AS MATERIALIZED (SELECT n.* FROM unnest($7::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
            "SELECT i.id, i.created_at, i.published_at, i.branch_id, i.organization_id FROM inspections i",
            " WHERE i.organization_id = granted.id AND ",
            $status,
            " AND (i.created_at, i.id) < ($3::timestamptz, $4::uuid) AND i.created_at >= $5::timestamptz",
            " ORDER BY i.created_at DESC, i.id DESC LIMIT $9::bigint) n),",
            " partial AS MATERIALIZED (SELECT min(created_at) AS oldest FROM newest GROUP BY organization_id HAVING count(*) = $9),",
            " page AS MATERIALIZED (SELECT id, created_at FROM (SELECT n.id, n.created_at FROM newest n",
            " WHERE (n.organization_id = ANY ($1::uuid[]) OR n.branch_id IN (SELECT unnest($2::uuid[])))",
            " AND ($6::timestamptz IS NULL OR n.published_at >= $6)",
            " AND n.created_at > coalesce((SELECT max(oldest) FROM partial), '-infinity')",
            " ORDER BY n.created_at DESC, n.id DESC LIMIT $8::bigint) bounded LIMIT 101)",
            page_or_part!("NOT EXISTS (SELECT FROM partial)")
        )
    };
}

/// The condition that selects the rows of the branch, if it is granted. The subquery is executed once.
macro_rules! of_branch {
    () => {
        concat!(
            "i.branch_id = $9::uuid AND (SELECT b.organization_id = ANY ($1::uuid[]) OR b.id = ANY ($2::uuid[])",
            " FROM branches b WHERE b.id = $9)"
        )
    };
}

macro_rules! branch {
    ($status:literal) => {
        page!(newest!(of_branch!(), $status, "$8::bigint"))
    };
}

/// The maximum number of reports in a range of `published_at` for which it is read completely. A macro, for `concat!`.
macro_rules! max_in_window {
    () => {
        2000
    };
}

/// The same as a constant.
pub const MAX_WINDOW: usize = max_in_window!();

/// The rows of one organization or branch in a range of `published_at`; `$of` as in `newest!`.
macro_rules! published {
    ($of:expr, $status:literal) => {
        concat!(
            "SELECT i.id, i.created_at, i.organization_id, i.branch_id FROM inspections i WHERE ",
            $of,
            " AND ",
            $status,
            " AND i.published_at >= coalesce($6::timestamptz, '-infinity')",
            // A row comparison: the planner would take two plain ones for a narrow range, and read all of it.
            " AND (i.published_at, i.id) <= (coalesce($7::timestamptz, 'infinity'),",
            " 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)",
            " ORDER BY i.published_at DESC LIMIT ",
            max_in_window!(),
            " + 1"
        )
    };
}

/// The page from a range, which is complete if the range has at most `MAX_WINDOW` reports. `$granted` is a condition on its rows.
macro_rules! window_page {
    ($found:expr, $granted:literal) => {
        concat!(
            "WITH range AS MATERIALIZED (SELECT id, created_at, organization_id, branch_id FROM (",
            $found,
            ") found LIMIT ",
            max_in_window!(),
            " + 1), page AS MATERIALIZED (SELECT id, created_at FROM (SELECT id, created_at FROM range",
            " WHERE (created_at, id) < ($3::timestamptz, $4::uuid) AND created_at >= $5::timestamptz",
            $granted,
            " AND (SELECT count(*) FROM range) <= ",
            max_in_window!(),
            " ORDER BY created_at DESC, id DESC LIMIT $8::bigint) bounded LIMIT 101)",
            page_or_part!(concat!("(SELECT count(*) FROM range) <= ", max_in_window!()))
        )
    };
}

macro_rules! window {
    ($status:literal) => {
        window_page!(
            concat!(
                "SELECT n.* FROM unnest($1::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
                published!("i.organization_id = granted.id", $status),
                ") n UNION ALL SELECT n.* FROM unnest($2::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
                published!("i.branch_id = granted.id", $status),
                ") n"
            ),
            " AND ($9::uuid[] IS NULL OR organization_id = ANY ($9) OR branch_id IN (SELECT unnest($10::uuid[])))"
        )
    };
}

macro_rules! branch_window {
    ($status:literal) => {
        window_page!(published!(of_branch!(), $status), "")
    };
}

/// The statements of one status filter.
#[derive(Debug)]
pub struct Shapes {
    /// For up to 16 organizations granted in full.
    pub whole: OfFew,
    /// For up to 16 branches.
    pub branches: OfFew,
    /// For few granted organizations and branches.
    pub merge: &'static Statement,
    /// For many granted branches with recent reports.
    pub by_organization: &'static Statement,
    /// For many granted organizations and branches.
    pub many: &'static Statement,
    /// For one branch.
    pub branch: &'static Statement,
    /// For a range of `published_at` with few reports.
    pub window: &'static Statement,
    /// The same for one branch.
    pub branch_window: &'static Statement,
}

/// Registers the statements of a status filter, in a separate module.
macro_rules! shapes {
    ($(#[$about:meta])* $name:ident, $module:ident, $status:literal) => {
        mod $module {
            use super::*;

            statement! {
                /// For one organization granted in full.
                pub(super) WHOLE_1 = whole!($status, 1);
                /// For two organizations granted in full.
                pub(super) WHOLE_2 = whole!($status, 1 2);
                /// For three organizations granted in full.
                pub(super) WHOLE_3 = whole!($status, 1 2 3);
                /// For four organizations granted in full.
                pub(super) WHOLE_4 = whole!($status, 1 2 3 4);
                /// For up to eight organizations granted in full.
                pub(super) WHOLE_8 = whole!($status, 1 2 3 4 5 6 7 8);
                /// For up to 16 organizations granted in full.
                pub(super) WHOLE_16 = whole!($status, 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
                /// For one branch.
                pub(super) BRANCHES_1 = branches!($status, 1);
                /// For two branches.
                pub(super) BRANCHES_2 = branches!($status, 1 2);
                /// For three branches.
                pub(super) BRANCHES_3 = branches!($status, 1 2 3);
                /// For four branches.
                pub(super) BRANCHES_4 = branches!($status, 1 2 3 4);
                /// For up to eight branches.
                pub(super) BRANCHES_8 = branches!($status, 1 2 3 4 5 6 7 8);
                /// For up to 16 branches.
                pub(super) BRANCHES_16 = branches!($status, 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
                /// For few granted organizations and branches.
                pub(super) MERGE = merge!($status);
                /// For many granted branches with recent reports.
                pub(super) BY_ORGANIZATION = by_organization!($status);
                /// For many granted organizations and branches.
                pub(super) MANY = many!($status);
                /// For one branch.
                pub(super) BRANCH = branch!($status);
                /// For a range of `published_at` with few reports.
                pub(super) WINDOW = window!($status);
                /// The same for one branch.
                pub(super) BRANCH_WINDOW = branch_window!($status);
            }
        }

        $(#[$about])*
        pub static $name: Shapes = Shapes {
            whole: OfFew([
                $module::WHOLE_1,
                $module::WHOLE_2,
                $module::WHOLE_3,
                $module::WHOLE_4,
                $module::WHOLE_8,
                $module::WHOLE_16,
            ]),
            branches: OfFew([
                $module::BRANCHES_1,
                $module::BRANCHES_2,
                $module::BRANCHES_3,
                $module::BRANCHES_4,
                $module::BRANCHES_8,
                $module::BRANCHES_16,
            ]),
            merge: $module::MERGE,
            by_organization: $module::BY_ORGANIZATION,
            many: $module::MANY,
            branch: $module::BRANCH,
            window: $module::WINDOW,
            branch_window: $module::BRANCH_WINDOW,
        };
    };
}

shapes! {
    /// No status filter: published and archived reports.
    DEFAULT, default, "i.status IN ('PUBLISHED', 'ARCHIVED')"
}
shapes! {
    /// Published reports only.
    PUBLISHED, published, "i.status = 'PUBLISHED'"
}
shapes! {
    /// Archived reports only.
    ARCHIVED, archived, "i.status = 'ARCHIVED'"
}
shapes! {
    /// Canceled reports only.
    CANCELLED, cancelled, "i.status = 'CANCELLED'"
}
