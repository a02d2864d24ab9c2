//! The SQL of a page from a few organizations or branches: `whole` and `branches` of [`statements`](super::statements), and the
//! same for the list of changes. Each organization or branch has a place in the statement, which is an ordered index scan.

use chrono::{DateTime, Utc};
use partner_api_domain::grants::Grants;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::list::{Page, columns, items};
use crate::statement;
use crate::{DbError, standby::Reader, statement::Statement};

/// The columns of a report that the page needs.
macro_rules! columns_of_place {
    () => {
        "i.id, i.report_number, i.organization_id, i.branch_id, i.vehicle_id, i.status, i.package_name, i.overall_score, \
         i.final_price, i.published_at, i.created_at, i.updated_at"
    };
}

/// The newest rows with the condition `$of`, and `$more` columns.
macro_rules! newest_of_place {
    ($of:expr, $status:literal, $more:expr) => {
        concat!(
            "(SELECT ",
            columns_of_place!(),
            $more,
            " FROM inspections i WHERE ",
            $of,
            " AND ",
            $status,
            " AND (i.created_at, i.id) < ($2::timestamptz, $3::uuid) AND i.created_at >= $4::timestamptz",
            " ORDER BY i.created_at DESC, i.id DESC LIMIT $5::bigint)"
        )
    };
}

/// The newest rows of the `$place`th organization granted in full, with the organization's columns, which are read once.
macro_rules! newest_of_whole {
    ($place:literal, $status:literal) => {
        newest_of_place!(
            concat!("i.organization_id = ($1::uuid[])[", $place, "]"),
            $status,
            concat!(
                ", (SELECT o.pii_mode FROM organizations o WHERE o.id = ($1::uuid[])[",
                $place,
                "]) AS pii_mode, (SELECT o.reports_changed_at FROM organizations o WHERE o.id = ($1::uuid[])[",
                $place,
                "]) AS reports_changed_at"
            )
        )
    };
}

/// The newest rows of the `$place`th branch.
macro_rules! newest_of_branch {
    ($place:literal, $status:literal) => {
        newest_of_place!(
            concat!(
                "i.organization_id = ($1::uuid[])[",
                $place,
                "] AND i.branch_id = ($6::uuid[])[",
                $place,
                "]"
            ),
            $status,
            ""
        )
    };
}

/// The first rows of all places in `$order`, at most `$limit`.
macro_rules! first_of_places {
    ($order:literal, $limit:literal, $first:expr $(, $other:expr)*) => {
        concat!(
            "(SELECT * FROM (SELECT * FROM (",
            $first,
            $(" UNION ALL ", $other,)*
            ") merged ORDER BY ",
            $order,
            " LIMIT ",
            $limit,
            ") bounded LIMIT 101)"
        )
    };
}

/// The page from the newest rows of all places.
macro_rules! page_of_places {
    ($($place:expr),+) => {
        first_of_places!("created_at DESC, id DESC", "$5::bigint", $($place),+)
    };
}

/// The page from as many organizations as there are places, unordered: sorting its few rows in the service is cheaper.
macro_rules! whole {
    ($status:literal, $($place:literal)*) => {
        concat!(
            "SELECT ",
            columns!("r.pii_mode", "r.reports_changed_at"),
            " FROM ",
            page_of_places!($(newest_of_whole!($place, $status)),*),
            " r JOIN vehicles v ON v.id = r.vehicle_id"
        )
    };
}

/// The page from as many branches as there are places, unordered.
macro_rules! branches {
    ($status:literal, $($place:literal)*) => {
        concat!(
            "SELECT ",
            columns!("o.pii_mode", "o.reports_changed_at"),
            " FROM ",
            page_of_places!($(newest_of_branch!($place, $status)),*),
            " r JOIN vehicles v ON v.id = r.vehicle_id JOIN organizations o ON o.id = r.organization_id"
        )
    };
}

/// The first changes with the condition `$of` after the position `$2`, `$3`, of the organization `$1[$place]`. `$4` and `$5` are the
/// bounds of `updated_at`. If the organization's own time is in the range, so are all of its reports, and if it is after the range,
/// none.
macro_rules! first_changes_of_place {
    ($place:literal, $of:expr) => {
        concat!(
            "(SELECT ",
            columns_of_place!(),
            " FROM inspections i WHERE i.organization_id = ($1::uuid[])[",
            $place,
            "]",
            $of,
            " AND i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') AND (i.updated_at, i.id) > (",
            "SELECT CASE WHEN f.is_in THEN $2::timestamptz ELSE $4 - interval '1 microsecond' END,",
            " CASE WHEN f.is_in THEN $3::uuid ELSE 'ffffffff-ffff-ffff-ffff-ffffffffffff' END",
            " FROM (SELECT $4::timestamptz IS NULL OR $2 >= $4 OR o.reports_changed_at >= $4 AS is_in FROM organizations o",
            " WHERE o.id = ($1)[",
            $place,
            "] AND o.reports_changed_at <= coalesce($5::timestamptz, 'infinity')) f)",
            " AND i.updated_at <= coalesce($5, 'infinity')",
            " ORDER BY i.updated_at, i.id LIMIT $6::bigint)"
        )
    };
}

/// The page of changes from as many organizations as there are places.
macro_rules! changes_of_whole {
    ($($place:literal)*) => {
        page_of_changed_places!($(first_changes_of_place!($place, "")),*)
    };
}

/// The page of changes from as many branches as there are places. `$7` is the branches.
macro_rules! changes_of_branches {
    ($($place:literal)*) => {
        page_of_changed_places!(
            $(first_changes_of_place!($place, concat!(" AND i.branch_id = ($7::uuid[])[", $place, "]"))),*
        )
    };
}

