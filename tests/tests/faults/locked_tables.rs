//! Tables and rows that another session has locked, and requests that fail after admission.

use std::time::{Duration, Instant};

use futures::future::{join, join_all};
use partner_api_tests::measurements::{MEASUREMENTS, contents, package};
use partner_api_tests::{ALPHA, Request, Service, TestResponse, cluster};

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// More than the sum of the timeouts for a connection (0.25 s), a lock (3 s) and a statement (5 s).
const BOUND: Duration = Duration::from_secs(9);

/// A session that locks a table until it ends.
async fn lock(service: &Service, table: &str) -> tokio_postgres::Client {
    let client = cluster::connect(&service.database()).await;
    client
        .batch_execute(&format!("BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
        .await
        .unwrap();
    client
}

/// Waits until this many sessions wait for a lock.
async fn until_they_wait(service: &Service, sessions: i64) {
    service
        .eventually(async || {
            let waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            service.count(waiting).await >= sessions
        })
        .await;
}

#[track_caller]
fn assert_all_unavailable(responses: &[TestResponse], since: Instant) {
    for response in responses {
        response.assert_rejected(503, "service_unavailable");
        assert!(response.header("retry-after").is_some());
    }
    assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
}

/// REQ-12
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_table_delays_no_request_for_long() {
    let service = Service::start().await;
    let holder = lock(&service, "measurements").await;
    let since = Instant::now();
    let packages: Vec<_> = (0..30)
        .map(|number| package(&format!("M-{number}"), "35 OPN 205"))
        .collect();
    let writes = join_all(packages.iter().map(|body| service.measure(&ALPHA, body.clone())));
    let reads = async {
        until_they_wait(&service, 1).await;
        // Only writes wait.
        service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
        service.get(&ALPHA, HEALTH).await.assert_status(200);
    };
    let (responses, ()) = join(writes, reads).await;
    assert_all_unavailable(&responses, since);

    holder.batch_execute("ROLLBACK").await.unwrap();
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    assert_eq!(service.count("measurements").await, 0);
    service.measure(&ALPHA, packages[0].clone()).await.assert_status(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_report_delays_no_request_for_long() {
    let service = Service::start().await;
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; SELECT FROM inspections FOR UPDATE")
        .await
        .unwrap();
    let since = Instant::now();
    let response = service.measure(&ALPHA, package("M-1", "35 OPN 205")).await;
    assert_all_unavailable(&[response], since);
    // Another plate is not affected.
    service
        .measure(&ALPHA, package("M-2", "34 ABC 123"))
        .await
        .assert_status(201);
    holder.batch_execute("ROLLBACK").await.unwrap();
    // After a 503 the outcome is unknown: the first attempt may get the lock now.
    let again = service.measure(&ALPHA, package("M-1", "35 OPN 205")).await;
    let is_replay = again.json()["data"]["idempotent_replay"] == true;
    again.assert_status(if is_replay { 200 } else { 201 });
    let recorded = "SELECT count(*) FROM measurements WHERE external_id = 'M-1' AND status = 'APPLIED'";
    assert_eq!(service.db.query_one(recorded, &[]).await.unwrap().get::<_, i64>(0), 1);
}

/// REQ-12, KEY-9
#[tokio::test(flavor = "multi_thread")]
async fn blocked_admission_delays_no_request_for_long() {
    let service = Service::start().await;
    let holder = lock(&service, "rate_windows").await;
    let since = Instant::now();
    let responses = join_all((0..20).map(|_| service.get(&ALPHA, ORGANIZATIONS))).await;
    assert_all_unavailable(&responses, since);
    service.get(&ALPHA, HEALTH).await.assert_status(200);
    holder.batch_execute("ROLLBACK").await.unwrap();
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
}

/// KEY-7, ERR-1
#[tokio::test]
async fn a_failure_after_admission_rolls_back_the_record_and_keeps_the_nonce() {
    let service = Service::start().await;
    let broken = "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                      RAISE EXCEPTION 'relation inspections of 35OPN205 is broken';
                  END $$;
                  CREATE TRIGGER broken BEFORE INSERT ON inspection_form_answers
                  FOR EACH ROW EXECUTE FUNCTION broken()";
    service.db.batch_execute(broken).await.unwrap();
    let before = contents(&service).await;
    let request = Request::post(MEASUREMENTS, package("M-1", "35 OPN 205"))
        .signed_by(&ALPHA)
        .nonce("of-a-write-that-fails");
    let response = service.send(request.clone()).await;
    response.assert_rejected(500, "internal_error");
    assert_eq!(contents(&service).await, before);
    assert!(service.knows_nonce(&ALPHA, "of-a-write-that-fails").await);
    service.send(request).await.assert_rejected(401, "replay_detected");

    service
        .db
        .batch_execute("DROP TRIGGER broken ON inspection_form_answers")
        .await
        .unwrap();
    service
        .measure(&ALPHA, package("M-1", "35 OPN 205"))
        .await
        .assert_status(201);
}

#[tokio::test]
async fn a_connection_returns_to_the_pool_without_a_transaction() {
    let service = Service::start().await;
    // More requests than the pool has connections.
    for number in 0..20 {
        service
            .measure(&ALPHA, package(&format!("M-{number}"), "no plate"))
            .await
            .assert_rejected(400, "invalid_request");
    }
    let open = "pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    assert_eq!(service.count(open).await, 0);
}

#[tokio::test]
async fn a_disconnect_never_leaves_a_partial_package() {
    let service = Service::start().await;
    let holder = partner_api_tests::cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE measurements IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    {
        let request = service.measure(&ALPHA, package("M-1", "35 OPN 205"));
        let waits = service.eventually(async || {
            let waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            service.count(waiting).await == 1
        });
        tokio::select! {
            response = request => panic!("answered {}", response.status),
            () = waits => {}
        }
    }
    holder.batch_execute("COMMIT").await.unwrap();
    // The request is still completed, and a retry finds its record.
    service
        .eventually(async || service.count("measurements WHERE status = 'APPLIED'").await == 1)
        .await;
    service
        .measure(&ALPHA, package("M-1", "35 OPN 205"))
        .await
        .assert_status(200);
}
