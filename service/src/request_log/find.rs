//! Queries of the request log: one request, a list, and new requests. The file is long because its statements share their conditions.

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

/// The delay of [`follow`], so that entries come in order although replicas write them in batches. An entry that is written later
/// than that appears only in the list.
pub const FOLLOW_DELAY: Duration = Duration::from_secs(2);

/// A logged request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// When its head arrived.
    pub at: DateTime<Utc>,
    /// The request ID of its response.
    pub request_id: Uuid,
    /// The method; `OTHER` if it is not a standard HTTP method.
    pub method: String,
    /// The template of its path; `/api/v1/partner/*` or `/*` if no template matches.
    pub route: String,
    /// The operation, if the path has one.
    pub operation: Option<String>,
    /// The status of the response.
    pub status: i16,
    /// The error code of the response.
    pub code: Option<String>,
    /// The precise reason of the error, which the response does not contain ([`Reason`]).
    pub reason: Option<String>,
    /// The meaning of the reason; `None` for a reason of another version that this version does not have.
    pub reason_about: Option<&'static str>,
    /// The key ID that the request claimed. It is proved only if the signature was valid.
    pub key_id: Option<String>,
    /// The partner of that key.
    pub partner_id: Option<Uuid>,
    /// The current name of that partner.
    pub partner: Option<String>,
    /// The client's address.
    pub address: IpAddr,
    /// The client's user agent, redacted.
    pub user_agent: Option<String>,
    /// Microseconds from the arrival of the head to the start of the response.
    pub took_us: i64,
    /// Bytes of its body that had arrived before the response.
    pub received_bytes: i64,
    /// Bytes of the response's body, for a stream as announced; `None` if unknown.
    pub sent_bytes: Option<i64>,
}

/// Selects requests; by default the newest of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Only requests with keys of this partner.
    pub partner_id: Option<Uuid>,
    /// Only requests that claimed this key ID.
    pub key_id: Option<String>,
    /// Only responses with a status in this range.
    pub status: Option<RangeInclusive<u16>>,
    /// Only errors with this code.
    pub code: Option<String>,
    /// Only errors with this reason.
    pub reason: Option<String>,
    /// Only requests of this operation.
    pub operation: Option<String>,
    /// Only requests that arrived at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Only requests that arrived before this time.
    pub until: Option<DateTime<Utc>>,
    /// The maximum number of requests.
    pub limit: u32,
}

impl Filter {
    /// Returns whether it selects by something that `request_outcome` contains.
    fn has_outcome(&self) -> bool {
        self.status.is_some() || self.code.is_some() || self.reason.is_some() || self.operation.is_some()
    }
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

/// A position in the log, for [`follow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    at: DateTime<Utc>,
    request_id: Uuid,
}

impl Cursor {
    /// Returns the position before all requests that arrived at this time or later.
    pub fn before(at: DateTime<Utc>) -> Self {
        Cursor {
            at,
            request_id: Uuid::nil(),
        }
    }

    /// Returns the position after an entry.
    pub fn after(entry: &Entry) -> Self {
        Cursor {
            at: entry.at,
            request_id: entry.request_id,
        }
    }
}

/// A replica's report of dropped entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// When the replica reported them, which is after the last of them.
    pub at: DateTime<Utc>,
    /// The replica's address, as the database sees it; `None` for a local socket.
    pub replica: Option<IpAddr>,
    /// The number of entries.
    pub dropped: i64,
    /// The reason: `queue_full` or `not_written`.
    pub why: String,
}

/// Selects the columns of an [`Entry`] from rows of the log, in an order.
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

/// The conditions of a [`Filter`] without an index: `$1` to `$7`.
macro_rules! filtered {
    () => {
        "arrived_at >= coalesce($1::timestamptz, '-infinity') AND arrived_at < coalesce($2::timestamptz, 'infinity')
    AND status BETWEEN $3::smallint AND $4::smallint
    AND ($5::text IS NULL OR code = $5) AND ($6::text IS NULL OR reason = $6) AND ($7::text IS NULL OR operation = $7)"
    };
}

/// The columns that operators filter requests by, as in the index `request_log_by_outcome`.
macro_rules! outcome {
    () => {
        "request_outcome(operation, status, code, reason) COLLATE \"C\""
    };
}

/// The conditions of a [`Filter`] on an outcome: `$3` to `$7`.
macro_rules! of_outcome {
    () => {
        "split_part(outcome, ' ', 2)::smallint BETWEEN $3::smallint AND $4::smallint
          AND ($5::text IS NULL OR split_part(outcome, ' ', 3) = $5) AND ($6::text IS NULL OR split_part(outcome, ' ', 4) = $6)
          AND ($7::text IS NULL OR split_part(outcome, ' ', 1) = $7)"
    };
}

