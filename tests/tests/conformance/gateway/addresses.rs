use partner_api_gateway::TrustedProxies;
use partner_api_tests::fixture::{ALLOWLISTED, REPORTED};
use partner_api_tests::{Options, Request, Service};

const HEALTH: &str = "/api/v1/partner/health";

fn health() -> Request {
    Request::get(HEALTH).signed_by(&ALLOWLISTED)
}

async fn behind_a_proxy() -> Service {
    let trusted_proxies = TrustedProxies(vec!["127.0.0.1/32".parse().unwrap(), "10.0.0.0/8".parse().unwrap()]);
    Service::start_with(Options {
        trusted_proxies,
        ..Options::default()
    })
    .await
}

/// ERR-3, KEY-5
#[tokio::test]
async fn an_address_outside_the_allowlist_is_rejected_and_named() {
    let service = Service::start().await;
    let response = service.send(health()).await;
    response
        .assert_rejected(401, "invalid_key")
        .snapshot("an_address_outside_the_allowlist_is_rejected_and_named");
    assert!(response.message().contains("127.0.0.1"), "{}", response.message());
    service.send(health().from("127.0.0.7")).await.assert_status(200);
}

/// ERR-3
#[tokio::test]
async fn an_unauthenticated_caller_does_not_learn_of_the_allowlist() {
    let service = Service::start().await;
    service
        .send(health().with("x-partner-signature", "sha256=0"))
        .await
        .assert_rejected(401, "invalid_signature");
}

/// REQ-1
#[tokio::test]
async fn a_request_from_a_rejected_address_consumes_no_nonce() {
    let service = Service::start().await;
    let request = health().nonce("first-from-elsewhere");
    service.send(request.clone()).await.assert_rejected(401, "invalid_key");
    service.send(request.from("127.0.0.7")).await.assert_status(200);
}

/// KEY-5
#[tokio::test]
async fn an_allowlist_in_report_mode_admits_every_address() {
    let service = Service::start().await;
    service.get(&REPORTED, HEALTH).await.assert_status(200);
}

#[tokio::test]
async fn forwarded_addresses_from_an_untrusted_peer_are_ignored() {
    let service = Service::start().await;
    let response = service.send(health().header("x-forwarded-for", "192.0.2.10")).await;
    assert!(
        response
            .assert_rejected(401, "invalid_key")
            .message()
            .contains("127.0.0.1")
    );
}

/// KEY-5
#[tokio::test]
async fn the_right_most_untrusted_entry_of_a_trusted_proxy_is_the_client() {
    let service = behind_a_proxy().await;
    for (forwarded, client) in [
        ("192.0.2.10", None),
        ("::ffff:192.0.2.10", None),
        ("203.0.113.1, 192.0.2.10, 10.1.2.3", None),
        ("192.0.2.10, 203.0.113.1", Some("203.0.113.1")),
        ("192.0.2.10, 203.0.113.1, 10.9.9.9", Some("203.0.113.1")),
        ("2001:db8::1", Some("2001:db8::1")),
    ] {
        let response = service.send(health().header("x-forwarded-for", forwarded)).await;
        match client {
            None => {
                response.assert_status(200);
            }
            Some(client) => {
                let message = response.assert_rejected(401, "invalid_key").message();
                assert!(message.contains(client), "{forwarded}: {message}");
            }
        }
    }
}
