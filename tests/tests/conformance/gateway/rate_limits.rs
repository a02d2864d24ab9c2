//! Rate limits of keys and addresses: the number of requests, what counts, and the windows.

use futures::StreamExt;
use futures::stream;
use partner_api_gateway::TrustedProxies;
use partner_api_tests::fixture::{ALLOWLISTED, THREE_A_MINUTE};
use partner_api_tests::{ALPHA, DELTA, Options, Request, Service, TestResponse};

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// The number of concurrent requests in tests that send many. If all were sent at once, a busy machine would respond to some
/// of them with 503.
const AT_A_TIME: usize = 16;

/// The parameter `name` of the field `RateLimit`: `r` is the number of remaining requests, `t` the seconds to the window's end.
#[track_caller]
fn field(response: &TestResponse, name: char) -> u64 {
    let field = response.header("ratelimit").unwrap();
    let value = field.split(';').find_map(|part| part.strip_prefix(&format!("{name}=")));
    value.unwrap_or_else(|| panic!("{field}")).parse().unwrap()
}

#[track_caller]
fn remaining(response: &TestResponse) -> u64 {
    field(response, 'r')
}

#[track_caller]
fn retry_after(response: &TestResponse) -> u64 {
    response.header("retry-after").unwrap().parse().unwrap()
}

/// LIM-1, REQ-11, ERR-7
#[tokio::test]
async fn a_key_gets_exactly_as_many_requests_as_its_limit() {
    let service = Service::start().await;
    for (target, left) in [(ORGANIZATIONS, 2), (HEALTH, 1), (ORGANIZATIONS, 0)] {
        let response = service.get(&THREE_A_MINUTE, target).await;
        assert_eq!(remaining(response.assert_status(200)), left, "{target}");
    }
    let response = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    response.assert_rejected(429, "rate_limited");
    assert!((1..=60).contains(&retry_after(&response)));
}

/// LIM-1, SVC-3
#[tokio::test(flavor = "multi_thread")]
async fn the_default_limit_is_exact_among_simultaneous_requests_of_two_replicas() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let send = |number: usize| {
        if number.is_multiple_of(2) {
            service.get(&DELTA, ORGANIZATIONS)
        } else {
            replica.get(&DELTA, ORGANIZATIONS)
        }
    };
    let responses: Vec<TestResponse> = stream::iter((0..80).map(send))
        .buffer_unordered(AT_A_TIME)
        .collect()
        .await;
    let passed = responses.iter().filter(|response| response.status == 200).count();
    let rejected = responses
        .iter()
        .filter(|response| response.code().as_deref() == Some("rate_limited"))
        .count();
    assert_eq!((passed, rejected), (60, 20));
    assert_eq!(responses[0].header("ratelimit-policy"), Some("\"default\";q=60;w=60"));
}

#[tokio::test]
async fn a_new_window_begins_when_the_last_one_has_ended() {
    let service = Service::start().await;
    for _ in 0..3 {
        service.get(&THREE_A_MINUTE, ORGANIZATIONS).await.assert_status(200);
    }
    let nonce = "rejected-for-its-keys-limit";
    let one_more = Request::get(ORGANIZATIONS).signed_by(&THREE_A_MINUTE).nonce(nonce);
    service.send(one_more).await.assert_rejected(429, "rate_limited");
    // The service counts it after the response, in the window that ends now.
    service
        .eventually(async || service.knows_nonce(&THREE_A_MINUTE, nonce).await)
        .await;
    service
        .db
        .execute(
            "UPDATE rate_windows SET started_at = started_at - interval '60 seconds'",
            &[],
        )
        .await
        .unwrap();
    // A replica that does not know the window. The first one remembers its end and would not query the database.
    let replica = service.replica().await;
    let response = replica.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    assert_eq!(remaining(response.assert_status(200)), 2);
}

/// LIM-3
#[tokio::test]
async fn a_window_that_began_in_the_future_is_restarted() {
    let service = Service::start().await;
    // This happens if a clock is set back, or after a failover to a standby whose clock is behind.
    let ahead = "INSERT INTO rate_windows VALUES ($1, now() + interval '1 hour', 3)";
    service.db.execute(ahead, &[&THREE_A_MINUTE.id]).await.unwrap();
    let response = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    assert_eq!(
        response.assert_status(200).header("ratelimit"),
        Some("\"default\";r=2;t=60")
    );
}

#[tokio::test]
async fn a_rejected_parameter_counts_and_a_replay_does_not() {
    let service = Service::start().await;
    let request = Request::get("/api/v1/partner/inspections?limit=0")
        .signed_by(&THREE_A_MINUTE)
        .nonce("counted-and-replayed");
    let rejected = service.send(request.clone()).await;
    assert_eq!(remaining(rejected.assert_rejected(400, "invalid_request")), 2);
    service.send(request).await.assert_rejected(401, "replay_detected");
    let next = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    assert_eq!(remaining(next.assert_status(200)), 1);
}

