//! This version serves while the next one migrates its database.
//!
//! The next one is a migration (`fixture/migrations`); this version's statements stand in for its program, sent as it sends them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures::future::join;
use partner_api_store::migrate::{MigrateError, migrate};
use partner_api_store::statement::STATEMENTS;
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::wait::until;
use refinery::Runner;
use tokio_postgres::{Client, Config};
use uuid::Uuid;

use crate::migrations_and_the_next;

/// A statement of the service, by its module and name.
fn sql(name: &str) -> &'static str {
    let found = STATEMENTS.iter().find(|statement| statement.name().ends_with(name));
    found.unwrap_or_else(|| panic!("no {name}")).sql()
}

/// The fixture data of the harness.
const DATA: &str = include_str!("../../fixture/data.sql");
const PARTNER: &str = "01974d1c-0000-7c00-8000-00000000000a";

/// How long a statement may take that has to wait for nothing but the migrations' locks (3 s each).
const BOUND: Duration = Duration::from_secs(5);

/// How long a migration may go on that does not get its lock.
const GIVES_UP: Duration = Duration::from_secs(20);

/// A database as this version has it, with rows.
async fn database_before() -> Database {
    let database = Database::empty().await;
    migrate(&database.config()).await.unwrap();
    let client = cluster::connect(&database.config()).await;
    client.batch_execute(DATA).await.unwrap();
    let key = "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext)
               SELECT 'key-' || number, $1::text::uuid, CASE number WHEN 3 THEN 'live' ELSE 'test' END, decode(repeat('00', 24), 'hex'), ''
               FROM generate_series(1, 3) AS number";
    client.execute(key, &[&PARTNER]).await.unwrap();
    // What its replicas make ahead.
    let bucket = "SELECT floor(extract(epoch FROM now()) / 900)::bigint";
    let bucket: i64 = client.query_one(bucket, &[]).await.unwrap().get(0);
    for bucket in bucket..bucket + 3 {
        let partition = format!(
            "CREATE TABLE used_nonces_{bucket} PARTITION OF used_nonces FOR VALUES FROM ({bucket}) TO ({})",
            bucket + 1
        );
        client.batch_execute(&partition).await.unwrap();
    }
    database
}

/// A session of this version.
struct Before {
    client: Client,
    key: &'static str,
}

impl Before {
    async fn connect(config: &Config, key: &'static str) -> Self {
        let client = cluster::connect(config).await;
        // As its pools set it.
        client
            .batch_execute("SET statement_timeout = '5s'; SET lock_timeout = '3s'")
            .await
            .unwrap();
        Self { client, key }
    }

    /// Admits a request, and records a package that waits and one that is applied to a report.
    async fn serve(&self) {
        let since = Instant::now();
        let (partner, digest): (Uuid, Uuid) = (PARTNER.parse().unwrap(), Uuid::now_v7());
        let admitted = self
            .client
            .query(
                sql("admission::batch::ADMIT"),
                &[&vec![self.key], &vec![digest], &900_f64, &30_f64, &60_f64, &5_f64],
            )
            .await
            .unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(admitted.len(), 1);
        let (raw, sha256) = (vec![&b"{}"[..]], vec![&[0_u8; 32][..]]);
        let id = Uuid::now_v7();
        let (codes, texts) = (vec!["{SLIP_FRONT}"], vec!["{1}"]);
        let none: Vec<Option<&str>> = vec![None];
        let no_time: Vec<Option<chrono::DateTime<chrono::Utc>>> = vec![None];
        let recorded = self
            .client
            .query(
                sql("measurements::record::RECORD"),
                &[
                    &vec![id],
                    &vec![partner],
                    &vec![self.key],
                    &vec!["IZMIR-01"],
                    &vec!["34WAIT1"],
                    &vec![Some(id.to_string())],
                    &none,
                    &no_time,
                    &raw,
                    &sha256,
                    &codes,
                    &texts,
                ],
            )
            .await
            .unwrap_or_else(|error| panic!("{error:?}"));
        assert!(recorded[0].get::<_, bool>("recorded"));
        let report = "SELECT id FROM inspections WHERE plate = '35OPN205'";
        let report: Uuid = self.client.query_one(report, &[]).await.unwrap().get(0);
        let applied = Uuid::now_v7();
        let recorded = self
            .client
            .execute(
                sql("measurements::apply::RECORD_APPLIED"),
                &[
                    &vec![report],
                    &vec![applied],
                    &vec![partner],
                    &vec![self.key],
                    &vec![Some(applied.to_string())],
                    &none,
                    &no_time,
                    &raw,
                    &sha256,
                    &codes,
                    &texts,
                    &vec!["{applied}"],
                ],
            )
            .await
            .unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(recorded, 1);
        assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
    }

