//! The list in the order of creation, newest first: the choice of the statements (see [`statements`]) that read a page.

use std::cmp::Reverse;

use chrono::{DateTime, TimeDelta, Utc};
use partner_api_domain::cursor::Position;
use partner_api_domain::grants::Grants;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::list::{EARLIEST, ListFilter, Page, Part, is_full, items, part, round_down, round_up, start};
use super::places::Few;
use super::row::Status;
use super::statements::{self, Shapes};
use crate::{DbError, standby::Reader};

/// Returns at most `rows` reports after `after`, for a filter without changes, report number and VIN.
///
/// # Errors
/// If a query fails.
pub(super) async fn page(
    client: &Reader,
    grants: &Grants,
    filter: &ListFilter,
    after: Option<Position>,
    rows: i64,
) -> Result<Page, DbError> {
    let (before, before_id) = start(filter, after);
    let query = Query {
        client,
        grants,
        filter,
        shapes: shapes(filter.status),
        before,
        before_id,
        created_from: filter.created_from.map_or(EARLIEST, round_up),
        published_from: filter.published_from.map(round_up),
        published_to: filter.published_to.map(round_down),
        rows,
    };
    query.page().await
}

/// The values of the statements' parameters.
struct Query<'a> {
    client: &'a Reader,
    grants: &'a Grants,
    filter: &'a ListFilter,
    shapes: &'static Shapes,
    before: DateTime<Utc>,
    before_id: Uuid,
    created_from: DateTime<Utc>,
    published_from: Option<DateTime<Utc>>,
    published_to: Option<DateTime<Utc>>,
    rows: i64,
}

