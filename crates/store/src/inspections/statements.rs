//! The SQL of the list, a statement for each shape of a grant and each status filter.
//!
//! `branch_id = ANY($1) ORDER BY created_at DESC, id DESC LIMIT 26` walks the whole list when the branches have had no
//! report for long, so every statement here starts from the granted organisations or branches instead, and takes the
//! newest rows of each from an index that begins with it (`script/bench-list` shows plans and times):
//!
//! - `whole`: few organisations granted whole and nothing else, the common grant: a statement for each number of them, in
//!   which every organisation is an ordered index scan of its own and the merge takes no row that is not on the page. No
//!   range of `published_at`: the scans read whole rows, so a row that is not wanted would cost one.
//! - `merge`: the newest rows of every organisation or branch granted, merged. For few of them.
//! - `many`: the newest row of each first; only those with the newest of these can be on the page. For many of them.
//! - `branch`: one branch, when the filter names one. That it is granted is asked of `branches`, once.
//! - `window`, `branch_window`: a range of `published_at` in which few reports lie (the incremental sync) is read from
//!   the index by `published_at`; the walk in the list's order would pass by all older reports to find them.
//!
//! Statuses are literals, because a partial index is only used when the planner can see them.
//!
//! Parameters: `$1` organisations granted whole, `$2` branches granted alone, (`$3`, `$4`) the row after which the page
//! begins, `$5` the earliest `created_at`, `$6` and `$7` the bounds of `published_at` (null: open), `$8` the most rows,
//! and in `branch*` `$9` the branch; of `whole`, which has neither branches nor a range: `$1`, `$3`, `$4`, `$5` and `$8` of these
//! as `$1` to `$5`. A page has at most 100 rows and one more that tells whether it is the last; the
//! constant `LIMIT 101` says so to the planner, which knows no parameter's value in a generic plan.

use crate::statement;
use crate::statement::Statement;

/// The newest rows of one organisation or branch in the list's order; `$of` is the condition that ties them to it.
macro_rules! newest {
    ($of:literal, $status:literal, $limit:literal) => {
        concat!(
            "SELECT i.id, i.created_at FROM inspections i WHERE ",
            $of,
            " AND ",
            $status,
            " AND (i.created_at, i.id) < ($3::timestamptz, $4::uuid) AND i.created_at >= $5::timestamptz",
            // Not a plain comparison: the planner would take it for selective and leave the list's order.
            " AND ($6::timestamptz IS NULL OR i.published_at >= $6)",
            " AND ($7::timestamptz IS NULL OR i.published_at <= $7)",
            " ORDER BY i.created_at DESC, i.id DESC LIMIT ",
            $limit
        )
    };
}

/// The page's columns, in the order in which `list` reads them. `updated_at` is the later of the report's own time and the
/// organisation's.
macro_rules! columns {
    ($pii_mode:literal, $reports_changed_at:literal) => {
        concat!(
            "r.id, r.report_number, r.organization_id, r.branch_id, r.status, r.package_name, r.overall_score, ",
            "r.final_price, r.published_at, r.created_at, v.plate, v.vin, v.brand, v.model, v.year, v.type, ",
            "v.fuel_type, v.transmission, v.color, v.mileage_km, ",
            $pii_mode,
            ", greatest(r.updated_at, ",
            $reports_changed_at,
            ")"
        )
    };
}

pub(super) use columns;

/// The rows behind the ids of `found`, in the list's order.
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

/// The most organisations that `whole` merges: each costs a scan of its own, a dozen as much as `merge` does.
pub const WHOLE: usize = 4;

/// The newest rows of the `$place`th organisation granted whole, with what is the organisation's, which is read once.
macro_rules! newest_of_whole {
    ($place:literal, $status:literal) => {
        concat!(
            "(SELECT i.id, i.report_number, i.organization_id, i.branch_id, i.vehicle_id, i.status, i.package_name,",
            " i.overall_score, i.final_price, i.published_at, i.created_at, i.updated_at,",
            " (SELECT o.pii_mode FROM organizations o WHERE o.id = ($1::uuid[])[",
            $place,
            "]) AS pii_mode, (SELECT o.reports_changed_at FROM organizations o WHERE o.id = ($1::uuid[])[",
            $place,
            "]) AS reports_changed_at FROM inspections i WHERE i.organization_id = ($1::uuid[])[",
            $place,
            "] AND ",
            $status,
            " AND (i.created_at, i.id) < ($2::timestamptz, $3::uuid) AND i.created_at >= $4::timestamptz",
            " ORDER BY i.created_at DESC, i.id DESC LIMIT $5::bigint)"
        )
    };
}

