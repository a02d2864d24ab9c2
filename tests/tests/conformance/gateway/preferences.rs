//! The `Prefer` header, which selects a response in the sandbox.

use std::time::{Duration, Instant};

use partner_api_signing::Environment;
use partner_api_tests::fixture::{LIVE, THREE_A_MINUTE};
use partner_api_tests::{ALPHA, Options, Request, Service};

const LIST: &str = "/api/v1/partner/inspections";
const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";
const PACKAGE: &str = r#"{"branch_code":"IZMIR-01","plate":"35 OPN 205","external_id":"ordered","measurements":{"BRAKE_FRONT_LEFT":2.85}}"#;

fn ordered(preference: &str) -> Request {
    Request::get(LIST).header("prefer", preference).signed_by(&ALPHA)
}

/// SVC-10
#[tokio::test]
async fn a_preferred_error_equals_the_real_one() {
    let service = Service::start().await;
    for (preference, status, code) in [
        ("code=429, error=rate_limited", 429, "rate_limited"),
        ("code=429; error=ip_rate_limited", 429, "ip_rate_limited"),
        ("code=503", 503, "service_unavailable"),
        ("code=401, error=invalid_key", 401, "invalid_key"),
        ("code=405", 405, "method_not_allowed"),
        ("code=408", 408, "request_timeout"),
        ("code=413", 413, "payload_too_large"),
        ("code=500", 500, "internal_error"),
    ] {
        service.send(ordered(preference)).await.assert_rejected(status, code);
    }
    let ordered = ordered("code=429, error=rate_limited");
    service.send(ordered).await.snapshot("a_preferred_response_is_sent");
}

/// SVC-10
#[tokio::test]
async fn a_preferred_success_is_the_documents_example_and_records_nothing() {
    let service = Service::start().await;
    let post = |preference: &str| {
        let request = Request::post(MEASUREMENTS, PACKAGE).header("prefer", preference);
        service.send(request.signed_by(&ALPHA))
    };
    let pending = post("code=201, example=pending").await;
    assert_eq!(pending.assert_status(201).json()["data"]["status"], "pending");
    assert_eq!(
        post("code=201").await.assert_status(201).json()["data"]["status"],
        "applied"
    );
    assert_eq!(
        post("code=200").await.assert_status(200).json()["data"]["idempotent_replay"],
        true
    );
    post("code=404").await.assert_rejected(404, "not_found");
    assert_eq!(service.count("measurements").await, 0);
    // The external_id is not consumed either.
    post("handling=strict").await.assert_status(201);
    assert_eq!(service.count("measurements").await, 1);
}

/// SVC-10
#[tokio::test]
async fn an_undeclared_response_cannot_be_preferred() {
    let service = Service::start().await;
    for (preference, expected) in [
        ("code=418", "code must be one of 200, 400"),
        ("code=403", "code must be one of"),
        ("code=many", "is many"),
        (
            "code=429, error=not_found",
            "error must be one of rate_limited, ip_rate_limited",
        ),
    ] {
        let response = service.send(ordered(preference)).await;
        let message = response.assert_rejected(400, "invalid_request").message();
        assert!(
            message.starts_with("Prefer: ") && message.contains(expected),
            "{message}"
        );
    }
}

/// SVC-10
#[tokio::test]
async fn a_request_with_a_preference_is_authenticated_and_counted() {
    let service = Service::start().await;
    let unsigned = Request::get(LIST).header("prefer", "code=500");
    service
        .send(unsigned)
        .await
        .assert_rejected(401, "missing_signature_headers");
    let once = || ordered("code=500").nonce("0123456789abcdef");
    service.send(once()).await.assert_rejected(500, "internal_error");
    service.send(once()).await.assert_rejected(401, "replay_detected");
    for status in [500, 500, 500, 429] {
        let request = Request::get(LIST)
            .header("prefer", "code=500")
            .signed_by(&THREE_A_MINUTE);
        service.send(request).await.assert_status(status);
    }
}

/// SVC-10
#[tokio::test]
async fn a_dropped_response_belongs_to_a_request_that_was_processed() {
    let service = Service::start().await;
    let post = |preference: &str| {
        Request::post(MEASUREMENTS, PACKAGE)
            .header("prefer", preference)
            .signed_by(&ALPHA)
    };
    assert!(service.has_no_response(post("drop")).await);
    assert_eq!(service.count("measurements").await, 1);
    let replay = service.send(post("handling=strict")).await;
    assert_eq!(replay.assert_status(200).json()["data"]["idempotent_replay"], true);
    // A prepared response records nothing, whether it is sent or not.
    assert!(service.has_no_response(post("code=201, drop")).await);
    assert_eq!(service.count("measurements").await, 1);
    // The preference of a request that is not admitted is ignored.
    let unsigned = Request::get(LIST).header("prefer", "drop, delay=60");
    service
        .send(unsigned)
        .await
        .assert_rejected(401, "missing_signature_headers");
}

/// SVC-10
#[tokio::test]
async fn a_delayed_response_is_sent_after_the_delay() {
    let service = Service::start().await;
    let started = Instant::now();
    service.send(ordered("delay=1")).await.assert_status(200);
    assert!(started.elapsed() >= Duration::from_secs(1));
    let response = service.send(ordered("delay=61")).await;
    let message = response.assert_rejected(400, "invalid_request").message();
    assert!(
        message.contains("delay must be a whole number of seconds from 1 to 60, is 61"),
        "{message}"
    );
}

/// SVC-10
#[tokio::test]
async fn a_live_service_ignores_the_prefer_header() {
    let service = Service::start_with(Options {
        environment: Environment::Live,
        ..Options::default()
    })
    .await;
    let request = Request::get("/api/v1/partner/health")
        .header("prefer", "code=500")
        .signed_by(&LIVE);
    service.send(request).await.assert_status(200);
}
