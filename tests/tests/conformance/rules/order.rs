//! The order of checks: a request with every fault is mended one fault at a time, and what is refused next is what is
//! checked next.

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

/// With a body that is announced as one byte too large.
fn oversized(request: Request) -> Request {
    request.body("{").header("content-length", "1048577").stalled()
}

/// To nowhere, with a nonce that was used.
fn used(key: &TestKey) -> Request {
    Request::new("POST", NOWHERE)
        .signed_by(key)
        .nonce("used-before-all-of-this")
}

/// A service where [`ALLOWLISTED`] has one request a minute, which is used up, with the nonce of [`used`].
async fn with_a_used_up_key() -> Service {
    let service = Service::start().await;
    let one_a_minute = "UPDATE api_keys SET rate_limit = 1 WHERE key_id = $1";
    service.db.execute(one_a_minute, &[&ALLOWLISTED.id]).await.unwrap();
    // It loads the changed key at its start.
    let service = service.replica().await;
    let first = Request::get(HEALTH)
        .signed_by(&ALLOWLISTED)
        .nonce("used-before-all-of-this");
    service.send(first.from(ADMITTED)).await.assert_status(200);
    service
}

/// REQ-1
#[tokio::test]
async fn up_to_the_signature_each_check_comes_before_the_next() {
    let service = with_a_used_up_key().await;
    let forged = |key| used(key).with(SIGNATURE, "sha256=0");
    service
        .send(oversized(forged(&UNKNOWN).clock_ahead_by(-400)).without("x-partner-nonce"))
        .await
        .assert_refused(401, "missing_signature_headers");
    service
        .send(oversized(forged(&UNKNOWN).clock_ahead_by(-400)))
        .await
        .assert_refused(401, "invalid_key");
    service
        .send(oversized(forged(&ALLOWLISTED).clock_ahead_by(-400)))
        .await
        .assert_refused(401, "expired_timestamp");
    service
        .send(oversized(forged(&ALLOWLISTED)))
        .await
        .assert_refused(413, "payload_too_large");
    service
        .send(forged(&ALLOWLISTED))
        .await
        .assert_refused(401, "invalid_signature");
}

/// REQ-1
#[tokio::test]
async fn from_the_signature_on_each_check_comes_before_the_next() {
    let service = with_a_used_up_key().await;
    let outside = service.send(used(&ALLOWLISTED)).await;
    let message = outside.assert_refused(401, "invalid_key").message();
    assert!(message.contains("127.0.0.1"), "{message}");
    service
        .send(used(&ALLOWLISTED).from(ADMITTED))
        .await
        .assert_refused(401, "replay_detected");
    let signed = |method: &str, target: &str| {
        Request::new(method, target)
            .signed_by(&ALLOWLISTED)
            .from(ADMITTED)
            .body("no json")
            .header("content-type", "application/json")
    };
    let nonce = "refused-for-its-keys-limit";
    service
        .send(signed("POST", NOWHERE).nonce(nonce))
        .await
        .assert_refused(429, "rate_limited");
    // It is counted behind its answer; only then does what follows empty the window.
    service
        .eventually(async || service.knows_nonce(&ALLOWLISTED, nonce).await)
        .await;
    // The key has no scope, the parameter is unknown and the body no JSON.
    let misspelt = format!("{MEASUREMENTS}?verbose=1");
    for (method, target, status, code) in [
        ("POST", NOWHERE, 404, "not_found"),
        ("DELETE", misspelt.as_str(), 405, "method_not_allowed"),
        ("POST", &misspelt, 403, "scope_required"),
    ] {
        service.db.execute("DELETE FROM rate_windows", &[]).await.unwrap();
        // One that does not remember that the key is over its limit.
        let replica = service.replica().await;
        replica.send(signed(method, target)).await.assert_refused(status, code);
    }
    let with_scope = Request::post(&misspelt, "no json").signed_by(&ALPHA);
    let message = service
        .send(with_scope)
        .await
        .assert_refused(400, "invalid_request")
        .message();
    assert!(message.contains("verbose"), "{message}");
}

/// REQ-1, LIM-2
#[tokio::test]
async fn an_addresss_limit_comes_before_every_other_check() {
    let service = Service::start_with(Options {
        ip_limit: 1,
        ..Options::default()
    })
    .await;
    let faulty = || oversized(used(&UNKNOWN).clock_ahead_by(-400)).without("x-partner-nonce");
    service
        .send(faulty())
        .await
        .assert_refused(401, "missing_signature_headers");
    service.send(faulty()).await.assert_refused(429, "ip_rate_limited");
}
