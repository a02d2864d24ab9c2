//! Rate limits: how many requests a key and an address have, what counts against which, and when a window ends.

use futures::StreamExt;
use futures::stream;
use partner_api_gateway::TrustedProxies;
use partner_api_tests::fixture::{ALLOWLISTED, THREE_A_MINUTE};
use partner_api_tests::{ALPHA, Answer, DELTA, Options, Request, Service};

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// How many requests are under way at a time where a test sends many: all at once would have to wait for each other, and a
/// busy machine would answer some of them 503.
const AT_A_TIME: usize = 16;

/// The parameter `name` of the field `RateLimit`: `r` is what is left, `t` the seconds to the window's end.
#[track_caller]
fn field(answer: &Answer, name: char) -> u64 {
    let field = answer.header("ratelimit").unwrap();
    let value = field.split(';').find_map(|part| part.strip_prefix(&format!("{name}=")));
    value.unwrap_or_else(|| panic!("{field}")).parse().unwrap()
}

#[track_caller]
fn remaining(answer: &Answer) -> u64 {
    field(answer, 'r')
}

#[track_caller]
fn retry_after(answer: &Answer) -> u64 {
    answer.header("retry-after").unwrap().parse().unwrap()
}

/// LIM-1, REQ-11, ERR-7
#[tokio::test]
async fn exactly_as_many_requests_pass_as_the_key_has() {
    let service = Service::start().await;
    for (target, left) in [(ORGANIZATIONS, 2), (HEALTH, 1), (ORGANIZATIONS, 0)] {
        let answer = service.get(&THREE_A_MINUTE, target).await;
        assert_eq!(remaining(answer.assert_status(200)), left, "{target}");
    }
    let answer = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    answer
        .assert_refused(429, "rate_limited")
        .snapshot("exactly_as_many_requests_pass_as_the_key_has");
    assert!((1..=60).contains(&retry_after(&answer)));
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
    let answers: Vec<Answer> = stream::iter((0..80).map(send))
        .buffer_unordered(AT_A_TIME)
        .collect()
        .await;
    let passed = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers
        .iter()
        .filter(|answer| answer.code().as_deref() == Some("rate_limited"))
        .count();
    assert_eq!((passed, refused), (60, 20));
    assert_eq!(answers[0].header("ratelimit-policy"), Some("\"default\";q=60;w=60"));
}

#[tokio::test]
async fn a_new_window_begins_when_the_last_one_has_ended() {
    let service = Service::start().await;
    for _ in 0..3 {
        service.get(&THREE_A_MINUTE, ORGANIZATIONS).await.assert_status(200);
    }
    let nonce = "refused-for-its-keys-limit";
    let one_more = Request::get(ORGANIZATIONS).signed_by(&THREE_A_MINUTE).nonce(nonce);
    service.send(one_more).await.assert_refused(429, "rate_limited");
    // The service counts it after the answer, in the window that ends now.
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
    // A replica that does not know the window: the first one remembers when it ends and would not ask the database.
    let replica = service.replica().await;
    let answer = replica.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    assert_eq!(remaining(answer.assert_status(200)), 2);
}

/// LIM-3
#[tokio::test]
async fn a_window_that_began_in_the_future_begins_anew() {
    let service = Service::start().await;
    // As after a clock was set back, or after a failover to a standby whose clock is behind.
    let ahead = "INSERT INTO rate_windows VALUES ($1, now() + interval '1 hour', 3)";
    service.db.execute(ahead, &[&THREE_A_MINUTE.id]).await.unwrap();
    let answer = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    assert_eq!(
        answer.assert_status(200).header("ratelimit"),
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
    assert_eq!(remaining(rejected.assert_refused(400, "invalid_request")), 2);
    service.send(request).await.assert_refused(401, "replay_detected");
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
        .assert_refused(401, "missing_signature_headers");
    service.send(Request::get("/openapi.json")).await.assert_status(200);
    service.get(&ALPHA, HEALTH).await.assert_status(200);
    let answer = service.get(&ALPHA, HEALTH).await;
    answer
        .assert_refused(429, "ip_rate_limited")
        .snapshot("an_address_has_a_limit_before_anything_else_is_looked_at");
    assert_eq!(answer.header("ratelimit"), None);
    // Another address has its own limit.
    service
        .send(Request::get(HEALTH).signed_by(&ALPHA).from("127.0.0.2"))
        .await
        .assert_status(200);
}

/// REQ-1, LIM-1
#[tokio::test]
async fn an_unverified_request_counts_against_no_key() {
    let service = Service::start().await;
    let request = || Request::get(ORGANIZATIONS).signed_by(&THREE_A_MINUTE);
    for refused in [
        request().without("x-partner-nonce"),
        request().clock_ahead_by(-400),
        request().body("{").header("content-length", "1048577").stalled(),
        request().with("x-partner-signature", "sha256=0"),
        Request::get(&format!("{ORGANIZATIONS}?a=%zz")).signed_by(&THREE_A_MINUTE),
    ] {
        let answer = service.send(refused).await;
        assert!(answer.status.is_client_error());
        assert_eq!(answer.header("ratelimit"), None, "{}", answer.status);
    }
    let answer = service.send(request()).await;
    assert_eq!(remaining(answer.assert_status(200)), 2);

    let outside = Request::get(ORGANIZATIONS).signed_by(&ALLOWLISTED);
    let refused = service.send(outside.clone()).await;
    assert_eq!(refused.assert_refused(401, "invalid_key").header("ratelimit"), None);
    let answer = service.send(outside.from("127.0.0.7")).await;
    assert_eq!(remaining(answer.assert_status(200)), 99_999);
}

/// REQ-11, LIM-1
#[tokio::test]
async fn a_verified_request_counts_whatever_the_answer_and_the_headers_say_so() {
    let service = Service::start().await;
    for (method, target, status, left) in [
        ("GET", "/api/v1/partner/nowhere", 404, 2),
        ("DELETE", ORGANIZATIONS, 405, 1),
        ("POST", "/api/v1/partner/test-line/measurements", 403, 0),
        ("GET", ORGANIZATIONS, 429, 0),
    ] {
        let answer = service
            .send(Request::new(method, target).signed_by(&THREE_A_MINUTE))
            .await;
        assert_eq!(answer.status, status, "{method} {target}");
        assert_eq!(remaining(&answer), left, "{method} {target}");
        assert_eq!(answer.header("ratelimit-policy"), Some("\"default\";q=3;w=60"));
    }
}

/// LIM-1, ERR-7
#[tokio::test]
async fn the_first_request_begins_the_window_and_no_later_one_extends_it() {
    let service = Service::start().await;
    let first = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    assert_eq!(field(first.assert_status(200), 't'), 60);
    let later = "UPDATE rate_windows SET started_at = started_at - interval '40 seconds'";
    service.db.execute(later, &[]).await.unwrap();
    for _ in 0..2 {
        let answer = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
        let left = field(answer.assert_status(200), 't');
        assert!((1..=20).contains(&left), "{left} s");
    }
    for _ in 0..2 {
        let answer = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
        let left = retry_after(answer.assert_refused(429, "rate_limited"));
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
    // An IPv4-mapped address is its IPv4 address, and what the client itself wrote further left is ignored.
    for same in ["192.0.2.1", "::ffff:192.0.2.1", "203.0.113.9, 192.0.2.1"] {
        let answer = service.send(from(same)).await;
        let wait = retry_after(answer.assert_refused(429, "ip_rate_limited"));
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
        .assert_refused(429, "ip_rate_limited");
}
