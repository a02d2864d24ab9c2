//! Metrics that need a query: sampled periodically, over one connection and with a timeout.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use deadpool_postgres::Pool;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::partitions::Partitioned;
use partner_api_store::statement;

use crate::admission::nonces::{BUCKET, MARGIN, PARTITIONS};
use crate::replicas;

/// The sampling interval.
const INTERVAL: Duration = Duration::from_secs(30);

/// The timeout of a sample, including the wait for a connection.
const TIMEOUT: Duration = Duration::from_secs(3);

statement! {
    CLOCK = "SELECT clock_timestamp() AS now";

    /// Counts pending work up to a limit, so that a backlog of millions does not cause a full scan at every sample.
    WAITING = "\
SELECT pending.count AS pending, coalesce(extract(epoch FROM now() - pending.oldest), 0)::float8 AS pending_oldest,
    due.count AS due, coalesce(extract(epoch FROM now() - due.oldest), 0)::float8 AS due_oldest,
    extract(epoch FROM now())::float8 AS now
FROM (SELECT count(*), min(received_at) AS oldest
      FROM (SELECT received_at FROM measurements WHERE status = 'PENDING' LIMIT 100000) sampled) pending,
     (SELECT count(*), min(due_at) AS oldest
      FROM (SELECT due_at FROM report_renderings WHERE due_at <= now() LIMIT 10000) sampled) due";

    /// The enabled partners with an active key that sent requests in the last two weeks, but none in the last two days.
    SILENT = "\
SELECT count(*) AS silent FROM (
    SELECT FROM api_keys k JOIN partners p ON p.id = k.partner_id AND p.is_enabled JOIN rate_windows w ON w.key_id = k.key_id
    GROUP BY k.partner_id
    HAVING max(w.started_at) BETWEEN now() - interval '14 days' AND now() - interval '2 days'
       AND bool_or(k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()))) partners";

    /// The seconds since a backup was last verified; infinity if none was.
    VERIFIED = "SELECT coalesce(extract(epoch FROM now() - verified_at)::float8, 'infinity') AS age FROM last_verified_backup";

    /// Counts used nonces from the cumulative statistics, because the planner's estimates still include dropped partitions.
    NONCE_ROWS = "\
SELECT coalesce(sum(pg_stat_get_live_tuples(inhrelid)), 0)::bigint AS nonces
FROM pg_inherits WHERE inhparent = 'used_nonces'::regclass";
}

