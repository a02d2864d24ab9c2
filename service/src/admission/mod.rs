//! Admission: a nonce once, and the key's rate window, exact across all replicas.
//!
//! One statement admits every request that arrived while the previous one ran, and is sent at once when idle, so that
//! the flush of its commit is shared. It is a transaction of its own: no nonce stays uncommitted while anything else is
//! waited for, so nobody can make another's admission wait. A request that fails after its admission has burnt a nonce,
//! which costs a retry nothing: it carries a new one anyway.

mod meter;
pub mod nonces;
mod windows;

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use futures::FutureExt;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

pub use self::meter::{Lately, Meter};

use self::nonces::{BUCKET, Digest, MARGIN, NonceMemory};
use self::windows::{Entered, QueuePlace, Windows};
use crate::db::DbError;
use crate::db::connection::Connection;
use crate::deadline::Deadline;
use crate::directory::Key;
use crate::statement;

/// The fixed window of a key (LIM-1).
pub const WINDOW: Duration = Duration::from_secs(60);

/// The most requests in one statement.
const LARGEST_BATCH: usize = 1_000;

/// Requests that may wait for a batch; more are turned away with 503.
const QUEUE: usize = 10_000;

/// The most of them that one key may have, those included that are recorded behind their answers.
const SHARE: usize = QUEUE / 4;

/// How long one attempt at a batch may take: two of them, one after the other, fit into what a request may wait
/// ([`DATABASE_WAIT`](crate::deadline::DATABASE_WAIT)).
const ATTEMPT: Duration = Duration::from_millis(800);

/// A window that began further ahead of the database's clock than this is the work of a clock that stepped, and begins
/// anew. Less is the way of transactions, each of which reads the clock when it begins.
const CLOCK_STEP: Duration = Duration::from_secs(5);

statement! {
    /// Admits the requests of a batch: the nonces, then the windows of their keys.
    ///
    /// Rows are written in the order of their key, so that two replicas cannot wait for each other. The look into the
    /// bucket before must stay one by index for each nonce (`OFFSET`): joined, it would be a scan of the whole partition.
    pub ADMIT = "\
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

/// How a request's nonce and count are kept (`x-admission`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// In the database before the endpoint runs.
    Recorded,
    /// In the process's memory, and in the database behind the answer.
    Behind,
}

/// Why a request was not admitted.
#[derive(Clone, Debug, Error)]
pub enum AdmissionError {
    /// The nonce was used before.
    #[error("the nonce was used before")]
    Replayed,
    /// This replica, or this key's share of it, has no room for more.
    #[error("too many requests wait for admission")]
    Busy,
    /// The nonce could not be recorded, or nobody knows whether it was.
    #[error("the database did not admit it: {0}")]
    Db(Arc<DbError>),
    /// No answer by the request's deadline.
    #[error("admission took too long")]
    TimedOut,
}

/// Where an admitted request stands in its key's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Requests per window.
    pub limit: u32,
    /// The request's number in the window, from 1.
    pub position: u32,
    /// The time to the window's end.
    pub resets_in: Duration,
}

impl Standing {
    /// Requests left in the window.
    pub fn remaining(&self) -> u32 {
        self.limit.saturating_sub(self.position)
    }

    /// Whether the request is one too many.
    pub fn is_exceeded(&self) -> bool {
        self.position > self.limit
    }
}

/// A request's number in its window.
#[derive(Clone, Copy, Debug)]
struct Counted {
    position: u32,
    resets_in: Duration,
}

/// A request on its way into a batch.
struct WaitingRequest {
    key_id: Arc<str>,
    digest: Digest,
    /// `None`: nobody waits for the outcome.
    answer: Option<oneshot::Sender<Result<Counted, AdmissionError>>>,
    _place: QueuePlace,
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

/// Admits requests.
pub struct Admission {
    memory: NonceMemory,
    windows: Arc<Windows>,
    queue: mpsc::Sender<WaitingRequest>,
}

impl Admission {
    /// Starts admitting through `pool`, which should be this one's own: a read must not wait behind writes to be let in.
    /// What becomes of batches, `meter` is told.
    pub fn start(pool: Pool, meter: Meter) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let windows = Arc::new(Windows::default());
        tokio::spawn(run(pool, waiting, windows.clone(), meter));
        Admission {
            memory: NonceMemory::default(),
            windows,
            queue,
        }
    }

    /// Admits one request of `key`: its nonce is used up, and it is counted.
    ///
    /// A request of a key that is known to be over its limit is told so from memory; its nonce is recorded behind the
    /// answer. A refusal takes neither a connection nor a place in anybody's queue.
    ///
    /// # Errors
    /// When the nonce was used before, or could not be recorded by the `deadline`.
    pub async fn admit(
        &self,
        key: &Key,
        nonce: &str,
        durability: Durability,
        deadline: Deadline,
    ) -> Result<Standing, AdmissionError> {
        let digest = Digest::of(&key.id, nonce);
        if !self.memory.insert(digest, Instant::now()) {
            return Err(AdmissionError::Replayed);
        }
        let standing = |Counted { position, resets_in }| Standing {
            limit: key.rate_limit,
            position,
            resets_in,
        };
        if durability == Durability::Behind {
            let counted = self.windows.count(&key.id);
            self.record_behind(key, digest);
            return Ok(standing(counted));
        }
        match self.windows.enter(&key.id, key.rate_limit, SHARE) {
            Entered::Exceeded(counted) => {
                self.record_behind(key, digest);
                Ok(standing(counted))
            }
            Entered::Crowded => Err(AdmissionError::Busy),
            Entered::Placed(place) => {
                let (answer, outcome) = oneshot::channel();
                let waiting = WaitingRequest {
                    key_id: key.id.clone(),
                    digest,
                    answer: Some(answer),
                    _place: place,
                };
                self.queue.try_send(waiting).map_err(|_| AdmissionError::Busy)?;
                let outcome = deadline.within(outcome).await.ok_or(AdmissionError::TimedOut)?;
                outcome.map_err(|_| AdmissionError::Busy)?.map(standing)
            }
        }
    }

    /// Requests that wait for a batch, those included that are recorded behind their answers.
    pub fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    fn record_behind(&self, key: &Key, digest: Digest) {
        let behind = self.windows.place(&key.id, SHARE).map(|place| WaitingRequest {
            key_id: key.id.clone(),
            digest,
            answer: None,
            _place: place,
        });
        if behind.is_none_or(|behind| self.queue.try_send(behind).is_err()) {
            tracing::warn!(
                key_id = &*key.id,
                "the key's share of the admission queue is full, or all of it: a nonce is kept in this replica's memory only; \
                 see whether the database keeps up"
            );
        }
    }
}

/// Sends batch after batch until the last [`Admission`] is gone.
async fn run(pool: Pool, mut queue: mpsc::Receiver<WaitingRequest>, windows: Arc<Windows>, meter: Meter) {
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
    use tokio::net::TcpListener;

    use super::windows::Entered;
    use super::*;
    use crate::db::pool::{PoolSettings, parse_url, pool};

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
