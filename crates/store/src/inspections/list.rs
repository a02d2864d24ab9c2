//! The list: which statement answers a request, and what its rows mean.

use std::cmp::Reverse;

use chrono::{DateTime, TimeDelta, Utc};
use partner_api_domain::{cursor::Position, grants::Grants, privacy::PiiMode};
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

/// What a list is narrowed to. Bounds of times are inclusive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Reports of this branch.
    pub branch_id: Option<Uuid>,
    /// Reports in this status; without it published and archived ones, and among changes cancelled ones.
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
    /// The report of this number.
    pub report_number: Option<String>,
    /// Reports of the vehicle of this number, where the organisation's mode shows it.
    pub vin: Option<String>,
}

impl ListFilter {
    /// Whether the list is one of changes: cancelled reports too, in the order of their changes.
    pub(super) fn is_of_changes(&self) -> bool {
        self.updated_from.is_some() || self.updated_to.is_some()
    }

    /// Whether there is a range of `published_at`.
    fn is_ranged(&self) -> bool {
        self.published_from.is_some() || self.published_to.is_some()
    }
}

/// A report in the list, with its personal data as stored.
#[derive(Debug, Clone)]
pub struct ListItem {
    /// Its id.
    pub id: Uuid,
    /// Its number.
    pub report_number: String,
    /// Its organisation.
    pub organization_id: Uuid,
    /// Its branch.
    pub branch_id: Uuid,
    /// Its status.
    pub status: Status,
    /// The name of the package that was bought.
    pub package_name: String,
    /// The overall score, 0 to 100.
    pub overall_score: i32,
    /// The price paid, two decimals.
    pub final_price: Decimal,
    /// When it was published.
    pub published_at: DateTime<Utc>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// Its vehicle as registered.
    pub vehicle: Vehicle,
    /// How its organisation shows personal data.
    pub pii_mode: PiiMode,
    /// When something of it, or of what all reports of its organisation show, last changed.
    pub updated_at: DateTime<Utc>,
}

/// A page of the list.
#[derive(Debug, Clone, Default)]
pub struct ListPage {
    /// The reports, in the list's order.
    pub items: Vec<ListItem>,
    /// Where the next page begins, if there is one.
    pub next: Option<Position>,
}

/// The rows of a page, each with its place in the list's order.
pub(super) type Page = Vec<(Position, ListItem)>;

/// The page of at most `limit` reports after `after`, by `created_at` and then id, both descending; or of a list of changes by
/// the reports' own changes and then id, both ascending.
///
/// `grants` are already narrowed to the organisation if one was asked for. `limit` is 1 to 100.
///
/// # Errors
/// [`DbError`] when a query fails.
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
        return Ok(page(changes::found(client, grants, filter, after, rows).await?, limit));
    }
    let (before, before_id) = start(filter, after);
    let created_from = filter.created_from.map_or(EARLIEST, ceiling);
    let published_from = filter.published_from.map(ceiling);
    let published_to = filter.published_to.map(floor);
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
    let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![
        (&whole, Type::UUID_ARRAY),
        (&branches, Type::UUID_ARRAY),
        (&before, Type::TIMESTAMPTZ),
        (&before_id, Type::UUID),
        (&created_from, Type::TIMESTAMPTZ),
        (&published_from, Type::TIMESTAMPTZ),
        (&published_to, Type::TIMESTAMPTZ),
        (&rows, Type::INT8),
    ];
    if let Some(branch) = &filter.branch_id {
        parameters.push((branch, Type::UUID));
    }
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
    let sql = if filter.branch_id.is_some() {
        shapes.branch
    } else if i64::try_from(grants.len()).is_ok_and(|granted| granted > rows) {
        // Not everything that is granted can have a row on the page.
        shapes.many
    } else {
        shapes.merge
    };
    let rows = client.query_typed(sql, &parameters).await?;
    Ok(page(items(&rows, false)?, limit))
}

/// The statement for few organisations granted whole, where nothing but a status and times of creation is asked for.
fn for_whole_organizations(shapes: &Shapes, grants: &Grants, filter: &ListFilter) -> Option<&'static Statement> {
    let is_plain = grants.branches().is_empty() && filter.branch_id.is_none() && !filter.is_ranged();
    let place = grants.whole().len().checked_sub(1)?;
    shapes.whole.get(place).copied().filter(|_| is_plain)
}

fn shapes(status: Option<Status>) -> &'static Shapes {
    match status {
        None => &statements::DEFAULT,
        Some(Status::Published) => &statements::PUBLISHED,
        Some(Status::Archived) => &statements::ARCHIVED,
        Some(Status::Cancelled) => &statements::CANCELLED,
    }
}

/// Where the page begins: at the cursor's row, or at the filter's end if that comes later in the list.
pub(super) fn start(filter: &ListFilter, after: Option<Position>) -> (DateTime<Utc>, Uuid) {
    // Below every id of the next microsecond: all of `created_to` itself is on the page.
    let end = filter
        .created_to
        .map_or(LATEST, |to| floor(to) + TimeDelta::microseconds(1));
    let end = (end, Uuid::nil());
    after.map_or(end, |position| end.min((position.time, position.id)))
}

/// The last microsecond that is not after `time`: stored times have no finer part.
pub(super) fn floor(time: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(time.timestamp_micros()).unwrap_or(time)
}

/// The first microsecond that is not before `time`.
pub(super) fn ceiling(time: DateTime<Utc>) -> DateTime<Utc> {
    let floor = floor(time);
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

/// The rows of a window statement; `None` when the range holds too many reports to be read whole.
fn window_items(rows: &[Row]) -> Result<Option<Page>, DbError> {
    let mut items = Vec::with_capacity(rows.len());
    for row in rows {
        let in_range: i64 = row.try_get("in_range")?;
        if in_range > statements::WINDOW {
            return Ok(None);
        }
        // The one row of an empty page.
        if row.try_get::<_, Option<Uuid>>(0)?.is_some() {
            items.push(item(row, false)?);
        }
    }
    Ok(Some(items))
}

/// The rows of a statement; of one of changes, each has its own time behind the page's columns.
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
        package_name: columns.take()?,
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
    fn bounds_finer_than_a_microsecond_take_in_what_is_stored_between_them() {
        let fine = time("2026-06-01T00:00:00.000000500Z");
        assert_eq!(floor(fine), time("2026-06-01T00:00:00Z"));
        assert_eq!(ceiling(fine), time("2026-06-01T00:00:00.000001Z"));
        let whole = time("2026-06-01T00:00:00.000001Z");
        assert_eq!((floor(whole), ceiling(whole)), (whole, whole));
        let early = time("1965-01-01T00:00:00.000000500Z");
        assert_eq!(floor(early), time("1965-01-01T00:00:00Z"));
    }

    #[test]
    fn the_page_begins_at_whatever_comes_later_in_the_list() {
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
