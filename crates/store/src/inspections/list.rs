//! The list of reports: the choice of the statement and the mapping of its rows.

use std::cmp::Reverse;

use chrono::{DateTime, TimeDelta, Utc};
use partner_api_domain::{cursor::Position, grants::Grants, personal::StoredText, privacy::PiiMode};
use rust_decimal::Decimal;
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use uuid::Uuid;

use super::{
    changes,
    row::{Columns, Status, Vehicle},
    statements::{self, Shapes},
};
use crate::{DbError, standby::Reader, statement::Statement};

/// Before all rows: 0001-01-01.
pub(super) const EARLIEST: DateTime<Utc> = second(-62_135_596_800);
/// After all rows: 10000-01-01.
const LATEST: DateTime<Utc> = second(253_402_300_800);

const fn second(timestamp: i64) -> DateTime<Utc> {
    match DateTime::from_timestamp(timestamp, 0) {
        Some(time) => time,
        None => DateTime::UNIX_EPOCH,
    }
}

/// The filters of a list. Time bounds are inclusive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Reports of this branch.
    pub branch_id: Option<Uuid>,
    /// Reports in this status. By default published and archived reports, and in a list of changes also cancelled ones.
    pub status: Option<Status>,
    /// The earliest `published_at`.
    pub published_from: Option<DateTime<Utc>>,
    /// The latest `published_at`.
    pub published_to: Option<DateTime<Utc>>,
    /// The earliest `created_at`.
    pub created_from: Option<DateTime<Utc>>,
    /// The latest `created_at`.
    pub created_to: Option<DateTime<Utc>>,
    /// The earliest `updated_at`.
    pub updated_from: Option<DateTime<Utc>>,
    /// The latest `updated_at`.
    pub updated_to: Option<DateTime<Utc>>,
    /// The report with this report number.
    pub report_number: Option<String>,
    /// Reports of the vehicle with this VIN, in organizations whose privacy mode shows VINs.
    pub vin: Option<String>,
}

impl ListFilter {
    /// Returns whether this is a list of changes, which includes cancelled reports and is ordered by change time.
    pub(super) fn is_of_changes(&self) -> bool {
        self.updated_from.is_some() || self.updated_to.is_some()
    }

    /// Returns whether `published_at` is bounded.
    fn is_ranged(&self) -> bool {
        self.published_from.is_some() || self.published_to.is_some()
    }
}

/// A report in the list, with personal data as stored.
#[derive(Debug, Clone)]
pub struct ListItem {
    /// The ID.
    pub id: Uuid,
    /// The report number.
    pub report_number: String,
    /// The organization's ID.
    pub organization_id: Uuid,
    /// The branch's ID.
    pub branch_id: Uuid,
    /// The status.
    pub status: Status,
    /// The name of the purchased package.
    pub package_name: StoredText,
    /// The overall score, 0 to 100.
    pub overall_score: i32,
    /// The price paid, two decimals.
    pub final_price: Decimal,
    /// When it was published.
    pub published_at: DateTime<Utc>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// The vehicle as registered.
    pub vehicle: Vehicle,
    /// The privacy mode of the organization.
    pub pii_mode: PiiMode,
    /// The time of the last change to the report, or to data that all reports of the organization show.
    pub updated_at: DateTime<Utc>,
}

/// A page of the list.
#[derive(Debug, Clone, Default)]
pub struct ListPage {
    /// The reports, in the order of the list.
    pub items: Vec<ListItem>,
    /// The position after which the next page begins, if there is one.
    pub next: Option<Position>,
}

/// The rows of a page with their positions in the list.
pub(super) type Page = Vec<(Position, ListItem)>;

