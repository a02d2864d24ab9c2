//! Invalid requests that every operation of the inspectors' contract rejects in the same way.
//!
//! The responses of all operations to one error form one snapshot in `snapshots/every_operation/`.

use partner_api_tests::fixture::{Subject, branches};
use partner_api_tests::inspectors::InspectorClient;
use partner_api_tests::operations::{INSPECTOR_OPERATIONS, Operation};
use partner_api_tests::{AYSE, MEHMET, Options, Request, Service, TestResponse, snapshot};

/// A valid request to an operation.
fn request(operation: &Operation) -> Request {
    let request = operation.request(&Subject::MASKED);
    match operation.id {
        // The branch of the document's example is not in the fixture data.
        "open_report" => request.body(format!(
            r#"{{"branch_id":"{}","plate":"35MSK201","package_name":"Full","base_price":"1.00","mileage_km":1}}"#,
            branches::IZMIR_01
        )),
        "add_photo" => request
            .body("\u{89}PNG")
            .header("content-type", "application/octet-stream"),
        _ => request,
    }
}

/// Sends a valid request to each of `operations`, changed by `change`, and returns the responses.
async fn responses(
    service: &Service,
    operations: impl Iterator<Item = &'static Operation>,
    change: impl Fn(Request) -> Request,
) -> Vec<TestResponse> {
    let mut responses = Vec::new();
    for operation in operations {
        let mut response = service.send(change(request(operation))).await;
        // Several operations share a path, and an unknown method does not identify one of them.
        response.operation = Some(operation.id.to_owned());
        responses.push(response);
    }
    responses
}

fn all() -> impl Iterator<Item = &'static Operation> {
    INSPECTOR_OPERATIONS.iter()
}

/// The operations that require a session.
fn with_session() -> impl Iterator<Item = &'static Operation> {
    all().filter(|operation| operation.security().contains(&"InspectorSession"))
}

/// The operations that write.
fn writes() -> impl Iterator<Item = &'static Operation> {
    all().filter(|operation| operation.security().contains(&"CsrfToken"))
}

/// INS-11
#[test]
fn writes_require_a_csrf_token_and_only_signing_in_requires_no_session() {
    for operation in all() {
        let is_read = operation.method() == http::Method::GET;
        let schemes = operation.security();
        match operation.id {
            "sign_in" => assert!(schemes.is_empty()),
            _ => assert!(schemes.contains(&"InspectorSession"), "{}", operation.id),
        }
        assert_eq!(
            schemes.contains(&"CsrfToken"),
            !is_read && operation.id != "sign_in",
            "{}",
            operation.id
        );
    }
}

/// INS-4
#[tokio::test]
async fn every_operation_is_rejected_without_a_session() {
    let service = Service::start().await;
    let responses = responses(&service, with_session(), |request| request).await;
    snapshot::of_all("a_request_without_a_session_is_rejected", 401, "signed_out", &responses);
}

/// INS-11
#[tokio::test]
async fn every_cross_site_write_is_rejected() {
    let service = Service::start().await;
    let (inspector, other) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
    let without = |request: Request| request.header("cookie", &inspector.cookie);
    let responses_without = responses(&service, writes(), without).await;
    snapshot::of_all(
        "a_write_without_the_csrf_token_is_rejected",
        403,
        "forged_request",
        &responses_without,
    );
    let stolen = InspectorClient {
        csrf_token: other.csrf_token.clone(),
        ..inspector.clone()
    };
    for response in responses(&service, writes(), |request| stolen.sends(request)).await {
        response.assert_rejected(403, "forged_request");
    }
    let cross_site = |request| inspector.sends(request).header("origin", "https://evil.example");
    for response in responses(&service, writes(), cross_site).await {
        response.assert_rejected(403, "forged_request");
    }
    let signing_in = responses(
        &service,
        all().filter(|operation| operation.id == "sign_in"),
        |request| request.header("origin", "https://evil.example"),
    )
    .await;
    snapshot::of_all(
        "a_request_from_another_origin_is_rejected",
        403,
        "forged_request",
        &signing_in,
    );
    assert_eq!(service.count("inspection_transitions").await, 0);
}

