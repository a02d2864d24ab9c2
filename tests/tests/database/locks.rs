//! The locks that migrations take beside a version that is serving.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join;
use partner_api_store::migrate::migrate;
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::wait::until;
use tokio_postgres::Client;

use crate::migrations_and_the_next;

/// Tables of before that the transaction keeps writers or readers from, and whether readers, too.
async fn taken(client: &Client) -> BTreeSet<(String, bool)> {
    let locks = "SELECT c.relname::text, l.mode = 'AccessExclusiveLock'
                 FROM pg_locks l JOIN tables_before c ON c.oid = l.relation
                 WHERE l.pid = pg_backend_pid()
                   AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')";
    let rows = client.query(locks, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The mode and the tables of a migration's `CALL lock_tables`.
fn called(sql: &str) -> (String, BTreeSet<String>) {
    let arguments = sql
        .split_once("\nCALL lock_tables(")
        .and_then(|(_, rest)| rest.split_once(");"));
    let mut words = arguments.map_or("", |(words, _)| words).split(',').map(|word| {
        let word = word.trim();
        word.trim_matches('\'').to_owned()
    });
    (words.next().unwrap_or_default(), words.collect())
}

#[tokio::test]
async fn a_migration_that_takes_several_tables_takes_them_all_or_none() {
    let database = Database::empty().await;
    let client = cluster::connect(&database.config()).await;
    let mut checked = 0;
    for migration in migrations_and_the_next() {
        let sql = migration.sql().unwrap();
        let tables = "DROP TABLE IF EXISTS tables_before;
                      CREATE TEMP TABLE tables_before AS SELECT oid, relname FROM pg_class
                      WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace;
                      BEGIN";
        client.batch_execute(tables).await.unwrap();
        client.batch_execute(sql).await.unwrap();
        let taken = taken(&client).await;
        client.batch_execute("COMMIT").await.unwrap();
        let names: BTreeSet<_> = taken.iter().map(|(name, _)| name.clone()).collect();
        if names.len() < 2 {
            continue;
        }
        checked += 1;
        let (mode, listed) = called(sql);
        assert_eq!(listed, names, "{migration}: CALL lock_tables with what it takes");
        let keeps_readers = taken.iter().any(|(_, keeps_readers)| *keeps_readers);
        assert!(mode == "ACCESS EXCLUSIVE" || !keeps_readers, "{migration}: {mode}");
    }
    assert!(checked > 0, "not even the fixture takes several tables");
}

#[tokio::test]
async fn whoever_holds_one_of_the_tables_of_a_migration_gets_the_others() {
    let database = Database::empty().await;
    let config = database.config();
    migrate(&config).await.unwrap();
    let (serving, migrating, watching) = (
        cluster::connect(&config).await,
        cluster::connect(&config).await,
        cluster::connect(&config).await,
    );
    serving.batch_execute("BEGIN; SELECT FROM vehicles").await.unwrap();
    let migrate = migrating.batch_execute("CALL lock_tables('ACCESS EXCLUSIVE', 'inspections', 'vehicles')");
    let serve = async {
        until(Duration::from_secs(10), async || {
            let waits = "SELECT FROM pg_locks WHERE relation = 'vehicles'::regclass AND NOT granted";
            (!watching.query(waits, &[]).await.unwrap().is_empty()).then_some(())
        })
        .await;
        serving.batch_execute("SELECT FROM inspections; COMMIT").await
    };
    let (migrated, served) = join(migrate, serve).await;
    served.unwrap_or_else(|error| panic!("{error:?}"));
    migrated.unwrap_or_else(|error| panic!("{error:?}"));
}
