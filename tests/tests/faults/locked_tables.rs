//! Another session has locked what a request needs.

use std::time::{Duration, Instant};

use futures::future::{join, join_all};
use partner_api_tests::{ALPHA, Answer, Service, cluster};

use partner_api_tests::measurements::package;

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// More than the wait for a connection (0.25 s), for a lock (3 s) and for a statement (5 s) together.
const BOUND: Duration = Duration::from_secs(9);

/// A session that holds a table against everybody until it ends.
async fn lock(service: &Service, table: &str) -> tokio_postgres::Client {
    let client = cluster::connect(&service.database()).await;
    client
        .batch_execute(&format!("BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
        .await
        .unwrap();
    client
}

/// Waits until so many sessions wait for a lock.
async fn until_they_wait(service: &Service, sessions: i64) {
    service
        .eventually(async || {
            let waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            service.count(waiting).await >= sessions
        })
        .await;
}

#[track_caller]
fn assert_all_unavailable(answers: &[Answer], since: Instant) {
    for answer in answers {
        answer.assert_refused(503, "service_unavailable");
        assert!(answer.header("retry-after").is_some());
    }
    assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
}

/// REQ-12
#[tokio::test(flavor = "multi_thread")]
async fn behind_a_locked_table_nobody_waits_for_long() {
    let service = Service::start().await;
    let holder = lock(&service, "measurements").await;
    let since = Instant::now();
    let packages: Vec<_> = (0..30)
        .map(|number| package(&format!("M-{number}"), "35 OPN 205"))
        .collect();
    let writes = join_all(packages.iter().map(|body| service.measure(&ALPHA, body.clone())));
    let reads = async {
        until_they_wait(&service, 1).await;
        // Only who writes waits.
        service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
        service.get(&ALPHA, HEALTH).await.assert_status(200);
    };
    let (answers, ()) = join(writes, reads).await;
    assert_all_unavailable(&answers, since);

    holder.batch_execute("ROLLBACK").await.unwrap();
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    assert_eq!(service.count("measurements").await, 0);
    service.measure(&ALPHA, packages[0].clone()).await.assert_status(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_locked_report_nobody_waits_for_long() {
    let service = Service::start().await;
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; SELECT FROM inspections FOR UPDATE")
        .await
        .unwrap();
    let since = Instant::now();
    let answer = service.measure(&ALPHA, package("M-1", "35 OPN 205")).await;
    assert_all_unavailable(&[answer], since);
    // Another plate has nothing to do with it.
    service
        .measure(&ALPHA, package("M-2", "34 ABC 123"))
        .await
        .assert_status(201);
    holder.batch_execute("ROLLBACK").await.unwrap();
    service
        .measure(&ALPHA, package("M-1", "35 OPN 205"))
        .await
        .assert_status(201);
}

/// REQ-12, KEY-9
#[tokio::test(flavor = "multi_thread")]
async fn where_admission_is_held_up_nobody_waits_for_long() {
    let service = Service::start().await;
    let holder = lock(&service, "rate_windows").await;
    let since = Instant::now();
    let answers = join_all((0..20).map(|_| service.get(&ALPHA, ORGANIZATIONS))).await;
    assert_all_unavailable(&answers, since);
    service.get(&ALPHA, HEALTH).await.assert_status(200);
    holder.batch_execute("ROLLBACK").await.unwrap();
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
}