#[tokio::test]
async fn every_operation_rejects_another_method_in_the_same_way() {
    let service = Service::start().await;
    let responses = responses(&service, all(), |request| request.with_method("OPTIONS")).await;
    snapshot::of_all(
        "an_unknown_method_of_an_inspectors_path_is_rejected",
        405,
        "method_not_allowed",
        &responses,
    );
}

#[tokio::test]
async fn every_operation_rejects_an_unknown_query_parameter_in_the_same_way() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let responses = responses(&service, with_session(), |request| {
        inspector.sends(request.with_query("verbose=1"))
    })
    .await;
    snapshot::of_all(
        "an_unknown_query_parameter_of_an_inspectors_path_is_rejected",
        400,
        "invalid_request",
        &responses,
    );
}

#[tokio::test]
async fn every_operation_rejects_a_too_large_or_too_slow_body_in_the_same_way() {
    let service = Service::start_with(Options {
        body_timeout: std::time::Duration::from_millis(100),
        ..Options::default()
    })
    .await;
    let inspector = service.inspector(&AYSE).await;
    let with_body = || {
        let json = |operation: &&Operation| operation.has_body() && operation.id != "add_photo";
        with_session().filter(json)
    };
    let unfinished = |request: Request| inspector.sends(request.body("{").stalled());
    let large = |request| unfinished(request).header("content-length", "1048577");
    let large = responses(&service, with_body(), large).await;
    snapshot::of_all(
        "an_inspectors_body_that_is_too_large_is_rejected",
        413,
        "payload_too_large",
        &large,
    );
    let slow = responses(&service, with_body(), unfinished).await;
    snapshot::of_all(
        "an_inspectors_body_that_is_too_slow_is_rejected",
        408,
        "request_timeout",
        &slow,
    );
}

/// REQ-12
#[tokio::test]
async fn without_a_database_every_operation_is_unavailable() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    service.cut_off_from_database().await;
    let responses = responses(&service, all(), |request| inspector.sends(request)).await;
    snapshot::of_all(
        "without_a_database_the_inspectors_api_is_unavailable",
        503,
        "service_unavailable",
        &responses,
    );
}

/// ERR-1, ERR-8
#[tokio::test]
async fn the_response_to_an_internal_error_hides_its_cause() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    // Rename the table that signing in needs, and those that other operations need after their session.
    for table in ["sign_in_attempts", "inspections", "measurements", "vehicles"] {
        let rename = format!("ALTER TABLE {table} RENAME TO gone_{table}");
        service.db.batch_execute(&rename).await.unwrap();
    }
    let fails = |operation: &&Operation| !["get_session", "sign_out", "watch_reports"].contains(&operation.id);
    let with_renamed_tables = responses(&service, all().filter(fails), |request| inspector.sends(request)).await;
    // For the operations that need nothing else, rename the table of sessions.
    let rename = "ALTER TABLE inspector_sessions RENAME TO gone_5";
    service.db.batch_execute(rename).await.unwrap();
    let rest = responses(&service, all().filter(|operation| !fails(operation)), |request| {
        inspector.sends(request)
    })
    .await;
    snapshot::of_all(
        "an_internal_error_does_not_show_inspectors_its_cause",
        500,
        "internal_error",
        &[with_renamed_tables, rest].concat(),
    );
}

/// Paths without an operation.
#[tokio::test]
async fn an_unknown_path_is_not_found() {
    let service = Service::start().await;
    for path in [
        "/inspector/v1",
        "/inspector/v1/",
        "/inspector/v1/reports/",
        "/inspector/v1//session",
        "/inspector/v1/%73ession",
    ] {
        service.send(Request::get(path)).await.assert_rejected(404, "not_found");
    }
    service
        .send(Request::get("/inspector/v1/nothing"))
        .await
        .snapshot("an_unknown_path_of_the_inspectors_api_is_not_found");
}
