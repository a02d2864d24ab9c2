//! Migrations of empty databases.

use std::time::Duration;

use partner_api_store::connection::Connection;
use partner_api_store::migrate::{MigrateError, migrate, migrate_within};
use partner_api_store::partitions::ANSWER_HISTORY;
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_store::schema;
use partner_api_tests::cluster::{self, Database};

use crate::migrations_and_the_next;

#[tokio::test]
async fn replicas_that_start_together_apply_each_migration_once() {
    let database = Database::empty().await;
    let config = database.config();
    let (first, second) = tokio::join!(migrate(&config), migrate(&config));
    let (first, second) = (first.unwrap(), second.unwrap());
    let known = refinery::load_sql_migrations("../migrations").unwrap().len();
    assert_eq!(first.len() + second.len(), known, "{first:?} {second:?}");
    assert!(first.is_empty() || second.is_empty(), "{first:?} {second:?}");
    assert_eq!(migrate(&config).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_newer_database_an_edited_migration_and_a_failing_one_are_distinguished() {
    let database = Database::empty().await;
    let config = database.config();
    let client = cluster::connect(&config).await;
    let applied = async || -> i64 {
        let count = "SELECT count(*) FROM refinery_schema_history";
        client.query_one(count, &[]).await.unwrap().get(0)
    };

    // A table with the name of one in the first migration.
    client.batch_execute("CREATE TABLE photos ()").await.unwrap();
    let failed = migrate(&config).await.unwrap_err();
    assert!(failed.to_string().contains("\"photos\" already exists"), "{failed}");
    assert_eq!(applied().await, 0);
    // The migration is rolled back completely, and the lock is free again.
    client.batch_execute("DROP TABLE photos").await.unwrap();
    let names = migrate(&config).await.unwrap();
    assert_eq!(applied().await, i64::try_from(names.len()).unwrap());

    let newest = names.last().unwrap();
    let add = "INSERT INTO refinery_schema_history VALUES (4096, 'newer', '2030-01-01T00:00:00Z', '1')";
    client.batch_execute(add).await.unwrap();
    assert_eq!(migrate(&config).await.unwrap(), Vec::<String>::new());
    let require = "UPDATE deployment SET required_migration = 4096";
    client.batch_execute(require).await.unwrap();
    let newer = migrate(&config).await.unwrap_err();
    assert!(matches!(newer, MigrateError::DatabaseNewer { .. }), "{newer}");
    let message = newer.to_string();
    assert!(
        message.contains("V4096__newer") && message.contains(newest),
        "{message}"
    );

    let edit = "DELETE FROM refinery_schema_history WHERE version = 4096;
                UPDATE deployment SET required_migration = 1;
                UPDATE refinery_schema_history SET checksum = '1' WHERE version = 1";
    client.batch_execute(edit).await.unwrap();
    let edited = migrate(&config).await.unwrap_err();
    assert!(matches!(edited, MigrateError::Edited { .. }), "{edited}");
}

/// The first line of each later migration says whether the previous release can still use the schema, and `required_migration`
/// says the same to programs.
#[tokio::test]
async fn each_migration_that_removes_something_requires_a_program_that_does_not_use_it() {
    let database = Database::empty().await;
    let config = database.config();
    let client = cluster::connect(&config).await;
    let migrations = migrations_and_the_next();
    cluster::apply(&config, &migrations[..1]).await.unwrap();
    let mut before: i32 = 1;
    for (index, migration) in migrations.iter().enumerate().skip(1) {
        cluster::apply(&config, &migrations[..=index]).await.unwrap();
        let required = "SELECT required_migration FROM deployment";
        let required: i32 = client.query_one(required, &[]).await.unwrap().get(0);
        match migration.sql().unwrap().split_once(':').unwrap().0 {
            "-- Expand" => assert_eq!(required, before, "{migration}"),
            "-- Contract" => assert!(
                required > before && required < migration.version(),
                "{migration} must set required_migration to that of the program that no longer uses what it removes"
            ),
            other => panic!("{migration} must begin with `-- Expand:` or `-- Contract:`, not {other}"),
        }
        before = required;
    }
}

#[tokio::test]
async fn partitions_of_the_answer_history_are_created_ahead_and_never_dropped() {
    let database = Database::without_rows().await;
    let client = cluster::connect(&database.config()).await;
    let partitions = async || -> Vec<String> {
        let sql = "SELECT inhrelid::regclass::text FROM pg_inherits
                   WHERE inhparent = 'inspection_form_answer_history'::regclass ORDER BY 1";
        client
            .query(sql, &[])
            .await
            .unwrap()
            .iter()
            .map(|row| row.get(0))
            .collect()
    };
    // The migration creates this year's and the next one's.
    let created = partitions().await;
    assert_eq!(created.len(), 2);
    // As if the migration had run long ago.
    let old = format!(
        "ALTER TABLE inspection_form_answer_history DETACH PARTITION {next}; DROP TABLE {next};
         CREATE TABLE inspection_form_answer_history_2020 PARTITION OF inspection_form_answer_history
         FOR VALUES FROM ('2020-01-01 00:00:00+00') TO ('2021-01-01 00:00:00+00')",
        next = created[1]
    );
    client.batch_execute(&old).await.unwrap();
    let pool = pool(database.config(), &PoolSettings::default()).unwrap();
    ANSWER_HISTORY.prepare(&pool).await.unwrap();
    let all = [&["inspection_form_answer_history_2020".to_owned()], &created[..]].concat();
    assert_eq!(partitions().await, all);
}

/// The number of the migration lock.
const LOCK: i64 = 0x70_6172_746e_6572;

#[tokio::test]
async fn a_start_names_the_session_that_holds_the_migration_lock_and_gives_up() {
    let database = Database::without_rows().await;
    let mut config = database.config();
    config.application_name("a lost replica");
    let other = cluster::connect(&config).await;
    other.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.unwrap();
    let error = migrate_within(&database.config(), Duration::ZERO).await.unwrap_err();
    let process: i32 = other.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let MigrateError::Locked { holder, .. } = &error else {
        panic!("{error}");
    };
    assert!(
        holder.contains(&process.to_string()) && holder.contains("a lost replica"),
        "{holder}"
    );

    // It waits for a lock that is released in time.
    let (migrated, released) = futures::join!(
        migrate_within(&config, Duration::from_secs(60)),
        other.execute("SELECT pg_advisory_unlock($1)", &[&LOCK])
    );
    released.unwrap();
    assert_eq!(migrated.unwrap(), Vec::<String>::new());
}

/// `RECORD=1` writes the file.
#[tokio::test]
async fn the_list_of_the_schemas_objects_is_complete() {
    let database = Database::without_rows().await;
    let pool = pool(database.config(), &PoolSettings::default()).unwrap();
    let connection = Connection::take(&pool, Duration::from_secs(10)).await.unwrap();
    let objects = schema::objects(&connection).await.unwrap();
    let text: String = objects.iter().map(|object| format!("{object}\n")).collect();
    if std::env::var_os("RECORD").is_some() {
        std::fs::write("../crates/store/src/schema.txt", &text).unwrap();
    } else {
        assert_eq!(schema::EXPECTED, text, "RECORD=1 updates crates/store/src/schema.txt");
    }
    assert_eq!(schema::missing(&connection).await.unwrap(), [""; 0]);
}
