//! The list of reports: its filters, its pages, and the mapping of rows.

use chrono::{DateTime, TimeDelta, Utc};
use partner_api_domain::{cursor::Position, grants::Grants, personal::StoredText, privacy::PiiMode};
use rust_decimal::Decimal;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{
    changes, newest_first,
    row::{Columns, Status, Vehicle},
};
use crate::{DbError, standby::Reader};

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
    pub(super) fn is_ranged(&self) -> bool {
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
    let items = if filter.is_of_changes() || filter.report_number.is_some() || filter.vin.is_some() {
        changes::page(client, grants, filter, after, rows).await?
    } else {
        newest_first::page(client, grants, filter, after, rows).await?
    };
    Ok(page(items, limit))
}

/// The rows of a page that a statement has found, which may be only some of them.
pub(super) struct Part {
    /// The rows.
    pub(super) items: Page,
    /// Whether no other row belongs on the page.
    pub(super) is_complete: bool,
}

impl Part {
    /// Returns the page of at most `rows` rows, unless rows of it are missing.
    pub(super) fn into_page(self, rows: i64) -> Option<Page> {
        (self.is_complete || is_full(&self.items, rows)).then_some(self.items)
    }
}

/// Returns whether a page has all of its `rows`.
pub(super) fn is_full(items: &Page, rows: i64) -> bool {
    i64::try_from(items.len()).is_ok_and(|count| count == rows)
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

/// Reads the rows of a statement with `is_complete`.
pub(super) fn part(rows: &[Row], is_by_change: bool) -> Result<Part, DbError> {
    let mut part = Part {
        items: Vec::with_capacity(rows.len()),
        is_complete: false,
    };
    for row in rows {
        part.is_complete = row.try_get("is_complete")?;
        // An empty page has one row of nulls.
        if row.try_get::<_, Option<Uuid>>(0)?.is_some() {
            part.items.push(item(row, is_by_change)?);
        }
    }
    Ok(part)
}

/// Reads the rows of a statement. In a list of changes, each row has its own time after the columns of the page.
pub(super) fn items(rows: &[Row], is_by_change: bool) -> Result<Page, DbError> {
    rows.iter().map(|row| item(row, is_by_change)).collect()
}

/// The columns of the page, in the order in which `item` reads them. `updated_at` is the later of the report's own time and
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