/// The page out of as many organisations as there are places, in no order: `list` sorts its few rows for less.
macro_rules! whole {
    ($status:literal, $first:literal $($other:literal)*) => {
        concat!(
            "SELECT ",
            columns!("r.pii_mode", "r.reports_changed_at"),
            " FROM (SELECT * FROM (SELECT * FROM (",
            newest_of_whole!($first, $status),
            $(" UNION ALL ", newest_of_whole!($other, $status),)*
            ") merged ORDER BY created_at DESC, id DESC LIMIT $5::bigint) bounded LIMIT 101) r",
            " JOIN vehicles v ON v.id = r.vehicle_id"
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

macro_rules! many {
    ($status:literal) => {
        page!(concat!(
            "SELECT n.id, n.created_at FROM (SELECT * FROM (",
            "SELECT granted.id AS organization_id, NULL::uuid AS branch_id, n.id, n.created_at",
            " FROM unnest($1::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
            newest!("i.organization_id = granted.id", $status, "1"),
            ") n UNION ALL SELECT NULL, granted.id, n.id, n.created_at",
            " FROM unnest($2::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
            newest!("i.branch_id = granted.id", $status, "1"),
            ") n) heads ORDER BY created_at DESC, id DESC LIMIT $8::bigint) best CROSS JOIN LATERAL ((",
            newest!("i.organization_id = best.organization_id", $status, "$8::bigint"),
            ") UNION ALL (",
            newest!("i.branch_id = best.branch_id", $status, "$8::bigint"),
            ")) n"
        ))
    };
}

macro_rules! branch {
    ($status:literal) => {
        page!(concat!(
            "SELECT n.id, n.created_at FROM branches b CROSS JOIN LATERAL (",
            newest!("i.branch_id = b.id", $status, "$8::bigint"),
            ") n WHERE b.id = $9::uuid AND (b.organization_id = ANY ($1::uuid[]) OR b.id = ANY ($2::uuid[]))"
        ))
    };
}

/// The most reports in a range of `published_at` for which the range is read whole. A macro, for `concat!`.
macro_rules! most_in_window {
    () => {
        2000
    };
}

/// The same, for who reads the rows.
pub const WINDOW: i64 = most_in_window!();

/// The rows of one organisation or branch in a range of `published_at`; `$of` as in `newest!`.
macro_rules! published {
    ($of:literal, $status:literal) => {
        concat!(
            "SELECT i.id, i.created_at FROM inspections i WHERE ",
            $of,
            " AND ",
            $status,
            " AND i.published_at >= coalesce($6::timestamptz, '-infinity')",
            // A comparison of rows: the planner would take two plain ones for a narrow range, and read it whole.
            " AND (i.published_at, i.id) <= (coalesce($7::timestamptz, 'infinity'),",
            " 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)",
            " ORDER BY i.published_at DESC LIMIT ",
            most_in_window!(),
            " + 1"
        )
    };
}

/// The page out of a range, and in every row how many reports the range holds (at most `WINDOW` + 1, and then the page
/// is not the answer). There is always a row; the rest of it is null when the page is empty.
macro_rules! window_page {
    ($found:expr) => {
        concat!(
            "WITH range AS MATERIALIZED (SELECT id, created_at FROM (",
            $found,
            ") found LIMIT ",
            most_in_window!(),
            " + 1), page AS MATERIALIZED (SELECT id, created_at FROM (SELECT id, created_at FROM range",
            " WHERE (created_at, id) < ($3::timestamptz, $4::uuid) AND created_at >= $5::timestamptz",
            " AND (SELECT count(*) FROM range) <= ",
            most_in_window!(),
            " ORDER BY created_at DESC, id DESC LIMIT $8::bigint) bounded LIMIT 101)",
            " SELECT ",
            columns!("o.pii_mode", "o.reports_changed_at"),
            ", (SELECT count(*) FROM range) AS in_range",
            " FROM (SELECT) always LEFT JOIN (page JOIN inspections r ON r.id = page.id",
            " JOIN vehicles v ON v.id = r.vehicle_id JOIN organizations o ON o.id = r.organization_id) ON true",
            " ORDER BY page.created_at DESC, page.id DESC"
        )
    };
}

macro_rules! window {
    ($status:literal) => {
        window_page!(concat!(
            "SELECT n.id, n.created_at FROM unnest($1::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
            published!("i.organization_id = granted.id", $status),
            ") n UNION ALL SELECT n.id, n.created_at FROM unnest($2::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
            published!("i.branch_id = granted.id", $status),
            ") n"
        ))
    };
}

macro_rules! branch_window {
    ($status:literal) => {
        window_page!(concat!(
            "SELECT n.id, n.created_at FROM branches b CROSS JOIN LATERAL (",
            published!("i.branch_id = b.id", $status),
            ") n WHERE b.id = $9::uuid AND (b.organization_id = ANY ($1::uuid[]) OR b.id = ANY ($2::uuid[]))"
        ))
    };
}

/// The statements of one status filter.
#[derive(Debug)]
pub struct Shapes {
    /// One organisation granted whole, two, three, four.
    pub whole: [&'static Statement; WHOLE],
    /// Few organisations and branches granted.
    pub merge: &'static Statement,
    /// Many of them.
    pub many: &'static Statement,
    /// One branch.
    pub branch: &'static Statement,
    /// Few reports in a range of `published_at`.
    pub window: &'static Statement,
    /// The same, of one branch.
    pub branch_window: &'static Statement,
}

/// The statements of a status filter, registered one by one in a module of their own.
macro_rules! shapes {
    ($(#[$about:meta])* $name:ident, $module:ident, $status:literal) => {
        mod $module {
            use super::*;

            statement! {
                /// One organisation granted whole.
                pub(super) WHOLE_1 = whole!($status, 1);
                /// Two of them.
                pub(super) WHOLE_2 = whole!($status, 1 2);
                /// Three of them.
                pub(super) WHOLE_3 = whole!($status, 1 2 3);
                /// Four of them.
                pub(super) WHOLE_4 = whole!($status, 1 2 3 4);
                /// Few organisations and branches granted.
                pub(super) MERGE = merge!($status);
                /// Many of them.
                pub(super) MANY = many!($status);
                /// One branch.
                pub(super) BRANCH = branch!($status);
                /// Few reports in a range of `published_at`.
                pub(super) WINDOW = window!($status);
                /// The same, of one branch.
                pub(super) BRANCH_WINDOW = branch_window!($status);
            }
        }

        $(#[$about])*
        pub static $name: Shapes = Shapes {
            whole: [$module::WHOLE_1, $module::WHOLE_2, $module::WHOLE_3, $module::WHOLE_4],
            merge: $module::MERGE,
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
    /// Cancelled reports only.
    CANCELLED, cancelled, "i.status = 'CANCELLED'"
}
