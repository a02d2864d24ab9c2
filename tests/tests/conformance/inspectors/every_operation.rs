//! What is refused alike for every operation of the inspectors' contract.
//!
//! The answers of all operations to one fault are one snapshot in `snapshots/every_operation/`.

use partner_api_tests::fixture::{Subject, branches};
use partner_api_tests::inspectors::InspectorClient;
use partner_api_tests::operations::{INSPECTOR_OPERATIONS, Operation};
use partner_api_tests::{AYSE, Answer, MEHMET, Options, Request, Service, snapshot};

/// A good request to an operation.
fn request(operation: &Operation) -> Request {
    let request = operation.request(&Subject::MASKED);
    match operation.id {
        // The document's example is of no branch of the fixture data.
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

/// The answers to a good request to each of `operations`, changed by `change`.
async fn answers(
    service: &Service,
    operations: impl Iterator<Item = &'static Operation>,
    change: impl Fn(Request) -> Request,
) -> Vec<Answer> {
    let mut answers = Vec::new();
    for operation in operations {
        let mut answer = service.send(change(request(operation))).await;
        // Several operations share a path: which of them was meant does not show in a method that it does not have.
        answer.operation = Some(operation.id.to_owned());
        answers.push(answer);
    }
    answers
}

fn all() -> impl Iterator<Item = &'static Operation> {
    INSPECTOR_OPERATIONS.iter()
}

/// Those that a session is asked of.
fn of_sessions() -> impl Iterator<Item = &'static Operation> {
    all().filter(|operation| operation.security().contains(&"InspectorSession"))
}

/// Those that change something.
fn writes() -> impl Iterator<Item = &'static Operation> {
    all().filter(|operation| operation.security().contains(&"CsrfToken"))
}

/// INS-11
#[test]
fn whatever_changes_something_asks_for_the_token_and_nothing_but_signing_in_lets_a_stranger_in() {
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
async fn without_a_session_every_operation_is_refused_alike() {
    let service = Service::start().await;
    let answers = answers(&service, of_sessions(), |request| request).await;
    snapshot::of_all("a_request_without_a_session_is_refused", 401, "signed_out", &answers);
}

/// INS-11
#[tokio::test]
async fn every_write_of_another_site_is_refused_alike() {
    let service = Service::start().await;
    let (inspector, other) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
    let without = |request: Request| request.header("cookie", &inspector.cookie);
    let answers_without = answers(&service, writes(), without).await;
    snapshot::of_all(
        "a_write_without_the_sessions_token_is_refused",
        403,
        "forged_request",
        &answers_without,
    );
    let stolen = InspectorClient {
        csrf_token: other.csrf_token.clone(),
        ..inspector.clone()
    };
    for answer in answers(&service, writes(), |request| stolen.sends(request)).await {
        answer.assert_refused(403, "forged_request");
    }
    let elsewhere = |request| inspector.sends(request).header("origin", "https://evil.example");
    for answer in answers(&service, writes(), elsewhere).await {
        answer.assert_refused(403, "forged_request");
    }
    let from_elsewhere = answers(
        &service,
        all().filter(|operation| operation.id == "sign_in"),
        |request| request.header("origin", "https://evil.example"),
    )
    .await;
    snapshot::of_all(
        "a_page_of_another_origin_is_refused",
        403,
        "forged_request",
        &from_elsewhere,
    );
    assert_eq!(service.count("inspection_transitions").await, 0);
}

#[tokio::test]
async fn another_method_is_answered_alike() {
    let service = Service::start().await;
    let answers = answers(&service, all(), |request| request.with_method("OPTIONS")).await;
    snapshot::of_all(
        "a_method_that_an_inspectors_path_does_not_have_is_refused",
        405,
        "method_not_allowed",
        &answers,
    );
}

#[tokio::test]
async fn an_unknown_query_parameter_is_answered_alike() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let answers = answers(&service, of_sessions(), |request| {
        inspector.sends(request.with_query("verbose=1"))
    })
    .await;
    snapshot::of_all(
        "an_unknown_query_parameter_of_an_inspectors_path_is_refused",
        400,
        "invalid_request",
        &answers,
    );
}

#[tokio::test]
async fn a_body_too_large_or_too_slow_is_answered_alike() {
    let service = Service::start_with(Options {
        body_timeout: std::time::Duration::from_millis(100),
        ..Options::default()
    })
    .await;
    let inspector = service.inspector(&AYSE).await;
    let with_body = || {
        let json = |operation: &&Operation| operation.has_body() && operation.id != "add_photo";
        of_sessions().filter(json)
    };
    let unfinished = |request: Request| inspector.sends(request.body("{").stalled());
    let large = |request| unfinished(request).header("content-length", "1048577");
    let large = answers(&service, with_body(), large).await;
    snapshot::of_all(
        "an_inspectors_body_that_is_too_large_is_refused",
        413,
        "payload_too_large",
        &large,
    );
    let slow = answers(&service, with_body(), unfinished).await;
    snapshot::of_all(
        "an_inspectors_body_that_is_too_slow_is_given_up",
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
    let answers = answers(&service, all(), |request| inspector.sends(request)).await;
    snapshot::of_all(
        "without_a_database_inspectors_are_told_to_wait",
        503,
        "service_unavailable",
        &answers,
    );
}

/// ERR-1, ERR-8
#[tokio::test]
async fn a_fault_inside_is_answered_without_its_cause() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    // What signing in asks is not there, nor what any other operation does behind its session.
    let away = "ALTER TABLE sign_in_attempts RENAME TO gone_1; ALTER TABLE inspections RENAME TO gone_2;
                ALTER TABLE measurements RENAME TO gone_3; ALTER TABLE vehicles RENAME TO gone_4";
    service.db.batch_execute(away).await.unwrap();
    let fails = |operation: &&Operation| !["get_session", "sign_out", "watch_reports"].contains(&operation.id);
    let behind = answers(&service, all().filter(fails), |request| inspector.sends(request)).await;
    // And of those that ask nothing more, the session itself.
    let away = "ALTER TABLE inspector_sessions RENAME TO gone_5";
    service.db.batch_execute(away).await.unwrap();
    let rest = answers(&service, all().filter(|operation| !fails(operation)), |request| {
        inspector.sends(request)
    })
    .await;
    snapshot::of_all(
        "a_fault_inside_shows_inspectors_no_cause",
        500,
        "internal_error",
        &[behind, rest].concat(),
    );
}

/// What is no operation's.
#[tokio::test]
async fn a_path_that_there_is_not_is_not_found() {
    let service = Service::start().await;
    for path in [
        "/inspector/v1",
        "/inspector/v1/",
        "/inspector/v1/reports/",
        "/inspector/v1//session",
        "/inspector/v1/%73ession",
    ] {
        service.send(Request::get(path)).await.assert_refused(404, "not_found");
    }
    service
        .send(Request::get("/inspector/v1/nothing"))
        .await
        .snapshot("a_path_of_no_operation_of_inspectors_is_not_found");
}
