//! `sign_in`

use partner_api_tests::inspectors::REVOKED_INSPECTOR;
use partner_api_tests::{AYSE, DERYA, Request, Service};
use serde_json::json;

/// INS-2, INS-4
#[tokio::test]
async fn a_token_is_exchanged_for_a_session_that_scripts_cannot_read() {
    let service = Service::start().await;
    let answer = service.sign_in(AYSE.token).await;
    answer.assert_status(200).snapshot("a_token_is_exchanged_for_a_session");
    assert_eq!(service.count("inspector_sessions").await, 1);
    // As people type it.
    let typed = AYSE.token.to_lowercase().replace("seays", "se-ays");
    service.sign_in(&format!(" {typed} ")).await.assert_status(200);
    let kept = service
        .rows("SELECT encode(cookie_hash, 'hex') AS kept FROM inspector_sessions")
        .await;
    let cookie = answer.header("set-cookie").unwrap();
    for row in kept.as_array().unwrap() {
        assert!(
            !cookie.contains(row["kept"].as_str().unwrap()),
            "the cookie itself is kept"
        );
    }
}

/// INS-4
#[tokio::test]
async fn over_tls_the_cookie_does_not_go_without() {
    let service = Service::start().await;
    let host = service.address("/inspector/v1/session").to_string();
    let body = json!({ "token": AYSE.token }).to_string();
    let request = Request::post("/inspector/v1/session", body).header("origin", &format!("https://{host}"));
    let answer = service.send(request).await;
    answer.assert_status(200);
    assert!(
        answer.header("set-cookie").unwrap().ends_with("; Secure"),
        "{:?}",
        answer.headers
    );
}

/// INS-3
#[tokio::test]
async fn a_token_that_is_not_in_force_is_refused() {
    let service = Service::start().await;
    let unknown = service.sign_in("insp_00000000000000000000000000").await;
    unknown
        .assert_refused(401, "token_refused")
        .snapshot("an_unknown_token_is_refused");
    let revoked = service.sign_in(REVOKED_INSPECTOR.token).await;
    revoked.assert_refused(401, "token_refused");
    assert_eq!(revoked.message(), unknown.message());
    assert_eq!(service.count("inspector_sessions").await, 0);
}

/// INS-4
#[tokio::test]
async fn after_ten_failures_an_address_waits_and_a_success_is_none() {
    let service = Service::start().await;
    for _ in 0..9 {
        service.sign_in("insp_1").await.assert_refused(401, "token_refused");
    }
    service.sign_in(AYSE.token).await.assert_status(200);
    service.sign_in("insp_1").await.assert_refused(401, "token_refused");
    // At the same time no more pass than one after the other.
    let many = futures::future::join_all((0..5).map(|_| service.sign_in("insp_1"))).await;
    for answer in &many {
        answer.assert_refused(429, "too_many_attempts");
    }
    many[0].snapshot("after_ten_failures_an_address_waits");
    // Nobody is let in by then, with whatever token.
    service
        .sign_in(AYSE.token)
        .await
        .assert_refused(429, "too_many_attempts");
    // It is over in a quarter of an hour.
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
async fn the_page_of_another_origin_signs_nobody_in() {
    let service = Service::start().await;
    let body = json!({ "token": DERYA.token }).to_string();
    for origin in ["https://evil.example", "null", "http://127.0.0.1"] {
        let request = Request::post("/inspector/v1/session", body.clone()).header("origin", origin);
        let answer = service.send(request).await;
        answer.assert_refused(403, "forged_request");
    }
    assert_eq!(service.count("inspector_sessions").await, 0);
}

/// ERR-9
#[tokio::test]
async fn a_body_without_a_token_is_told_what_is_missing() {
    let service = Service::start().await;
    let answer = service
        .send(Request::post("/inspector/v1/session", "{\"Token\": 5}"))
        .await;
    answer
        .assert_refused(400, "invalid_request")
        .snapshot("a_body_without_a_token_is_refused");
}

#[tokio::test]
async fn a_stranger_may_not_send_much_and_not_slowly() {
    let service = Service::start_with(partner_api_tests::Options {
        body_timeout: std::time::Duration::from_millis(100),
        ..partner_api_tests::Options::default()
    })
    .await;
    let large = service
        .send(Request::post("/inspector/v1/session", vec![b' '; 4_097]))
        .await;
    large
        .assert_refused(413, "payload_too_large")
        .snapshot("a_large_body_of_a_stranger_is_refused");
    let slow = service
        .send(Request::post("/inspector/v1/session", "{").stalled())
        .await;
    slow.assert_refused(408, "request_timeout")
        .snapshot("a_slow_body_of_a_stranger_is_given_up");
}