/// Returns the page of at most `limit` reports after `after`.
///
/// The order is `created_at` and then ID, both descending. A list of changes is ordered by the reports' own change times and
/// then ID, both ascending. The caller has already restricted `grants` to the requested organization, if any. `limit` is 1
/// to 100.
///
/// # Errors
/// If a query fails.
pub async fn list(
    client: &Reader,
    grants: &Grants,
    filter: &ListFilter,
    after: Option<Position>,
    limit: i64,
) -> Result<ListPage, DbError> {
    if grants.is_empty() {
        return Ok(ListPage::default());
    }
    let rows = limit + 1;
    if filter.is_of_changes() || filter.report_number.is_some() || filter.vin.is_some() {
        return Ok(page(changes::page(client, grants, filter, after, rows).await?, limit));
    }
    let (before, before_id) = start(filter, after);
    let created_from = filter.created_from.map_or(EARLIEST, round_up);
    let published_from = filter.published_from.map(round_up);
    let published_to = filter.published_to.map(round_down);
    let (whole, branches) = (grants.whole(), grants.branches());
    let shapes = shapes(filter.status);
    if let Some(statement) = for_whole_organizations(shapes, grants, filter) {
        let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
            (&whole, Type::UUID_ARRAY),
            (&before, Type::TIMESTAMPTZ),
            (&before_id, Type::UUID),
            (&created_from, Type::TIMESTAMPTZ),
            (&rows, Type::INT8),
        ];
        let mut items = items(&client.query_typed(statement, &parameters).await?, false)?;
        items.sort_unstable_by_key(|(position, _)| Reverse((position.time, position.id)));
        return Ok(page(items, limit));
    }
    let created_in_range = created_in_range(filter)
        .filter(|from| *from < before)
        .map(|from| from.max(created_from));
    if let Some(read) = rows_by_organization(grants, filter, rows)
        && (created_in_range.is_some() || !filter.is_ranged())
    {
        let organizations = grants.organizations();
        let parameters: [(&(dyn ToSql + Sync), Type); 9] = [
            (&whole, Type::UUID_ARRAY),
            (&branches, Type::UUID_ARRAY),
            (&before, Type::TIMESTAMPTZ),
            (&before_id, Type::UUID),
            (created_in_range.as_ref().unwrap_or(&created_from), Type::TIMESTAMPTZ),
            (&published_from, Type::TIMESTAMPTZ),
            (&organizations, Type::UUID_ARRAY),
            (&rows, Type::INT8),
            (&read, Type::INT8),
        ];
        let found = client.query_typed(shapes.by_organization, &parameters).await?;
        if fills(&found, rows) {
            return Ok(page(items(&found, false)?, limit));
        }
    }
    let parameters = |created_from| {
        let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![
            (&whole, Type::UUID_ARRAY),
            (&branches, Type::UUID_ARRAY),
            (&before, Type::TIMESTAMPTZ),
            (&before_id, Type::UUID),
            (created_from, Type::TIMESTAMPTZ),
            (&published_from, Type::TIMESTAMPTZ),
            (&published_to, Type::TIMESTAMPTZ),
            (&rows, Type::INT8),
        ];
        parameters.extend(filter.branch_id.iter().map(|branch| (branch as _, Type::UUID)));
        parameters
    };
    let ordered = if filter.branch_id.is_some() {
        shapes.branch
    } else if exceed(grants, rows) {
        shapes.many
    } else {
        shapes.merge
    };
    if let Some(from) = &created_in_range {
        let found = client.query_typed(ordered, &parameters(from)).await?;
        if fills(&found, rows) {
            return Ok(page(items(&found, false)?, limit));
        }
    }
    let parameters = parameters(&created_from);
    if filter.is_ranged() {
        let sql = if filter.branch_id.is_some() {
            shapes.branch_window
        } else {
            shapes.window
        };
        if let Some(items) = window_items(&client.query_typed(sql, &parameters).await?)? {
            return Ok(page(items, limit));
        }
    }
    let rows = client.query_typed(ordered, &parameters).await?;
    Ok(page(items(&rows, false)?, limit))
}

fn fills(found: &[Row], rows: i64) -> bool {
    i64::try_from(found.len()).is_ok_and(|found| found == rows)
}

/// Returns how many of the newest rows of each organization are read before those of each branch, if the filter has no branch. These are
/// at most three for each branch, which costs less than finding the branch in an index.
fn rows_by_organization(grants: &Grants, filter: &ListFilter, rows: i64) -> Option<i64> {
    if filter.branch_id.is_some() {
        return None;
    }
    let organizations = i64::try_from(grants.organizations().len()).ok()?;
    let branches = i64::try_from(grants.branches().len()).ok()?;
    let read = rows * organizations.max(4);
    (read <= 3 * branches).then_some(read / organizations)
}

/// Returns the start of the range of `published_at` if reports that were created after it are likely to fill a page: the range has no
/// end and began more than a day ago. All other reports of the range come later in the list, so that such a page is complete, and
/// it is found in the order of the list without reading the range.
fn created_in_range(filter: &ListFilter) -> Option<DateTime<Utc>> {
    let from = filter.published_from.map(round_up)?;
    (filter.published_to.is_none() && from < Utc::now() - TimeDelta::days(1)).then_some(from)
}

/// Returns whether there are more granted organizations and branches than `rows` on the page.
pub(super) fn exceed(grants: &Grants, rows: i64) -> bool {
    i64::try_from(grants.len()).is_ok_and(|granted| granted > rows)
}

/// Returns the statement for a few organizations granted in full, if the filter has only a status and creation times.
fn for_whole_organizations(shapes: &Shapes, grants: &Grants, filter: &ListFilter) -> Option<&'static Statement> {
    let is_plain = grants.branches().is_empty() && filter.branch_id.is_none() && !filter.is_ranged();
    let index = grants.whole().len().checked_sub(1)?;
    shapes.whole.get(index).copied().filter(|_| is_plain)
}

