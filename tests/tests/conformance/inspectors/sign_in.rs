//! The operation `sign_in`.

use partner_api_tests::inspectors::REVOKED_INSPECTOR;
use partner_api_tests::{AYSE, DERYA, Request, Service};
use serde_json::json;

/// INS-2, INS-4
#[tokio::test]
async fn a_token_is_exchanged_for_a_session_that_scripts_cannot_read() {
    let service = Service::start().await;
    let response = service.sign_in(AYSE.token).await;
    response
        .assert_status(200)
        .snapshot("a_token_is_exchanged_for_a_session");
    assert_eq!(service.count("inspector_sessions").await, 1);
    // With spaces and lower case, as people type it.
    let typed = AYSE.token.to_lowercase().replace("seays", "se-ays");
    service.sign_in(&format!(" {typed} ")).await.assert_status(200);
    let stored = service
        .rows("SELECT encode(cookie_hash, 'hex') AS stored FROM inspector_sessions")
        .await;
    let cookie = response.header("set-cookie").unwrap();
    for row in stored.as_array().unwrap() {
        assert!(
            !cookie.contains(row["stored"].as_str().unwrap()),
            "the cookie itself is kept"
        );
    }
}

/// INS-4
#[tokio::test]
async fn the_cookie_is_secure_over_tls() {
    let service = Service::start().await;
    let host = service.address("/inspector/v1/session").to_string();
    let body = json!({ "token": AYSE.token }).to_string();
    let request = Request::post("/inspector/v1/session", body).header("origin", &format!("https://{host}"));
    let response = service.send(request).await;
    response.assert_status(200);
    assert!(
        response.header("set-cookie").unwrap().ends_with("; Secure"),
        "{:?}",
        response.headers
    );
}

/// INS-3
#[tokio::test]
async fn an_inactive_token_is_rejected() {
    let service = Service::start().await;
    let unknown = service.sign_in("insp_00000000000000000000000000").await;
    unknown
        .assert_rejected(401, "token_rejected")
        .snapshot("an_unknown_token_is_rejected");
    let revoked = service.sign_in(REVOKED_INSPECTOR.token).await;
    revoked.assert_rejected(401, "token_rejected");
    assert_eq!(revoked.message(), unknown.message());
    assert_eq!(service.count("inspector_sessions").await, 0);
}

/// INS-4
#[tokio::test]
async fn an_address_is_locked_after_ten_failures_and_successes_do_not_count() {
    let service = Service::start().await;
    for _ in 0..9 {
        service.sign_in("insp_1").await.assert_rejected(401, "token_rejected");
    }
    service.sign_in(AYSE.token).await.assert_status(200);
    service.sign_in("insp_1").await.assert_rejected(401, "token_rejected");
    // Concurrent attempts are limited in the same way as consecutive ones.
    let many = futures::future::join_all((0..5).map(|_| service.sign_in("insp_1"))).await;
    for response in &many {
        response.assert_rejected(429, "too_many_attempts");
    }
    many[0].snapshot("an_address_is_locked_after_ten_failures");
    // After that, not even a valid token is accepted.
    service
        .sign_in(AYSE.token)
        .await
        .assert_rejected(429, "too_many_attempts");
    // The lock ends after a quarter of an hour.
    service
        .db
        .execute(
            "UPDATE sign_in_attempts SET window_started_at = now() - interval '16 minutes'",
            &[],
        )
        .await
        .unwrap();
    service.sign_in(AYSE.token).await.assert_status(200);
    assert_eq!(service.count("inspector_sessions").await, 2);
}

/// INS-11
#[tokio::test]
async fn a_page_of_another_origin_cannot_sign_in() {
    let service = Service::start().await;
    let body = json!({ "token": DERYA.token }).to_string();
    for origin in ["https://evil.example", "null", "http://127.0.0.1"] {
        let request = Request::post("/inspector/v1/session", body.clone()).header("origin", origin);
        let response = service.send(request).await;
        response.assert_rejected(403, "forged_request");
    }
    assert_eq!(service.count("inspector_sessions").await, 0);
}

/// ERR-9
#[tokio::test]
async fn a_body_without_a_token_gets_an_error_that_names_it() {
    let service = Service::start().await;
    let response = service
        .send(Request::post("/inspector/v1/session", "{\"Token\": 5}"))
        .await;
    response
        .assert_rejected(400, "invalid_request")
        .snapshot("a_body_without_a_token_is_rejected");
}

#[tokio::test]
async fn unauthenticated_bodies_are_limited_in_size_and_time() {
    let service = Service::start_with(partner_api_tests::Options {
        body_timeout: std::time::Duration::from_millis(100),
        ..partner_api_tests::Options::default()
    })
    .await;
    let large = service
        .send(Request::post("/inspector/v1/session", vec![b' '; 4_097]))
        .await;
    large
        .assert_rejected(413, "payload_too_large")
        .snapshot("a_large_unauthenticated_body_is_rejected");
    let slow = service
        .send(Request::post("/inspector/v1/session", "{").stalled())
        .await;
    slow.assert_rejected(408, "request_timeout")
        .snapshot("a_slow_unauthenticated_body_is_rejected");
}

/// INS-4
#[tokio::test]
async fn a_body_without_a_session_must_arrive_within_five_seconds() {
    let service = Service::start().await;
    let slow = Request::post("/inspector/v1/session", "{").stalled();
    let response = service.send(slow).await;
    response.assert_rejected(408, "request_timeout");
    assert!(response.message().contains("within 5 s"), "{}", response.message());
}
