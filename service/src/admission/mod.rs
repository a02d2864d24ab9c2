//! Admission: consumes each nonce once, and counts requests in the rate-limit windows of their keys, exactly across all replicas.
//!
//! One statement admits every request that arrived while the previous statement ran, so that requests share the flush of a
//! commit; an idle replica sends it at once. The statement is its own transaction: no nonce stays uncommitted during another wait,
//! so no request can block the admission of another. If a request fails after its admission, its nonce has been consumed. Retries
//! are unaffected because each uses a new nonce.

mod batch;
pub mod caller;
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
pub use self::meter::{AdmissionHealth, Meter};

use partner_api_store::DbError;
use partner_api_store::deadline::Deadline;
use partner_api_store::directory::Key;

use self::batch::WaitingRequest;
use self::nonces::{Digest, NonceMemory};
use self::windows::{Enqueue, Windows};
use partner_api_gateway::RateLimitStatus;

/// The length of a key's fixed rate-limit window (LIM-1).
pub const WINDOW: Duration = Duration::from_secs(60);

/// The maximum number of requests that wait for a batch; further ones get a 503.
const QUEUE: usize = 10_000;

/// The part of the queue that one key may use, including requests that are recorded after their responses.
const KEY_QUOTA: usize = QUEUE / 4;
const _: () = assert!(KEY_QUOTA < QUEUE, "one key must not fill the queue");

/// The place in which a request's nonce and count are recorded before the endpoint runs (`x-admission`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// In the database.
    Database,
    /// In the process's memory; the database follows after the response.
    Memory,
}

/// Why a request was not admitted.
#[derive(Clone, Debug, Error)]
pub enum AdmissionError {
    /// The nonce was used before.
    #[error("the nonce was used before")]
    Replayed,
    /// The queue of this replica, or the key's quota of it, is full.
    #[error("too many requests wait for admission")]
    Busy,
    /// The nonce was not recorded, or it is unknown whether it was.
    #[error("failed to record the nonce in the database: {0}")]
    Db(Arc<DbError>),
    /// The request was not admitted by its deadline.
    #[error("the request was not admitted by its deadline")]
    TimedOut,
    /// The database's clock was set back too far to recognize used nonces.
    #[error("the database's clock was set back too far to recognize used nonces")]
    ClockBehind,
}

/// The outcome of admission: the nonce is consumed, and the request is counted.
#[derive(Debug)]
pub struct Admitted {
    /// The key's rate-limit status.
    pub rate_limit: RateLimitStatus,
    /// The caller; `None` if the key is over its limit.
    pub caller: Option<Caller>,
}

/// A request's number in its window, and the time until the window ends.
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
    /// Starts admission. It should have its own `pool`, so that admission does not wait behind other writes. `meter` records the
    /// batches.
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

    /// Admits a request of `key`: consumes its nonce and counts it.
    ///
    /// If the key is known to be over its limit, the outcome comes from memory and the nonce is recorded after the response.
    ///
    /// # Errors
    /// If the nonce was used before, or was not recorded by the `deadline`.
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
        let counted = self.count_new(key, digest, durability, deadline).await;
        // A request that was not admitted has not consumed its nonce, as far as this replica knows.
        if counted
            .as_ref()
            .is_err_and(|error| !matches!(error, AdmissionError::Replayed))
        {
            self.memory.remove(digest);
        }
        counted
    }

    async fn count_new(
        &self,
        key: &Key,
        digest: Digest,
        durability: Durability,
        deadline: Deadline,
    ) -> Result<Counted, AdmissionError> {
        if durability == Durability::Memory {
            let counted = self.windows.count(&key.id);
            self.record_later(key, digest);
            return Ok(counted);
        }
        match self.windows.enqueue(&key.id, key.rate_limit, KEY_QUOTA) {
            Enqueue::OverLimit(counted) => {
                self.record_later(key, digest);
                Ok(counted)
            }
            Enqueue::QuotaExhausted => Err(AdmissionError::Busy),
            Enqueue::Queued(slot) => {
                let (reply, outcome) = oneshot::channel();
                let waiting = WaitingRequest {
                    key_id: key.id.clone(),
                    digest,
                    reply: Some(reply),
                    _slot: slot,
                };
                self.queue.try_send(waiting).map_err(|_| AdmissionError::Busy)?;
                let outcome = deadline.within(outcome).await.ok_or(AdmissionError::TimedOut)?;
                outcome.map_err(|_| AdmissionError::Busy)?
            }
        }
    }

    /// Returns the number of requests that wait for a batch, including those that are recorded after their responses.
    pub fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Queues a nonce that is recorded after the response.
    fn record_later(&self, key: &Key, digest: Digest) {
        let request = self.windows.slot(&key.id, KEY_QUOTA).map(|slot| WaitingRequest {
            key_id: key.id.clone(),
            digest,
            reply: None,
            _slot: slot,
        });
        if request.is_none_or(|request| self.queue.try_send(request).is_err()) {
            tracing::warn!(
                key_id = &*key.id,
                "the admission queue, or the key's quota of it, is full; a nonce is stored only in this replica's memory; check \
                 the database's load"
            );
        }
    }
}
