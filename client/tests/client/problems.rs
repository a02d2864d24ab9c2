//! Responses: error codes, request IDs, the clock, the quota, and raw packages.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{
    FIRST, KEY_ID, SECOND, SECRET, assert_attempts, assert_signed, client, created, ok, package, page, policy, rejected,
};
use crate::server::{Server, Step};
use futures::TryStreamExt;
use partner_api_client::{
    Call as _, ClientInfo as _, Code, Connector, PauseReason, RetryPolicy, inspections_with_pauses, submit_raw,
};
use partner_api_signing::HEADER_TIMESTAMP;
use tokio::time::Instant;

/// ERR-1
#[test]
fn every_code_of_the_document_has_a_type() {
    let document = include_str!("../../../spec/partner-api.yaml");
    let document: serde_yaml::Value = serde_yaml::from_str(document).unwrap();
    let mut declared = BTreeSet::new();
    collect(&document, &mut declared);
    let known: BTreeSet<_> = Code::KNOWN.iter().map(ToString::to_string).collect();
    assert_eq!(known, declared);
}

fn collect(value: &serde_yaml::Value, codes: &mut BTreeSet<String>) {
    match value {
        serde_yaml::Value::Mapping(members) => {
            for (name, member) in members {
                if name.as_str() == Some("x-error-codes") {
                    let words = member.as_sequence().into_iter().flatten();
                    codes.extend(words.map(|word| word.as_str().unwrap().to_owned()));
                } else {
                    collect(member, codes);
                }
            }
        }
        serde_yaml::Value::Sequence(items) => items.iter().for_each(|item| collect(item, codes)),
        _ => {}
    }
}

#[tokio::test]
async fn an_invalid_response_is_an_error_with_its_request_id() {
    let id = "x-request-id: r-77".to_owned();
    for (status, body) in [(200, "<html>"), (200, "{}"), (429, "no json"), (299, "{}")] {
        let server = Server::start(vec![Step::Respond(status, vec![id.clone()], body.to_owned())]).await;
        let client = client(&server, RetryPolicy::never());
        let problem = client.get_health().send().response().await.unwrap_err();
        assert_eq!(problem.request_id(), Some("r-77"), "{status} {body}: {problem:?}");
        assert_eq!(problem.status().unwrap(), status, "{body}");
        assert!(problem.to_string().contains("(request ID r-77)"), "{problem}");
    }
}

/// The document declares no 404 for this operation; a wrong base URL causes one.
#[tokio::test]
async fn an_undeclared_status_in_the_format_of_the_service_keeps_its_code_and_message() {
    let server = Server::start(vec![rejected(404, "not_found", &[])]).await;
    let client = client(&server, RetryPolicy::never());
    let problem = client.get_health().send().response().await.unwrap_err();
    assert_eq!(problem.code(), Some(&Code::NotFound));
    assert_eq!(problem.to_string(), "404 not_found: not now (request ID r-1)");
}

#[tokio::test(start_paused = true)]
async fn each_pause_is_announced_with_its_reason() {
    let steps = vec![
        rejected(429, "rate_limited", &["retry-after: 17"]),
        rejected(503, "service_unavailable", &["retry-after: 2"]),
        ok(),
    ];
    let server = Server::start(steps).await;
    let announced = Arc::new(Mutex::new(Vec::new()));
    let log = announced.clone();
    let client = Connector::new(&server.base_url, KEY_ID, SECRET)
        .unwrap()
        .http_client(reqwest::Client::new())
        .retry(policy())
        .on_pause(move |pause| {
            let pause = (pause.reason.to_string(), pause.duration.as_secs());
            log.lock().unwrap().push(pause);
        })
        .connect()
        .unwrap();
    client.get_health().send().response().await.unwrap();
    let announced = announced.lock().unwrap();
    let announced: Vec<_> = announced
        .iter()
        .map(|(reason, seconds)| (reason.as_str(), *seconds))
        .collect();
    assert_eq!(
        announced,
        [("the quota is used up", 17), ("the service responded 503", 2)]
    );
}

#[tokio::test]
async fn a_response_has_the_request_id_the_quota_and_the_services_time() {
    let headers = [
        "x-request-id: r-1",
        r#"ratelimit: "default";r=41;t=17"#,
        "date: Mon, 15 Jun 2026 09:30:00 GMT",
    ];
    let Step::Respond(status, _, body) = ok() else {
        unreachable!()
    };
    let server = Server::start(vec![Step::Respond(status, headers.map(str::to_owned).to_vec(), body)]).await;
    let response = client(&server, policy()).get_health().send().response().await.unwrap();
    assert_eq!(response.request_id(), Some("r-1"));
    assert_eq!(response.rate_limit().unwrap().remaining, 41);
    assert_eq!(response.date().unwrap().to_rfc3339(), "2026-06-15T09:30:00+00:00");
    assert_eq!(response.status, "ok");
}

