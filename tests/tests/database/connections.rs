//! Connections of the pool: every wait has a bound, and no unfinished statement or transaction returns to the pool.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::deadline::Deadline;
use partner_api_store::pool::{POOL_WAIT, PoolSettings, pool};
use partner_api_store::shared::SharedConnections;
use partner_api_store::standby::Reader;
use partner_api_tests::cluster::Database;
use tokio::sync::Semaphore;

partner_api_store::statement! {
    /// The ID of the session.
    SESSION = "SELECT pg_backend_pid()";
    /// Fails when it is executed.
    FAILING = "SELECT 1 / (pg_backend_pid() - pg_backend_pid())";
    /// Waits for another session's lock.
    LOCKING = "SELECT pg_advisory_xact_lock(1)";
    /// The value of a setting.
    SETTING = "SELECT current_setting($1)";
}

/// The settings of a pool of one connection.
fn single_connection() -> PoolSettings {
    PoolSettings {
        size: 1,
        ..PoolSettings::default()
    }
}

#[tokio::test]
async fn an_exhausted_pool_times_out_and_sessions_have_the_configured_timeouts() {
    let database = Database::without_rows().await;
    let pool = pool(database.config(), &single_connection()).unwrap();
    let take = || Connection::take(&pool, Duration::from_secs(60));
    let only = take().await.unwrap();
    for (name, value) in [
        ("statement_timeout", "5s"),
        ("lock_timeout", "3s"),
        ("idle_in_transaction_session_timeout", "10s"),
    ] {
        let shown: String = only.query_one(SETTING, &[&name]).await.unwrap().get(0);
        assert_eq!(shown, value, "{name}");
    }
    let started = Instant::now();
    let rejected = take().await.unwrap_err();
    assert!(matches!(rejected, DbError::Pool(_)), "{rejected}");
    assert!(started.elapsed() >= POOL_WAIT);
    drop(only);
    assert!(take().await.is_ok());
}

#[tokio::test]
async fn a_connection_returns_to_the_pool_only_after_its_transaction_ended() {
    let database = Database::without_rows().await;
    let pool = pool(database.config(), &single_connection()).unwrap();
    let take = async || Connection::take(&pool, Duration::from_secs(60)).await.unwrap();
    let session = async |db: &Connection| -> i32 { db.query_one(SESSION, &[]).await.unwrap().get(0) };
    let first = session(&take().await).await;

    let db = take().await;
    let transaction = db.transaction().lock_timeout(Duration::from_millis(10));
    let prepared = transaction.prepare(SESSION).await.unwrap();
    drop(transaction);
    let transaction = db.transaction();
    transaction.query(&prepared, &[]).await.unwrap();
    transaction.commit().await.unwrap();
    drop(transaction);
    let transaction = db.transaction();
    let failing = transaction.prepare(FAILING).await.unwrap();
    let rejected = transaction.query(&failing, &[]).await.unwrap_err();
    assert!(rejected.rejection().is_some(), "{rejected}");
    transaction.rollback().await.unwrap();
    drop(transaction);
    drop(db);
    let db = take().await;
    assert_eq!(session(&db).await, first, "no transaction was left open");

    let transaction = db.transaction();
    assert_eq!(transaction.query(&prepared, &[]).await.unwrap().len(), 1);
    drop(transaction);
    drop(db);
    assert_ne!(
        session(&take().await).await,
        first,
        "a transaction was begun and not ended"
    );
}

#[tokio::test]
async fn many_reads_share_a_connection_and_those_behind_a_statement_that_hangs_use_others() {
    let database = Database::without_rows().await;
    let settings = PoolSettings {
        size: 4,
        ..PoolSettings::default()
    };
    let pool = pool(database.config(), &settings).unwrap();
    let shared = SharedConnections::new(pool.clone());
    let quota = Arc::new(Semaphore::new(100));
    let take = async || {
        Reader::take_within_quota(&shared, None, &quota, Deadline::begin())
            .await
            .unwrap()
    };
    let session = async |reader: &Reader| -> i32 { reader.query(SESSION, &[]).await.unwrap()[0].get(0) };
    let first = take().await;
    let only = session(&first).await;
    // More than the pool has connections.
    let mut readers = vec![first];
    // So that it is prepared below.
    readers[0].query(LOCKING, &[]).await.unwrap();
    for _ in 0..10 {
        let reader = take().await;
        assert_eq!(session(&reader).await, only);
        readers.push(reader);
    }

    let holder = partner_api_tests::cluster::connect(&database.config()).await;
    holder.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap();
    let (hanging, behind) = (take().await, take().await);
    let (rejected, other) = join(hanging.query(LOCKING, &[]), session(&behind)).await;
    assert!(matches!(rejected.unwrap_err(), DbError::TimedOut));
    assert_ne!(other, only);
    drop((hanging, behind));
    // The connection that was used instead is taken at once.
    assert_eq!(pool.status().available, 1);
    let reader = take().await;
    assert_eq!(pool.status().available, 0, "the stalled connection is used");
    assert_ne!(session(&reader).await, only);
}
