//! Batches: one statement admits all requests that arrived while the previous statement ran.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use futures::FutureExt;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use super::meter::Outcome;
use super::nonces::{BUCKET, Digest, LATER_BUCKETS, MARGIN};
use super::windows::{QueueSlot, Windows};
use super::{AdmissionError, Counted, Meter, WINDOW};

/// The maximum number of requests in one statement.
const MAX_BATCH: usize = 1_000;

/// The timeout of one attempt at a batch. Two attempts fit into the time that a request may wait
/// ([`DATABASE_WAIT`](partner_api_store::deadline::DATABASE_WAIT)).
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(800);

/// A window that began further in the future than this is restarted, because the database's clock must have been set back.
/// Smaller differences are normal: each transaction reads the clock when it begins.
const CLOCK_STEP: Duration = Duration::from_secs(5);

statement! {
    /// Admits the requests of a batch: inserts their nonces, then updates the windows of their keys.
    ///
    /// Rows are written in the order of their keys, so that two replicas cannot deadlock. `OFFSET` keeps the lookup in the
    /// previous bucket an index lookup per nonce; a join would scan the whole partition. If there are nonces in later buckets, the
    /// clock has stepped back, and the nonces are inserted up to the latest of these buckets, where a used one conflicts. If that
    /// bucket is too late, nothing is inserted, and the only row says that the clock is behind.
    ADMIT = "\
WITH sent AS (
    SELECT * FROM unnest($1::text[], $2::uuid[]) AS sent (key_id, digest)
), clock AS MATERIALIZED (
    SELECT bucket, greatest(floor((epoch + $4::float8) / $3::float8)::bigint, latest) AS last,
        coalesce(latest > bucket + $7::bigint, false) AS is_behind
    FROM (SELECT epoch, floor(epoch / $3::float8)::bigint AS bucket
          FROM CAST(extract(epoch FROM now()::timestamptz) AS float8) AS epoch) at
    LEFT JOIN LATERAL (SELECT later.bucket AS latest FROM used_nonces later WHERE later.bucket > at.bucket
                       ORDER BY later.bucket DESC LIMIT 1) later ON true
), fresh AS (
    INSERT INTO used_nonces (bucket, digest)
    SELECT bucket, digest
    FROM sent, generate_series((SELECT bucket FROM clock), (SELECT last FROM clock)) AS bucket
    WHERE NOT (SELECT is_behind FROM clock)
      AND NOT EXISTS (SELECT FROM used_nonces before
                      WHERE before.bucket = (SELECT bucket FROM clock) - 1 AND before.digest = sent.digest OFFSET 0)
    ORDER BY 1, 2
    ON CONFLICT DO NOTHING
    RETURNING digest
), admitted AS (
    SELECT sent.key_id, sent.digest
    FROM sent JOIN fresh USING (digest)
    GROUP BY sent.key_id, sent.digest
    HAVING count(*) = (SELECT last - bucket + 1 FROM clock)
), counted AS (
    SELECT key_id, count(*)::integer AS requests, array_agg(digest) AS digests FROM admitted GROUP BY key_id
), windows AS (
    INSERT INTO rate_windows AS old (key_id, started_at, used)
    SELECT key_id, now(), requests FROM counted ORDER BY key_id
    ON CONFLICT (key_id) DO UPDATE SET
        started_at = CASE WHEN old.started_at <= now() - $5::float8 * interval '1 second'
                            OR old.started_at > now() + $6::float8 * interval '1 second'
                          THEN now() ELSE old.started_at END,
        used = CASE WHEN old.started_at <= now() - $5::float8 * interval '1 second'
                      OR old.started_at > now() + $6::float8 * interval '1 second'
                    THEN excluded.used ELSE least(old.used, 1000000000) + excluded.used END
    RETURNING key_id, used, extract(epoch FROM started_at - now())::float8 + $5::float8 AS resets_in
)
SELECT key_id, used, resets_in, requests, digests, false AS is_behind FROM windows JOIN counted USING (key_id)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, true FROM clock WHERE is_behind";
}

/// A request that waits for a batch.
pub(super) struct WaitingRequest {
    pub(super) key_id: Arc<str>,
    pub(super) digest: Digest,
    /// `None` if the response was already sent.
    pub(super) reply: Option<oneshot::Sender<Result<Counted, AdmissionError>>>,
    pub(super) _slot: QueueSlot,
}

impl WaitingRequest {
    /// Returns whether the request ended while it waited. Such a request must not be admitted.
    fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    fn finish(self, outcome: Result<Counted, AdmissionError>) {
        if let Some(reply) = self.reply {
            // The request may have ended meanwhile.
            let _ = reply.send(outcome);
        }
    }
}