fn shapes(status: Option<Status>) -> &'static Shapes {
    match status {
        None => &statements::DEFAULT,
        Some(Status::Published) => &statements::PUBLISHED,
        Some(Status::Archived) => &statements::ARCHIVED,
        Some(Status::Cancelled) => &statements::CANCELLED,
    }
}

/// Returns the start of the page: the cursor's row, or `created_to` if it comes later in the list.
pub(super) fn start(filter: &ListFilter, after: Option<Position>) -> (DateTime<Utc>, Uuid) {
    // The nil UUID sorts before all IDs of the next microsecond, so the page includes all reports of `created_to` itself.
    let end = filter
        .created_to
        .map_or(LATEST, |to| round_down(to) + TimeDelta::microseconds(1));
    let end = (end, Uuid::nil());
    after.map_or(end, |position| end.min((position.time, position.id)))
}

/// Rounds down to a microsecond, the resolution of stored times.
pub(super) fn round_down(time: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(time.timestamp_micros()).unwrap_or(time)
}

/// Rounds up to a microsecond.
pub(super) fn round_up(time: DateTime<Utc>) -> DateTime<Utc> {
    let floor = round_down(time);
    if floor < time {
        floor + TimeDelta::microseconds(1)
    } else {
        floor
    }
}

fn page(mut items: Page, limit: i64) -> ListPage {
    let limit = usize::try_from(limit).unwrap_or_default();
    let has_more = items.len() > limit;
    items.truncate(limit);
    ListPage {
        next: items.last().map(|(position, _)| *position).filter(|_| has_more),
        items: items.into_iter().map(|(_, item)| item).collect(),
    }
}

/// Reads the rows of a window statement; `None` if the range has too many reports to be read completely.
fn window_items(rows: &[Row]) -> Result<Option<Page>, DbError> {
    let mut items = Vec::with_capacity(rows.len());
    for row in rows {
        let in_range: i64 = row.try_get("in_range")?;
        if in_range > statements::MAX_WINDOW {
            return Ok(None);
        }
        // An empty page has one row of nulls.
        if row.try_get::<_, Option<Uuid>>(0)?.is_some() {
            items.push(item(row, false)?);
        }
    }
    Ok(Some(items))
}

/// Reads the rows of a statement. In a list of changes, each row has its own time after the columns of the page.
pub(super) fn items(rows: &[Row], is_by_change: bool) -> Result<Page, DbError> {
    rows.iter().map(|row| item(row, is_by_change)).collect()
}

fn item(row: &Row, is_by_change: bool) -> Result<(Position, ListItem), DbError> {
    let mut columns = Columns::of(row);
    let item = ListItem {
        id: columns.take()?,
        report_number: columns.take()?,
        organization_id: columns.take()?,
        branch_id: columns.take()?,
        status: columns.take()?,
        package_name: columns.text()?,
        overall_score: columns.take()?,
        final_price: columns.take()?,
        published_at: columns.take()?,
        created_at: columns.take()?,
        vehicle: columns.vehicle()?,
        pii_mode: columns.text()?,
        updated_at: columns.take()?,
    };
    let time = match is_by_change {
        true => columns.take()?,
        false => item.created_at,
    };
    Ok((Position { time, id: item.id }, item))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn bounds_with_nanoseconds_are_rounded_to_microseconds() {
        let fine = time("2026-06-01T00:00:00.000000500Z");
        assert_eq!(round_down(fine), time("2026-06-01T00:00:00Z"));
        assert_eq!(round_up(fine), time("2026-06-01T00:00:00.000001Z"));
        let whole = time("2026-06-01T00:00:00.000001Z");
        assert_eq!((round_down(whole), round_up(whole)), (whole, whole));
        let early = time("1965-01-01T00:00:00.000000500Z");
        assert_eq!(round_down(early), time("1965-01-01T00:00:00Z"));
    }

    #[test]
    fn the_page_begins_at_the_cursor_or_at_created_to_whichever_comes_later() {
        let to = ListFilter {
            created_to: Some(time("2026-06-01T00:00:00Z")),
            ..ListFilter::default()
        };
        let all = ListFilter::default();
        let at = |text: &str| Position {
            time: time(text),
            id: Uuid::from_u128(5),
        };
        assert_eq!(start(&all, None), (LATEST, Uuid::nil()));
        assert_eq!(start(&to, None), (time("2026-06-01T00:00:00.000001Z"), Uuid::nil()));
        let early = at("2026-05-01T00:00:00Z");
        assert_eq!(start(&to, Some(early)), (early.time, early.id));
        let late = at("2026-07-01T00:00:00Z");
        assert_eq!(start(&to, Some(late)), start(&to, None));
        assert_eq!(start(&all, Some(late)), (late.time, late.id));
    }
}
