//! Connections of the pool: every wait has a bound, and no unfinished statement or transaction returns to the pool.

use std::time::{Duration, Instant};

use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::pool::{POOL_WAIT, PoolSettings, pool};
use partner_api_tests::cluster::Database;

partner_api_store::statement! {
    /// Which session this is.
    SESSION = "SELECT pg_backend_pid()";
    /// Fails when it is executed.
    FAILING = "SELECT 1 / (pg_backend_pid() - pg_backend_pid())";
    /// What a setting is.
    SETTING = "SELECT current_setting($1)";
}

/// The settings of a pool of one connection.
fn of_one() -> PoolSettings {
    PoolSettings {
        size: 1,
        ..PoolSettings::default()
    }
}

#[tokio::test]
async fn a_drained_pool_is_refused_within_its_bound_and_sessions_carry_the_time_outs() {
    let database = Database::without_rows().await;
    let pool = pool(database.config(), &of_one()).unwrap();
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
    let refused = take().await.unwrap_err();
    assert!(matches!(refused, DbError::Pool(_)), "{refused}");
    assert!(started.elapsed() >= POOL_WAIT);
    drop(only);
    assert!(take().await.is_ok());
}

#[tokio::test]
async fn a_connection_goes_back_to_the_pool_only_when_its_transaction_has_ended() {
    let database = Database::without_rows().await;
    let pool = pool(database.config(), &of_one()).unwrap();
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
    let refused = transaction.query(&failing, &[]).await.unwrap_err();
    assert!(refused.refusal().is_some(), "{refused}");
    transaction.rollback().await.unwrap();
    drop(transaction);
    drop(db);
    let db = take().await;
    assert_eq!(session(&db).await, first, "none was left open");

    let transaction = db.transaction();
    assert_eq!(transaction.query(&prepared, &[]).await.unwrap().len(), 1);
    drop(transaction);
    drop(db);
    assert_ne!(session(&take().await).await, first, "one was begun and not ended");
}
