//! Reading the log: one request, a list of them, and what comes next.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use chrono::{DateTime, Utc};
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::Reason;

/// How far behind the present [`follow`] stays, so that what replicas write in batches comes in its order. What a database out
/// of reach kept back for longer is in the list alone.
pub const FOLLOWS_BEHIND: Duration = Duration::from_secs(2);

/// A request, as it was kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// When its head had arrived.
    pub at: DateTime<Utc>,
    /// The id that its answer carried.
    pub request_id: Uuid,
    /// The method; `OTHER` for what is none of HTTP's.
    pub method: String,
    /// The template of its path; `/api/v1/partner/*` and `/*` for paths that fit none.
    pub route: String,
    /// The operation, where it reached for one.
    pub operation: Option<String>,
    /// The answer's status.
    pub status: i16,
    /// The error code, as the caller saw it.
    pub code: Option<String>,
    /// Why, in a word that the caller did not see ([`Reason`]).
    pub reason: Option<String>,
    /// What that word means; none for one that only another version knows.
    pub reason_about: Option<&'static str>,
    /// The key that it named: proved only where the signature was right.
    pub key_id: Option<String>,
    /// Whose key that is.
    pub partner_id: Option<Uuid>,
    /// The present name of that partner.
    pub partner: Option<String>,
    /// The client's address.
    pub address: IpAddr,
    /// What it said sent it, as far as that is kept.
    pub user_agent: Option<String>,
    /// From the head's arrival to the answer's beginning, in microseconds.
    pub took_us: i64,
    /// Bytes of its body that had arrived when it was answered.
    pub received_bytes: i64,
    /// Bytes of the answer's body, of a stream as announced; none where nobody knew.
    pub sent_bytes: Option<i64>,
}

/// Which requests; by default the newest of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Of keys of this partner.
    pub partner_id: Option<Uuid>,
    /// That named this key.
    pub key_id: Option<String>,
    /// Answered with a status in this range.
    pub status: Option<RangeInclusive<u16>>,
    /// Refused with this code.
    pub code: Option<String>,
    /// Refused for this reason, by its word.
    pub reason: Option<String>,
    /// Of this operation.
    pub operation: Option<String>,
    /// Arrived at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Arrived before this time.
    pub until: Option<DateTime<Utc>>,
    /// At most so many.
    pub limit: u32,
}

impl Default for Filter {
    fn default() -> Self {
        Filter {
            partner_id: None,
            key_id: None,
            status: None,
            code: None,
            reason: None,
            operation: None,
            since: None,
            until: None,
            limit: 50,
        }
    }
}

/// A place in the log, for [`follow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    at: DateTime<Utc>,
    request_id: Uuid,
}

impl Cursor {
    /// Before all that arrived at this time or later.
    pub fn before(at: DateTime<Utc>) -> Self {
        Cursor {
            at,
            request_id: Uuid::nil(),
        }
    }

    /// Behind an entry.
    pub fn after(entry: &Entry) -> Self {
        Cursor {
            at: entry.at,
            request_id: entry.request_id,
        }
    }
}

/// Entries that a replica could not keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// When it told, which is after the last of them.
    pub at: DateTime<Utc>,
    /// The replica, as the database sees it; none through a local socket.
    pub replica: Option<IpAddr>,
    /// How many.
    pub dropped: i64,
    /// `queue_full`, or `not_written`.
    pub why: String,
}