/// Sends batches until [`Admission`](super::Admission) is dropped.
pub(super) async fn run(pool: Pool, mut queue: mpsc::Receiver<WaitingRequest>, windows: Arc<Windows>, meter: Meter) {
    let mut requests = Vec::new();
    while queue.recv_many(&mut requests, MAX_BATCH).await > 0 {
        let mut batch = std::mem::take(&mut requests);
        batch.retain(|request| !request.is_abandoned());
        if batch.is_empty() {
            continue;
        }
        let (size, began) = (batch.len(), Instant::now());
        let work = async {
            match admit_batch(&pool, &batch).await {
                Ok(Batch::Admitted(keys)) => {
                    finish_batch(batch, keys, &windows, None);
                    Outcome::Succeeded
                }
                Ok(Batch::ClockIsBehind) => {
                    reject_batch(batch);
                    Outcome::ClockBehind
                }
                Err(error) => retry_in_halves(&pool, batch, error, &windows).await,
            }
        };
        // This task must survive a panic; otherwise no request would be admitted again.
        let outcome = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!("panicked while admitting a batch; its requests get a 503; see the panic logged above");
            Outcome::Failed
        });
        meter.record_batch(size, began.elapsed(), outcome);
    }
}

/// Rejects a batch because the database's clock is too far behind.
fn reject_batch(batch: Vec<WaitingRequest>) {
    tracing::error!(
        requests = batch.len(),
        "the database's clock is more than {} s behind its recorded nonces, so used nonces cannot be recognized; \
         nothing is admitted until the clock of the database's machine is correct",
        BUCKET.as_secs()
    );
    for request in batch {
        request.finish(Err(AdmissionError::ClockBehind));
    }
}

/// Retries each half of a failed batch once, so that one bad request does not fail all the others. The outcome is a success if
/// the database recorded any of them.
async fn retry_in_halves(pool: &Pool, mut batch: Vec<WaitingRequest>, error: DbError, windows: &Windows) -> Outcome {
    tracing::warn!(%error, requests = batch.len(), "failed to admit a batch; retrying in halves");
    let second = batch.split_off(batch.len() / 2);
    let first_error = Arc::new(error);
    let half = async |mut half: Vec<WaitingRequest>| {
        half.retain(|request| !request.is_abandoned());
        if half.is_empty() {
            return Outcome::Failed;
        }
        match admit_batch(pool, &half).await {
            Ok(Batch::Admitted(keys)) => {
                finish_batch(half, keys, windows, Some(&first_error));
                Outcome::Succeeded
            }
            Ok(Batch::ClockIsBehind) => {
                reject_batch(half);
                Outcome::ClockBehind
            }
            Err(error) => {
                tracing::warn!(%error, requests = half.len(), "failed to admit requests");
                let error = Arc::new(error);
                for request in half {
                    request.finish(Err(AdmissionError::Db(error.clone())));
                }
                Outcome::Failed
            }
        }
    };
    let (first, second) = futures::join!(half(batch), half(second));
    first.max(second)
}

/// The response of the database to a batch.
enum Batch {
    /// The admitted requests, by key.
    Admitted(HashMap<String, KeyInBatch>),
    /// The database's clock is too far behind; see [`LATER_BUCKETS`].
    ClockIsBehind,
}

/// The admitted requests of one key in a batch.
struct KeyInBatch {
    /// The number of positions in the window that are already assigned.
    assigned: u32,
    window: Counted,
    digests: HashSet<Digest>,
    /// The end of the window, never later than by the database's clock.
    ends_at: Instant,
}

async fn admit_batch(pool: &Pool, requests: &[WaitingRequest]) -> Result<Batch, DbError> {
    let sent_at = Instant::now();
    let keys: Vec<&str> = requests.iter().map(|request| &*request.key_id).collect();
    let digests: Vec<Uuid> = requests.iter().map(|request| request.digest.into()).collect();
    let client = Connection::take(pool, ATTEMPT_TIMEOUT).await?;
    let [bucket, margin, window, step] = [BUCKET, MARGIN, WINDOW, CLOCK_STEP].map(|duration| duration.as_secs_f64());
    let rows = client
        .query(
            ADMIT,
            &[&keys, &digests, &bucket, &margin, &window, &step, &LATER_BUCKETS],
        )
        .await?;
    let mut admitted = HashMap::with_capacity(rows.len());
    for row in rows {
        if row.try_get("is_behind")? {
            return Ok(Batch::ClockIsBehind);
        }
        let used: i32 = row.try_get("used")?;
        let requests: i32 = row.try_get("requests")?;
        let resets_in = Duration::try_from_secs_f64(row.try_get("resets_in")?).unwrap_or_default();
        let digests: Vec<Uuid> = row.try_get("digests")?;
        let key = KeyInBatch {
            assigned: u32::try_from(used - requests).unwrap_or(0),
            window: Counted {
                position: u32::try_from(used).unwrap_or(u32::MAX),
                resets_in,
            },
            digests: digests.into_iter().map(Digest::from).collect(),
            ends_at: sent_at + resets_in,
        };
        admitted.insert(row.try_get("key_id")?, key);
    }
    Ok(Batch::Admitted(admitted))
}

