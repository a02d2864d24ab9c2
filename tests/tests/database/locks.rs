//! The locks that migrations take while an older version is serving.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join;
use partner_api_store::migrate::migrate;
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::wait::until;
use tokio_postgres::Client;

use crate::migrations_and_the_next;

/// The existing tables that the transaction locks against writers, each with whether it is locked against readers, too.
async fn locked_tables(client: &Client) -> BTreeSet<(String, bool)> {
    let locks = "SELECT c.relname::text, l.mode = 'AccessExclusiveLock'
                 FROM pg_locks l JOIN tables_before c ON c.oid = l.relation
                 WHERE l.pid = pg_backend_pid()
                   AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')";
    let rows = client.query(locks, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The mode and the tables of a migration's `CALL lock_tables`.
fn declared_locks(sql: &str) -> (String, BTreeSet<String>) {
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
async fn a_migration_locks_all_of_its_tables_or_none() {
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
        let locked = locked_tables(&client).await;
        client.batch_execute("COMMIT").await.unwrap();
        let names: BTreeSet<_> = locked.iter().map(|(name, _)| name.clone()).collect();
        if names.len() < 2 {
            continue;
        }
        checked += 1;
        let (mode, listed) = declared_locks(sql);
        assert_eq!(
            listed, names,
            "{migration}: CALL lock_tables must name the tables that it locks"
        );
        let blocks_readers = locked.iter().any(|(_, blocks_readers)| *blocks_readers);
        assert!(mode == "ACCESS EXCLUSIVE" || !blocks_readers, "{migration}: {mode}");
    }
    assert!(checked > 0, "not even the fixture locks several tables");
}

#[tokio::test]
async fn the_holder_of_one_table_of_a_migration_gets_the_other_tables() {
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
