//! Keys, addresses and clients that use more than their share.

use std::net::Ipv4Addr;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt;
use futures::future::{join, join_all};
use futures::stream::FuturesUnordered;
use partner_api::request_log::Reason;
use partner_api_tests::{ALPHA, BETA, DELTA, Request, Service, cluster};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use partner_api_tests::measurements::{MEASUREMENTS, package};
use partner_api_tests::metrics::Page;
use partner_api_tests::request_log::Log;

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";
const HEALTH: &str = "/api/v1/partner/health";

/// Waits until this many sessions of the service's database wait for a lock.
async fn until_they_wait(service: &Service, sessions: i64) {
    let waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    service
        .eventually(async || service.count(waiting).await >= sessions)
        .await;
}

/// KEY-10
#[tokio::test(flavor = "multi_thread")]
async fn nonces_crossed_between_two_replicas_block_no_request() {
    let first = Service::start().await;
    let replica = first.replica().await;
    // Lock their report, so that the writes stay pending.
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
        // Other keys' requests must succeed in the meantime.
        let others = async {
            let mut responses = Vec::new();
            for _ in 0..10 {
                responses.push(join(first.get(&BETA, ORGANIZATIONS), replica.get(&BETA, ORGANIZATIONS)).await);
            }
            responses
        };
        let ((one, two), others) = join(crossed, others).await;
        one.assert_rejected(401, "replay_detected");
        two.assert_rejected(401, "replay_detected");
        for (one, two) in others {
            one.assert_status(200);
            two.assert_status(200);
        }
        holder.batch_execute("ROLLBACK").await.unwrap();
    };
    let ((one, two), ()) = join(writes, crossing).await;
    for response in [one, two] {
        // The wait for the report may have timed out; nothing else may have happened.
        assert!(response.status == 201 || response.status == 503, "{}", response.status);
    }
}