/// A sample.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub pending: i64,
    pub pending_oldest: f64,
    pub nonce_rows: i64,
    pub partitions_ahead: Vec<(&'static str, i64)>,
    /// The number of partitions past their retention.
    pub partitions_expired: Vec<(&'static str, usize)>,
    /// The seconds by which the database's clock is ahead of this machine's.
    pub database_clock_ahead: f64,
    pub partners_silent: i64,
    /// The seconds since a backup was last verified.
    pub backup_verified_age: f64,
    pub renderings_due: i64,
    pub renderings_oldest: f64,
    pub replicas: usize,
}

#[derive(Debug)]
struct State {
    /// The time of the last sample, or of the start.
    at: Instant,
    sample: Option<Sample>,
    /// When the last partition of used nonces ends.
    nonces_end: Instant,
}

/// The latest sample.
#[derive(Debug)]
pub(super) struct Latest(Mutex<State>);

impl Latest {
    /// Starts without a sample. The current and the next partition exist, because startup creates them.
    pub fn new() -> Self {
        let now = Instant::now();
        Latest(Mutex::new(State {
            at: now,
            sample: None,
            nonces_end: now + BUCKET,
        }))
    }

    /// Returns the sample, if there is one.
    pub fn get(&self) -> Option<Sample> {
        self.with(|state| state.sample.clone())
    }

    /// Returns its age.
    pub fn age(&self) -> Duration {
        self.with(|state| state.at.elapsed())
    }

    /// Returns the time for which every nonce has a partition.
    pub fn nonces_left(&self) -> Duration {
        self.with(|state| state.nonces_end.saturating_duration_since(Instant::now()))
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Samples forever, starting now.
pub(super) async fn sample_forever(latest: Arc<Latest>, pool: Pool, request_log: Option<Partitioned>) {
    let mut failing = false;
    loop {
        match sample(&latest, &pool, request_log.as_ref()).await {
            Ok(()) => failing = false,
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "failed to sample the database for metrics");
                }
                failing = true;
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn sample(latest: &Latest, pool: &Pool, request_log: Option<&Partitioned>) -> Result<(), DbError> {
    let at = Instant::now();
    let connection = Connection::take(pool, TIMEOUT).await?;
    let before = Utc::now();
    let row = connection.query_one(CLOCK, &[]).await?;
    let database_clock_ahead = clock_ahead(before, row.try_get("now")?, Utc::now());
    let waiting = connection.query_one(WAITING, &[]).await?;
    let silent = connection.query_one(SILENT, &[]).await?;
    let verified = connection.query_one(VERIFIED, &[]).await?;
    let nonces = connection.query_one(NONCE_ROWS, &[]).await?;
    let state = PARTITIONS.state(&connection).await?;
    let ahead = state.ahead;
    let mut partitions_ahead = vec![(PARTITIONS.table, ahead)];
    let mut partitions_expired = vec![(PARTITIONS.table, state.expired.len())];
    if let Some(request_log) = request_log {
        let state = request_log.state(&connection).await?;
        partitions_ahead.push((request_log.table, state.ahead));
        partitions_expired.push((request_log.table, state.expired.len()));
    }
    let sample = Sample {
        pending: waiting.try_get("pending")?,
        pending_oldest: waiting.try_get("pending_oldest")?,
        nonce_rows: nonces.try_get("nonces")?,
        partitions_ahead,
        partitions_expired,
        database_clock_ahead,
        partners_silent: silent.try_get("silent")?,
        backup_verified_age: verified.try_get("age")?,
        renderings_due: waiting.try_get("due")?,
        renderings_oldest: waiting.try_get("due_oldest")?,
        replicas: replicas::list(&connection).await?.len(),
    };
    let left = nonces_left(ahead, waiting.try_get("now")?);
    latest.with(|state| {
        *state = State {
            at,
            sample: Some(sample),
            nonces_end: at + left,
        };
    });
    Ok(())
}

/// Returns the seconds by which the database's clock is ahead, given this machine's time before and after it was read.
fn clock_ahead(before: DateTime<Utc>, database: DateTime<Utc>, after: DateTime<Utc>) -> f64 {
    let here = before + (after - before) / 2;
    (database - here).as_seconds_f64()
}

/// Returns the time for which every nonce has a partition, given the number of partitions created in advance and the database's
/// clock in seconds since 1970. At the end of a bucket, nonces are also written into the next one.
fn nonces_left(ahead: i64, now: f64) -> Duration {
    let bucket = BUCKET.as_secs_f64();
    let rest = bucket - now.rem_euclid(bucket);
    let left = rest + bucket * ahead as f64 - MARGIN.as_secs_f64();
    Duration::try_from_secs_f64(left.max(0.0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_databases_clock_is_compared_with_the_middle_of_the_round_trip() {
        let at = |millis: i64| DateTime::from_timestamp_millis(1_700_000_000_000 + millis).unwrap();
        assert_eq!(clock_ahead(at(0), at(2_100), at(200)), 2.0);
        assert_eq!(clock_ahead(at(0), at(-900), at(200)), -1.0);
    }

    #[test]
    fn nonces_have_their_partitions_until_the_margin_of_the_last_one() {
        let began = 900.0 * 2_000_000.0;
        for (ahead, now, left) in [
            (6, began, 6 * 900 + 870),
            (0, began + 100.0, 770),
            (0, began + 880.0, 0),
            (1, began + 880.0, 890),
            (-1, began, 0),
        ] {
            assert_eq!(nonces_left(ahead, now), Duration::from_secs(left), "{ahead} {now}");
        }
    }
}