impl Query<'_> {
    /// Reads the page with the statement that is likely to read the fewest rows, and with others if that one does not complete it.
    async fn page(&self) -> Result<Page, DbError> {
        if let Some(items) = self.of_few().await? {
            return Ok(items);
        }
        let read = match self.filter.branch_id {
            None => rows_by_organization(self.grants, self.rows),
            Some(_) => None,
        };
        if !self.filter.is_ranged() {
            if let Some(read) = read
                && let Some(items) = self
                    .by_organization(read, self.created_from)
                    .await?
                    .into_page(self.rows)
            {
                return Ok(items);
            }
            return self.in_order(self.created_from).await;
        }
        if let Some(from) = self.created_in_range() {
            if let Some(read) = read {
                let items = self.by_organization(read, from).await?.items;
                if is_full(&items, self.rows) {
                    return Ok(items);
                }
            }
            // Few branches create and publish a page of reports within a day.
            if self.is_long_range() || self.grants.branches().is_empty() {
                let items = self.in_order(from).await?;
                if is_full(&items, self.rows) {
                    return Ok(items);
                }
            }
        }
        match self.window().await? {
            Some(items) => Ok(items),
            None => self.in_order(self.created_from).await,
        }
    }

    /// Returns the start of a range of `published_at` that has no end, as a bound of `created_at`. A full page of reports that were created
    /// since then is the page, because all other reports of the range come later in the list, and it is found without reading the range.
    fn created_in_range(&self) -> Option<DateTime<Utc>> {
        let from = self.published_from.filter(|_| self.published_to.is_none())?;
        (from < self.before).then(|| from.max(self.created_from))
    }

    /// Returns whether the range of `published_at` is longer than a day, so that it is likely to have many reports.
    fn is_long_range(&self) -> bool {
        let to = self.published_to.unwrap_or_else(Utc::now);
        self.published_from.is_none_or(|from| to - from > TimeDelta::days(1))
    }

    /// Reads the page from a few organizations granted in full, or from a few branches, if the grants are only these and the filter has
    /// only a status and creation times.
    async fn of_few(&self) -> Result<Option<Page>, DbError> {
        if self.filter.branch_id.is_some() || self.filter.is_ranged() {
            return Ok(None);
        }
        let Some(few) = Few::of(self.grants) else {
            return Ok(None);
        };
        let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![
            (&few.organizations, Type::UUID_ARRAY),
            (&self.before, Type::TIMESTAMPTZ),
            (&self.before_id, Type::UUID),
            (&self.created_from, Type::TIMESTAMPTZ),
            (&self.rows, Type::INT8),
        ];
        parameters.extend(few.branches.iter().map(|branches| (branches as _, Type::UUID_ARRAY)));
        let statement = few.statement(&self.shapes.whole, &self.shapes.branches);
        let mut items = items(&self.client.query_typed(statement, &parameters).await?, false)?;
        items.sort_unstable_by_key(|(position, _)| Reverse((position.time, position.id)));
        Ok(Some(items))
    }

    /// Reads the reports of the page that are among the newest `read` of each organization and were created at `from` or later.
    async fn by_organization(&self, read: i64, from: DateTime<Utc>) -> Result<Part, DbError> {
        let parameters: [(&(dyn ToSql + Sync), Type); 9] = [
            (&self.grants.whole(), Type::UUID_ARRAY),
            (&self.grants.branches(), Type::UUID_ARRAY),
            (&self.before, Type::TIMESTAMPTZ),
            (&self.before_id, Type::UUID),
            (&from, Type::TIMESTAMPTZ),
            (&self.published_from, Type::TIMESTAMPTZ),
            (&self.grants.organizations(), Type::UUID_ARRAY),
            (&self.rows, Type::INT8),
            (&read, Type::INT8),
        ];
        part(
            &self
                .client
                .query_typed(self.shapes.by_organization, &parameters)
                .await?,
            false,
        )
    }

    /// Reads the page of the reports created at `from` or later.
    async fn in_order(&self, from: DateTime<Utc>) -> Result<Page, DbError> {
        let (whole, branches) = (self.grants.whole(), self.grants.branches());
        let first = rows_of_each(self.grants, self.rows);
        let mut parameters = self.parameters(&whole, &branches, &from);
        let statement = if let Some(branch) = &self.filter.branch_id {
            parameters.push((branch, Type::UUID));
            self.shapes.branch
        } else if are_many(self.grants, self.rows) {
            parameters.push((&first, Type::INT8));
            self.shapes.many
        } else {
            self.shapes.merge
        };
        items(&self.client.query_typed(statement, &parameters).await?, false)
    }

    /// Reads the page from a range of `published_at`, if that has few reports.
    async fn window(&self) -> Result<Option<Page>, DbError> {
        let (whole, branches) = (self.grants.whole(), self.grants.branches());
        if let Some(branch) = &self.filter.branch_id {
            let mut parameters = self.parameters(&whole, &branches, &self.created_from);
            parameters.push((branch, Type::UUID));
            let found = self.client.query_typed(self.shapes.branch_window, &parameters).await?;
            return Ok(part(&found, false)?.into_page(self.rows));
        }
        if branches.len() > statements::MAX_WINDOW / PAGES_OF_BRANCH && !self.is_long_range() {
            let all = self.grants.organizations();
            let found = self.window_of(&all, &[], Some(self.grants)).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        self.window_of(whole, branches, None).await
    }

    /// Reads the range of `organizations` and `branches`, of which only the reports of `granted` are kept, if given.
    async fn window_of(
        &self,
        organizations: &[Uuid],
        branches: &[Uuid],
        granted: Option<&Grants>,
    ) -> Result<Option<Page>, DbError> {
        let (whole, individual) = (granted.map(Grants::whole), granted.map(Grants::branches));
        let mut parameters = self.parameters(&organizations, &branches, &self.created_from);
        parameters.extend([(&whole as _, Type::UUID_ARRAY), (&individual as _, Type::UUID_ARRAY)]);
        let found = self.client.query_typed(self.shapes.window, &parameters).await?;
        Ok(part(&found, false)?.into_page(self.rows))
    }

    /// Returns `$1` to `$8` of the statements.
    fn parameters<'p>(
        &'p self,
        whole: &'p &[Uuid],
        branches: &'p &[Uuid],
        created_from: &'p DateTime<Utc>,
    ) -> Vec<(&'p (dyn ToSql + Sync), Type)> {
        vec![
            (whole, Type::UUID_ARRAY),
            (branches, Type::UUID_ARRAY),
            (&self.before, Type::TIMESTAMPTZ),
            (&self.before_id, Type::UUID),
            (created_from, Type::TIMESTAMPTZ),
            (&self.published_from, Type::TIMESTAMPTZ),
            (&self.published_to, Type::TIMESTAMPTZ),
            (&self.rows, Type::INT8),
        ]
    }
}

/// About how many pages of the database the lookup of a branch in an index reads.
const PAGES_OF_BRANCH: usize = 5;

/// Returns how many of the first rows of each organization to read before those of each branch. `None` if these are more than three for
/// each branch, because finding the branches in an index then costs less.
pub(super) fn rows_by_organization(grants: &Grants, rows: i64) -> Option<i64> {
    let organizations = i64::try_from(grants.organizations().len()).ok()?;
    let branches = i64::try_from(grants.branches().len()).ok()?;
    let read = rows * organizations.max(4);
    (read <= 3 * branches).then_some(read / organizations)
}

/// Returns how many rows of each granted organization and branch suffice for a page of `rows`.
pub(super) fn rows_of_each(grants: &Grants, rows: i64) -> i64 {
    i64::try_from(grants.len()).map_or(1, |granted| (rows + granted - 1) / granted)
}

/// The most index entries that cost less to read at once than in two steps (`script/bench-list`).
const MAX_MERGED: i64 = 300;

/// Returns whether there are too many organizations and branches for reading `rows` of each of them.
pub(super) fn are_many(grants: &Grants, rows: i64) -> bool {
    i64::try_from(grants.len()).is_ok_and(|granted| granted * rows > MAX_MERGED)
}

fn shapes(status: Option<Status>) -> &'static Shapes {
    match status {
        None => &statements::DEFAULT,
        Some(Status::Published) => &statements::PUBLISHED,
        Some(Status::Archived) => &statements::ARCHIVED,
        Some(Status::Cancelled) => &statements::CANCELLED,
    }
}