/// The page of changes from all places. Each row has its own time after the columns of the page.
macro_rules! page_of_changed_places {
    ($($place:expr),+) => {
        concat!(
            "SELECT ",
            columns!("o.pii_mode", "o.reports_changed_at"),
            ", r.updated_at FROM ",
            first_of_places!("updated_at, id", "$6::bigint", $($place),+),
            " r JOIN vehicles v ON v.id = r.vehicle_id JOIN organizations o ON o.id = r.organization_id",
            " ORDER BY r.updated_at, r.id"
        )
    };
}

/// The maximum number of places.
const MAX_PLACES: usize = 16;

/// Statements for 1, 2, 3 and 4, and for up to 8 and [`MAX_PLACES`] organizations or branches. A place that is not used costs 7 µs of
/// processor time.
#[derive(Debug)]
pub struct OfFew(pub(super) [&'static Statement; 6]);

/// Grants of only a few organizations in full, or of only a few branches.
pub(super) struct Few<'g> {
    /// The organization of each place.
    pub(super) organizations: Vec<Uuid>,
    /// The branch of each place, or `None` if the organizations are granted in full.
    pub(super) branches: Option<&'g [Uuid]>,
}

impl<'g> Few<'g> {
    /// Returns the places of the grants, if these are few.
    pub(super) fn of(grants: &'g Grants) -> Option<Self> {
        match (grants.whole(), grants.branches()) {
            (organizations @ [_, ..], []) if organizations.len() <= MAX_PLACES => Some(Few {
                organizations: organizations.to_vec(),
                branches: None,
            }),
            ([], branches @ [_, ..]) if branches.len() <= MAX_PLACES => Some(Few {
                organizations: grants.organizations_of_branches(),
                branches: Some(branches),
            }),
            _ => None,
        }
    }

    /// Returns the statement with the fewest places that suffice.
    pub(super) fn statement(&self, of_whole: &OfFew, of_branches: &OfFew) -> &'static Statement {
        let OfFew([one, two, three, four, eight, sixteen]) = match self.branches {
            None => of_whole,
            Some(_) => of_branches,
        };
        match self.organizations.len() {
            ..=1 => one,
            2 => two,
            3 => three,
            4 => four,
            5..=8 => eight,
            _ => sixteen,
        }
    }
}

statement! {
    /// Changes of one organization granted in full.
    CHANGES_OF_WHOLE_1 = changes_of_whole!(1);
    /// Changes of two organizations granted in full.
    CHANGES_OF_WHOLE_2 = changes_of_whole!(1 2);
    /// Changes of three organizations granted in full.
    CHANGES_OF_WHOLE_3 = changes_of_whole!(1 2 3);
    /// Changes of four organizations granted in full.
    CHANGES_OF_WHOLE_4 = changes_of_whole!(1 2 3 4);
    /// Changes of up to eight organizations granted in full.
    CHANGES_OF_WHOLE_8 = changes_of_whole!(1 2 3 4 5 6 7 8);
    /// Changes of up to 16 organizations granted in full.
    CHANGES_OF_WHOLE_16 = changes_of_whole!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    /// Changes of one branch.
    CHANGES_OF_BRANCHES_1 = changes_of_branches!(1);
    /// Changes of two branches.
    CHANGES_OF_BRANCHES_2 = changes_of_branches!(1 2);
    /// Changes of three branches.
    CHANGES_OF_BRANCHES_3 = changes_of_branches!(1 2 3);
    /// Changes of four branches.
    CHANGES_OF_BRANCHES_4 = changes_of_branches!(1 2 3 4);
    /// Changes of up to eight branches.
    CHANGES_OF_BRANCHES_8 = changes_of_branches!(1 2 3 4 5 6 7 8);
    /// Changes of up to 16 branches.
    CHANGES_OF_BRANCHES_16 = changes_of_branches!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
}

static OF_WHOLE: OfFew = OfFew([
    CHANGES_OF_WHOLE_1,
    CHANGES_OF_WHOLE_2,
    CHANGES_OF_WHOLE_3,
    CHANGES_OF_WHOLE_4,
    CHANGES_OF_WHOLE_8,
    CHANGES_OF_WHOLE_16,
]);

static OF_BRANCHES: OfFew = OfFew([
    CHANGES_OF_BRANCHES_1,
    CHANGES_OF_BRANCHES_2,
    CHANGES_OF_BRANCHES_3,
    CHANGES_OF_BRANCHES_4,
    CHANGES_OF_BRANCHES_8,
    CHANGES_OF_BRANCHES_16,
]);

/// Returns the first changes after a position and in a range, of a few organizations or branches.
///
/// # Errors
/// If the query fails.
pub(super) async fn changes(
    client: &Reader,
    few: &Few<'_>,
    (time, id): (DateTime<Utc>, Uuid),
    (from, to): (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    rows: i64,
) -> Result<Page, DbError> {
    let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![
        (&few.organizations, Type::UUID_ARRAY),
        (&time, Type::TIMESTAMPTZ),
        (&id, Type::UUID),
        (&from, Type::TIMESTAMPTZ),
        (&to, Type::TIMESTAMPTZ),
        (&rows, Type::INT8),
    ];
    parameters.extend(few.branches.iter().map(|branches| (branches as _, Type::UUID_ARRAY)));
    items(
        &client
            .query_typed(few.statement(&OF_WHOLE, &OF_BRANCHES), &parameters)
            .await?,
        true,
    )
}

pub(super) use {
    branches, columns_of_place, first_of_places, newest_of_branch, newest_of_place, newest_of_whole, page_of_places,
    whole,
};
