//! Migrations of empty databases.

use partner_api_store::migrate::{MigrateError, migrate};
use partner_api_store::partitions::ANSWER_HISTORY;
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_tests::cluster::{self, Database};

#[tokio::test]
async fn replicas_that_start_together_apply_everything_once() {
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
async fn a_newer_database_an_edited_and_a_failing_migration_are_told_apart() {
    let database = Database::empty().await;
    let config = database.config();
    let client = cluster::connect(&config).await;
    let applied = async || -> i64 {
        let count = "SELECT count(*) FROM refinery_schema_history";
        client.query_one(count, &[]).await.unwrap().get(0)
    };

    // In the way of a table of the first migration.
    client.batch_execute("CREATE TABLE photos ()").await.unwrap();
    let failed = migrate(&config).await.unwrap_err();
    assert!(failed.to_string().contains("\"photos\" already exists"), "{failed}");
    assert_eq!(applied().await, 0);
    // Undone as a whole, and the lock is free again.
    client.batch_execute("DROP TABLE photos").await.unwrap();
    let names = migrate(&config).await.unwrap();
    assert_eq!(applied().await, i64::try_from(names.len()).unwrap());

    let newest = names.last().unwrap();
    let add = "INSERT INTO refinery_schema_history VALUES (4096, 'newer', '2030-01-01T00:00:00Z', '1')";
    client.batch_execute(add).await.unwrap();
    let newer = migrate(&config).await.unwrap_err();
    assert!(matches!(newer, MigrateError::DatabaseNewer { .. }), "{newer}");
    let message = newer.to_string();
    assert!(
        message.contains("V4096__newer") && message.contains(newest),
        "{message}"
    );

    let edit = "DELETE FROM refinery_schema_history WHERE version = 4096;
                UPDATE refinery_schema_history SET checksum = '1' WHERE version = 1";
    client.batch_execute(edit).await.unwrap();
    let edited = migrate(&config).await.unwrap_err();
    assert!(matches!(edited, MigrateError::Edited { .. }), "{edited}");
}

#[tokio::test]
async fn the_partitions_of_the_answers_history_are_created_ahead_and_none_is_dropped() {
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