/// Rows of the log, and the order that they are told in, as [`Entry`] reads them.
macro_rules! entries {
    ($rows:expr, $order:literal) => {
        concat!(
            "\
SELECT l.arrived_at, l.request_id, l.method, l.route, l.operation, l.status, l.code, l.reason, l.key_id, l.partner_id,
    p.name AS partner, l.address, l.user_agent, l.duration_us, l.received_bytes, l.sent_bytes
FROM (",
            $rows,
            ") l LEFT JOIN partners p ON p.id = l.partner_id ",
            $order
        )
    };
}

/// The conditions of a [`Filter`] that no index is for: `$1` to `$7`.
macro_rules! filtered {
    () => {
        "arrived_at >= coalesce($1::timestamptz, '-infinity') AND arrived_at < coalesce($2::timestamptz, 'infinity')
    AND status BETWEEN $3::smallint AND $4::smallint
    AND ($5::text IS NULL OR code = $5) AND ($6::text IS NULL OR reason = $6) AND ($7::text IS NULL OR operation = $7)"
    };
}

statement! {
    /// One request. Of a row that was written twice, for the answer to its first writing was lost, one will do.
    FIND = entries!("SELECT * FROM request_log WHERE request_id = $1 LIMIT 1", "");

    /// The newest of all.
    LIST = entries!(
        concat!("SELECT * FROM request_log WHERE ", filtered!(), " ORDER BY arrived_at DESC, request_id DESC LIMIT $8::bigint"),
        "ORDER BY l.arrived_at DESC, l.request_id DESC"
    );

    /// The newest that named a key. It is written as a range, and comes first in the order, so that no index but the one by key has
    /// that order: with an equation the planner walks all of the log back in time, for a key that was seen long ago or never.
    LIST_OF_KEY = entries!(
        concat!("SELECT * FROM request_log WHERE key_id BETWEEN $9::text AND $9 AND ($10::uuid IS NULL OR partner_id = $10) AND ",
            filtered!(), " ORDER BY key_id DESC, arrived_at DESC, request_id DESC LIMIT $8::bigint"),
        "ORDER BY l.arrived_at DESC, l.request_id DESC"
    );

    /// The newest of a partner: of each of its keys, for that is what there is an index for.
    LIST_OF_PARTNER = entries!(
        concat!("SELECT of_key.* FROM api_keys k CROSS JOIN LATERAL (SELECT * FROM request_log
        WHERE key_id BETWEEN k.key_id AND k.key_id AND ", filtered!(), " ORDER BY key_id DESC, arrived_at DESC, request_id DESC
        LIMIT $8::bigint) of_key
    WHERE k.partner_id = $9::uuid ORDER BY of_key.arrived_at DESC, of_key.request_id DESC LIMIT $8::bigint"),
        "ORDER BY l.arrived_at DESC, l.request_id DESC"
    );

    /// The oldest behind a place that are settled.
    FOLLOW = entries!(
        concat!("SELECT * FROM request_log WHERE ", filtered!(), " AND arrived_at >= $9::timestamptz AND (arrived_at, request_id) > ($9, $10::uuid)
    AND arrived_at < now() - $11::float8 * interval '1 second' AND ($12::text IS NULL OR key_id = $12)
    AND ($13::uuid IS NULL OR key_id IN (SELECT key_id FROM api_keys k WHERE k.partner_id = $13))
    ORDER BY arrived_at, request_id LIMIT $8::bigint"),
        "ORDER BY l.arrived_at, l.request_id"
    );

    /// Drops, the newest first.
    DROPS = "SELECT reported_at, replica, dropped_count, reason FROM request_log_drops WHERE reported_at >= $1 ORDER BY reported_at DESC";
}

/// The request of this id; none where it was not kept, or is not any more.
///
/// # Errors
/// When the database does not answer.
pub async fn find(client: &Connection, request_id: Uuid) -> Result<Option<Entry>, DbError> {
    let row = client.query_opt(FIND, &[&request_id]).await?;
    row.as_ref().map(entry).transpose()
}

/// The newest requests that a filter lets through, the newest first.
///
/// # Errors
/// When the database does not answer in time: then a narrower time may help.
pub async fn list(client: &Connection, filter: &Filter) -> Result<Vec<Entry>, DbError> {
    let Filter { partner_id, key_id, .. } = filter;
    let bounds = Bounds::of(filter);
    let common = bounds.parameters(filter);
    let rows = match (key_id, partner_id) {
        (Some(_), _) => client.query(LIST_OF_KEY, &with(common, &[key_id, partner_id])).await?,
        (None, Some(_)) => client.query(LIST_OF_PARTNER, &with(common, &[partner_id])).await?,
        (None, None) => client.query(LIST, &common).await?,
    };
    rows.iter().map(entry).collect()
}

/// The requests that came after a place and that a filter lets through, the oldest first: what `tail` asks again and again,
/// each time with the place of the last one. It stays [`FOLLOWS_BEHIND`] the present.
///
/// # Errors
/// As [`list`].
pub async fn follow(client: &Connection, filter: &Filter, after: Cursor) -> Result<Vec<Entry>, DbError> {
    let bounds = Bounds::of(filter);
    let Cursor { at, request_id } = after;
    let behind = FOLLOWS_BEHIND.as_secs_f64();
    let own: [&(dyn ToSql + Sync); 5] = [&at, &request_id, &behind, &filter.key_id, &filter.partner_id];
    let rows = client.query(FOLLOW, &with(bounds.parameters(filter), &own)).await?;
    rows.iter().map(entry).collect()
}

/// What could not be kept, as told since a time, the newest first.
///
/// # Errors
/// When the database does not answer.
pub async fn drops(client: &Connection, since: DateTime<Utc>) -> Result<Vec<Drops>, DbError> {
    let rows = client.query(DROPS, &[&since]).await?;
    let read = |row: &Row| {
        Ok(Drops {
            at: row.try_get("reported_at")?,
            replica: row.try_get("replica")?,
            dropped: row.try_get("dropped_count")?,
            why: row.try_get("reason")?,
        })
    };
    rows.iter().map(read).collect()
}

/// Numbers of a filter as columns have them.
struct Bounds {
    least: i16,
    greatest: i16,
    limit: i64,
}

impl Bounds {
    fn of(filter: &Filter) -> Self {
        let (least, greatest) = filter.status.clone().unwrap_or(0..=u16::MAX).into_inner();
        let [least, greatest] = [least, greatest].map(|status| i16::try_from(status).unwrap_or(i16::MAX));
        Bounds {
            least,
            greatest,
            limit: filter.limit.into(),
        }
    }

    /// `$1` to `$8`.
    fn parameters<'p>(&'p self, filter: &'p Filter) -> [&'p (dyn ToSql + Sync); 8] {
        [
            &filter.since,
            &filter.until,
            &self.least,
            &self.greatest,
            &filter.code,
            &filter.reason,
            &filter.operation,
            &self.limit,
        ]
    }
}

/// Parameters that all have, and those that a statement has beside them.
fn with<'p>(common: [&'p (dyn ToSql + Sync); 8], own: &[&'p (dyn ToSql + Sync)]) -> Vec<&'p (dyn ToSql + Sync)> {
    [&common[..], own].concat()
}

fn entry(row: &Row) -> Result<Entry, DbError> {
    let reason: Option<String> = row.try_get("reason")?;
    Ok(Entry {
        at: row.try_get("arrived_at")?,
        request_id: row.try_get("request_id")?,
        method: row.try_get("method")?,
        route: row.try_get("route")?,
        operation: row.try_get("operation")?,
        status: row.try_get("status")?,
        code: row.try_get("code")?,
        reason_about: reason.as_deref().and_then(Reason::of_word).map(Reason::about),
        reason,
        key_id: row.try_get("key_id")?,
        partner_id: row.try_get("partner_id")?,
        partner: row.try_get("partner")?,
        address: row.try_get("address")?,
        user_agent: row.try_get("user_agent")?,
        took_us: row.try_get("duration_us")?,
        received_bytes: row.try_get("received_bytes")?,
        sent_bytes: row.try_get("sent_bytes")?,
    })
}