    /// Reads keys and grants if they have changed.
    async fn look(&self, seen: &mut i64) {
        let since = Instant::now();
        let version: i64 = self
            .client
            .query_one(sql("directory::load::VERSION"), &[])
            .await
            .unwrap()
            .get(0);
        if version != *seen {
            *seen = version;
            assert!(
                !self
                    .client
                    .query(sql("directory::load::KEYS"), &[&"test"])
                    .await
                    .unwrap()
                    .is_empty()
            );
            assert!(
                !self
                    .client
                    .query(sql("directory::load::GRANTS"), &[])
                    .await
                    .unwrap()
                    .is_empty()
            );
        }
        assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
    }

    /// What its operators do, by SQL and without a word in any log: a key changes, and is revoked.
    async fn operate(&self) {
        for change in [
            "UPDATE api_keys SET rate_limit = rate_limit % 1000 + 1 WHERE key_id = $1",
            "UPDATE api_keys SET revoked_at = now() WHERE key_id = $1",
        ] {
            let since = Instant::now();
            let changed = self.client.execute(change, &[&self.key]).await;
            assert_eq!(changed.unwrap_or_else(|error| panic!("{change}: {error:?}")), 1);
            assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
        }
    }
}

/// Does all that this version does, again and again: before `migrating`, meanwhile and behind it.
async fn beside(config: &Config, migrating: impl Future<Output = ()>) {
    let done = AtomicBool::new(false);
    let (serving, looking, operating) = (
        Before::connect(config, "key-1").await,
        Before::connect(config, "key-2").await,
        Before::connect(config, "key-3").await,
    );
    let counts = [AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)];
    let serve = async {
        while !done.load(Relaxed) {
            serving.serve().await;
            counts[0].fetch_add(1, Relaxed);
        }
    };
    let look = async {
        let mut seen = 0;
        while !done.load(Relaxed) {
            looking.look(&mut seen).await;
            counts[1].fetch_add(1, Relaxed);
        }
    };
    let operate = async {
        while !done.load(Relaxed) {
            operating.operate().await;
            counts[2].fetch_add(1, Relaxed);
        }
    };
    let migrating = async {
        let all_have_gone_on = async || {
            let before: Vec<_> = counts.iter().map(|count| count.load(Relaxed)).collect();
            // One that hangs ends the test.
            until(Duration::from_secs(60), async || {
                let mut pairs = counts.iter().zip(&before);
                pairs
                    .all(|(count, before)| count.load(Relaxed) > *before + 1)
                    .then_some(())
            })
            .await;
        };
        all_have_gone_on().await;
        migrating.await;
        all_have_gone_on().await;
        done.store(true, Relaxed);
    };
    tokio::join!(serve, look, operate, migrating);
}

/// Applies the next version's migration.
async fn migrate_to_the_next(config: &Config) -> Result<(), refinery::Error> {
    let mut client = cluster::connect(config).await;
    let report = Runner::new(&migrations_and_the_next()).run_async(&mut client).await?;
    assert_eq!(report.applied_migrations().len(), 1);
    Ok(())
}

#[tokio::test]
async fn this_version_serves_on_while_its_database_is_migrated() {
    let database = database_before().await;
    let config = database.config();
    beside(&config, async { migrate_to_the_next(&config).await.unwrap() }).await;
    // It cannot be started again: it does not know what it would write to.
    let newer = migrate(&config).await.unwrap_err();
    assert!(matches!(newer, MigrateError::DatabaseNewer { .. }), "{newer}");
}

#[tokio::test]
async fn a_migration_that_cannot_have_its_lock_gives_up_before_anybody_else_does() {
    let database = database_before().await;
    let config = database.config();
    // A change to a key that nobody ends, with which no trigger can be put onto the table.
    let holder = cluster::connect(&config).await;
    holder
        .batch_execute(
            "BEGIN; UPDATE partners SET name = name WHERE false; UPDATE api_keys SET scopes = '{}' WHERE false",
        )
        .await
        .unwrap();
    let serving = Before::connect(&config, "key-1").await;
    let looking = Before::connect(&config, "key-2").await;
    let given_up = AtomicBool::new(false);
    let serve = async {
        while !given_up.load(Relaxed) {
            serving.serve().await;
            looking.look(&mut 0).await;
        }
    };
    let attempt = async {
        let failed = tokio::time::timeout(GIVES_UP, migrate_to_the_next(&config)).await;
        let failed = failed.expect("it waits for ever").unwrap_err();
        given_up.store(true, Relaxed);
        assert!(format!("{failed:?}").contains("lock timeout"), "{failed:?}");
    };
    join(serve, attempt).await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    // Nothing stands in the way of the next attempt.
    let (applied, ()) = join(migrate_to_the_next(&config), serving.serve()).await;
    applied.unwrap();
}
