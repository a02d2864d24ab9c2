//! The order of checks. A request with every error is corrected one error at a time, and the next check then rejects it.

use partner_api_tests::fixture::ALLOWLISTED;
use partner_api_tests::{ALPHA, Options, Request, Service, TestKey};

const HEALTH: &str = "/api/v1/partner/health";
const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";
const NOWHERE: &str = "/api/v1/partner/nowhere";
const SIGNATURE: &str = "x-partner-signature";
/// An address that the key's allowlist admits.
const ADMITTED: &str = "127.0.0.7";
const UNKNOWN: TestKey = TestKey {
    id: "vip_test_UNKNOWNAAAAAAAAAAAAAAA",
    ..ALLOWLISTED
};

/// Announces a body of one byte over the limit.
fn oversized(request: Request) -> Request {
    request.body("{").header("content-length", "1048577").stalled()
}

/// A request to an unknown path with a used nonce.
fn used(key: &TestKey) -> Request {
    Request::new("POST", NOWHERE)
        .signed_by(key)
        .nonce("used-before-all-of-this")
}

/// A service where [`ALLOWLISTED`] has one request a minute and has already made it, with the nonce of [`used`].
async fn with_a_used_up_key() -> Service {
    let service = Service::start().await;
    let one_a_minute = "UPDATE api_keys SET rate_limit = 1 WHERE key_id = $1";
    service.db.execute(one_a_minute, &[&ALLOWLISTED.id]).await.unwrap();
    // The replica loads the changed key when it starts.
    let service = service.replica().await;
    let first = Request::get(HEALTH)
        .signed_by(&ALLOWLISTED)
        .nonce("used-before-all-of-this");
    service.send(first.from(ADMITTED)).await.assert_status(200);
    service
}

/// REQ-1
#[tokio::test]
async fn the_checks_up_to_the_signature_run_in_order() {
    let service = with_a_used_up_key().await;
    let forged = |key| used(key).with(SIGNATURE, "sha256=0");
    service
        .send(oversized(forged(&UNKNOWN).clock_ahead_by(-400)).without("x-partner-nonce"))
        .await
        .assert_rejected(401, "missing_signature_headers");
    service
        .send(oversized(forged(&UNKNOWN).clock_ahead_by(-400)))
        .await
        .assert_rejected(401, "invalid_key");
    service
        .send(oversized(forged(&ALLOWLISTED).clock_ahead_by(-400)))
        .await
        .assert_rejected(401, "expired_timestamp");
    service
        .send(oversized(forged(&ALLOWLISTED)))
        .await
        .assert_rejected(413, "payload_too_large");
    service
        .send(forged(&ALLOWLISTED))
        .await
        .assert_rejected(401, "invalid_signature");
}

/// REQ-1
#[tokio::test]
async fn the_checks_after_the_signature_run_in_order() {
    let service = with_a_used_up_key().await;
    let outside = service.send(used(&ALLOWLISTED)).await;
    let message = outside.assert_rejected(401, "invalid_key").message();
    assert!(message.contains("127.0.0.1"), "{message}");
    service
        .send(used(&ALLOWLISTED).from(ADMITTED))
        .await
        .assert_rejected(401, "replay_detected");
    let signed = |method: &str, target: &str| {
        Request::new(method, target)
            .signed_by(&ALLOWLISTED)
            .from(ADMITTED)
            .body("no json")
            .header("content-type", "application/json")
    };
    let nonce = "rejected-for-its-keys-limit";
    service
        .send(signed("POST", NOWHERE).nonce(nonce))
        .await
        .assert_rejected(429, "rate_limited");
    // The request is counted after its response; the following statement must delete the window after that.
    service
        .eventually(async || service.knows_nonce(&ALLOWLISTED, nonce).await)
        .await;
    // The key has no scope, the parameter is unknown, and the body is not JSON.
    let misspelt = format!("{MEASUREMENTS}?verbose=1");
    for (method, target, status, code) in [
        ("POST", NOWHERE, 404, "not_found"),
        ("DELETE", misspelt.as_str(), 405, "method_not_allowed"),
        ("POST", &misspelt, 403, "scope_required"),
    ] {
        service.db.execute("DELETE FROM rate_windows", &[]).await.unwrap();
        // A replica that does not remember that the key is over its limit.
        let replica = service.replica().await;
        replica.send(signed(method, target)).await.assert_rejected(status, code);
    }
    let with_scope = Request::post(&misspelt, "no json").signed_by(&ALPHA);
    let message = service
        .send(with_scope)
        .await
        .assert_rejected(400, "invalid_request")
        .message();
    assert!(message.contains("verbose"), "{message}");
}

/// REQ-1, LIM-2
#[tokio::test]
async fn the_limit_of_an_address_is_checked_first() {
    let service = Service::start_with(Options {
        ip_limit: 1,
        ..Options::default()
    })
    .await;
    let faulty = || oversized(used(&UNKNOWN).clock_ahead_by(-400)).without("x-partner-nonce");
    service
        .send(faulty())
        .await
        .assert_rejected(401, "missing_signature_headers");
    service.send(faulty()).await.assert_rejected(429, "ip_rate_limited");
}