/// Sends each request its number in the window, in the order of arrival.
///
/// If the outcome of an earlier attempt is unknown, that attempt may have consumed the nonce. A request whose nonce was used
/// then gets the earlier error and is not treated as a replay.
fn finish_batch(
    requests: Vec<WaitingRequest>,
    mut keys: HashMap<String, KeyInBatch>,
    windows: &Windows,
    earlier: Option<&Arc<DbError>>,
) {
    for (key_id, key) in &keys {
        windows.update(key_id, key.window.position, key.ends_at);
    }
    for request in requests {
        let admitted = keys
            .get_mut(&*request.key_id)
            .filter(|key| key.digests.contains(&request.digest));
        let outcome = match (admitted, earlier) {
            (Some(key), _) => {
                key.assigned += 1;
                Ok(Counted {
                    position: key.assigned,
                    resets_in: key.window.resets_in,
                })
            }
            (None, Some(error)) if error.outcome_is_unknown() => Err(AdmissionError::Db(error.clone())),
            (None, _) => Err(AdmissionError::Replayed),
        };
        request.finish(outcome);
    }
}

#[cfg(test)]
mod tests {
    use partner_api_store::pool::{PoolSettings, parse_url, pool};
    use tokio::net::TcpListener;

    use super::super::nonces::NonceMemory;
    use super::super::windows::Enqueue;
    use super::super::{Admission, KEY_QUOTA, QUEUE};
    use super::*;

    #[tokio::test]
    async fn an_abandoned_request_is_not_admitted() {
        let database = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgresql://u@{}/d", database.local_addr().unwrap());
        let pool = pool(parse_url(&url).unwrap(), &PoolSettings::default()).unwrap();
        let windows = Arc::<Windows>::default();
        let key_id: Arc<str> = "a".into();
        let Enqueue::Queued(slot) = windows.enqueue(&key_id, 1, KEY_QUOTA) else {
            panic!("the quota is not used up")
        };
        let (reply, outcome) = oneshot::channel();
        let (queue, waiting) = mpsc::channel(1);
        let abandoned = WaitingRequest {
            digest: Digest::of(&key_id, "gone"),
            key_id,
            reply: Some(reply),
            _slot: slot,
        };
        assert!(queue.try_send(abandoned).is_ok());
        drop((outcome, queue));
        run(pool, waiting, windows, Meter::default()).await;
        assert!(database.accept().now_or_never().is_none(), "the database was queried");
    }

    #[test]
    fn admission_counts_the_requests_that_wait_for_a_batch() {
        let windows = Arc::<Windows>::default();
        let (queue, _waiting) = mpsc::channel(QUEUE);
        let admission = Admission {
            memory: NonceMemory::default(),
            windows: windows.clone(),
            queue,
        };
        assert_eq!(admission.waiting(), 0);
        let key_id: Arc<str> = "a".into();
        let request = WaitingRequest {
            digest: Digest::of(&key_id, "waits"),
            reply: None,
            _slot: windows.slot(&key_id, KEY_QUOTA).unwrap(),
            key_id,
        };
        assert!(admission.queue.try_send(request).is_ok());
        assert_eq!(admission.waiting(), 1);
    }

    #[test]
    fn a_used_nonce_is_no_replay_if_an_earlier_attempt_may_have_consumed_it() {
        let unexpected = DbError::Data {
            table: "used_nonces",
            detail: String::new(),
        };
        for (earlier, is_replay) in [(DbError::TimedOut, false), (unexpected, true)] {
            let windows = Windows::default();
            let key_id: Arc<str> = "a".into();
            let Enqueue::Queued(slot) = windows.enqueue(&key_id, 1, KEY_QUOTA) else {
                panic!("the quota is not used up")
            };
            let (reply, mut outcome) = oneshot::channel();
            let request = WaitingRequest {
                digest: Digest::of(&key_id, "used"),
                key_id,
                reply: Some(reply),
                _slot: slot,
            };
            finish_batch(vec![request], HashMap::new(), &windows, Some(&Arc::new(earlier)));
            let error = outcome.try_recv().unwrap().unwrap_err();
            assert_eq!(matches!(error, AdmissionError::Replayed), is_replay, "{error}");
        }
    }
}
