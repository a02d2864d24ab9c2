//! Admission: a nonce once, and the key's rate window, exact across all replicas.
//!
//! One statement admits every request that arrived while the previous one ran, and is sent at once when idle, so that
//! the flush of its commit is shared. A request that writes carries its nonce in its own transaction instead, and only
//! its count goes with the others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use super::nonces::{self, NonceMemory};
use super::route::Admitting;
use super::transaction::{OpenTransaction, Slot};
use super::windows::Windows;
use crate::db::DbError;
use crate::directory::Key;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;

/// The fixed window of a key (contract, section 8).
pub const WINDOW: Duration = Duration::from_secs(60);

/// The most requests in one statement.
const LARGEST_BATCH: usize = 1_000;

/// Requests that may wait for a batch; more are turned away with 503.
const QUEUE: usize = 10_000;

/// Admits the requests of a batch: the nonces, each in this time bucket and the next, then the windows.
///
/// Rows are written in the order of their key, so that two replicas cannot wait for each other.
const ADMIT: &str = "\
WITH clock AS (
    SELECT floor(extract(epoch FROM now())::float8 / $4::float8)::bigint AS bucket
), sent AS (
    SELECT * FROM unnest($1::text[], $2::text[]) AS sent (key_id, nonce)
), fresh AS (
    INSERT INTO nonces (bucket, key_id, nonce)
    SELECT bucket + later, key_id, nonce
    FROM sent, clock, unnest(ARRAY[0, 1]) AS later
    ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING
    RETURNING key_id, nonce
), admitted AS (
    SELECT key_id, nonce FROM fresh GROUP BY key_id, nonce HAVING count(*) = 2
), counted AS (
    SELECT key_id, count(*)::integer AS requests
    FROM (SELECT key_id FROM admitted UNION ALL SELECT * FROM unnest($3::text[])) AS every (key_id)
    GROUP BY key_id
), windows AS (
    INSERT INTO rate_windows AS old (key_id, started_at, used)
    SELECT key_id, now(), requests FROM counted ORDER BY key_id
    ON CONFLICT (key_id) DO UPDATE SET
        started_at = CASE WHEN old.started_at <= now() - $5::float8 * interval '1 second'
                          THEN now() ELSE old.started_at END,
        used = CASE WHEN old.started_at <= now() - $5::float8 * interval '1 second'
                    THEN excluded.used ELSE least(old.used, 1000000000) + excluded.used END
    RETURNING key_id, used, extract(epoch FROM started_at - now())::float8 + $5::float8 AS resets_in
)
SELECT key_id, used, resets_in, requests,
       ARRAY(SELECT nonce FROM admitted WHERE admitted.key_id = windows.key_id) AS nonces
FROM windows JOIN counted USING (key_id)";

/// All statements, by name.
pub const STATEMENTS: &[(&str, &str)] = &[("ADMIT", ADMIT)];

/// Why a request was not admitted.
#[derive(Clone, Debug, Error)]
pub enum AdmissionError {
    /// The nonce was used before.
    #[error("the nonce was used before")]
    Replayed,
    /// The nonce could not be recorded.
    #[error(transparent)]
    Db(Arc<DbError>),
}

impl From<DbError> for AdmissionError {
    fn from(error: DbError) -> Self {
        AdmissionError::Db(Arc::new(error))
    }
}

/// Where a request stands in its key's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Requests the key has per window.
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

    /// 429 with the time to the window's end.
    pub fn refusal(&self) -> ApiError {
        ApiError {
            retry_after: Some(self.resets_in),
            ..ApiError::new(
                ErrorCode::RateLimited,
                format!(
                    "this key has {} requests a minute, all of them used; wait for Retry-After",
                    self.limit
                ),
            )
        }
    }
}

/// A request on its way into a batch.
struct Waiting {
    key_id: String,
    /// `None`: the nonce is kept elsewhere, only the count is wanted.
    nonce: Option<String>,
    /// `None`: nobody waits for the outcome.
    answer: Option<oneshot::Sender<Result<Counted, AdmissionError>>>,
}

/// A request's number in its window.
#[derive(Clone, Copy, Debug)]
struct Counted {
    position: u32,
    resets_in: Duration,
}

/// Admits requests.
pub struct Admission {
    memory: NonceMemory,
    windows: Arc<Windows>,
    queue: mpsc::Sender<Waiting>,
}

