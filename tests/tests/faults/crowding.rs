//! A key, an address or a client that uses more than its share.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt;
use futures::future::{join, join_all};
use futures::stream::FuturesUnordered;
use partner_api::request_log::Reason;
use partner_api_tests::{ALPHA, BETA, DELTA, Request, Service, cluster};
use tokio::sync::Notify;

use partner_api_tests::measurements::{MEASUREMENTS, package};
use partner_api_tests::request_log::Log;

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// Waits until so many sessions of the service's database wait for a lock.
async fn until_they_wait(service: &Service, sessions: i64) {
    let waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    service
        .eventually(async || service.count(waiting).await >= sessions)
        .await;
}

/// KEY-10
#[tokio::test(flavor = "multi_thread")]
async fn nonces_crossed_between_two_replicas_hold_nobody_up() {
    let first = Service::start().await;
    let replica = first.replica().await;
    // So that the writes stay under way: somebody has their report.
    let holder = cluster::connect(&first.database()).await;
    holder
        .batch_execute("BEGIN; SELECT FROM inspections FOR UPDATE")
        .await
        .unwrap();
    let write = |nonce: &str, external_id: &str| {
        Request::post(MEASUREMENTS, package(external_id, "35 OPN 205"))
            .signed_by(&ALPHA)
            .nonce(nonce)
    };
    let read = |nonce: &str| Request::get(ORGANIZATIONS).signed_by(&ALPHA).nonce(nonce);
    let writes = join(
        first.send(write("crossed-nonce-one", "M-1")),
        replica.send(write("crossed-nonce-two", "M-2")),
    );
    let crossing = async {
        until_they_wait(&first, 2).await;
        let crossed = join(
            replica.send(read("crossed-nonce-one")),
            first.send(read("crossed-nonce-two")),
        );
        // What the crossing does to others is seen while it is under way.
        let others = async {
            let mut answers = Vec::new();
            for _ in 0..10 {
                answers.push(join(first.get(&BETA, ORGANIZATIONS), replica.get(&BETA, ORGANIZATIONS)).await);
            }
            answers
        };
        let ((one, two), others) = join(crossed, others).await;
        one.assert_refused(401, "replay_detected");
        two.assert_refused(401, "replay_detected");
        for (one, two) in others {
            one.assert_status(200);
            two.assert_status(200);
        }
        holder.batch_execute("ROLLBACK").await.unwrap();
    };
    let ((one, two), ()) = join(writes, crossing).await;
    for answer in [one, two] {
        // Its wait for the report may have run out; nothing else may have happened.
        assert!(answer.status == 201 || answer.status == 503, "{}", answer.status);
    }
}

