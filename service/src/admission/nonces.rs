//! Used nonces: in the process's memory, and in a WAL-logged table partitioned by time.
//!
//! A nonce is written into the time bucket of its use, and looked up in the bucket before. A use that was not committed yet
//! when the next bucket began could not be seen there, so in the last [`MARGIN`] of a bucket a nonce is written into the next
//! one, too: uniqueness rests on the primary key alone, across all replicas, whatever their clocks say (the database's clock
//! names the bucket).

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use uuid::Uuid;

use partner_api_store::partitions::Partitioned;

/// The length of a time bucket, and the least time for which a nonce is remembered (KEY-6): longer than all the time that a
/// request can be under way and its timestamp still valid.
pub const BUCKET: Duration = Duration::from_secs(900);

/// The end of a bucket in which nonces are written into the next one, too: much longer than an admission that is answered.
pub const MARGIN: Duration = Duration::from_secs(30);

/// How often partitions are looked after.
pub const MAINTENANCE: Duration = Duration::from_secs(60);

/// The partitions of `used_nonces`: one for each bucket.
pub const PARTITIONS: Partitioned = Partitioned {
    table: "used_nonces",
    column: "bucket",
    length: Some(BUCKET),
    // An hour in which maintenance may fail without harm.
    ahead: 6,
    // The one before the last full bucket is kept against clocks that are set back.
    kept: 1,
    digits: (|bucket| bucket.to_string(), |digits| digits.parse().ok()),
    begins: |bucket| bucket.to_string(),
    lock: 0x6e6f_6e63_6573,
};

/// What is kept of a nonce: the first 16 bytes of SHA-256 over the key's id, a zero byte, and the nonce.
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

/// Nonces that this process has seen, for requests that are answered without the database, and to refuse a replay
/// before it costs a query. Kept for one to two bucket lengths, as half of their digest.
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
    /// Notes a use; returns whether it is the first one known of.
    pub fn insert(&self, digest: Digest, now: Instant) -> bool {
        let (half, _) = digest.0.as_u64_pair();
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(generations.opened) >= BUCKET {
            generations.previous = std::mem::take(&mut generations.current);
            generations.opened = now;
        }
        !generations.previous.contains(&half) && generations.current.insert(half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_fresh_once_per_key() {
        let memory = NonceMemory::default();
        let insert = |key_id, nonce| memory.insert(Digest::of(key_id, nonce), Instant::now());
        assert!(insert("a", "0123456789abcdef"));
        assert!(!insert("a", "0123456789abcdef"));
        assert!(insert("b", "0123456789abcdef"));
        assert!(insert("a", "0123456789abcdeF"));
    }

    #[test]
    fn a_nonce_is_remembered_for_at_least_a_buckets_length() {
        let (memory, began) = (NonceMemory::default(), Instant::now());
        let nonce = Digest::of("a", "0123456789abcdef");
        let used = began + BUCKET - Duration::from_secs(1);
        assert!(memory.insert(nonce, used));
        for later in [BUCKET / 2, BUCKET] {
            assert!(!memory.insert(nonce, used + later));
        }
    }
}
