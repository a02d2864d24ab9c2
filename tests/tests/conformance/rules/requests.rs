//! How a request may be spelled, and what every answer has.

use std::collections::HashSet;

use partner_api_tests::fixture::{branches, organizations};
use partner_api_tests::{ALPHA, Request, Service};

const HEALTH: &str = "/api/v1/partner/health";

/// SIG-4
#[tokio::test]
async fn a_plus_and_an_escaped_space_are_a_space_and_only_an_escaped_plus_is_one() {
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
        let answer = service.get(&ALPHA, &target).await;
        assert_eq!(answer.assert_status(200).data("code"), [code], "{spelling}");
    }
}

/// REQ-10
#[tokio::test]
async fn every_answer_has_a_request_id_of_its_own() {
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
        let answer = service.send(request).await;
        let id = answer.header("x-request-id").unwrap().to_owned();
        assert!(ids.insert(id.clone()), "{id} came twice");
    }
    assert!(!ids.contains("chosen-by-the-client"));
}

/// REQ-2, REQ-4
#[tokio::test]
async fn every_registered_method_is_asked_for_its_signature_before_it_is_refused() {
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
        let answer = service.send(Request::new(method, HEALTH).signed_by(&ALPHA)).await;
        answer.assert_status(405);
        assert_eq!(answer.header("allow"), Some("GET"), "{method}");
    }
}

/// A method that no operation has is not special: it is authenticated first.
#[tokio::test]
async fn a_method_that_nobody_registered_is_refused_as_any_other() {
    let service = Service::start().await;
    let brew = Request::new("BREW", HEALTH);
    service
        .send(brew.clone())
        .await
        .assert_refused(401, "missing_signature_headers");
    let answer = service.send(brew.signed_by(&ALPHA)).await;
    answer.assert_refused(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("GET"));
}
