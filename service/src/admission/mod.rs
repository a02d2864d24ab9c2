//! Admission: a nonce once, and the key's rate window, exact across all replicas.
//!
//! One statement admits every request that arrived while the previous one ran, and is sent at once when idle, so that
//! the flush of its commit is shared. It is a transaction of its own: no nonce stays uncommitted while anything else is
//! waited for, so nobody can make another's admission wait. A request that fails after its admission has burnt a nonce,
//! which costs a retry nothing: it carries a new one anyway.

mod batch;
mod caller;
mod meter;
pub mod nonces;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

pub use self::caller::Caller;
pub use self::meter::{Lately, Meter};

use partner_api_store::DbError;
use partner_api_store::deadline::Deadline;
use partner_api_store::directory::Key;

use self::batch::WaitingRequest;
use self::nonces::{Digest, NonceMemory};
use self::windows::{Entered, Windows};
use partner_api_gateway::RateLimitStatus;

/// The fixed window of a key (LIM-1).
pub const WINDOW: Duration = Duration::from_secs(60);

/// Requests that may wait for a batch; more are turned away with 503.
const QUEUE: usize = 10_000;

/// The most of them that one key may have, those included that are recorded behind their answers.
const SHARE: usize = QUEUE / 4;

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

/// The outcome of admission: the nonce is used up, and the request is counted.
#[derive(Debug)]
pub struct Admitted {
    /// The key's rate-limit status.
    pub rate_limit: RateLimitStatus,
    /// The caller; `None` if the key is over its limit.
    pub caller: Option<Caller>,
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
    queue: mpsc::Sender<WaitingRequest>,
}

impl Admission {
    /// Starts admitting through `pool`, which should be this one's own: a read must not wait behind writes to be let in.
    /// What becomes of batches, `meter` is told.
    pub fn start(pool: Pool, meter: Meter) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let windows = Arc::new(Windows::default());
        tokio::spawn(batch::run(pool, waiting, windows.clone(), meter));
        Admission {
            memory: NonceMemory::default(),
            windows,
            queue,
        }
    }

    /// Admits one request of `key`: its nonce is used up, and it is counted.
    ///
    /// If the key is known to be over its limit, the answer comes from memory and the nonce is recorded after the response. Such
    /// a request takes neither a connection nor a place in anybody's queue.
    ///
    /// # Errors
    /// When the nonce was used before, or could not be recorded by the `deadline`.
    pub async fn admit(
        &self,
        key: Arc<Key>,
        nonce: &str,
        durability: Durability,
        deadline: Deadline,
    ) -> Result<Admitted, AdmissionError> {
        let counted = self.count(&key, nonce, durability, deadline).await?;
        let rate_limit = RateLimitStatus {
            limit: key.rate_limit,
            position: counted.position,
            resets_in: counted.resets_in,
        };
        let caller = (!rate_limit.is_exceeded()).then(|| Caller::admitted(key, deadline));
        Ok(Admitted { rate_limit, caller })
    }

    async fn count(
        &self,
        key: &Key,
        nonce: &str,
        durability: Durability,
        deadline: Deadline,
    ) -> Result<Counted, AdmissionError> {
        let digest = Digest::of(&key.id, nonce);
        if !self.memory.insert(digest, Instant::now()) {
            return Err(AdmissionError::Replayed);
        }
        if durability == Durability::Behind {
            let counted = self.windows.count(&key.id);
            self.record_behind(key, digest);
            return Ok(counted);
        }
        match self.windows.enter(&key.id, key.rate_limit, SHARE) {
            Entered::Exceeded(counted) => {
                self.record_behind(key, digest);
                Ok(counted)
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
                outcome.map_err(|_| AdmissionError::Busy)?
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
