//! Tables that are partitioned by time: partitions are made ahead and dropped whole, by whichever replica comes to it first.
//!
//! The database's clock names the present one. Neither waits for traffic nor blocks it: a partition is made as a table of its
//! own and then attached, and detached concurrently before it is dropped.

use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object, Pool};

use super::DbError;
use super::connection::Connection;
use crate::statement;

/// How long one look may take, waits for transactions included: a hung backend must not end the looking for ever.
const LOOK_WITHIN: Duration = Duration::from_secs(45);

statement! {
    /// The tables that are partitions by their name, with the digits of it. `detaching` is null for one that is no partition,
    /// and true for one whose detaching was cut short: that one comes first, for until it is finished no other can be detached.
    PARTITIONS = "\
SELECT substr(child.relname, length(parent.relname) + 2) AS digits, pg_inherits.inhdetachpending AS detaching
FROM pg_class child
JOIN pg_class parent ON parent.oid = to_regclass($1::text) AND parent.relnamespace = child.relnamespace
LEFT JOIN pg_inherits ON inhrelid = child.oid AND inhparent = parent.oid
WHERE child.relkind = 'r' AND child.relname ~ ('^' || parent.relname || '_[0-9]+$')
ORDER BY detaching DESC NULLS LAST, child.relname";
    /// The number of the present partition, of so many seconds each; null: the year.
    NOW = "SELECT CASE WHEN $1::float8 IS NULL THEN extract(year FROM now() AT TIME ZONE 'UTC')::bigint \
           ELSE floor(extract(epoch FROM now())::float8 / $1::float8)::bigint END AS now";
    /// Whether this session is the one that looks after the partitions.
    TRY_LOCK = "SELECT pg_try_advisory_lock($1)";
}

/// A partition's number as its digits, and the other way round.
pub type Written = fn(i64) -> String;
/// See [`Written`].
pub type Read = fn(&str) -> Option<i64>;

/// The partitions of the answers' history: years of UTC, all of which are kept.
pub const ANSWER_HISTORY: Partitioned = Partitioned {
    table: "inspection_form_answer_history",
    column: "replaced_at",
    length: None,
    ahead: 1,
    kept: i64::MAX,
    digits: (|year| year.to_string(), |digits| digits.parse().ok()),
    begins: |year| format!("TIMESTAMPTZ '{year}-01-01 00:00:00+00'"),
    lock: 0x616e_7377_6572,
};

/// How often [`ANSWER_HISTORY`] is looked after.
pub const ANSWER_HISTORY_EVERY: Duration = Duration::from_secs(3600);

/// How a table is partitioned: partition `n` holds the time from `n` lengths after 1970 on.
#[derive(Clone, Debug)]
pub struct Partitioned {
    /// The table's name. A partition's is this one, `_`, and digits.
    pub table: &'static str,
    /// The column that decides.
    pub column: &'static str,
    /// The time that one partition holds; none: the year `n`.
    pub length: Option<Duration>,
    /// How many are made ahead of the present one.
    pub ahead: i64,
    /// How many of the past are kept.
    pub kept: i64,
    /// The digits in a partition's name, and what number they are; none for a name that is nobody's.
    pub digits: (Written, Read),
    /// Where a partition begins, as SQL. It ends where the next one begins.
    pub begins: fn(i64) -> String,
    /// The advisory lock of the replica that looks after them.
    pub lock: i64,
}

/// A partition's number, and the state of its detaching.
type There = (i64, Option<bool>);

/// Which partitions of a table there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// How many are made ahead of the present one; less than none where the present one is missing.
    pub ahead: i64,
    /// The tables that are not kept any more.
    pub expired: Vec<String>,
}

