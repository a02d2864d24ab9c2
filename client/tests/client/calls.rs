//! Signing, retries and paging of the client over real HTTP.
//!
//! The tests pause tokio's clock, so that pauses take no time and can be measured exactly.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::TryStreamExt;
use partner_api_client::{Code, Connector, Error, Exchange, Problem, RetryPolicy, inspections, types};
use serde_json::json;
use tokio::net::TcpSocket;
use tokio::time::Instant;

use crate::common::{
    FIRST, KEY_ID, SECOND, SECRET, assert_attempts, assert_signed, client, created, ok, package, page, policy, rejected,
};
use crate::server::{Server, Step};

#[tokio::test]
async fn a_query_is_signed_as_it_is_sent() {
    let empty = json!({ "data": [], "page": { "has_more": false } }).to_string();
    let server = Server::start(vec![Step::Respond(200, vec![], empty)]).await;
    let from: chrono::DateTime<chrono::Utc> = "2026-05-01T00:00:00+03:00".parse().unwrap();
    let client = client(&server, policy());
    let list = client
        .list_inspections()
        .published_from(from)
        .branch_id("a b/ç&=+~")
        .limit(std::num::NonZeroU32::MIN);
    list.send().await.unwrap();
    assert_attempts(&server, 1);
    assert!(server.received()[0].line.contains("limit=1"));
}

