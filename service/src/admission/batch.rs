//! Batches: one statement for every request that arrived while the previous one ran.

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

use super::nonces::{BUCKET, Digest, MARGIN};
use super::windows::{QueuePlace, Windows};
use super::{AdmissionError, Counted, Meter, WINDOW};

/// The most requests in one statement.
const LARGEST_BATCH: usize = 1_000;

/// How long one attempt at a batch may take: two of them, one after the other, fit into what a request may wait
/// ([`DATABASE_WAIT`](partner_api_store::deadline::DATABASE_WAIT)).
const ATTEMPT: Duration = Duration::from_millis(800);

/// A window that began further ahead of the database's clock than this is the work of a clock that stepped, and begins
/// anew. Less is the way of transactions, each of which reads the clock when it begins.
const CLOCK_STEP: Duration = Duration::from_secs(5);

statement! {
    /// Admits the requests of a batch: the nonces, then the windows of their keys.
    ///
    /// Rows are written in the order of their key, so that two replicas cannot wait for each other. The look into the
    /// bucket before must stay one by index for each nonce (`OFFSET`): joined, it would be a scan of the whole partition.
    ADMIT = "\
WITH sent AS (
    SELECT * FROM unnest($1::text[], $2::uuid[]) AS sent (key_id, digest)
), clock AS MATERIALIZED (
    SELECT floor(epoch / $3::float8)::bigint AS bucket, floor((epoch + $4::float8) / $3::float8)::bigint AS last
    FROM extract(epoch FROM now()::timestamptz) AS at (exact), CAST(at.exact AS float8) AS epoch
), fresh AS (
    INSERT INTO used_nonces (bucket, digest)
    SELECT bucket, digest
    FROM sent, generate_series((SELECT bucket FROM clock), (SELECT last FROM clock)) AS bucket
    WHERE NOT EXISTS (SELECT FROM used_nonces before
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
SELECT key_id, used, resets_in, requests, digests FROM windows JOIN counted USING (key_id)";
}

/// A request on its way into a batch.
pub(super) struct WaitingRequest {
    pub(super) key_id: Arc<str>,
    pub(super) digest: Digest,
    /// `None`: nobody waits for the outcome.
    pub(super) answer: Option<oneshot::Sender<Result<Counted, AdmissionError>>>,
    pub(super) _place: QueuePlace,
}

impl WaitingRequest {
    /// Whether the one that waited has gone: what nobody waits for any more must not be admitted.
    fn is_abandoned(&self) -> bool {
        self.answer.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    fn reply(self, outcome: Result<Counted, AdmissionError>) {
        if let Some(answer) = self.answer {
            // Who no longer waits needs no answer.
            let _ = answer.send(outcome);
        }
    }
}

/// Sends batch after batch until the last [`Admission`] is gone.
pub(super) async fn run(pool: Pool, mut queue: mpsc::Receiver<WaitingRequest>, windows: Arc<Windows>, meter: Meter) {
    let mut requests = Vec::new();
    while queue.recv_many(&mut requests, LARGEST_BATCH).await > 0 {
        let mut batch = std::mem::take(&mut requests);
        batch.retain(|request| !request.is_abandoned());
        if batch.is_empty() {
            continue;
        }
        let (size, began) = (batch.len(), Instant::now());
        let work = async {
            match admit_batch(&pool, &batch).await {
                Ok(keys) => {
                    answer(batch, keys, &windows, None);
                    true
                }
                Err(error) => try_in_halves(&pool, batch, error, &windows).await,
            }
        };
        // Without this task nobody would ever be admitted again.
        let any = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(
                "admitting a batch panicked; its callers are answered 503, and the panic is in the log before this line"
            );
            false
        });
        meter.batch(size, began.elapsed(), any);
    }
}

/// A batch that failed, once more: what keeps one request from being admitted must not keep all of them out. Returns whether
/// the database took any of it.
async fn try_in_halves(pool: &Pool, mut batch: Vec<WaitingRequest>, error: DbError, windows: &Windows) -> bool {
    tracing::warn!(%error, requests = batch.len(), "a batch could not be admitted; it is tried once more, in halves");
    let second = batch.split_off(batch.len() / 2);
    let before = Arc::new(error);
    let half = async |mut half: Vec<WaitingRequest>| {
        half.retain(|request| !request.is_abandoned());
        if half.is_empty() {
            return false;
        }
        match admit_batch(pool, &half).await {
            Ok(keys) => {
                answer(half, keys, windows, Some(&before));
                true
            }
            Err(error) => {
                tracing::warn!(%error, requests = half.len(), "requests could not be admitted");
                let error = Arc::new(error);
                for request in half {
                    request.reply(Err(AdmissionError::Db(error.clone())));
                }
                false
            }
        }
    };
    let (first, second) = futures::join!(half(batch), half(second));
    first || second
}