impl Partitioned {
    /// Looks, and changes nothing.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn survey(&self, connection: &Connection) -> Result<Survey, DbError> {
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
            if number < now - self.kept {
                expired.push(self.name(number));
            } else if row.try_get::<_, Option<bool>>("detaching")? == Some(false) {
                attached.push(number);
            }
        }
        expired.sort();
        let made = (now..).take_while(|number| attached.contains(number)).count();
        Ok(Survey {
            ahead: i64::try_from(made).unwrap_or(i64::MAX) - 1,
            expired,
        })
    }

    /// Makes the coming partitions and drops those that nobody needs any more; leaves it to another replica that is at it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn look_after(&self, pool: &Pool) -> Result<(), DbError> {
        // A session lock must not stay with a pooled connection: the connection is closed, whatever happens.
        #[expect(
            clippy::disallowed_methods,
            reason = "partitions are made by statements of their own"
        )]
        let client = Object::take(pool.get().await?);
        tokio::time::timeout(LOOK_WITHIN, self.look(&client))
            .await
            .map_err(|_| DbError::TimedOut)?
    }

    async fn look(&self, client: &ClientWrapper) -> Result<(), DbError> {
        client
            .batch_execute("SET statement_timeout = '30s'; SET lock_timeout = '5s'")
            .await?;
        let locked: bool = client.query_one(TRY_LOCK.sql(), &[&self.lock]).await?.try_get(0)?;
        if !locked {
            return Ok(());
        }
        let (now, there) = self.partitions(client).await?;
        for number in now..=now + self.ahead {
            if !there.contains(&(number, Some(false))) {
                client.batch_execute(&self.making(number)).await?;
                tracing::debug!(table = self.table, number, "partition made");
            }
        }
        for (number, detaching) in there.into_iter().filter(|(number, _)| *number < now - self.kept) {
            let (table, name) = (self.table, self.name(number));
            // Detaching waits for every transaction that uses the table (a backup, say), and is given up at the lock
            // time-out: what it began then has to be finished.
            if let Some(cut_short) = detaching {
                let how = if cut_short { "FINALIZE" } else { "CONCURRENTLY" };
                client
                    .batch_execute(&format!("ALTER TABLE {table} DETACH PARTITION {name} {how}"))
                    .await?;
            }
            client.batch_execute(&format!("DROP TABLE {name}")).await?;
            tracing::debug!(table = self.table, number, "partition dropped");
        }
        Ok(())
    }

    fn name(&self, number: i64) -> String {
        format!("{}_{}", self.table, (self.digits.0)(number))
    }

    fn making(&self, number: i64) -> String {
        let Partitioned { table, column, .. } = self;
        let (name, from, to) = (self.name(number), (self.begins)(number), (self.begins)(number + 1));
        format!(
            "DROP TABLE IF EXISTS {name};
             CREATE TABLE {name} (LIKE {table} INCLUDING ALL,
                 CONSTRAINT in_partition CHECK ({column} >= {from} AND {column} < {to}));
             ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({from}) TO ({to});
             ALTER TABLE {name} DROP CONSTRAINT in_partition;"
        )
    }

    /// The number of the present partition, and those that there are.
    async fn partitions(&self, client: &ClientWrapper) -> Result<(i64, Vec<There>), DbError> {
        let now = client
            .query_one(NOW.sql(), &[&self.length.map(|length| length.as_secs_f64())])
            .await?
            .try_get("now")?;
        let mut there = Vec::new();
        for row in client.query(PARTITIONS.sql(), &[&self.table]).await? {
            if let Some(number) = (self.digits.1)(row.try_get("digits")?) {
                there.push((number, row.try_get("detaching")?));
            }
        }
        Ok((now, there))
    }

    /// Sees to it that rows of now can be written: where another replica is making the partitions, waits until the present one
    /// and the next are there.
    ///
    /// # Errors
    /// When the database does not answer, or the partitions are not there in time.
    pub async fn prepare(&self, pool: &Pool) -> Result<(), DbError> {
        let there = async {
            loop {
                self.look_after(pool).await?;
                #[expect(clippy::disallowed_methods, reason = "partitions are looked up as above")]
                let client = pool.get().await?;
                let (now, there) = self.partitions(&client).await?;
                if (now..=now + 1).all(|number| there.contains(&(number, Some(false)))) {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::time::timeout(LOOK_WITHIN, there)
            .await
            .unwrap_or(Err(DbError::TimedOut))
    }

    /// Looks after the partitions for ever, so often.
    pub async fn keep(self, pool: Pool, every: Duration) {
        loop {
            tokio::time::sleep(every).await;
            if let Err(error) = self.look_after(&pool).await {
                tracing::warn!(%error, table = self.table, "partitions could not be looked after; trying again");
            }
        }
    }
}
