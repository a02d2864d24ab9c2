//! What only the database knows: looked up now and then, over one connection and for a bounded time, and kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::Pool;

use crate::admission::nonces::{BUCKET, MARGIN, PARTITIONS};
use crate::db::DbError;
use crate::db::connection::Connection;
use crate::db::partitions::Partitioned;
use crate::replicas;
use crate::statement;

/// How often it is looked up.
const EVERY: Duration = Duration::from_secs(30);

/// How long that may take, the wait for the connection included.
const BOUND: Duration = Duration::from_secs(3);

statement! {
    /// Counts what waits, as far as a glance goes: a backlog of millions must not cost a scan of it every half minute.
    WAITING = "\
SELECT pending.count AS pending, coalesce(extract(epoch FROM now() - pending.oldest), 0)::float8 AS pending_oldest,
    due.count AS due, coalesce(extract(epoch FROM now() - due.oldest), 0)::float8 AS due_oldest,
    extract(epoch FROM now())::float8 AS now
FROM (SELECT count(*), min(received_at) AS oldest
      FROM (SELECT received_at FROM measurements WHERE status = 'PENDING' LIMIT 100000) looked_at) pending,
     (SELECT count(*), min(due_at) AS oldest
      FROM (SELECT due_at FROM report_renderings WHERE due_at <= now() LIMIT 10000) looked_at) due";

    /// The rows of used nonces by the statistics of their partitions: those of the planner are older than a partition gets.
    NONCE_ROWS = "\
SELECT coalesce(sum(pg_stat_get_live_tuples(inhrelid)), 0)::bigint AS nonces
FROM pg_inherits WHERE inhparent = 'used_nonces'::regclass";
}

/// What was looked up.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub pending: i64,
    pub pending_oldest: f64,
    pub nonce_rows: i64,
    pub partitions_ahead: Vec<(&'static str, i64)>,
    pub renderings_due: i64,
    pub renderings_oldest: f64,
    pub replicas: usize,
}

#[derive(Debug)]
struct State {
    /// When it was looked up last, or nobody had done so yet.
    at: Instant,
    sample: Option<Sample>,
    /// The end of the partitions of used nonces.
    nonces_end: Instant,
}

/// The latest sample.
#[derive(Debug)]
pub(super) struct Latest(Mutex<State>);

impl Latest {
    /// None yet. The partition of now and the next one are there: nothing starts without.
    pub fn new() -> Self {
        let now = Instant::now();
        Latest(Mutex::new(State {
            at: now,
            sample: None,
            nonces_end: now + BUCKET,
        }))
    }

    /// The sample, if there is one.
    pub fn get(&self) -> Option<Sample> {
        self.with(|state| state.sample.clone())
    }

    /// Its age.
    pub fn age(&self) -> Duration {
        self.with(|state| state.at.elapsed())
    }

    /// How long there will be a partition for every nonce.
    pub fn nonces_left(&self) -> Duration {
        self.with(|state| state.nonces_end.saturating_duration_since(Instant::now()))
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Looks for ever: at once, and then so often.
pub(super) async fn keep(latest: Arc<Latest>, pool: Pool, request_log: Option<Partitioned>) {
    let mut failing = false;
    loop {
        match look(&latest, &pool, request_log.as_ref()).await {
            Ok(()) => failing = false,
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "what the database knows for metrics cannot be looked up; its age grows");
                }
                failing = true;
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn look(latest: &Latest, pool: &Pool, request_log: Option<&Partitioned>) -> Result<(), DbError> {
    let at = Instant::now();
    let connection = Connection::take(pool, BOUND).await?;
    let waiting = connection.query_one(WAITING, &[]).await?;
    let nonces = connection.query_one(NONCE_ROWS, &[]).await?;
    let ahead = PARTITIONS.survey(&connection).await?.ahead;
    let mut partitions_ahead = vec![(PARTITIONS.table, ahead)];
    if let Some(request_log) = request_log {
        let survey = request_log.survey(&connection).await?;
        partitions_ahead.push((request_log.table, survey.ahead));
    }
    let sample = Sample {
        pending: waiting.try_get("pending")?,
        pending_oldest: waiting.try_get("pending_oldest")?,
        nonce_rows: nonces.try_get("nonces")?,
        partitions_ahead,
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

/// How long every nonce has a partition when so many are made ahead, at this moment of the database's clock in seconds since
/// 1970: at the end of a bucket, nonces are written into the next one, too.
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
