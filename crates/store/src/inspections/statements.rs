//! The SQL of the list: a statement for each kind of grants and each status filter.
//!
//! `branch_id = ANY($1) ORDER BY created_at DESC, id DESC LIMIT 26` scans the whole list if the branches have had no recent
//! reports. Each statement here therefore starts from the granted organizations or branches, and takes the newest rows of
//! each from an index that begins with it. `script/bench-list` shows plans and times.
//!
//! - `whole`: a few organizations granted in full, which is the common case. There is a statement for each number of
//!   organizations. Each organization is an ordered index scan, and the merge reads only the rows of the page. These
//!   statements do not support a range of `published_at`, because each row outside the range would be fetched from the table.
//! - `merge`: the newest rows of a few granted organizations and branches, merged.
//! - `many`: for many grants. Reads the newest row of each organization and branch first; only those with the newest of
//!   these rows can have rows on the page.
//! - `by_organization`: for many granted branches, before `many`. Reads a few of the newest rows of each organization, and keeps
//!   those of the granted branches. If they fill the page, it is complete. If they do not, because the branches have had few of
//!   the recent reports, `many` reads the page.
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
//! - `$9`: the branch, in `branch` and `branch_window`
//!
//! `whole` has neither branches nor a range: its `$1` to `$5` are `$1`, `$3`, `$4`, `$5` and `$8` of this list. In `by_organization`,
//! `$7` is all organizations with a grant, and `$9` the maximum number of rows read from each of them.
//!
//! A page has at most 100 rows, plus one that shows whether there is a next page. The constant `LIMIT 101` gives this number to the
//! planner, which does not have the values of parameters in a generic plan.

use crate::statement;
use crate::statement::Statement;

/// The newest rows of one organization or branch in the order of the list. `$of` is the condition that selects them.
macro_rules! newest {
    ($of:expr, $status:literal, $limit:literal) => {
        concat!(
            "SELECT i.id, i.created_at FROM inspections i WHERE ",
            $of,
            " AND ",
            $status,
            " AND (i.created_at, i.id) < ($3::timestamptz, $4::uuid) AND i.created_at >= $5::timestamptz",
            // Not a plain comparison, which the planner would consider selective, so it would not scan in the order of the list.
            " AND ($6::timestamptz IS NULL OR i.published_at >= $6)",
            " AND ($7::timestamptz IS NULL OR i.published_at <= $7)",
            " ORDER BY i.created_at DESC, i.id DESC LIMIT ",
            $limit
        )
    };
}

/// The columns of the page, in the order in which `list` reads them. `updated_at` is the later of the report's own time and
/// the organization's.
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

/// The maximum number of organizations for `whole`. Each costs a scan; for a dozen, `merge` is as fast.
pub const MAX_WHOLE: usize = 4;

/// The newest rows of the `$place`th organization granted in full, with the organization's columns, which are read once.
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

/// The page from as many organizations as there are places, unordered: sorting its few rows in `list` is cheaper.
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

/// The newest rows of each organization, and of these the rows of granted organizations and branches. If only some of an organization's
/// rows were read, its other rows may come after the oldest of them, so only rows before that one are certain.
macro_rules! by_organization {
    ($status:literal) => {
        page!(concat!(
            "WITH newest AS MATERIALIZED (SELECT n.* FROM unnest($7::uuid[]) AS granted (id) CROSS JOIN LATERAL (",
            "SELECT i.id, i.created_at, i.published_at, i.branch_id, i.organization_id FROM inspections i WHERE i.organization_id = granted.id AND ",
            $status,
            " AND (i.created_at, i.id) < ($3::timestamptz, $4::uuid) AND i.created_at >= $5::timestamptz",
            " ORDER BY i.created_at DESC, i.id DESC LIMIT $9::bigint) n)",
            " SELECT n.id, n.created_at FROM newest n",
            " WHERE (n.organization_id = ANY ($1::uuid[]) OR n.branch_id IN (SELECT unnest($2::uuid[])))",
            " AND ($6::timestamptz IS NULL OR n.published_at >= $6)",
            " AND n.created_at > coalesce((SELECT max(partial.oldest) FROM (SELECT min(created_at) AS oldest FROM newest",
            " GROUP BY organization_id HAVING count(*) = $9) partial), '-infinity')"
        ))
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

/// The maximum number of reports in a range of `published_at` for which the range is read completely. A macro, for `concat!`.
macro_rules! max_in_window {
    () => {
        2000
    };
}

/// `max_in_window!` as a constant.
pub const MAX_WINDOW: i64 = max_in_window!();

/// The rows of one organization or branch in a range of `published_at`; `$of` as in `newest!`.
macro_rules! published {
    ($of:expr, $status:literal) => {
        concat!(
            "SELECT i.id, i.created_at FROM inspections i WHERE ",
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

/// The page from a range, with the number of reports in the range in each row. If that number is `MAX_WINDOW` + 1, the page is
/// invalid. There is always at least one row; its other columns are null if the page is empty.
macro_rules! window_page {
    ($found:expr) => {
        concat!(
            "WITH range AS MATERIALIZED (SELECT id, created_at FROM (",
            $found,
            ") found LIMIT ",
            max_in_window!(),
            " + 1), page AS MATERIALIZED (SELECT id, created_at FROM (SELECT id, created_at FROM range",
            " WHERE (created_at, id) < ($3::timestamptz, $4::uuid) AND created_at >= $5::timestamptz",
            " AND (SELECT count(*) FROM range) <= ",
            max_in_window!(),
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
        window_page!(published!(of_branch!(), $status))
    };
}

/// The statements of one status filter.
#[derive(Debug)]
pub struct Shapes {
    /// For one to four organizations granted in full.
    pub whole: [&'static Statement; MAX_WHOLE],
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
                /// For two.
                pub(super) WHOLE_2 = whole!($status, 1 2);
                /// For three.
                pub(super) WHOLE_3 = whole!($status, 1 2 3);
                /// For four.
                pub(super) WHOLE_4 = whole!($status, 1 2 3 4);
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
            whole: [$module::WHOLE_1, $module::WHOLE_2, $module::WHOLE_3, $module::WHOLE_4],
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
