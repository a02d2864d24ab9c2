use partner_api_tests::{ALPHA, Request, Service};

const LIST: &str = "/api/v1/partner/inspections";

/// REQ-5
#[tokio::test]
async fn an_unknown_parameter_is_refused_by_name() {
    let service = Service::start().await;
    let answer = service
        .get(&ALPHA, &format!("{LIST}?publishedFrom=2026-05-01T00:00:00Z"))
        .await;
    answer
        .assert_refused(400, "invalid_request")
        .snapshot("an_unknown_parameter_is_refused_by_name");
}

/// REQ-5
#[tokio::test]
async fn a_repeated_parameter_is_refused_by_name() {
    let service = Service::start().await;
    let answer = service.get(&ALPHA, &format!("{LIST}?limit=5&limit=5")).await;
    answer
        .assert_refused(400, "invalid_request")
        .snapshot("a_repeated_parameter_is_refused_by_name");
    // Spelled differently it is the same parameter.
    service
        .get(&ALPHA, &format!("{LIST}?limit=5&%6cimit=5"))
        .await
        .assert_refused(400, "invalid_request");
}

/// SIG-4
#[tokio::test]
async fn a_malformed_percent_is_refused_before_anything_is_signed() {
    let service = Service::start().await;
    let answer = service.get(&ALPHA, &format!("{LIST}?branch_id=%zz")).await;
    answer
        .assert_refused(400, "invalid_request")
        .snapshot("a_malformed_percent_is_refused");
    assert_eq!(answer.header("ratelimit"), None);
    for query in ["%", "a=%", "a=%4", "limit=5&a=50%"] {
        service
            .get(&ALPHA, &format!("{LIST}?{query}"))
            .await
            .assert_refused(400, "invalid_request");
    }
}

/// SIG-4
#[tokio::test]
async fn every_spelling_of_a_query_is_signed_alike() {
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
async fn bytes_that_are_no_text_are_refused_after_authentication() {
    let service = Service::start().await;
    for query in ["branch_id=%ff", "%ff=1"] {
        let answer = service.get(&ALPHA, &format!("{LIST}?{query}")).await;
        answer.assert_refused(400, "invalid_request");
        assert!(answer.header("ratelimit").is_some(), "{query}");
        service
            .send(Request::get(&format!("{LIST}?{query}")))
            .await
            .assert_refused(401, "missing_signature_headers");
    }
}
