use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, Request, Service};

#[tokio::test]
async fn an_unknown_path_is_not_found() {
    let service = Service::start().await;
    let response = service.get(&ALPHA, "/api/v1/partner/nowhere").await;
    response
        .assert_rejected(404, "not_found")
        .snapshot("an_unknown_path_is_not_found");
    assert!(response.header("ratelimit").is_some());
}

/// REQ-2
#[tokio::test]
async fn an_unsigned_request_does_not_learn_that_a_path_is_unknown() {
    let service = Service::start().await;
    for path in [
        "/api/v1/partner/nowhere",
        "/api/v1/partner",
        "/api/v1/partner/",
        "/api/v1/partner//health",
    ] {
        service
            .send(Request::get(path))
            .await
            .assert_rejected(401, "missing_signature_headers");
    }
}

/// REQ-3
#[tokio::test]
async fn a_path_that_matches_only_after_normalization_is_not_found() {
    let service = Service::start().await;
    for path in [
        "/api/v1/partner//inspections",
        "/api/v1/partner/inspections/",
        "/api/v1/partner/%69nspections",
        "/api/v1/partner/Inspections",
        "/api/v1/partner/inspections;a=1",
        "/api/v1/partner/",
        "/api/v1/partner",
        &format!("/api/v1/partner/inspections/{}/", inspections::PUBLISHED),
        &format!("/api/v1/partner/inspections/{}//forms", inspections::PUBLISHED),
        &format!("/api/v1/partner/inspections/{}/forms/", inspections::PUBLISHED),
        &format!("/api/v1/partner/inspections/%30{}", &inspections::PUBLISHED[1..]),
    ] {
        service.get(&ALPHA, path).await.assert_rejected(404, "not_found");
    }
}

/// REQ-3
#[tokio::test]
async fn a_malformed_path_is_rejected_like_an_unknown_one() {
    let service = Service::start().await;
    for path in [
        "/api/v1/partner/./inspections",
        "/api/v1/partner/health/../inspections",
        "/api/v1/partner/inspections/..",
        "/api/v1/partner/%ff",
    ] {
        let unsigned = service.send(Request::get(path)).await;
        unsigned.assert_rejected(401, "missing_signature_headers");
        let signed = service.send(Request::get(path).signed_by(&ALPHA)).await;
        signed.assert_rejected(404, "not_found");
    }
    let outside = service.send(Request::get("/files/../Cargo.toml")).await;
    outside.assert_rejected(404, "not_found");
}

#[tokio::test]
async fn an_escaped_dot_or_an_invalid_escape_makes_a_different_path() {
    let service = Service::start().await;
    for path in ["/api/v1/partner/%2e%2e/partner/health", "/api/v1/partner/%zz"] {
        service
            .send(Request::get(path))
            .await
            .assert_rejected(401, "missing_signature_headers");
        service.get(&ALPHA, path).await.assert_rejected(404, "not_found");
    }
}

/// REQ-4
#[tokio::test]
async fn the_response_to_an_unknown_method_lists_the_allowed_ones() {
    let service = Service::start().await;
    for (method, path, allow) in [
        ("DELETE", "/api/v1/partner/inspections", "GET"),
        ("OPTIONS", "/api/v1/partner/inspections", "GET"),
        ("HEAD", "/api/v1/partner/health", "GET"),
        ("PUT", "/api/v1/partner/test-line/measurements", "POST"),
        ("GET", "/api/v1/partner/test-line/measurements", "POST"),
    ] {
        let response = service.send(Request::new(method, path).signed_by(&ALPHA)).await;
        response.assert_status(405);
        assert_eq!(response.header("allow"), Some(allow), "{method} {path}");
    }
}

/// REQ-2
#[tokio::test]
async fn the_document_is_served_unsigned() {
    let service = Service::start().await;
    let yaml = service.send(Request::get("/openapi.yaml")).await;
    assert_eq!(
        &yaml.assert_status(200).body[..],
        include_bytes!("../../../../spec/partner-api.yaml")
    );
    let json = service.send(Request::get("/openapi.json")).await;
    assert_eq!(json.assert_status(200).header("content-type"), Some("application/json"));
    assert_eq!(json.json()["info"]["version"], env!("CARGO_PKG_VERSION"));
    service
        .send(Request::post("/openapi.json", "{}"))
        .await
        .assert_rejected(405, "method_not_allowed");
}

#[tokio::test]
async fn outside_the_api_nothing_else_is_served() {
    let service = Service::start().await;
    for path in [
        "/",
        "/api/v1",
        "/api/v1/partners",
        "/api/v2/partner/health",
        "/files/",
        "/openapi",
    ] {
        service.send(Request::get(path)).await.assert_rejected(404, "not_found");
    }
}
