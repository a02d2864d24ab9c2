//! What counts against which limit, and from when on.

use partner_api::front_door::address::TrustedProxies;
use partner_api_tests::fixture::{ALLOWLISTED, THREE_A_MINUTE};
use partner_api_tests::{ALPHA, Answer, Options, Request, Service};

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// The parameter `name` of the field `RateLimit`: `r` is what is left, `t` the seconds to the window's end.
#[track_caller]
fn field(answer: &Answer, name: char) -> u64 {
    let field = answer.header("ratelimit").unwrap();
    let value = field.split(';').find_map(|part| part.strip_prefix(&format!("{name}=")));
    value.unwrap_or_else(|| panic!("{field}")).parse().unwrap()
}

#[track_caller]
fn retry_after(answer: &Answer) -> u64 {
    answer.header("retry-after").unwrap().parse().unwrap()
}

/// REQ-1, LIM-1
#[tokio::test]
async fn a_request_that_is_not_verified_counts_against_no_key() {
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
    assert_eq!(field(answer.assert_status(200), 'r'), 2);

    let outside = Request::get(ORGANIZATIONS).signed_by(&ALLOWLISTED);
    let refused = service.send(outside.clone()).await;
    assert_eq!(refused.assert_refused(401, "invalid_key").header("ratelimit"), None);
    let answer = service.send(outside.from("127.0.0.7")).await;
    assert_eq!(field(answer.assert_status(200), 'r'), 99_999);
}

/// REQ-11, LIM-1
#[tokio::test]
async fn a_verified_request_counts_whatever_it_is_answered_and_is_told_so() {
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
        assert_eq!(field(&answer, 'r'), left, "{method} {target}");
        assert_eq!(answer.header("ratelimit-policy"), Some("\"default\";q=3;w=60"));
    }
}

/// LIM-1, ERR-7
#[tokio::test]
async fn a_window_is_opened_by_its_first_request_and_moved_by_no_other() {
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
async fn each_client_of_a_trusted_proxy_has_a_limit_of_its_own() {
    let service = Service::start_with(Options {
        ip_limit: 1,
        trusted_proxies: TrustedProxies(vec!["127.0.0.1/32".parse().unwrap()]),
        ..Options::default()
    })
    .await;
    let from = |client: &str| Request::get(HEALTH).signed_by(&ALPHA).header("x-forwarded-for", client);
    service.send(from("192.0.2.1")).await.assert_status(200);
    // A v4-mapped address is its v4 address, and what stands further left is a stranger's word.
    for same in ["192.0.2.1", "::ffff:192.0.2.1", "203.0.113.9, 192.0.2.1"] {
        let answer = service.send(from(same)).await;
        let wait = retry_after(answer.assert_refused(429, "ip_rate_limited"));
        assert!((1..=60).contains(&wait), "{wait} s");
    }
    service.send(from("192.0.2.2")).await.assert_status(200);
}

/// LIM-2, KEY-5
#[tokio::test]
async fn a_stranger_gets_no_limit_more_by_what_it_forwards() {
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
