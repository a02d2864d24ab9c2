use partner_api_signing::Environment;
use partner_api_tests::fixture::{self, DISABLED, EXPIRED, LIVE, REVOKED};
use partner_api_tests::{ALPHA, Options, Request, Service, TestKey};

const HEALTH: &str = "/api/v1/partner/health";
const KEY_ID: &str = "x-partner-key-id";
const TIMESTAMP: &str = "x-partner-timestamp";
const NONCE: &str = "x-partner-nonce";
const SIGNATURE: &str = "x-partner-signature";

fn health() -> Request {
    Request::get(HEALTH).signed_by(&ALPHA)
}

#[tokio::test]
async fn a_request_without_the_four_headers_is_rejected() {
    let service = Service::start().await;
    let response = service.send(Request::get(HEALTH)).await;
    response.assert_rejected(401, "missing_signature_headers");
    assert_eq!(response.header("ratelimit"), None);
}

/// SIG-1, ERR-2
#[tokio::test]
async fn each_of_the_four_headers_is_required_once_and_not_empty() {
    let service = Service::start().await;
    for (name, shown) in [
        (KEY_ID, "X-Partner-Key-Id"),
        (TIMESTAMP, "X-Partner-Timestamp"),
        (NONCE, "X-Partner-Nonce"),
        (SIGNATURE, "X-Partner-Signature"),
    ] {
        for request in [
            health().without(name),
            health().with(name, ""),
            health().header(name, "again"),
        ] {
            let message = service
                .send(request)
                .await
                .assert_rejected(401, "missing_signature_headers")
                .message();
            assert!(message.contains(shown), "{message}");
        }
    }
}

/// SIG-1, ERR-2
#[tokio::test]
async fn a_nonce_has_16_to_128_visible_ascii_characters() {
    let service = Service::start().await;
    for nonce in ["a".repeat(16), "!~".repeat(64)] {
        service.send(health().nonce(&nonce)).await.assert_status(200);
    }
    for nonce in [
        "a".repeat(15),
        "a".repeat(129),
        format!("{} {}", "a".repeat(16), "b"),
        "ş".repeat(16),
    ] {
        service
            .send(health().with(NONCE, &nonce))
            .await
            .assert_rejected(401, "missing_signature_headers");
    }
    let response = service.send(health().with(NONCE, "short")).await;
    response
        .assert_rejected(401, "missing_signature_headers")
        .snapshot("a_short_nonce_is_rejected");
}

/// ERR-2
#[tokio::test]
async fn a_timestamp_is_a_plain_integer() {
    let service = Service::start().await;
    for timestamp in [
        "now",
        "1780000000.5",
        "+1780000000",
        "-1",
        "0x10",
        "1e9",
        "2026-06-15T09:30:00Z",
    ] {
        let message = service
            .send(health().with(TIMESTAMP, timestamp))
            .await
            .assert_rejected(401, "missing_signature_headers")
            .message();
        assert!(message.contains("X-Partner-Timestamp"), "{message}");
    }
    // A number that fits no integer type is still an integer, and never current.
    service
        .send(health().with(TIMESTAMP, &"9".repeat(40)))
        .await
        .assert_rejected(401, "expired_timestamp");
}

/// ERR-3
#[tokio::test]
async fn a_rejected_key_gets_a_message_that_depends_only_on_the_text_of_its_id() {
    let service = Service::start().await;
    let named = |id| TestKey { id, ..ALPHA };
    let unknown = named("vip_test_UNKNOWNAAAAAAAAAAAAAAA");
    for (of_one_kind, words) in [
        (vec![unknown, REVOKED, EXPIRED, DISABLED], "this key ID is not accepted"),
        (
            vec![LIVE, named("vip_live_UNKNOWNAAAAAAAAAAAAAAA")],
            "the ID of a live key",
        ),
        (
            vec![
                named("vip_test_short"),
                named("'; --"),
                named("vip_test_alphaaaaaaaaaaaaaaaaaa"),
                named(ALPHA.secret),
            ],
            "this is not a key ID",
        ),
    ] {
        let mut messages = Vec::new();
        for key in of_one_kind {
            let message = service
                .get(&key, HEALTH)
                .await
                .assert_rejected(401, "invalid_key")
                .message();
            assert!(
                message.starts_with("this is ") || message.starts_with("this key "),
                "{message}"
            );
            assert!(
                message.contains(words) && !message.contains(key.secret),
                "{}: {message}",
                key.id
            );
            messages.push(message);
        }
        messages.dedup();
        assert_eq!(messages.len(), 1, "{messages:?}");
    }
}

/// KEY-3, SVC-1
#[tokio::test]
async fn a_live_service_accepts_only_live_keys() {
    let service = Service::start_with(Options {
        environment: Environment::Live,
        ..Options::default()
    })
    .await;
    let response = service.get(&LIVE, HEALTH).await;
    assert_eq!(response.assert_status(200).json()["environment"], "live");
    let rejected = service.get(&ALPHA, HEALTH).await;
    let message = rejected.assert_rejected(401, "invalid_key").message();
    assert!(message.contains("this service is production"), "{message}");
}

/// KEY-8
#[tokio::test]
async fn a_revoked_key_stops_working_eventually() {
    let service = Service::start().await;
    service.get(&ALPHA, HEALTH).await.assert_status(200);
    service
        .db
        .execute("UPDATE api_keys SET revoked_at = now() WHERE key_id = $1", &[&ALPHA.id])
        .await
        .unwrap();
    service
        .eventually(async || service.get(&ALPHA, HEALTH).await.status == 401)
        .await;
    service.get(&ALPHA, HEALTH).await.assert_rejected(401, "invalid_key");
    service.get(&fixture::ALPHA_ROTATED, HEALTH).await.assert_status(200);
}

