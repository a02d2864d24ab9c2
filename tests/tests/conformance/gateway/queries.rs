use partner_api_tests::{ALPHA, Request, Service};

const LIST: &str = "/api/v1/partner/inspections";

/// REQ-5
#[tokio::test]
async fn an_unknown_parameter_is_rejected_and_named() {
    let service = Service::start().await;
    let response = service
        .get(&ALPHA, &format!("{LIST}?publishedFrom=2026-05-01T00:00:00Z"))
        .await;
    response
        .assert_rejected(400, "invalid_request")
        .snapshot("an_unknown_parameter_is_rejected_and_named");
}

/// REQ-5
#[tokio::test]
async fn a_repeated_parameter_is_rejected_and_named() {
    let service = Service::start().await;
    let response = service.get(&ALPHA, &format!("{LIST}?limit=5&limit=5")).await;
    response
        .assert_rejected(400, "invalid_request")
        .snapshot("a_repeated_parameter_is_rejected_and_named");
    // A different spelling is the same parameter.
    service
        .get(&ALPHA, &format!("{LIST}?limit=5&%6cimit=5"))
        .await
        .assert_rejected(400, "invalid_request");
}

/// SIG-4
#[tokio::test]
async fn a_malformed_escape_is_rejected_before_the_signature_is_checked() {
    let service = Service::start().await;
    let response = service.get(&ALPHA, &format!("{LIST}?branch_id=%zz")).await;
    response
        .assert_rejected(400, "invalid_request")
        .snapshot("a_malformed_escape_is_rejected");
    assert_eq!(response.header("ratelimit"), None);
    for query in ["%", "a=%", "a=%4", "limit=5&a=50%"] {
        service
            .get(&ALPHA, &format!("{LIST}?{query}"))
            .await
            .assert_rejected(400, "invalid_request");
    }
}

/// SIG-4
#[tokio::test]
async fn every_spelling_of_a_query_has_the_same_signature() {
    let service = Service::start().await;
    for query in [
        "?",
        "?&",
        "?limit=5&",
        "?&&limit=5",
        "?%6cimit=5",
        "?limit=%35",
        "?status=archived&limit=2",
    ] {
        service.get(&ALPHA, &format!("{LIST}{query}")).await.assert_status(200);
    }
}

#[tokio::test]
async fn a_query_that_is_not_utf8_is_rejected_after_authentication() {
    let service = Service::start().await;
    for query in ["branch_id=%ff", "%ff=1"] {
        let response = service.get(&ALPHA, &format!("{LIST}?{query}")).await;
        response.assert_rejected(400, "invalid_request");
        assert!(response.header("ratelimit").is_some(), "{query}");
        service
            .send(Request::get(&format!("{LIST}?{query}")))
            .await
            .assert_rejected(401, "missing_signature_headers");
    }
}
