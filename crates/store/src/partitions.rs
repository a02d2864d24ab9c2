//! Maintenance of tables that are partitioned by time. Partitions are created ahead and dropped as a whole, by any one replica.
//!
//! The database's clock determines the current partition. Maintenance does not wait for requests, and a request waits for it for
//! 100 ms at most. It calls two functions of the schema, which run with the rights of the owner of the tables, so that the
//! service's own role needs no DDL. The functions refuse to drop what is still needed (`migrations/V0001__baseline.sql`).

use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object, Pool};

use super::DbError;
use super::connection::Connection;
use crate::statement;

/// The time limit for one round of maintenance, including waits for transactions. A hung server process must not stop the
/// maintenance forever.
const MAINTENANCE_TIMEOUT: Duration = Duration::from_secs(45);

/// After which time a start that waits for partitions logs this, and how often it repeats it.
const WAITING_LOGGED_AFTER: Duration = Duration::from_secs(1);
const WAITING_LOGGED_EVERY: Duration = Duration::from_secs(5);

statement! {
    /// The tables with the name of a partition, the digits in the name, and whether the table is attached.
    PARTITIONS = "\
SELECT substr(child.relname, length(parent.relname) + 2) AS digits, inhrelid IS NOT NULL AS is_attached
FROM pg_class child
JOIN pg_class parent ON parent.oid = to_regclass($1::text) AND parent.relnamespace = child.relnamespace
LEFT JOIN pg_inherits ON inhrelid = child.oid AND inhparent = parent.oid
WHERE child.relkind = 'r' AND child.relname ~ ('^' || parent.relname || '_[0-9]+$')
ORDER BY child.relname";
    /// The number of the current partition. `$1` is the length of a partition in seconds, or null for years.
    NOW = "SELECT CASE WHEN $1::float8 IS NULL THEN extract(year FROM now() AT TIME ZONE 'UTC')::bigint \
           ELSE floor(extract(epoch FROM now())::float8 / $1::float8)::bigint END AS now";
    /// Whether this session acquired the lock for maintenance.
    TRY_LOCK = "SELECT pg_try_advisory_lock($1)";
    /// Creates a partition.
    CREATE = "SELECT create_partition($1, $2)";
    /// Drops a partition; false if a long transaction uses the table.
    DROP = "SELECT drop_partition($1, $2) AS dropped";
}

/// Formats the number of a partition as the digits in its name.
pub type FormatDigits = fn(i64) -> String;
/// Parses the digits in the name of a partition.
pub type ParseDigits = fn(&str) -> Option<i64>;

/// The partitions of the answer history: years in UTC, all of which are retained.
pub const ANSWER_HISTORY: Partitioned = Partitioned {
    table: "inspection_form_answer_history",
    length: None,
    ahead: 1,
    retained: i64::MAX,
    digits: (|year| year.to_string(), |digits| digits.parse().ok()),
    lock: 0x616e_7377_6572,
};

/// How often [`ANSWER_HISTORY`] is maintained.
pub const ANSWER_HISTORY_INTERVAL: Duration = Duration::from_secs(3600);

/// How a table is partitioned. Partition `n` begins `n` lengths after 1970.
#[derive(Clone, Debug)]
pub struct Partitioned {
    /// The name of the table. The name of a partition is this name, `_`, and digits.
    pub table: &'static str,
    /// The period of one partition; if it is `None`, partition `n` is the year `n`.
    pub length: Option<Duration>,
    /// The number of partitions that are created ahead of the current one.
    pub ahead: i64,
    /// The number of past partitions that are retained.
    pub retained: i64,
    /// Conversions between the number of a partition and the digits in its name.
    pub digits: (FormatDigits, ParseDigits),
    /// The advisory lock for maintenance.
    pub lock: i64,
}

/// The number of an existing partition, and whether it is attached.
type Existing = (i64, bool);

/// The state of a table's partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// The number of partitions that exist ahead of the current one; -1 if the current one is missing.
    pub ahead: i64,
    /// The tables past their retention.
    pub expired: Vec<String>,
}

