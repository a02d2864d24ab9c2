use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, Request, Service};

#[tokio::test]
async fn an_unknown_path_is_not_found() {
    let service = Service::start().await;
    let answer = service.get(&ALPHA, "/api/v1/partner/nowhere").await;
    answer
        .assert_refused(404, "not_found")
        .snapshot("an_unknown_path_is_not_found");
    assert!(answer.header("ratelimit").is_some());
}

/// REQ-2
#[tokio::test]
async fn an_unsigned_request_to_an_unknown_path_is_not_told_that_it_is_unknown() {
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
            .assert_refused(401, "missing_signature_headers");
    }
}

/// REQ-3
#[tokio::test]
async fn a_path_that_leads_somewhere_only_after_normalisation_is_another_path() {
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
        service.get(&ALPHA, path).await.assert_refused(404, "not_found");
    }
}

/// REQ-3
#[tokio::test]
async fn a_path_that_is_no_path_of_segments_is_refused_like_any_other() {
    let service = Service::start().await;
    for path in [
        "/api/v1/partner/./inspections",
        "/api/v1/partner/health/../inspections",
        "/api/v1/partner/inspections/..",
        "/api/v1/partner/%ff",
    ] {
        let unsigned = service.send(Request::get(path)).await;
        unsigned.assert_refused(401, "missing_signature_headers");
        let signed = service.send(Request::get(path).signed_by(&ALPHA)).await;
        signed.assert_refused(404, "not_found");
    }
    let outside = service.send(Request::get("/files/../Cargo.toml")).await;
    outside.assert_refused(404, "not_found");
}

#[tokio::test]
async fn an_escaped_dot_or_an_escape_that_is_none_makes_another_path() {
    let service = Service::start().await;
    for path in ["/api/v1/partner/%2e%2e/partner/health", "/api/v1/partner/%zz"] {
        service
            .send(Request::get(path))
            .await
            .assert_refused(401, "missing_signature_headers");
        service.get(&ALPHA, path).await.assert_refused(404, "not_found");
    }
}

/// REQ-4
#[tokio::test]
async fn another_method_is_told_which_ones_there_are() {
    let service = Service::start().await;
    for (method, path, allow) in [
        ("DELETE", "/api/v1/partner/inspections", "GET"),
        ("OPTIONS", "/api/v1/partner/inspections", "GET"),
        ("HEAD", "/api/v1/partner/health", "GET"),
        ("PUT", "/api/v1/partner/test-line/measurements", "POST"),
        ("GET", "/api/v1/partner/test-line/measurements", "POST"),
    ] {
        let answer = service.send(Request::new(method, path).signed_by(&ALPHA)).await;
        answer.assert_status(405);
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
    }
    let answer = service
        .send(Request::new("DELETE", "/api/v1/partner/inspections").signed_by(&ALPHA))
        .await;
    answer
        .assert_refused(405, "method_not_allowed")
        .snapshot("another_method_is_told_which_ones_there_are");
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
        .assert_refused(405, "method_not_allowed");
}

#[tokio::test]
async fn outside_the_api_there_is_nothing_else() {
    let service = Service::start().await;
    for path in [
        "/",
        "/api/v1",
        "/api/v1/partners",
        "/api/v2/partner/health",
        "/files/",
        "/openapi",
    ] {
        service.send(Request::get(path)).await.assert_refused(404, "not_found");
    }
}
