//! Used nonces: in the process's memory, and in a WAL-logged table partitioned by time.
//!
//! A nonce is written into the time bucket of its use, and looked up in the bucket before. A use that was not committed yet
//! when the next bucket began could not be seen there, so in the last [`MARGIN`] of a bucket a nonce is written into the next
//! one, too: uniqueness rests on the primary key alone, across all replicas, whatever their clocks say (the database's clock
//! names the bucket).

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use uuid::Uuid;

use crate::db::DbError;
use crate::statement;

/// The length of a time bucket, and the least time for which a nonce is remembered (KEY-6): longer than all the time that a
/// request can be under way and its timestamp still valid.
pub const BUCKET: Duration = Duration::from_secs(900);

/// The end of a bucket in which nonces are written into the next one, too: much longer than an admission that is answered.
pub const MARGIN: Duration = Duration::from_secs(30);

/// Buckets that are made ahead: an hour in which maintenance may fail without harm.
const BUCKETS_AHEAD: i64 = 6;

/// How often partitions are looked after.
const MAINTENANCE: Duration = Duration::from_secs(60);

/// How long one look may take, waits for transactions included: a hung backend must not end the looking for ever.
const MAINTENANCE_BOUND: Duration = Duration::from_secs(45);

/// Only one replica looks after partitions at a time.
pub const MAINTENANCE_LOCK: i64 = 0x6e6f_6e63_6573;

statement! {
    /// The tables of buckets. `detaching` is null for one that is no partition, and true for one whose detaching was cut
    /// short: that one comes first, for until it is finished no other can be detached.
    PARTITIONS = "\
SELECT substr(child.relname, 13)::bigint AS bucket, pg_inherits.inhdetachpending AS detaching
FROM pg_class child
JOIN pg_class parent ON parent.oid = 'used_nonces'::regclass AND parent.relnamespace = child.relnamespace
LEFT JOIN pg_inherits ON inhrelid = child.oid AND inhparent = parent.oid
WHERE child.relkind = 'r' AND child.relname ~ '^used_nonces_[0-9]+$'
ORDER BY detaching DESC NULLS LAST, bucket";
    /// The bucket of this moment.
    NOW = "SELECT floor(extract(epoch FROM now())::float8 / $1::float8)::bigint AS bucket";
    /// Whether this session is the one that looks after the partitions.
    TRY_LOCK = "SELECT pg_try_advisory_lock($1)";
}

/// Makes the partitions of the coming buckets and drops those that nobody needs any more; leaves it to another replica that
/// is at it.
///
/// Neither waits for traffic nor blocks it: a partition is made as a table of its own and then attached, and detached
/// concurrently before it is dropped.
///
/// # Errors
/// When the database does not answer.
pub async fn look_after_partitions(pool: &Pool) -> Result<(), DbError> {
    // A session lock must not stay with a pooled connection: the connection is closed, whatever happens.
    #[expect(
        clippy::disallowed_methods,
        reason = "partitions are made by statements of their own"
    )]
    let client = Object::take(pool.get().await?);
    tokio::time::timeout(MAINTENANCE_BOUND, look_after(&client))
        .await
        .map_err(|_| DbError::TimedOut)?
}

async fn look_after(client: &deadpool_postgres::ClientWrapper) -> Result<(), DbError> {
    client
        .batch_execute("SET statement_timeout = '30s'; SET lock_timeout = '5s'")
        .await?;
    let locked: bool = client
        .query_one(TRY_LOCK.sql(), &[&MAINTENANCE_LOCK])
        .await?
        .try_get(0)?;
    if !locked {
        return Ok(());
    }
    let (now, there) = partitions(client).await?;
    for bucket in now..=now + BUCKETS_AHEAD {
        if !there.contains(&(bucket, Some(false))) {
            let next = bucket + 1;
            client
                .batch_execute(&format!(
                    "DROP TABLE IF EXISTS used_nonces_{bucket};
                     CREATE TABLE used_nonces_{bucket} (LIKE used_nonces INCLUDING ALL,
                         CONSTRAINT in_bucket CHECK (bucket >= {bucket} AND bucket < {next}));
                     ALTER TABLE used_nonces ATTACH PARTITION used_nonces_{bucket} FOR VALUES FROM ({bucket}) TO ({next});
                     ALTER TABLE used_nonces_{bucket} DROP CONSTRAINT in_bucket;"
                ))
                .await?;
            tracing::debug!(bucket, "nonce partition made");
        }
    }
    // The one before the last full bucket is kept against clocks that are set back.
    for (bucket, detaching) in there.into_iter().filter(|(bucket, _)| *bucket < now - 1) {
        // Detaching waits for every transaction that uses the table (a backup, say), and is given up at the lock time-out:
        // what it began then has to be finished.
        if let Some(cut_short) = detaching {
            let how = if cut_short { "FINALIZE" } else { "CONCURRENTLY" };
            client
                .batch_execute(&format!(
                    "ALTER TABLE used_nonces DETACH PARTITION used_nonces_{bucket} {how}"
                ))
                .await?;
        }
        client
            .batch_execute(&format!("DROP TABLE used_nonces_{bucket}"))
            .await?;
        tracing::debug!(bucket, "nonce partition dropped");
    }
    Ok(())
}

/// The bucket of now, and the tables of buckets, each with the state of its detaching.
async fn partitions(client: &deadpool_postgres::ClientWrapper) -> Result<(i64, Vec<(i64, Option<bool>)>), DbError> {
    let now = client
        .query_one(NOW.sql(), &[&BUCKET.as_secs_f64()])
        .await?
        .try_get(0)?;
    let mut there = Vec::new();
    for row in client.query(PARTITIONS.sql(), &[]).await? {
        there.push((row.try_get("bucket")?, row.try_get("detaching")?));
    }
    Ok((now, there))
}

/// Sees to it that nonces can be written, before anything is served: where another replica is making the partitions, waits
/// until those of this bucket and the next are there.
///
/// # Errors
/// When the database does not answer, or the partitions are not there in time.
pub async fn prepare_partitions(pool: &Pool) -> Result<(), DbError> {
    let there = async {
        loop {
            look_after_partitions(pool).await?;
            #[expect(clippy::disallowed_methods, reason = "partitions are looked up as above")]
            let client = pool.get().await?;
            let (now, there) = partitions(&client).await?;
            if (now..=now + 1).all(|bucket| there.contains(&(bucket, Some(false)))) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(MAINTENANCE_BOUND, there)
        .await
        .unwrap_or(Err(DbError::TimedOut))
}

/// Looks after the partitions for ever.
pub async fn keep_partitions(pool: Pool) {
    loop {
        tokio::time::sleep(MAINTENANCE).await;
        if let Err(error) = look_after_partitions(&pool).await {
            tracing::warn!(%error, "nonce partitions could not be looked after; trying again");
        }
    }
}

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
