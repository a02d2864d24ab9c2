//! Spellings of requests, and the parts of every response.

use std::collections::HashSet;

use partner_api_tests::fixture::{branches, organizations};
use partner_api_tests::{ALPHA, AYSE, Request, Service};

const HEALTH: &str = "/api/v1/partner/health";

/// SIG-4
#[tokio::test]
async fn a_plus_and_an_escaped_space_mean_a_space_and_an_escaped_plus_means_a_plus() {
    let service = Service::start().await;
    for (city, branch) in [
        ("Ankara Merkez", branches::ANK_01),
        ("Ankara+Merkez", branches::IZMIR_01),
    ] {
        let set = format!("UPDATE branches SET city = '{city}' WHERE id = '{branch}'");
        service.db.execute(&set, &[]).await.unwrap();
    }
    for (spelling, code) in [
        ("Ankara+Merkez", "ANK-01"),
        ("Ankara%20Merkez", "ANK-01"),
        ("Ankara%2BMerkez", "IZMIR-01"),
        ("Ankara%2bMerkez", "IZMIR-01"),
    ] {
        let target = format!(
            "/api/v1/partner/organizations/{}/branches?city={spelling}",
            organizations::MASKED
        );
        let response = service.get(&ALPHA, &target).await;
        assert_eq!(response.assert_status(200).data("code"), [code], "{spelling}");
    }
}

/// REQ-10
#[tokio::test]
async fn every_response_has_a_unique_request_id() {
    let service = Service::start().await;
    let signed = Request::get(HEALTH).signed_by(&ALPHA).nonce("sent-again-and-again");
    let mut ids = HashSet::new();
    for request in [
        signed.clone(),
        signed.clone(),
        signed.header("x-request-id", "chosen-by-the-client"),
        Request::get(HEALTH),
        Request::get("/api/v1/partner/nowhere").signed_by(&ALPHA),
        Request::new("HEAD", HEALTH).signed_by(&ALPHA),
        Request::get("/nowhere"),
        Request::get("/openapi.json"),
    ] {
        let response = service.send(request).await;
        let id = response.header("x-request-id").unwrap().to_owned();
        assert!(ids.insert(id.clone()), "{id} came twice");
    }
    assert!(!ids.contains("chosen-by-the-client"));
}

/// REQ-2, REQ-4
#[tokio::test]
async fn every_standard_method_is_authenticated_before_it_is_rejected() {
    let service = Service::start().await;
    for method in [
        "HEAD",
        "OPTIONS",
        "TRACE",
        "PATCH",
        "QUERY",
        "PROPFIND",
        "VERSION-CONTROL",
        "get",
    ] {
        let unsigned = service.send(Request::new(method, HEALTH)).await;
        unsigned.assert_status(401);
        assert_eq!(unsigned.header("allow"), None, "{method}");
        let response = service.send(Request::new(method, HEALTH).signed_by(&ALPHA)).await;
        response.assert_status(405);
        assert_eq!(response.header("allow"), Some("GET"), "{method}");
    }
}

/// A method that no operation has is authenticated first, too.
#[tokio::test]
async fn a_nonstandard_method_is_rejected_like_any_other() {
    let service = Service::start().await;
    let brew = Request::new("BREW", HEALTH);
    service
        .send(brew.clone())
        .await
        .assert_rejected(401, "missing_signature_headers");
    let response = service.send(brew.signed_by(&ALPHA)).await;
    response.assert_rejected(405, "method_not_allowed");
    assert_eq!(response.header("allow"), Some("GET"));
}

/// REQ-19
#[tokio::test]
async fn a_request_without_host_or_with_two_is_rejected_on_every_listener() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let health = || Request::get("/api/v1/partner/health").signed_by(&ALPHA);
    let missing = service.send(health().without("host")).await;
    missing
        .assert_rejected(400, "invalid_request")
        .snapshot("a_request_without_host_is_rejected");
    let twice = service.send(health().header("host", "other.example")).await;
    twice
        .assert_rejected(400, "invalid_request")
        .snapshot("a_request_with_two_hosts_is_rejected");
    assert_eq!(service.used_nonces().await, 0);

    let others = [
        Request::get("/openapi.json"),
        Request::get("/nowhere"),
        inspector.sends(Request::get("/inspector/v1/session")),
    ];
    for request in others {
        let missing = service.send(request.clone().without("host")).await;
        missing.assert_rejected(400, "invalid_request");
        let twice = service.send(request.header("host", "other.example")).await;
        twice.assert_rejected(400, "invalid_request");
    }
}
