//! Used nonces, in the process's memory and in a table that is partitioned by time.
//!
//! A nonce is inserted into the current time bucket and looked up in the previous one. The lookup cannot see a nonce that is not
//! committed yet when the next bucket begins. So during the last [`MARGIN`] of a bucket a nonce is also inserted into the next
//! bucket. The primary key then detects replays across the boundary. The database's clock determines the bucket, so the clocks
//! of replicas do not matter.
//!
//! If the database's clock steps back, or a standby whose clock is behind is promoted, nonces that were used before are in later
//! buckets. A nonce is then inserted up to the latest of these buckets: one that was used before conflicts there, and a new one
//! stays used after the clock was corrected. If there are nonces beyond the next [`LATER_BUCKETS`], the step was too large, and
//! nothing is admitted until the clock is correct.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use uuid::Uuid;

use partner_api_store::partitions::Partitioned;

/// The length of a time bucket, as in the schema's function `partition_range`, and the minimum time for which a nonce is remembered (KEY-6). It is longer
/// than the 600 s for which a timestamp can be valid (SIG-5), plus the time to process a request.
pub const BUCKET: Duration = Duration::from_secs(900);

/// The last part of a bucket, in which nonces are also inserted into the next bucket. It is much longer than the timeout of an
/// admission.
pub const MARGIN: Duration = Duration::from_secs(30);

/// The number of later buckets into which a nonce may be inserted. After a step of at most [`BUCKET`], used nonces are in the next
/// bucket, or if they were used during the last [`MARGIN`] of that one, also in the second.
pub const LATER_BUCKETS: i64 = 2;

/// The interval of partition maintenance.
pub const MAINTENANCE: Duration = Duration::from_secs(60);

/// The partitions of `used_nonces`, one per bucket.
pub const PARTITIONS: Partitioned = Partitioned {
    table: "used_nonces",
    length: Some(BUCKET),
    // Maintenance may fail for an hour without harm.
    ahead: 6,
    // The bucket before the previous one is retained in case the database's clock is set back.
    retained: 1,
    digits: (|bucket| bucket.to_string(), |digits| digits.parse().ok()),
    lock: 0x6e6f_6e63_6573,
};

/// The stored form of a nonce: the first 16 bytes of SHA-256 over the key ID, a zero byte, and the nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Digest(Uuid);

impl Digest {
    pub fn of(key_id: &str, nonce: &str) -> Self {
        let full = Sha256::new()
            .chain_update(key_id)
            .chain_update([0])
            .chain_update(nonce)
            .finalize();
        let mut first = [0; 16];
        first.copy_from_slice(&full[..16]);
        Digest(Uuid::from_bytes(first))
    }
}

impl From<Digest> for Uuid {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

impl From<Uuid> for Digest {
    fn from(digest: Uuid) -> Self {
        Digest(digest)
    }
}

/// The nonces that this process has received. It detects replays of requests that are admitted without the database, and saves a
/// query for other replays. Each nonce is stored for one to two bucket lengths, as half of its digest.
#[derive(Debug)]
pub(super) struct NonceMemory(Mutex<Generations>);

#[derive(Debug)]
struct Generations {
    opened: Instant,
    current: HashSet<u64>,
    previous: HashSet<u64>,
}

impl Default for NonceMemory {
    fn default() -> Self {
        NonceMemory(Mutex::new(Generations {
            opened: Instant::now(),
            current: HashSet::default(),
            previous: HashSet::default(),
        }))
    }
}

impl NonceMemory {
    /// Inserts a nonce; returns whether it is new.
    pub fn insert(&self, digest: Digest, now: Instant) -> bool {
        let (half, _) = digest.0.as_u64_pair();
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(generations.opened) >= BUCKET {
            generations.previous = std::mem::take(&mut generations.current);
            generations.opened = now;
        }
        !generations.previous.contains(&half) && generations.current.insert(half)
    }

    /// Removes the nonce of a request that was not admitted. The database decides whether it was used.
    pub fn remove(&self, digest: Digest) {
        let (half, _) = digest.0.as_u64_pair();
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        generations.current.remove(&half);
        generations.previous.remove(&half);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_new_once_per_key() {
        let memory = NonceMemory::default();
        let insert = |key_id, nonce| memory.insert(Digest::of(key_id, nonce), Instant::now());
        assert!(insert("a", "0123456789abcdef"));
        assert!(!insert("a", "0123456789abcdef"));
        assert!(insert("b", "0123456789abcdef"));
        assert!(insert("a", "0123456789abcdeF"));
    }

    #[test]
    fn a_nonce_is_remembered_for_at_least_the_length_of_a_bucket() {
        let (memory, began) = (NonceMemory::default(), Instant::now());
        let nonce = Digest::of("a", "0123456789abcdef");
        let used = began + BUCKET - Duration::from_secs(1);
        assert!(memory.insert(nonce, used));
        for later in [BUCKET / 2, BUCKET] {
            assert!(!memory.insert(nonce, used + later));
        }
    }
}