/// KEY-10
#[tokio::test(flavor = "multi_thread")]
async fn a_key_over_its_limit_is_refused_without_the_database() {
    let service = Service::start().await;
    let limit = format!("UPDATE api_keys SET rate_limit = 2 WHERE key_id = '{}'", DELTA.id);
    service.db.execute(&limit, &[]).await.unwrap();
    let service = service.replica().await;
    let over = async || service.get(&DELTA, ORGANIZATIONS).await;
    for _ in 0..2 {
        over().await.assert_status(200);
    }
    over().await.assert_refused(429, "rate_limited");
    // Nobody can be admitted now; who is over the limit needs no admission to be told so.
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE rate_windows, used_nonces IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let body = package("M-1", "34 ABC 123");
    let refused = join_all((0..50).map(|_| service.measure(&DELTA, body.clone()))).await;
    for answer in refused {
        answer.assert_refused(429, "rate_limited");
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
}

/// KEY-10
#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_reads_hang_leaves_connections_to_the_others() {
    let service = Service::start().await;
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE inspections IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let mut hanging: FuturesUnordered<_> = (0..20)
        .map(|_| service.get(&ALPHA, "/api/v1/partner/inspections"))
        .collect();
    // Whoever is turned away has waited in vain for one of the connections that the key may have: it has them all.
    let turned_away = hanging.next().await.unwrap();
    turned_away.assert_refused(503, "service_unavailable");
    for _ in 0..3 {
        service.get(&BETA, ORGANIZATIONS).await.assert_status(200);
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    while hanging.next().await.is_some() {}
    Log::of(&service)
        .assert_reason(&turned_away, Reason::DatabaseOverdue)
        .await;
    service
        .get(&ALPHA, "/api/v1/partner/inspections")
        .await
        .assert_status(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nonce_that_met_a_used_up_limit_is_used_up_for_every_replica() {
    let first = Service::start().await;
    let limit = format!("UPDATE api_keys SET rate_limit = 1 WHERE key_id = '{}'", DELTA.id);
    first.db.execute(&limit, &[]).await.unwrap();
    let (service, replica) = (first.replica().await, first.replica().await);
    service.get(&DELTA, ORGANIZATIONS).await.assert_status(200);
    service
        .get(&DELTA, ORGANIZATIONS)
        .await
        .assert_refused(429, "rate_limited");
    let nonce = "refused-from-memory-alone";
    let request = Request::get(ORGANIZATIONS).signed_by(&DELTA).nonce(nonce);
    service.send(request.clone()).await.assert_refused(429, "rate_limited");
    service
        .eventually(async || service.knows_nonce(&DELTA, nonce).await)
        .await;
    replica.send(request).await.assert_refused(401, "replay_detected");
}

/// REQ-9
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_nobody_has_proved_to_be_theirs_have_a_budget_per_address() {
    let service = Service::start().await;
    let megabyte = "x".repeat(1_048_576);
    let release = Arc::new(Notify::new());
    let stalled = Request::post(MEASUREMENTS, megabyte)
        .with("x-partner-signature", "sha256=00")
        .signed_by(&ALPHA);
    let hoarding = join_all((0..20).map(|_| service.send(stalled.clone().held_until(&release))));
    let others = async {
        let crowded = async || {
            let answer = service.measure(&ALPHA, package("M-1", "34 ABC 123")).await;
            answer.code().as_deref() == Some("ip_rate_limited") && answer.header("retry-after").is_some()
        };
        service.eventually(crowded).await;
        // Another address has its own, and what has no body needs none.
        let elsewhere = Request::post(MEASUREMENTS, package("M-2", "34 ABC 123"))
            .signed_by(&ALPHA)
            .from("127.0.0.2");
        service.send(elsewhere).await.assert_status(201);
        service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
        release.notify_waiters();
    };
    let (answers, ()) = join(hoarding, others).await;
    let refused = |code: &str| {
        answers
            .iter()
            .filter(|answer| answer.code().as_deref() == Some(code))
            .count()
    };
    assert!(refused("ip_rate_limited") >= 4, "{}", refused("ip_rate_limited"));
    assert_eq!(refused("ip_rate_limited") + refused("invalid_signature"), 20);
    let crowded = answers.iter().find(|answer| answer.status == 429).unwrap();
    Log::of(&service).assert_reason(crowded, Reason::AddressBodies).await;
    service
        .measure(&ALPHA, package("M-3", "34 ABC 123"))
        .await
        .assert_status(201);
}

/// KEY-6
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_while_a_body_is_on_its_way_is_refused() {
    let service = Service::start().await;
    let release = Arc::new(Notify::new());
    let slow = Request::post(MEASUREMENTS, package("M-1", "34 ABC 123"))
        .signed_by(&DELTA)
        .held_until(&release);
    let revoking = async {
        let revoke = format!("UPDATE api_keys SET revoked_at = now() WHERE key_id = '{}'", DELTA.id);
        service.db.execute(&revoke, &[]).await.unwrap();
        let gone = async || service.get(&DELTA, "/api/v1/partner/health").await.status == 401;
        service.eventually(gone).await;
        release.notify_one();
    };
    let (answer, ()) = join(service.send(slow), revoking).await;
    answer.assert_refused(401, "invalid_key");
    assert_eq!(service.count("measurements").await, 0);
}

/// KEY-6
#[tokio::test(flavor = "multi_thread")]
async fn a_timestamp_that_runs_out_while_a_body_is_on_its_way_is_refused() {
    let service = Service::start().await;
    let release = Arc::new(Notify::new());
    // It has some two seconds left.
    let slow = Request::post(MEASUREMENTS, package("M-1", "34 ABC 123"))
        .signed_by(&ALPHA)
        .clock_ahead_by(-298)
        .held_until(&release);
    let began = Utc::now();
    let waiting = async {
        // It is the service's clock that has to move.
        let run_out = async || {
            let health = service.get(&ALPHA, "/api/v1/partner/health").await.json();
            let now: DateTime<Utc> = health["server_time"].as_str().unwrap().parse().unwrap();
            now - began > TimeDelta::seconds(4)
        };
        service.eventually(run_out).await;
        release.notify_one();
    };
    let (answer, ()) = join(service.send(slow), waiting).await;
    answer.assert_refused(401, "expired_timestamp");
    Log::of(&service).assert_reason(&answer, Reason::TimestampOutrun).await;
    assert_eq!(service.count("measurements").await, 0);
}
