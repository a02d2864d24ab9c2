//! Rolling upgrades: this version serves while the next one migrates its database.
//!
//! The next version is represented by a migration (`fixture/migrations`), this version by the statements of its program.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures::future::join;
use partner_api_store::migrate::{MigrateError, migrate};
use partner_api_store::statement::STATEMENTS;
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::measurements::package;
use partner_api_tests::wait::until;
use partner_api_tests::{ALPHA, Service};
use refinery::Migration;
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

/// The maximum time of a statement that waits only for the locks of migrations (3 s each).
const BOUND: Duration = Duration::from_secs(5);

/// The maximum time of a migration that does not get its lock.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(20);

/// A database of this version, with rows.
async fn database_before() -> Database {
    let database = Database::empty().await;
    migrate(&database.config()).await.unwrap();
    let client = cluster::connect(&database.config()).await;
    client.batch_execute(DATA).await.unwrap();
    let key = "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext)
               SELECT 'key-' || number, $1::text::uuid, CASE number WHEN 3 THEN 'live' ELSE 'test' END, decode(repeat('00', 24), 'hex'), ''
               FROM generate_series(1, 3) AS number";
    client.execute(key, &[&PARTNER]).await.unwrap();
    // The partitions that its replicas create ahead.
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
struct OldSession {
    client: Client,
    key: &'static str,
}

impl OldSession {
    async fn connect(config: &Config, key: &'static str) -> Self {
        let client = cluster::connect(config).await;
        // The same settings as in its pools.
        client
            .batch_execute("SET statement_timeout = '5s'; SET lock_timeout = '3s'")
            .await
            .unwrap();
        Self { client, key }
    }

    /// Admits a request, and records a pending package and one that is applied to a report.
    async fn serve(&self) {
        let since = Instant::now();
        let (partner, digest): (Uuid, Uuid) = (PARTNER.parse().unwrap(), Uuid::now_v7());
        let admitted = self
            .client
            .query(
                sql("admission::batch::ADMIT"),
                &[
                    &vec![self.key],
                    &vec![digest],
                    &900_f64,
                    &30_f64,
                    &60_f64,
                    &5_f64,
                    &2_i64,
                ],
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
        let report = "SELECT id, organization_id FROM inspections WHERE plate = '35OPN205'";
        let report = self.client.query_one(report, &[]).await.unwrap();
        let (report, organization): (Uuid, Uuid) = (report.get(0), report.get(1));
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
                    &organization,
                ],
            )
            .await
            .unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(recorded, 1);
        assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
    }

    /// Reads keys and grants if they have changed.
    async fn poll(&self, last_version: &mut i64) {
        let since = Instant::now();
        let version: i64 = self
            .client
            .query_one(sql("directory::load::VERSION"), &[])
            .await
            .unwrap()
            .get(0);
        if version != *last_version {
            *last_version = version;
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

    /// Changes and revokes a key by SQL, without an audit row.
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

/// Repeats everything that this version does before, during and after `migrating`.
async fn serve_during(config: &Config, migrating: impl Future<Output = ()>) {
    let done = AtomicBool::new(false);
    let (serving, polling, operating) = (
        OldSession::connect(config, "key-1").await,
        OldSession::connect(config, "key-2").await,
        OldSession::connect(config, "key-3").await,
    );
    let counts = [AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)];
    let serve = async {
        while !done.load(Relaxed) {
            serving.serve().await;
            counts[0].fetch_add(1, Relaxed);
        }
    };
    let poll = async {
        let mut last_version = 0;
        while !done.load(Relaxed) {
            polling.poll(&mut last_version).await;
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
        let all_made_progress = async || {
            let before: Vec<_> = counts.iter().map(|count| count.load(Relaxed)).collect();
            // A task that hangs fails the test.
            until(Duration::from_secs(60), async || {
                let mut pairs = counts.iter().zip(&before);
                pairs
                    .all(|(count, before)| count.load(Relaxed) > *before + 1)
                    .then_some(())
            })
            .await;
        };
        all_made_progress().await;
        migrating.await;
        all_made_progress().await;
        done.store(true, Relaxed);
    };
    tokio::join!(serve, poll, operate, migrating);
}

/// Applies the next version's migration.
async fn migrate_to_the_next(config: &Config) -> Result<(), refinery::Error> {
    assert_eq!(cluster::apply(config, &migrations_and_the_next()).await?, 1);
    Ok(())
}

#[tokio::test]
async fn this_version_keeps_serving_while_its_database_is_migrated() {
    let database = database_before().await;
    let config = database.config();
    serve_during(&config, async { migrate_to_the_next(&config).await.unwrap() }).await;
}

/// OPS-12: the way back after an upgrade. `script/check later` runs all conformance tests on such a schema.
#[tokio::test]
async fn this_version_starts_and_serves_on_a_schema_that_the_next_one_expanded() {
    let database = Database::create().await;
    let config = database.config();
    migrate_to_the_next(&config).await.unwrap();
    assert_eq!(migrate(&config).await.unwrap(), Vec::<String>::new());
    let service = Service::start_on(config.clone()).await;
    service
        .get(&ALPHA, "/api/v1/partner/inspections")
        .await
        .assert_status(200);
    service
        .measure(&ALPHA, package("M-1", "06 NEW 001"))
        .await
        .assert_status(201);
    let client = cluster::connect(&config).await;
    let stored = "SELECT count(*) FROM measurements WHERE external_id = 'M-1' AND station IS NULL";
    assert_eq!(client.query_one(stored, &[]).await.unwrap().get::<_, i64>(0), 1);
}

/// OPS-12: the migration removes what this version uses, and says so.
#[tokio::test]
async fn this_version_refuses_a_schema_from_which_a_later_one_removed_what_it_uses() {
    let database = Database::create().await;
    let config = database.config();
    let sql = "SET LOCAL lock_timeout = '3s';
               ALTER TABLE measurements DROP COLUMN device_serial;
               UPDATE deployment SET required_migration = 9001";
    let mut migrations = migrations_and_the_next();
    migrations.push(Migration::unapplied("V9002__no_device_serials", sql).unwrap());
    assert_eq!(cluster::apply(&config, &migrations).await.unwrap(), 2);
    let error = migrate(&config).await.unwrap_err();
    assert!(matches!(error, MigrateError::DatabaseNewer { .. }), "{error}");
    let message = error.to_string();
    let known = migrations[migrations.len() - 3].to_string();
    for name in ["V9002__no_device_serials", "V9001__station_notes", &known] {
        assert!(message.contains(name), "{message}");
    }
}

#[tokio::test]
async fn a_migration_that_cannot_get_its_lock_fails_before_any_request_does() {
    let database = database_before().await;
    let config = database.config();
    // An open transaction that changed a key, so that no trigger can be created on the table.
    let holder = cluster::connect(&config).await;
    holder
        .batch_execute(
            "BEGIN; UPDATE partners SET name = name WHERE false; UPDATE api_keys SET scopes = '{}' WHERE false",
        )
        .await
        .unwrap();
    let serving = OldSession::connect(&config, "key-1").await;
    let polling = OldSession::connect(&config, "key-2").await;
    let has_failed = AtomicBool::new(false);
    let serve = async {
        while !has_failed.load(Relaxed) {
            serving.serve().await;
            polling.poll(&mut 0).await;
        }
    };
    let attempt = async {
        let failed = tokio::time::timeout(MIGRATION_TIMEOUT, migrate_to_the_next(&config)).await;
        let failed = failed.expect("the migration did not give up").unwrap_err();
        has_failed.store(true, Relaxed);
        assert!(format!("{failed:?}").contains("lock timeout"), "{failed:?}");
    };
    join(serve, attempt).await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    // The next attempt succeeds.
    let (applied, ()) = join(migrate_to_the_next(&config), serving.serve()).await;
    applied.unwrap();
}
