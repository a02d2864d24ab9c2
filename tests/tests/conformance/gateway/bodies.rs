use std::time::Duration;

use partner_api_tests::{ALPHA, Options, Request, Service};

const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";
const LIMIT: usize = 1_048_576;

/// A valid package of exactly this many bytes.
fn package(size: usize, external_id: &str) -> String {
    let head = format!(
        r#"{{"branch_code":"IST-02","plate":"34 TOO 001","external_id":"{external_id}","measurements":{{"BRAKE_FRONT_LEFT":2.85}},"filler":""#
    );
    let tail = r#""}"#;
    format!("{head}{}{tail}", "x".repeat(size - head.len() - tail.len()))
}

/// REQ-6
#[tokio::test]
async fn a_body_of_1048576_bytes_passes() {
    let service = Service::start().await;
    service
        .measure(&ALPHA, package(LIMIT, "whole"))
        .await
        .assert_status(201);
    let chunked = Request::post(MEASUREMENTS, package(LIMIT, "chunked"))
        .signed_by(&ALPHA)
        .chunked(65_536);
    service.send(chunked).await.assert_status(201);
    let recorded = service
        .rows("SELECT external_id, octet_length(raw) AS size FROM measurements ORDER BY external_id")
        .await;
    assert_eq!(
        recorded,
        serde_json::json!([{ "external_id": "chunked", "size": LIMIT }, { "external_id": "whole", "size": LIMIT }])
    );
}

/// REQ-6
#[tokio::test]
async fn a_body_announced_as_one_byte_over_the_limit_is_rejected() {
    let service = Service::start().await;
    let response = service.measure(&ALPHA, package(LIMIT + 1, "large")).await;
    response.assert_rejected(413, "payload_too_large");
    assert_eq!(service.count("measurements").await, 0);
}

#[tokio::test]
async fn an_announced_length_over_the_limit_is_rejected_before_the_body_arrives() {
    let service = Service::start().await;
    let announced = Request::post(MEASUREMENTS, "{")
        .signed_by(&ALPHA)
        .header("content-length", "1048577")
        .stalled();
    service.send(announced).await.assert_rejected(413, "payload_too_large");
}

/// REQ-6
#[tokio::test]
async fn a_chunked_body_over_the_limit_is_rejected_before_it_ends() {
    let service = Service::start().await;
    let endless = Request::post(MEASUREMENTS, package(LIMIT + 1, "large"))
        .signed_by(&ALPHA)
        .stalled();
    service.send(endless).await.assert_rejected(413, "payload_too_large");
}

#[tokio::test]
async fn a_body_of_a_get_is_limited_too() {
    let service = Service::start().await;
    let response = service
        .send(
            Request::get("/api/v1/partner/health")
                .body("x".repeat(LIMIT + 1))
                .signed_by(&ALPHA),
        )
        .await;
    response.assert_rejected(413, "payload_too_large");
}

/// REQ-7
#[tokio::test]
async fn a_body_that_does_not_arrive_in_time_is_rejected() {
    let service = Service::start_with(Options {
        body_timeout: Duration::from_millis(200),
        ..Options::default()
    })
    .await;
    let response = service
        .send(Request::post(MEASUREMENTS, "{\"plate\":").signed_by(&ALPHA).stalled())
        .await;
    response.assert_rejected(408, "request_timeout");
}

#[tokio::test]
async fn an_unknown_key_is_rejected_before_the_body_is_read() {
    let service = Service::start().await;
    let large = Request::post(MEASUREMENTS, package(LIMIT + 1, "large"));
    service
        .send(large.clone().stalled())
        .await
        .assert_rejected(401, "missing_signature_headers");
    service
        .send(large.stalled().signed_by(&ALPHA).clock_ahead_by(-400))
        .await
        .assert_rejected(401, "expired_timestamp");
}