#[tokio::test(start_paused = true)]
async fn the_client_waits_for_retry_after_when_its_quota_is_used_up() {
    let server = Server::start(vec![rejected(429, "rate_limited", &["retry-after: 17"]), ok()]).await;
    let started = Instant::now();
    let health = client(&server, policy()).get_health().send().await.unwrap();
    assert_eq!(health.status, "ok");
    assert_attempts(&server, 2);
    let waited = started.elapsed();
    assert!(
        (Duration::from_secs(17)..Duration::from_secs(18)).contains(&waited),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_service_is_retried_after_the_retry_after_time() {
    let server = Server::start(vec![rejected(503, "service_unavailable", &["retry-after: 2"]), ok()]).await;
    let started = Instant::now();
    client(&server, policy()).get_health().send().await.unwrap();
    assert_attempts(&server, 2);
    assert!(started.elapsed() >= Duration::from_secs(2));
}

/// MEA-16
#[tokio::test(start_paused = true)]
async fn every_attempt_at_a_measurement_has_the_same_bytes() {
    let unavailable = || rejected(503, "service_unavailable", &["retry-after: 1"]);
    let steps = vec![
        Step::HangUp,
        unavailable(),
        rejected(429, "rate_limited", &["retry-after: 1"]),
        created(),
    ];
    let server = Server::start(steps).await;
    let response = client(&server, policy())
        .submit_measurement()
        .body(package(Some("M-1")))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 201);
    assert_attempts(&server, 4);
}

#[tokio::test(start_paused = true)]
async fn a_measurement_without_an_external_id_is_not_retried_when_its_outcome_is_unknown() {
    for step in [Step::HangUp, rejected(503, "service_unavailable", &["retry-after: 1"])] {
        let server = Server::start(vec![step, created()]).await;
        let result = client(&server, policy())
            .submit_measurement()
            .body(package(None))
            .send()
            .await;
        assert!(result.is_err(), "{result:?}");
        assert_attempts(&server, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_measurement_without_an_external_id_is_retried_after_429() {
    let server = Server::start(vec![rejected(429, "rate_limited", &["retry-after: 1"]), created()]).await;
    client(&server, policy())
        .submit_measurement()
        .body(package(None))
        .send()
        .await
        .unwrap();
    assert_attempts(&server, 2);
}

#[tokio::test(start_paused = true)]
async fn attempts_are_limited_and_the_last_response_is_returned() {
    let server = Server::start(vec![rejected(503, "service_unavailable", &[])]).await;
    let error = client(
        &server,
        RetryPolicy {
            attempts: 3,
            ..policy()
        },
    )
    .list_organizations()
    .send()
    .await
    .unwrap_err();
    assert_eq!(error.status().unwrap(), 503);
    assert_eq!(Problem::from(error).code(), Some(&Code::ServiceUnavailable));
    assert_attempts(&server, 3);
}

#[tokio::test(start_paused = true)]
async fn a_pause_beyond_the_total_time_returns_the_last_response_immediately() {
    let server = Server::start(vec![rejected(429, "rate_limited", &["retry-after: 31"]), ok()]).await;
    let policy = RetryPolicy {
        total: Duration::from_secs(30),
        ..policy()
    };
    let started = Instant::now();
    let error = client(&server, policy).get_health().send().await.unwrap_err();
    assert_eq!(error.status().unwrap(), 429);
    assert_attempts(&server, 1);
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_failed_connection_is_retried_as_often_as_the_policy_allows() {
    // The port is bound, but nothing listens on it.
    let bound = TcpSocket::new_v4().unwrap();
    bound.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = bound.local_addr().unwrap();
    let connector = Connector::new(&format!("http://{address}"), KEY_ID, SECRET).unwrap();
    let policy = RetryPolicy {
        attempts: 3,
        base_pause: Duration::from_secs(1),
        ..policy()
    };
    let client = connector
        .http_client(reqwest::Client::new())
        .retry(policy)
        .connect()
        .unwrap();
    let started = Instant::now();
    let error = client
        .submit_measurement()
        .body(package(None))
        .send()
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::CommunicationError(error) if error.is_connect()),
        "{error}"
    );
    // Two pauses of at least half of 1 s and half of 2 s.
    assert!(started.elapsed() >= Duration::from_millis(1500));
    let problem = Problem::from(error);
    assert!(
        problem.to_string().starts_with("failed to reach the service"),
        "{problem}"
    );
    assert!(!problem.is_outcome_unknown());
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_returned_immediately() {
    for (status, code) in [
        (400, "invalid_request"),
        (401, "replay_detected"),
        (404, "not_found"),
        (500, "internal_error"),
    ] {
        let server = Server::start(vec![rejected(status, code, &["retry-after: 1"]), ok()]).await;
        let error = client(&server, policy()).get_health().send().await.unwrap_err();
        assert_eq!(error.status().unwrap(), status);
        assert_attempts(&server, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_receives_every_response_and_changes_none() {
    let server = Server::start(vec![rejected(429, "rate_limited", &["retry-after: 1"]), created()]).await;
    let exchanges: Arc<Mutex<Vec<Exchange>>> = Arc::default();
    let log = exchanges.clone();
    let connector = Connector::new(&server.base_url, KEY_ID, SECRET).unwrap();
    let client = connector
        .http_client(reqwest::Client::new())
        .retry(policy())
        .observer(move |exchange: &Exchange| log.lock().unwrap().push(exchange.clone()))
        .connect()
        .unwrap();
    let response = client.submit_measurement().body(package(None)).send().await.unwrap();
    assert_eq!(response.data.plate, "34ABC123");
    let exchanges = exchanges.lock().unwrap();
    let attempts: Vec<_> = exchanges
        .iter()
        .map(|exchange| (exchange.operation_id, exchange.attempt, exchange.status.as_u16()))
        .collect();
    assert_eq!(
        attempts,
        [("submit_measurement", 1, 429), ("submit_measurement", 2, 201)]
    );
    assert_eq!(exchanges[1].request_body, server.received()[1].body);
    assert!(!format!("{exchanges:?}").contains(server.received()[1].header("x-partner-signature")));
}

#[tokio::test]
async fn all_pages_are_requested_with_the_same_filters() {
    for last in [page(&[SECOND], None, true), page(&[SECOND], Some("more"), false)] {
        let server = Server::start(vec![page(&[FIRST], Some("c/1="), true), last]).await;
        let client = client(&server, policy());
        let list = client.list_inspections().status(types::InspectionStatus::Archived);
        let all: Vec<_> = inspections(list).try_collect().await.unwrap();
        let ids: Vec<_> = all.iter().map(|report| report.id.to_string()).collect();
        assert_eq!(ids, [FIRST, SECOND]);
        let received = server.received();
        received.iter().for_each(assert_signed);
        let lines: Vec<_> = received.iter().map(|request| request.line.as_str()).collect();
        let path = "GET /api/v1/partner/inspections";
        let first = format!("{path}?status=archived HTTP/1.1");
        let second = format!("{path}?cursor=c%2F1%3D&status=archived HTTP/1.1");
        assert_eq!(lines, [first, second]);
    }
}

#[tokio::test]
async fn an_error_ends_the_stream_after_the_previous_reports() {
    let server = Server::start(vec![
        page(&[FIRST], Some("c1"), true),
        rejected(400, "invalid_request", &[]),
    ])
    .await;
    let client = client(&server, policy());
    let mut reports = std::pin::pin!(inspections(client.list_inspections()));
    assert!(reports.try_next().await.unwrap().is_some());
    assert_eq!(
        reports.try_next().await.unwrap_err().code(),
        Some(&Code::InvalidRequest)
    );
    assert!(reports.try_next().await.unwrap().is_none());
}