/// SIG-5
#[tokio::test(start_paused = true)]
async fn a_wrong_clock_is_corrected_from_the_services_date_and_stays_corrected() {
    let ahead = chrono::Utc::now() + chrono::TimeDelta::hours(1);
    let date = format!("date: {}", ahead.format("%a, %d %b %Y %H:%M:%S GMT"));
    let server = Server::start(vec![rejected(401, "expired_timestamp", &[&date]), ok()]).await;
    let client = client(&server, policy());
    client.get_health().send().response().await.unwrap();
    assert_attempts(&server, 2);
    client.get_health().send().response().await.unwrap();
    let sent: Vec<i64> = server
        .received()
        .iter()
        .map(|request| request.header(HEADER_TIMESTAMP).parse().unwrap())
        .collect();
    let near = |timestamp: i64, expected: i64| timestamp.abs_diff(expected) < 60;
    assert!(near(sent[0], ahead.timestamp() - 3600), "{sent:?}");
    assert!(
        near(sent[1], ahead.timestamp()) && near(sent[2], ahead.timestamp()),
        "{sent:?}"
    );
    assert!(near(client.inner().seconds_ahead(), 3600));
}

/// SIG-5
#[tokio::test(start_paused = true)]
async fn a_timestamp_that_is_rejected_again_is_not_corrected_again() {
    let date = "date: Mon, 15 Jun 2026 09:30:00 GMT";
    let server = Server::start(vec![rejected(401, "expired_timestamp", &[date])]).await;
    let problem = client(&server, policy())
        .get_health()
        .send()
        .response()
        .await
        .unwrap_err();
    assert_eq!(problem.code(), Some(&Code::ExpiredTimestamp));
    assert_attempts(&server, 2);
}

#[tokio::test]
async fn another_401_does_not_correct_the_clock() {
    let date = "date: Mon, 15 Jun 2026 09:30:00 GMT";
    let server = Server::start(vec![rejected(401, "invalid_key", &[date])]).await;
    let client = client(&server, policy());
    let problem = client.get_health().send().response().await.unwrap_err();
    assert_eq!(problem.code(), Some(&Code::InvalidKey));
    assert_attempts(&server, 1);
    assert_eq!(client.inner().seconds_ahead(), 0);
}

/// MEA-11
#[tokio::test]
async fn a_replay_with_another_package_is_a_payload_mismatch() {
    let Step::Respond(_, _, body) = created() else {
        unreachable!()
    };
    let in_body = body.replace(
        r#""idempotent_replay":false"#,
        r#""idempotent_replay":true,"payload_mismatch":true"#,
    );
    let header = "X-Idempotency-Payload-Mismatch: true".to_owned();
    for (headers, body, mismatch) in [
        (vec![header], body.clone(), true),
        (vec![], in_body, true),
        (vec![], body, false),
    ] {
        let server = Server::start(vec![Step::Respond(200, headers, body)]).await;
        let client = client(&server, policy());
        let response = client
            .submit_measurement()
            .body(package(Some("M-1")))
            .send()
            .response()
            .await;
        assert_eq!(response.unwrap().is_payload_mismatch(), mismatch);
    }
}

/// MEA-5, MEA-16
#[tokio::test(start_paused = true)]
async fn a_raw_package_is_sent_unchanged_in_every_attempt() {
    let package = r#" { "external_id" : "M-1", "plate":"34 ABC 123", "unknown": 2.850 } "#;
    let steps = vec![rejected(503, "service_unavailable", &["retry-after: 1"]), created()];
    let server = Server::start(steps).await;
    let response = submit_raw(&client(&server, policy()), package).await.unwrap();
    assert_eq!(response.status(), 201);
    assert_attempts(&server, 2);
    assert_eq!(server.received()[0].body, package.as_bytes());
    assert_eq!(server.received()[0].header("content-type"), "application/json");
}

#[tokio::test]
async fn a_rejected_raw_package_is_a_problem_with_its_code() {
    let server = Server::start(vec![rejected(404, "not_found", &[])]).await;
    let problem = submit_raw(&client(&server, policy()), "{}").await.unwrap_err();
    assert_eq!(problem.code(), Some(&Code::NotFound));
    assert!(!problem.is_outcome_unknown());
}

#[tokio::test(start_paused = true)]
async fn the_stream_waits_for_a_used_up_quota_before_the_next_page() {
    let Step::Respond(status, _, body) = page(&[FIRST], Some("c1"), true) else {
        unreachable!()
    };
    let used_up = vec![r#"ratelimit: "default";r=0;t=17"#.to_owned()];
    let server = Server::start(vec![Step::Respond(status, used_up, body), page(&[SECOND], None, false)]).await;
    let started = Instant::now();
    let client = client(&server, policy());
    let announced = Mutex::new(Vec::new());
    let stream = inspections_with_pauses(client.list_inspections(), 0, |pause| {
        announced.lock().unwrap().push((pause.reason, pause.duration));
    });
    let all: Vec<_> = stream.try_collect().await.unwrap();
    assert_eq!(all.len(), 2);
    let pause = (PauseReason::Quota, Duration::from_secs(17));
    assert_eq!(*announced.lock().unwrap(), [pause]);
    server.received().iter().for_each(assert_signed);
    assert!(started.elapsed() >= Duration::from_secs(17));
}