impl Partitioned {
    /// Returns the state of the partitions without changing anything.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn state(&self, connection: &Connection) -> Result<PartitionState, DbError> {
        let row = connection
            .query_one(NOW, &[&self.length.map(|length| length.as_secs_f64())])
            .await?;
        let now: i64 = row.try_get("now")?;
        let mut attached = Vec::new();
        let mut expired = Vec::new();
        for row in connection.query(PARTITIONS, &[&self.table]).await? {
            let Some(number) = (self.digits.1)(row.try_get("digits")?) else {
                continue;
            };
            if number < now - self.retained {
                expired.push(self.name(number));
            } else if row.try_get("is_attached")? {
                attached.push(number);
            }
        }
        expired.sort();
        let consecutive = (now..).take_while(|number| attached.contains(number)).count();
        Ok(PartitionState {
            ahead: i64::try_from(consecutive).unwrap_or(i64::MAX) - 1,
            expired,
        })
    }

    /// Creates the next partitions and drops the expired ones. Does nothing if another replica is doing this.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn maintain(&self, pool: &Pool) -> Result<(), DbError> {
        // The session lock must not return to the pool, so the connection is always closed.
        #[expect(
            clippy::disallowed_methods,
            reason = "a `Connection` would return to the pool with the session's lock"
        )]
        let client = Object::take(pool.get().await?);
        tokio::time::timeout(MAINTENANCE_TIMEOUT, self.maintain_locked(&client))
            .await
            .map_err(|_| DbError::TimedOut)?
    }

    async fn maintain_locked(&self, client: &ClientWrapper) -> Result<(), DbError> {
        client.batch_execute("SET statement_timeout = '30s'").await?;
        let locked: bool = client.query_one(TRY_LOCK.sql(), &[&self.lock]).await?.try_get(0)?;
        if !locked {
            return Ok(());
        }
        let (now, existing) = self.partitions(client).await?;
        for number in now..=now + self.ahead {
            if !existing.contains(&(number, true)) {
                client.execute(CREATE.sql(), &[&self.table, &number]).await?;
                tracing::debug!(table = self.table, number, "created a partition");
            }
        }
        for (number, _) in existing.into_iter().filter(|(number, _)| *number < now - self.retained) {
            let row = client.query_one(DROP.sql(), &[&self.table, &number]).await?;
            if row.try_get("dropped")? {
                tracing::debug!(table = self.table, number, "dropped a partition");
            } else {
                // A transaction uses the table, such as that of a backup. The next round tries again.
                tracing::debug!(table = self.table, number, "an expired partition is in use");
                break;
            }
        }
        Ok(())
    }

    fn name(&self, number: i64) -> String {
        format!("{}_{}", self.table, (self.digits.0)(number))
    }

    /// Returns the number of the current partition, and the existing partitions.
    async fn partitions(&self, client: &ClientWrapper) -> Result<(i64, Vec<Existing>), DbError> {
        let now = client
            .query_one(NOW.sql(), &[&self.length.map(|length| length.as_secs_f64())])
            .await?
            .try_get("now")?;
        let mut existing = Vec::new();
        for row in client.query(PARTITIONS.sql(), &[&self.table]).await? {
            if let Some(number) = (self.digits.1)(row.try_get("digits")?) {
                existing.push((number, row.try_get("is_attached")?));
            }
        }
        Ok((now, existing))
    }

    /// Ensures that current rows can be inserted. If another replica is creating the partitions, waits until the current and the
    /// next one exist.
    ///
    /// # Errors
    /// If the database does not respond, or the partitions do not exist in time.
    pub async fn prepare(&self, pool: &Pool) -> Result<(), DbError> {
        let created = async {
            loop {
                self.maintain(pool).await?;
                #[expect(
                    clippy::disallowed_methods,
                    reason = "`partitions` takes a raw client, as in `maintain`"
                )]
                let client = pool.get().await?;
                let (now, existing) = self.partitions(&client).await?;
                if (now..=now + 1).all(|number| existing.contains(&(number, true))) {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let logged = async {
            let mut pause = WAITING_LOGGED_AFTER;
            loop {
                tokio::time::sleep(pause).await;
                tracing::warn!(
                    table = self.table,
                    "waiting for the partitions; another session holds a lock on the table, or another replica is creating them"
                );
                pause = WAITING_LOGGED_EVERY;
            }
        };
        tokio::select! {
            created = tokio::time::timeout(MAINTENANCE_TIMEOUT, created) => created.unwrap_or(Err(DbError::TimedOut)),
            never = logged => never,
        }
    }

    /// Maintains the partitions forever, once per `interval`.
    pub async fn maintain_forever(self, pool: Pool, interval: Duration) {
        loop {
            tokio::time::sleep(interval).await;
            if let Err(error) = self.maintain(&pool).await {
                tracing::warn!(%error, table = self.table, "failed to maintain partitions; retrying");
            }
        }
    }
}