/// KEY-10
#[tokio::test(flavor = "multi_thread")]
async fn a_key_over_its_limit_is_rejected_without_the_database() {
    let service = Service::start().await;
    let limit = format!("UPDATE api_keys SET rate_limit = 2 WHERE key_id = '{}'", DELTA.id);
    service.db.execute(&limit, &[]).await.unwrap();
    let service = service.replica().await;
    let over = async || service.get(&DELTA, ORGANIZATIONS).await;
    for _ in 0..2 {
        over().await.assert_status(200);
    }
    over().await.assert_rejected(429, "rate_limited");
    // No request can be admitted now; a key over its limit is rejected without admission.
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE rate_windows, used_nonces IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let body = package("M-1", "34 ABC 123");
    let rejected = join_all((0..50).map(|_| service.measure(&DELTA, body.clone()))).await;
    for response in rejected {
        response.assert_rejected(429, "rate_limited");
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
}

/// KEY-10
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_the_database_rejects_fails_only_half_of_its_batch() {
    let service = Service::start().await;
    let reject = format!("ALTER TABLE rate_windows ADD CHECK (key_id <> '{}')", ALPHA.id);
    service.db.batch_execute(&reject).await.unwrap();
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE used_nonces IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let until_queued = async |requests: f64| {
        let queued = async || Page::of(&service).await.value("partner_api_admission_waiting", &[]);
        service.eventually(async || queued().await >= requests).await;
    };
    // While the batch of the first request waits for the lock, the other two arrive, and share the next batch.
    let first = service.get(&DELTA, ORGANIZATIONS);
    let rejected = async {
        until_they_wait(&service, 1).await;
        service.get(&ALPHA, ORGANIZATIONS).await
    };
    let admitted = async {
        until_queued(1.0).await;
        service.get(&BETA, ORGANIZATIONS).await
    };
    let release = async {
        until_queued(2.0).await;
        holder.batch_execute("ROLLBACK").await.unwrap();
    };
    let (_, rejected, admitted, ()) = tokio::join!(first, rejected, admitted, release);
    assert_ne!(rejected.status, 200);
    admitted.assert_status(200);
}

/// KEY-10
#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_reads_hang_leaves_connections_to_the_others() {
    let service = Service::start().await;
    // Opens the shared connections.
    for _ in 0..4 {
        service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    }
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE inspections IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let mut hanging: FuturesUnordered<_> = (0..20)
        .map(|_| service.get(&ALPHA, "/api/v1/partner/inspections"))
        .collect();
    // The rejected request waited in vain, because the key uses all connections that it may have.
    let rejected = hanging.next().await.unwrap();
    rejected.assert_rejected(503, "service_unavailable");
    for _ in 0..3 {
        service.get(&BETA, ORGANIZATIONS).await.assert_status(200);
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    while hanging.next().await.is_some() {}
    Log::of(&service)
        .assert_reason(&rejected, Reason::DatabaseOverdue)
        .await;
    service
        .get(&ALPHA, "/api/v1/partner/inspections")
        .await
        .assert_status(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nonce_of_a_rate_limited_request_is_consumed_on_every_replica() {
    let first = Service::start().await;
    let limit = format!("UPDATE api_keys SET rate_limit = 1 WHERE key_id = '{}'", DELTA.id);
    first.db.execute(&limit, &[]).await.unwrap();
    let (service, replica) = (first.replica().await, first.replica().await);
    service.get(&DELTA, ORGANIZATIONS).await.assert_status(200);
    service
        .get(&DELTA, ORGANIZATIONS)
        .await
        .assert_rejected(429, "rate_limited");
    let nonce = "rejected-from-memory-alone";
    let request = Request::get(ORGANIZATIONS).signed_by(&DELTA).nonce(nonce);
    service.send(request.clone()).await.assert_rejected(429, "rate_limited");
    service
        .eventually(async || service.knows_nonce(&DELTA, nonce).await)
        .await;
    replica.send(request).await.assert_rejected(401, "replay_detected");
}

/// REQ-9
#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_body_bytes_have_a_budget_per_address() {
    let service = Service::start().await;
    let megabyte = "x".repeat(1_048_576);
    let release = Arc::new(Notify::new());
    let stalled = Request::post(MEASUREMENTS, megabyte)
        .with("x-partner-signature", "sha256=00")
        .signed_by(&ALPHA);
    let unauthenticated = join_all((0..20).map(|_| service.send(stalled.clone().held_until(&release))));
    let others = async {
        let crowded = async || {
            let response = service.measure(&ALPHA, package("M-1", "34 ABC 123")).await;
            response.code().as_deref() == Some("ip_rate_limited") && response.header("retry-after").is_some()
        };
        service.eventually(crowded).await;
        // Another address has its own budget, and a request without a body needs none.
        let from_another = Request::post(MEASUREMENTS, package("M-2", "34 ABC 123"))
            .signed_by(&ALPHA)
            .from("127.0.0.2");
        service.send(from_another).await.assert_status(201);
        service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
        release.notify_waiters();
    };
    let (responses, ()) = join(unauthenticated, others).await;
    let rejected = |code: &str| {
        responses
            .iter()
            .filter(|response| response.code().as_deref() == Some(code))
            .count()
    };
    assert!(rejected("ip_rate_limited") >= 4, "{}", rejected("ip_rate_limited"));
    assert_eq!(rejected("ip_rate_limited") + rejected("invalid_signature"), 20);
    let crowded = responses.iter().find(|response| response.status == 429).unwrap();
    Log::of(&service).assert_reason(crowded, Reason::AddressBodies).await;
    service
        .measure(&ALPHA, package("M-3", "34 ABC 123"))
        .await
        .assert_status(201);
}

/// KEY-6
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_while_a_body_arrives_is_rejected() {
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
    let (response, ()) = join(service.send(slow), revoking).await;
    response.assert_rejected(401, "invalid_key");
    assert_eq!(service.count("measurements").await, 0);
}

/// KEY-6
#[tokio::test(flavor = "multi_thread")]
async fn a_timestamp_that_expires_while_a_body_arrives_is_rejected() {
    let service = Service::start().await;
    let release = Arc::new(Notify::new());
    // The timestamp stays valid for about two seconds.
    let slow = Request::post(MEASUREMENTS, package("M-1", "34 ABC 123"))
        .signed_by(&ALPHA)
        .clock_ahead_by(-298)
        .held_until(&release);
    let began = Utc::now();
    let waiting = async {
        // Wait by the service's clock.
        let run_out = async || {
            let health = service.get(&ALPHA, "/api/v1/partner/health").await.json();
            let now: DateTime<Utc> = health["server_time"].as_str().unwrap().parse().unwrap();
            now - began > TimeDelta::seconds(4)
        };
        service.eventually(run_out).await;
        release.notify_one();
    };
    let (response, ()) = join(service.send(slow), waiting).await;
    response.assert_rejected(401, "expired_timestamp");
    Log::of(&service)
        .assert_reason(&response, Reason::TimestampOutrun)
        .await;
    assert_eq!(service.count("measurements").await, 0);
}

/// REQ-13
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_too_long_behind_those_of_all_addresses_is_rejected_but_not_health() {
    let service = Arc::new(Service::start().await);
    // 64 from each of 16 addresses: as many as may be in progress.
    let delayed: Vec<_> = (0..1024)
        .map(|number| {
            let address = Ipv4Addr::new(127, 0, 1, 1 + (number % 16) as u8);
            let request = Request::get(HEALTH).signed_by(&ALPHA).header("prefer", "delay=60");
            let (service, request) = (service.clone(), request.from(&address.to_string()));
            tokio::spawn(async move { service.send(request).await })
        })
        .collect();
    service
        .eventually(async || service.get(&BETA, ORGANIZATIONS).await.status == 503)
        .await;
    let (rejected, health) = join(service.get(&BETA, ORGANIZATIONS), service.get(&BETA, HEALTH)).await;
    rejected.assert_rejected(503, "service_unavailable");
    assert_eq!(rejected.headers["retry-after"], "1");
    assert!(!rejected.headers.contains_key("ratelimit"));
    health.assert_status(200);
    let page = Page::of(&service).await;
    assert!(page.value("partner_api_late_requests_total", &[]) >= 3.0);
    delayed.iter().for_each(JoinHandle::abort);
}