/// The newest requests of keys. The first part steps through the index from each outcome of a key to the next one, as
/// [`LIST_OF_OUTCOMES`] does. Rows are compared and ordered by the columns of the index `request_log_by_key`, so that the planner can
/// use no other one: a scan of the log back in time, or of all requests with an outcome, is slow for a key that was used long ago.
macro_rules! of_keys {
    ($keys:literal, $condition:literal) => {
        entries!(
            concat!(
                "SELECT of_outcome.* FROM (",
                $keys,
                ") k CROSS JOIN LATERAL (
        WITH RECURSIVE outcomes AS (
            (SELECT first.* FROM (
                SELECT key_id, ",
                outcome!(),
                " AS outcome FROM request_log
                WHERE key_id IS NOT NULL AND (key_id, ",
                outcome!(),
                ") >= (k.key_id, '')
                ORDER BY key_id, ",
                outcome!(),
                " LIMIT 1) first WHERE first.key_id = k.key_id)
            UNION ALL
            SELECT next.* FROM outcomes CROSS JOIN LATERAL (
                SELECT key_id, ",
                outcome!(),
                " AS outcome FROM request_log
                WHERE key_id IS NOT NULL AND (key_id, ",
                outcome!(),
                ") > (outcomes.key_id, outcomes.outcome)
                ORDER BY key_id, ",
                outcome!(),
                " LIMIT 1) next WHERE next.key_id = outcomes.key_id)
        SELECT * FROM outcomes WHERE ",
                of_outcome!(),
                ") o
    CROSS JOIN LATERAL (
        SELECT * FROM request_log
        WHERE key_id IS NOT NULL
          AND (key_id, ",
                outcome!(),
                ", arrived_at) >= (o.key_id, o.outcome, coalesce($1::timestamptz, '-infinity'))
          AND (key_id, ",
                outcome!(),
                ", arrived_at) < (o.key_id, o.outcome, coalesce($2::timestamptz, 'infinity'))
          ",
                $condition,
                "
        ORDER BY key_id DESC, ",
                outcome!(),
                " DESC, arrived_at DESC LIMIT $8::bigint) of_outcome
    ORDER BY of_outcome.arrived_at DESC, of_outcome.request_id DESC LIMIT $8::bigint"
            ),
            "ORDER BY l.arrived_at DESC, l.request_id DESC"
        )
    };
}

statement! {
    /// One request. If its row was written twice, because the outcome of the first attempt was lost, either row is correct.
    FIND = entries!("SELECT * FROM request_log WHERE request_id = $1 LIMIT 1", "");

    /// The newest requests.
    LIST = entries!(
        concat!("SELECT * FROM request_log WHERE ", filtered!(), " ORDER BY arrived_at DESC, request_id DESC LIMIT $8::bigint"),
        "ORDER BY l.arrived_at DESC, l.request_id DESC"
    );

    /// The newest requests with an outcome, such as a code. The first part steps through the index from each outcome of the log
    /// to the next one, so it reads as many entries as there are different outcomes. Rows are compared and ordered by the columns of
    /// the index `request_log_by_outcome`, so that the planner can use no other one: a scan of the log back in time reads every
    /// request if few of them match.
    LIST_OF_OUTCOMES = entries!(
        concat!("SELECT of_outcome.* FROM (
        WITH RECURSIVE outcomes AS (
            (SELECT ", outcome!(), " AS outcome FROM request_log ORDER BY 1 LIMIT 1)
            UNION ALL
            SELECT next.outcome FROM outcomes CROSS JOIN LATERAL (
                SELECT ", outcome!(), " AS outcome FROM request_log
                WHERE ", outcome!(), " > outcomes.outcome ORDER BY 1 LIMIT 1) next)
        SELECT outcome FROM outcomes WHERE ", of_outcome!(), ") o
    CROSS JOIN LATERAL (
        SELECT * FROM request_log
        WHERE (", outcome!(), ", arrived_at) >= (o.outcome, coalesce($1::timestamptz, '-infinity'))
          AND (", outcome!(), ", arrived_at) < (o.outcome, coalesce($2::timestamptz, 'infinity'))
        ORDER BY ", outcome!(), " DESC, arrived_at DESC LIMIT $8::bigint) of_outcome
    ORDER BY of_outcome.arrived_at DESC, of_outcome.request_id DESC LIMIT $8::bigint"),
        "ORDER BY l.arrived_at DESC, l.request_id DESC"
    );

    /// The newest requests of a key.
    LIST_OF_KEY = of_keys!("SELECT $9::text AS key_id", "AND ($10::uuid IS NULL OR partner_id = $10)");

    /// The newest requests of a partner, selected per key because the index is by key.
    LIST_OF_PARTNER = of_keys!("SELECT key_id FROM api_keys WHERE partner_id = $9::uuid", "");

    /// The oldest requests after a position, without those that are too recent.
    FOLLOW = entries!(
        concat!("SELECT * FROM request_log WHERE ", filtered!(), " AND arrived_at >= $9::timestamptz AND (arrived_at, request_id) > ($9, $10::uuid)
    AND arrived_at < now() - $11::float8 * interval '1 second' AND ($12::text IS NULL OR key_id = $12)
    AND ($13::uuid IS NULL OR key_id IN (SELECT key_id FROM api_keys k WHERE k.partner_id = $13))
    ORDER BY arrived_at, request_id LIMIT $8::bigint"),
        "ORDER BY l.arrived_at, l.request_id"
    );

    /// Reports of dropped entries, newest first.
    DROPS = "SELECT reported_at, replica, dropped_count, reason FROM request_log_drops WHERE reported_at >= $1 ORDER BY reported_at DESC";
}

/// Returns the request with this ID, if it is in the log.
///
/// # Errors
/// If the database does not respond.
pub async fn find(client: &Connection, request_id: Uuid) -> Result<Option<Entry>, DbError> {
    let row = client.query_opt(FIND, &[&request_id]).await?;
    row.as_ref().map(entry).transpose()
}

/// Returns the newest requests that match a filter, newest first.
///
/// # Errors
/// If the database does not respond in time; a shorter period may help.
pub async fn list(client: &Connection, filter: &Filter) -> Result<Vec<Entry>, DbError> {
    let Filter { partner_id, key_id, .. } = filter;
    let bounds = Bounds::of(filter);
    let common = bounds.parameters(filter);
    let rows = match (key_id, partner_id) {
        (Some(_), _) => client.query(LIST_OF_KEY, &with(common, &[key_id, partner_id])).await?,
        (None, Some(_)) => client.query(LIST_OF_PARTNER, &with(common, &[partner_id])).await?,
        (None, None) if filter.has_outcome() => client.query(LIST_OF_OUTCOMES, &common).await?,
        (None, None) => client.query(LIST, &common).await?,
    };
    rows.iter().map(entry).collect()
}

/// Returns the requests after a position that match a filter, oldest first. `tail` calls it repeatedly, each time with the position
/// of the last entry. Requests of the last [`FOLLOW_DELAY`] are left out.
///
/// # Errors
/// As for [`list`].
pub async fn follow(client: &Connection, filter: &Filter, after: Cursor) -> Result<Vec<Entry>, DbError> {
    let bounds = Bounds::of(filter);
    let Cursor { at, request_id } = after;
    let delay = FOLLOW_DELAY.as_secs_f64();
    let own: [&(dyn ToSql + Sync); 5] = [&at, &request_id, &delay, &filter.key_id, &filter.partner_id];
    let rows = client.query(FOLLOW, &with(bounds.parameters(filter), &own)).await?;
    rows.iter().map(entry).collect()
}

/// Returns the reports of dropped entries since a time, newest first.
///
/// # Errors
/// If the database does not respond.
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

/// The numbers of a filter in the types of their columns.
struct Bounds {
    min_status: i16,
    max_status: i16,
    limit: i64,
}

impl Bounds {
    fn of(filter: &Filter) -> Self {
        let (min_status, max_status) = filter.status.clone().unwrap_or(0..=u16::MAX).into_inner();
        let [min_status, max_status] = [min_status, max_status].map(|status| i16::try_from(status).unwrap_or(i16::MAX));
        Bounds {
            min_status,
            max_status,
            limit: filter.limit.into(),
        }
    }

    /// `$1` to `$8`.
    fn parameters<'p>(&'p self, filter: &'p Filter) -> [&'p (dyn ToSql + Sync); 8] {
        [
            &filter.since,
            &filter.until,
            &self.min_status,
            &self.max_status,
            &filter.code,
            &filter.reason,
            &filter.operation,
            &self.limit,
        ]
    }
}

/// Joins the common parameters and those of one statement.
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
        reason_about: reason.as_deref().and_then(Reason::from_text).map(Reason::about),
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