/// KEY-12
#[tokio::test]
async fn a_key_stops_working_when_it_expires() {
    let service = Service::start().await;
    let expires = "UPDATE api_keys SET expires_at = now() + interval '1 hour' WHERE key_id = $1";
    service.db.execute(expires, &[&ALPHA.id]).await.unwrap();
    service.get(&ALPHA, HEALTH).await.assert_status(200);
    service
        .db
        .execute("UPDATE api_keys SET expires_at = now() WHERE key_id = $1", &[&ALPHA.id])
        .await
        .unwrap();
    service
        .eventually(async || service.get(&ALPHA, HEALTH).await.status == 401)
        .await;
}

/// SIG-5
#[tokio::test]
async fn a_timestamp_may_differ_by_300_seconds() {
    let service = Service::start().await;
    // Time passes between signing and arrival, so a timestamp in the future has a second to spare, and one in the past does not.
    for (ahead, passes) in [
        (300, true),
        (-299, true),
        (302, false),
        (-301, false),
        (86_400, false),
        (-86_400, false),
    ] {
        let response = service.send(health().clock_ahead_by(ahead)).await;
        if passes {
            response.assert_status(200);
        } else {
            response.assert_rejected(401, "expired_timestamp");
        }
    }
}

/// ERR-5
#[tokio::test]
async fn the_response_to_an_expired_timestamp_contains_the_servers_time() {
    let service = Service::start().await;
    let response = service.send(health().clock_ahead_by(-301)).await;
    response.assert_rejected(401, "expired_timestamp");
    let year = chrono::Utc::now().format("%Y-").to_string();
    assert!(response.message().contains(&year), "{}", response.message());
}

/// ERR-4
#[tokio::test]
async fn the_response_to_a_wrong_signature_contains_the_canonical_string() {
    let service = Service::start().await;
    let request = Request::get("/api/v1/partner/inspections?limit=2&branch_id=b1")
        .signed_by(&ALPHA)
        .with(NONCE, "0123456789abcdef");
    let response = service.send(request).await;
    response
        .assert_rejected(401, "invalid_signature")
        .snapshot("the_response_to_a_wrong_signature_contains_the_canonical_string");
    let message = response.message();
    let canonical = message.split("---\n").nth(1).unwrap().trim_end_matches("\n---");
    let lines: Vec<_> = canonical.lines().collect();
    assert_eq!(
        lines[..3],
        ["GET", "/api/v1/partner/inspections", "branch_id=b1&limit=2"]
    );
    assert_eq!(lines[4..], ["0123456789abcdef", partner_api_signing::EMPTY_BODY_SHA256]);
}

/// ERR-4
#[tokio::test]
async fn a_live_service_does_not_show_the_canonical_string() {
    let service = Service::start_with(Options {
        environment: Environment::Live,
        ..Options::default()
    })
    .await;
    let thief = TestKey {
        secret: ALPHA.secret,
        ..LIVE
    };
    let message = service
        .get(&thief, HEALTH)
        .await
        .assert_rejected(401, "invalid_signature")
        .message();
    assert!(!message.contains(HEALTH), "{message}");
}

/// ERR-4, SIG-2
#[tokio::test]
async fn a_malformed_signature_is_invalid() {
    let service = Service::start().await;
    let digest = "00b8332449583da2c92d54fa0ee432290c99864df6d9226fca919be2d027f8d7";
    for signature in [
        digest.to_owned(),
        format!("sha256={}", digest.to_uppercase()),
        format!("SHA256={digest}"),
        format!("sha256={}", &digest[1..]),
        format!("sha256={digest}0"),
        format!("sha256={digest}"),
        "sha256=".to_owned(),
        "none".to_owned(),
    ] {
        let response = service.send(health().with(SIGNATURE, &signature)).await;
        response.assert_rejected(401, "invalid_signature");
    }
}

/// SIG-3
#[tokio::test]
async fn a_signature_covers_method_path_query_and_body() {
    let service = Service::start().await;
    let signature = "x-partner-signature";
    // The signature of a request that differs in one part does not verify this one.
    for request in [
        Request::post(HEALTH, "").signed_by(&ALPHA).with(signature, "sha256="),
        Request::get("/api/v1/partner/organizations")
            .signed_by(&ALPHA)
            .with(NONCE, "another-nonce-than-signed"),
        Request::get(HEALTH)
            .signed_by(&ALPHA)
            .with(TIMESTAMP, &chrono::Utc::now().timestamp().saturating_sub(7).to_string()),
        Request::get(HEALTH).signed_by(&TestKey {
            id: fixture::BETA.id,
            ..ALPHA
        }),
    ] {
        service.send(request).await.assert_rejected(401, "invalid_signature");
    }
}

/// REQ-1
#[tokio::test]
async fn a_wrong_signature_consumes_no_nonce_and_counts_against_no_limit() {
    let service = Service::start().await;
    let key = fixture::THREE_A_MINUTE;
    let thief = TestKey {
        secret: ALPHA.secret,
        ..key
    };
    for _ in 0..5 {
        let forged = Request::get(HEALTH).signed_by(&thief).nonce("a-nonce-of-the-owner");
        service.send(forged).await.assert_rejected(401, "invalid_signature");
    }
    let response = service
        .send(Request::get(HEALTH).signed_by(&key).nonce("a-nonce-of-the-owner"))
        .await;
    assert_eq!(
        response
            .assert_status(200)
            .header("ratelimit")
            .unwrap()
            .split(';')
            .nth(1),
        Some("r=2")
    );
}

#[tokio::test]
async fn the_signature_of_a_get_covers_its_body() {
    let service = Service::start().await;
    service.send(health().body("ignored")).await.assert_status(200);
}