/// What a batch did to a key: how many of its requests were admitted, and which.
struct KeyInBatch {
    /// The number of the batch's first request in the window, less one.
    before: u32,
    window: Counted,
    digests: HashSet<Digest>,
    /// The window's end, never later than the database sees it.
    ends_at: Instant,
}

async fn admit_batch(pool: &Pool, requests: &[WaitingRequest]) -> Result<HashMap<String, KeyInBatch>, DbError> {
    let sent_at = Instant::now();
    let keys: Vec<&str> = requests.iter().map(|request| &*request.key_id).collect();
    let digests: Vec<Uuid> = requests.iter().map(|request| request.digest.into()).collect();
    let client = Connection::take(pool, ATTEMPT).await?;
    let [bucket, margin, window, step] = [BUCKET, MARGIN, WINDOW, CLOCK_STEP].map(|duration| duration.as_secs_f64());
    let rows = client
        .query(ADMIT, &[&keys, &digests, &bucket, &margin, &window, &step])
        .await?;
    let mut admitted = HashMap::with_capacity(rows.len());
    for row in rows {
        let used: i32 = row.try_get("used")?;
        let requests: i32 = row.try_get("requests")?;
        let resets_in = Duration::try_from_secs_f64(row.try_get("resets_in")?).unwrap_or_default();
        let digests: Vec<Uuid> = row.try_get("digests")?;
        let key = KeyInBatch {
            before: u32::try_from(used - requests).unwrap_or(0),
            window: Counted {
                position: u32::try_from(used).unwrap_or(u32::MAX),
                resets_in,
            },
            digests: digests.into_iter().map(Digest::from).collect(),
            ends_at: sent_at + resets_in,
        };
        admitted.insert(row.try_get("key_id")?, key);
    }
    Ok(admitted)
}

/// Tells each request its number, in the order in which they arrived.
///
/// After an attempt whose outcome is open, a nonce that is found used may have been used by that very attempt: its
/// request is told to come again, not that it is a replay.
fn answer(
    requests: Vec<WaitingRequest>,
    mut keys: HashMap<String, KeyInBatch>,
    windows: &Windows,
    earlier: Option<&Arc<DbError>>,
) {
    for (key_id, key) in &keys {
        windows.learn(key_id, key.window.position, key.ends_at);
    }
    for request in requests {
        let admitted = keys
            .get_mut(&*request.key_id)
            .filter(|key| key.digests.contains(&request.digest));
        let outcome = match (admitted, earlier) {
            (Some(key), _) => {
                key.before += 1;
                Ok(Counted {
                    position: key.before,
                    resets_in: key.window.resets_in,
                })
            }
            (None, Some(error)) if error.leaves_open() => Err(AdmissionError::Db(error.clone())),
            (None, _) => Err(AdmissionError::Replayed),
        };
        request.reply(outcome);
    }
}

#[cfg(test)]
mod tests {
    use partner_api_store::pool::{PoolSettings, parse_url, pool};
    use tokio::net::TcpListener;

    use super::super::SHARE;
    use super::super::windows::Entered;
    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_is_not_admitted() {
        let database = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgresql://u@{}/d", database.local_addr().unwrap());
        let pool = pool(parse_url(&url).unwrap(), &PoolSettings::default()).unwrap();
        let windows = Arc::<Windows>::default();
        let key_id: Arc<str> = "a".into();
        let Entered::Placed(place) = windows.enter(&key_id, 1, SHARE) else {
            panic!("there is room")
        };
        let (answer, outcome) = oneshot::channel();
        let (queue, waiting) = mpsc::channel(1);
        let abandoned = WaitingRequest {
            digest: Digest::of(&key_id, "gone"),
            key_id,
            answer: Some(answer),
            _place: place,
        };
        assert!(queue.try_send(abandoned).is_ok());
        drop((outcome, queue));
        run(pool, waiting, windows, Meter::default()).await;
        assert!(
            database.accept().now_or_never().is_none(),
            "it was asked of the database"
        );
    }
}