/// LIM-2, REQ-1
#[tokio::test]
async fn an_address_is_limited_before_anything_else_is_checked() {
    let service = Service::start_with(Options {
        ip_limit: 3,
        ..Options::default()
    })
    .await;
    // Every request counts: unsigned ones, and those for the document.
    service
        .send(Request::get(HEALTH))
        .await
        .assert_rejected(401, "missing_signature_headers");
    service.send(Request::get("/openapi.json")).await.assert_status(200);
    service.get(&ALPHA, HEALTH).await.assert_status(200);
    let response = service.get(&ALPHA, HEALTH).await;
    response
        .assert_rejected(429, "ip_rate_limited")
        .snapshot("an_address_is_limited_before_anything_else_is_checked");
    assert_eq!(response.header("ratelimit"), None);
    // Another address has its own limit.
    service
        .send(Request::get(HEALTH).signed_by(&ALPHA).from("127.0.0.2"))
        .await
        .assert_status(200);
}

/// REQ-1, LIM-1
#[tokio::test]
async fn an_unauthenticated_request_counts_against_no_key() {
    let service = Service::start().await;
    let request = || Request::get(ORGANIZATIONS).signed_by(&THREE_A_MINUTE);
    for rejected in [
        request().without("x-partner-nonce"),
        request().clock_ahead_by(-400),
        request().body("{").header("content-length", "1048577").stalled(),
        request().with("x-partner-signature", "sha256=0"),
        Request::get(&format!("{ORGANIZATIONS}?a=%zz")).signed_by(&THREE_A_MINUTE),
    ] {
        let response = service.send(rejected).await;
        assert!(response.status.is_client_error());
        assert_eq!(response.header("ratelimit"), None, "{}", response.status);
    }
    let response = service.send(request()).await;
    assert_eq!(remaining(response.assert_status(200)), 2);

    let outside = Request::get(ORGANIZATIONS).signed_by(&ALLOWLISTED);
    let rejected = service.send(outside.clone()).await;
    assert_eq!(rejected.assert_rejected(401, "invalid_key").header("ratelimit"), None);
    let response = service.send(outside.from("127.0.0.7")).await;
    assert_eq!(remaining(response.assert_status(200)), 99_999);
}

/// REQ-11, LIM-1
#[tokio::test]
async fn every_authenticated_request_counts_and_the_headers_report_it() {
    let service = Service::start().await;
    for (method, target, status, left) in [
        ("GET", "/api/v1/partner/nowhere", 404, 2),
        ("DELETE", ORGANIZATIONS, 405, 1),
        ("POST", "/api/v1/partner/test-line/measurements", 403, 0),
        ("GET", ORGANIZATIONS, 429, 0),
    ] {
        let response = service
            .send(Request::new(method, target).signed_by(&THREE_A_MINUTE))
            .await;
        assert_eq!(response.status, status, "{method} {target}");
        assert_eq!(remaining(&response), left, "{method} {target}");
        assert_eq!(response.header("ratelimit-policy"), Some("\"default\";q=3;w=60"));
    }
}

/// LIM-1, ERR-7
#[tokio::test]
async fn a_window_begins_with_its_first_request_and_is_never_extended() {
    let service = Service::start().await;
    let first = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    assert_eq!(field(first.assert_status(200), 't'), 60);
    let later = "UPDATE rate_windows SET started_at = started_at - interval '40 seconds'";
    service.db.execute(later, &[]).await.unwrap();
    for _ in 0..2 {
        let response = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
        let left = field(response.assert_status(200), 't');
        assert!((1..=20).contains(&left), "{left} s");
    }
    for _ in 0..2 {
        let response = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
        let left = retry_after(response.assert_rejected(429, "rate_limited"));
        assert!((1..=20).contains(&left), "{left} s");
    }
}

/// LIM-2, KEY-5
#[tokio::test]
async fn each_client_of_a_trusted_proxy_has_its_own_limit() {
    let service = Service::start_with(Options {
        ip_limit: 1,
        trusted_proxies: TrustedProxies(vec!["127.0.0.1/32".parse().unwrap()]),
        ..Options::default()
    })
    .await;
    let from = |client: &str| Request::get(HEALTH).signed_by(&ALPHA).header("x-forwarded-for", client);
    service.send(from("192.0.2.1")).await.assert_status(200);
    // An IPv4-mapped address counts as its IPv4 address. Entries further left, which the client wrote, are ignored.
    for same in ["192.0.2.1", "::ffff:192.0.2.1", "203.0.113.9, 192.0.2.1"] {
        let response = service.send(from(same)).await;
        let wait = retry_after(response.assert_rejected(429, "ip_rate_limited"));
        assert!((1..=60).contains(&wait), "{wait} s");
    }
    service.send(from("192.0.2.2")).await.assert_status(200);
}

/// LIM-2, KEY-5
#[tokio::test]
async fn a_forwarded_address_is_ignored_unless_the_proxy_is_trusted() {
    let service = Service::start_with(Options {
        ip_limit: 1,
        ..Options::default()
    })
    .await;
    let from = |client: &str| Request::get(HEALTH).signed_by(&ALPHA).header("x-forwarded-for", client);
    service.send(from("192.0.2.1")).await.assert_status(200);
    service
        .send(from("192.0.2.2"))
        .await
        .assert_rejected(429, "ip_rate_limited");
}
