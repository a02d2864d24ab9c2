//! Used nonces: in the process's memory, and in a WAL-logged table partitioned by time.
//!
//! A nonce is written into the time bucket of its use and into the next one, under one primary key. Whatever the moment
//! of a second use within a bucket's length, it meets at least one of the two rows: uniqueness rests on the constraint
//! alone, across all replicas, whatever their clocks say (the database's clock names the bucket).

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::{Object, Pool};

use crate::db::DbError;

/// The length of a time bucket, and the least time for which a nonce is remembered: a timestamp 300 s ahead stays valid
/// for 600 s.
pub const BUCKET_SECONDS: i64 = 600;

/// Buckets that are made ahead: an hour in which maintenance may fail without harm.
const BUCKETS_AHEAD: i64 = 6;

/// How often partitions are looked after.
const MAINTENANCE: Duration = Duration::from_secs(60);

/// Only one replica looks after partitions at a time.
const MAINTENANCE_LOCK: i64 = 0x6e6f_6e63_6573;

const INSERT: &str = "\
INSERT INTO nonces (bucket, key_id, nonce)
SELECT floor(extract(epoch FROM now())::float8 / $3::float8)::bigint + later, $1, $2 FROM unnest(ARRAY[0, 1]) AS later
ORDER BY 1
ON CONFLICT DO NOTHING";

/// The tables of buckets. `detaching` is null for one that is no partition, and true for one whose detaching was cut
/// short: that one comes first, for until it is finished no other can be detached.
const PARTITIONS: &str = "\
SELECT substr(child.relname, 8)::bigint AS bucket, pg_inherits.inhdetachpending AS detaching
FROM pg_class child
JOIN pg_class parent ON parent.oid = 'nonces'::regclass AND parent.relnamespace = child.relnamespace
LEFT JOIN pg_inherits ON inhrelid = child.oid AND inhparent = parent.oid
WHERE child.relkind = 'r' AND child.relname ~ '^nonces_[0-9]+$'
ORDER BY detaching DESC NULLS LAST, bucket";

const NOW: &str = "SELECT floor(extract(epoch FROM now())::float8 / $1::float8)::bigint AS bucket";

/// All statements, by name.
pub const STATEMENTS: &[(&str, &str)] = &[("INSERT", INSERT), ("PARTITIONS", PARTITIONS), ("NOW", NOW)];

/// Records a nonce in the client's transaction; returns whether it was fresh.
///
/// # Errors
/// When the database does not answer.
pub(super) async fn insert(client: &Object, key_id: &str, nonce: &str) -> Result<bool, DbError> {
    let statement = client.prepare_cached(INSERT).await?;
    let rows = client
        .execute(&statement, &[&key_id, &nonce, &(BUCKET_SECONDS as f64)])
        .await?;
    Ok(rows == 2)
}

/// Makes the partitions of the coming buckets and drops those that nobody needs any more.
///
/// Neither waits for traffic nor blocks it: a partition is made as a table of its own and then attached, and detached
/// concurrently before it is dropped.
///
/// # Errors
/// When the database does not answer.
pub async fn look_after_partitions(pool: &Pool) -> Result<(), DbError> {
    let client = pool.get().await?;
    // A session lock must not stay with a pooled connection: if anything fails, the connection is closed.
    let client = Object::take(client);
    client
        .batch_execute("SET statement_timeout = '30s'; SET lock_timeout = '5s'")
        .await?;
    let locked: bool = client
        .query_one("SELECT pg_try_advisory_lock($1)", &[&MAINTENANCE_LOCK])
        .await?
        .get(0);
    if !locked {
        return Ok(());
    }
    let now: i64 = client.query_one(NOW, &[&(BUCKET_SECONDS as f64)]).await?.get(0);
    let there: Vec<(i64, Option<bool>)> = client
        .query(PARTITIONS, &[])
        .await?
        .iter()
        .map(|row| (row.get("bucket"), row.get("detaching")))
        .collect();
    for bucket in now..=now + BUCKETS_AHEAD {
        if !there.contains(&(bucket, Some(false))) {
            let next = bucket + 1;
            client
                .batch_execute(&format!(
                    "DROP TABLE IF EXISTS nonces_{bucket};
                     CREATE TABLE nonces_{bucket} (LIKE nonces INCLUDING ALL,
                         CONSTRAINT in_bucket CHECK (bucket >= {bucket} AND bucket < {next}));
                     ALTER TABLE nonces ATTACH PARTITION nonces_{bucket} FOR VALUES FROM ({bucket}) TO ({next});
                     ALTER TABLE nonces_{bucket} DROP CONSTRAINT in_bucket;"
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
                .batch_execute(&format!("ALTER TABLE nonces DETACH PARTITION nonces_{bucket} {how}"))
                .await?;
        }
        client.batch_execute(&format!("DROP TABLE nonces_{bucket}")).await?;
        tracing::debug!(bucket, "nonce partition dropped");
    }
    Ok(())
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

/// Nonces that this process has seen, for requests that are answered without the database, and to refuse a replay
/// before it costs a query. Kept for one to two bucket lengths, as 64-bit keyed hashes.
#[derive(Debug)]
pub(super) struct NonceMemory {
    hasher: RandomState,
    generations: Mutex<Generations>,
}

#[derive(Debug)]
struct Generations {
    opened: Instant,
    current: HashSet<u64>,
    previous: HashSet<u64>,
}

impl Default for NonceMemory {
    fn default() -> Self {
        let generations = Generations {
            opened: Instant::now(),
            current: HashSet::default(),
            previous: HashSet::default(),
        };
        NonceMemory {
            hasher: RandomState::new(),
            generations: Mutex::new(generations),
        }
    }
}

impl NonceMemory {
    /// Notes a use; returns whether it is the first one known of.
    pub fn insert(&self, key_id: &str, nonce: &str) -> bool {
        let hash = self.hasher.hash_one((key_id, nonce));
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if generations.opened.elapsed() >= Duration::from_secs(BUCKET_SECONDS.unsigned_abs()) {
            generations.previous = std::mem::take(&mut generations.current);
            generations.opened = Instant::now();
        }
        !generations.previous.contains(&hash) && generations.current.insert(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_fresh_once_per_key() {
        let memory = NonceMemory::default();
        assert!(memory.insert("a", "0123456789abcdef"));
        assert!(!memory.insert("a", "0123456789abcdef"));
        assert!(memory.insert("b", "0123456789abcdef"));
        assert!(memory.insert("a", "0123456789abcdeF"));
    }
}