impl Admission {
    /// Starts admitting through `pool`, which should be this one's own: a read must not wait behind writes to be let in.
    pub fn start(pool: Pool) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let windows = Arc::new(Windows::default());
        tokio::spawn(run(pool, waiting, windows.clone()));
        Admission {
            memory: NonceMemory::default(),
            windows,
            queue,
        }
    }

    /// Admits one request of `key`.
    ///
    /// # Errors
    /// When the nonce was used before, or could not be recorded.
    pub(super) async fn admit(
        &self,
        key: &Key,
        nonce: &str,
        how: Admitting,
        pool: &Pool,
        slot: &Slot,
    ) -> Result<Standing, AdmissionError> {
        if !self.memory.insert(&key.id, nonce) {
            return Err(AdmissionError::Replayed);
        }
        let counted = match how {
            Admitting::Durable => self.count(key, Some(nonce)).await?,
            Admitting::Memory => {
                let (position, resets_in) = self.windows.count(&key.id);
                let behind = Waiting {
                    key_id: key.id.clone(),
                    nonce: Some(nonce.to_string()),
                    answer: None,
                };
                if self.queue.try_send(behind).is_err() {
                    tracing::warn!("the admission queue is full; a nonce is kept in memory only");
                }
                Counted { position, resets_in }
            }
            Admitting::Transaction => {
                let transaction = OpenTransaction::begin(pool).await?;
                if !nonces::insert(transaction.client(), &key.id, nonce).await? {
                    transaction.roll_back().await;
                    return Err(AdmissionError::Replayed);
                }
                transaction.savepoint().await?;
                let counted = self.count(key, None).await?;
                slot.put(transaction);
                counted
            }
        };
        Ok(Standing {
            limit: key.rate_limit,
            position: counted.position,
            resets_in: counted.resets_in,
        })
    }

    async fn count(&self, key: &Key, nonce: Option<&str>) -> Result<Counted, AdmissionError> {
        let (answer, outcome) = oneshot::channel();
        let waiting = Waiting {
            key_id: key.id.clone(),
            nonce: nonce.map(str::to_string),
            answer: Some(answer),
        };
        self.queue.try_send(waiting).map_err(|_| busy())?;
        outcome.await.map_err(|_| busy())?
    }
}

fn busy() -> AdmissionError {
    AdmissionError::from(DbError::Data {
        table: "nonces",
        detail: "too many requests wait for admission".into(),
    })
}

/// Sends batch after batch until the last [`Admission`] is gone.
async fn run(pool: Pool, mut queue: mpsc::Receiver<Waiting>, windows: Arc<Windows>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, LARGEST_BATCH).await > 0 {
        let mut requests = std::mem::take(&mut batch);
        refuse_twins(&mut requests);
        match admit(&pool, &requests).await {
            Ok(keys) => answer(requests, keys, &windows),
            Err(error) => {
                tracing::warn!(%error, requests = requests.len(), "requests could not be admitted");
                let error = AdmissionError::from(error);
                for request in requests {
                    reply(request.answer, Err(error.clone()));
                }
            }
        }
    }
}

/// Of two requests with one nonce in a batch, the first stays.
fn refuse_twins(requests: &mut Vec<Waiting>) {
    let mut seen = HashSet::new();
    let mut twins = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        if let Some(nonce) = &request.nonce
            && !seen.insert((request.key_id.clone(), nonce.clone()))
        {
            twins.push(index);
        }
    }
    for index in twins.into_iter().rev() {
        reply(requests.swap_remove(index).answer, Err(AdmissionError::Replayed));
    }
}

/// What a batch did to a key.
struct AdmittedKey {
    /// The number of the batch's first request in the window, less one.
    before: u32,
    resets_in: Duration,
    nonces: HashSet<String>,
}

async fn admit(pool: &Pool, requests: &[Waiting]) -> Result<HashMap<String, AdmittedKey>, DbError> {
    let with_nonce = || requests.iter().filter(|request| request.nonce.is_some());
    let keys: Vec<&str> = with_nonce().map(|request| request.key_id.as_str()).collect();
    let nonces: Vec<&str> = with_nonce().filter_map(|request| request.nonce.as_deref()).collect();
    let counted: Vec<&str> = requests
        .iter()
        .filter(|request| request.nonce.is_none())
        .map(|request| request.key_id.as_str())
        .collect();
    let client = pool.get().await?;
    let statement = client.prepare_cached(ADMIT).await?;
    let bucket = nonces::BUCKET_SECONDS as f64;
    let rows = client
        .query(&statement, &[&keys, &nonces, &counted, &bucket, &WINDOW.as_secs_f64()])
        .await?;
    let mut admitted = HashMap::with_capacity(rows.len());
    for row in rows {
        let used: i32 = row.get("used");
        let requests: i32 = row.get("requests");
        let resets_in: f64 = row.get("resets_in");
        let nonces: Vec<String> = row.get("nonces");
        admitted.insert(
            row.get("key_id"),
            AdmittedKey {
                before: u32::try_from(used - requests).unwrap_or(0),
                resets_in: Duration::try_from_secs_f64(resets_in).unwrap_or_default(),
                nonces: nonces.into_iter().collect(),
            },
        );
    }
    Ok(admitted)
}

/// Tells each request its number, in the order in which they arrived.
fn answer(requests: Vec<Waiting>, mut keys: HashMap<String, AdmittedKey>, windows: &Windows) {
    for request in requests {
        let Some(key) = keys.get_mut(&request.key_id) else {
            reply(request.answer, Err(AdmissionError::Replayed));
            continue;
        };
        if request.nonce.as_ref().is_some_and(|nonce| !key.nonces.contains(nonce)) {
            reply(request.answer, Err(AdmissionError::Replayed));
            continue;
        }
        key.before += 1;
        reply(
            request.answer,
            Ok(Counted {
                position: key.before,
                resets_in: key.resets_in,
            }),
        );
    }
    for (key_id, key) in keys {
        windows.learn(&key_id, key.before, key.resets_in);
    }
}

fn reply(answer: Option<oneshot::Sender<Result<Counted, AdmissionError>>>, outcome: Result<Counted, AdmissionError>) {
    // Who no longer waits needs no answer.
    if let Some(answer) = answer {
        let _ = answer.send(outcome);
    }
}
