//! The gateway rejects a request in the same way for every operation of the document.
//!
//! The responses of all operations to one kind of invalid request form one snapshot in `snapshots/every_operation/`.

use std::collections::BTreeSet;

use partner_api_store::statement::STATEMENTS;
use partner_api_tests::fixture::{Subject, THREE_A_MINUTE};
use partner_api_tests::operations::{OPERATIONS, Operation};
use partner_api_tests::{ALPHA, Options, Request, Service, TestKey, TestResponse, snapshot};
use regex::Regex;

/// Sends a valid request to every operation, each changed by `change`, and returns the responses.
async fn responses(service: &Service, change: impl Fn(&Operation, Request) -> Request) -> Vec<TestResponse> {
    let mut responses = Vec::new();
    for operation in OPERATIONS.iter() {
        let request = change(operation, operation.request(&Subject::MASKED));
        responses.push(service.send(request).await);
    }
    responses
}

/// REQ-11
#[tokio::test]
async fn a_valid_request_to_each_operation_succeeds_and_counts_once() {
    let service = Service::start().await;
    let responses = responses(&service, |_, request| request.signed_by(&ALPHA)).await;
    let mut left = ALPHA.rate_limit;
    for response in responses {
        assert!(response.status.is_success(), "{}: {:?}", response.target, response.body);
        left -= 1;
        let field = response.header("ratelimit").unwrap();
        assert!(field.contains(&format!(";r={left};")), "{}: {field}", response.target);
    }
}

/// ERR-1
#[tokio::test]
async fn every_operation_returns_401_in_the_same_way() {
    let service = Service::start().await;
    let unknown = TestKey {
        id: "vip_test_UNKNOWNAAAAAAAAAAAAAAA",
        ..ALPHA
    };
    let with_another_secret = TestKey {
        secret: THREE_A_MINUTE.secret,
        ..ALPHA
    };
    let nonce = |operation: &Operation| format!("{}-0123456789abcdef", operation.id);
    let unsigned = responses(&service, |_, request| request).await;
    snapshot::of_all(
        "a_request_without_a_signature_is_rejected",
        401,
        "missing_signature_headers",
        &unsigned,
    );
    let by_unknown = responses(&service, |_, request| request.signed_by(&unknown)).await;
    snapshot::of_all("an_unknown_key_is_rejected", 401, "invalid_key", &by_unknown);
    let late = |_: &Operation, request: Request| request.signed_by(&ALPHA).clock_ahead_by(-301);
    let late = responses(&service, late).await;
    snapshot::of_all(
        "a_timestamp_of_301_seconds_ago_is_rejected",
        401,
        "expired_timestamp",
        &late,
    );
    let forged =
        |operation: &Operation, request: Request| request.signed_by(&with_another_secret).nonce(&nonce(operation));
    let forged = responses(&service, forged).await;
    snapshot::of_all(
        "a_signature_with_another_secret_is_rejected",
        401,
        "invalid_signature",
        &forged,
    );
    let signed = |operation: &Operation, request: Request| request.signed_by(&ALPHA).nonce(&nonce(operation));
    for response in responses(&service, signed).await {
        assert!(response.status.is_success(), "{}: {:?}", response.target, response.body);
    }
    let again = responses(&service, signed).await;
    snapshot::of_all("a_used_nonce_is_rejected", 401, "replay_detected", &again);
}

#[tokio::test]
async fn every_operation_rejects_an_exceeded_key_limit_in_the_same_way() {
    let service = Service::start().await;
    for _ in 0..3 {
        service
            .get(&THREE_A_MINUTE, "/api/v1/partner/organizations")
            .await
            .assert_status(200);
    }
    let responses = responses(&service, |_, request| request.signed_by(&THREE_A_MINUTE)).await;
    snapshot::of_all("a_key_over_its_limit_is_rejected", 429, "rate_limited", &responses);
}

#[tokio::test]
async fn every_operation_rejects_an_exceeded_address_limit_in_the_same_way() {
    let service = Service::start_with(Options {
        ip_limit: 1,
        ..Options::default()
    })
    .await;
    service.get(&ALPHA, "/api/v1/partner/health").await.assert_status(200);
    let responses = responses(&service, |_, request| request.signed_by(&ALPHA)).await;
    snapshot::of_all(
        "an_address_over_its_limit_is_rejected",
        429,
        "ip_rate_limited",
        &responses,
    );
}

#[tokio::test]
async fn every_operation_rejects_a_too_large_or_too_slow_body_in_the_same_way() {
    let body_timeout = std::time::Duration::from_millis(100);
    let service = Service::start_with(Options {
        body_timeout,
        ..Options::default()
    })
    .await;
    let unfinished = |request: Request| request.body("{").stalled().signed_by(&ALPHA);
    let large = |_: &Operation, request| unfinished(request).header("content-length", "1048577");
    let large = responses(&service, large).await;
    snapshot::of_all(
        "a_body_that_is_announced_as_too_large_is_rejected",
        413,
        "payload_too_large",
        &large,
    );
    let slow = responses(&service, |_, request| unfinished(request)).await;
    snapshot::of_all(
        "a_body_that_does_not_arrive_in_time_is_rejected",
        408,
        "request_timeout",
        &slow,
    );
}

/// REQ-4
#[tokio::test]
async fn every_operation_rejects_another_method_in_the_same_way() {
    let service = Service::start().await;
    let deletion = |_: &Operation, request: Request| request.with_method("DELETE").signed_by(&ALPHA);
    let responses = responses(&service, deletion).await;
    snapshot::of_all("an_unknown_method_is_rejected", 405, "method_not_allowed", &responses);
}

/// REQ-5
#[tokio::test]
async fn every_operation_rejects_an_unknown_query_parameter_in_the_same_way() {
    let service = Service::start().await;
    let verbose = |_: &Operation, request: Request| request.with_query("verbose=1").signed_by(&ALPHA);
    let responses = responses(&service, verbose).await;
    snapshot::of_all(
        "an_unknown_query_parameter_is_rejected",
        400,
        "invalid_request",
        &responses,
    );
}

/// Asserts that the operations that need no database succeeded, and returns the responses of the others.
fn assert_the_rest_succeeded(responses: Vec<TestResponse>) -> Vec<TestResponse> {
    let (without, with): (Vec<_>, Vec<_>) = responses
        .into_iter()
        .zip(OPERATIONS.iter())
        .partition(|(_, operation)| operation.needs_no_database());
    for (response, operation) in without {
        assert!(response.status.is_success(), "{}: {}", operation.id, response.status);
    }
    with.into_iter().map(|(response, _)| response).collect()
}

/// REQ-12, KEY-9
#[tokio::test]
async fn without_a_database_every_operation_except_health_is_unavailable() {
    let service = Service::start().await;
    service.cut_off_from_database().await;
    let responses = responses(&service, |_, request| request.signed_by(&ALPHA)).await;
    snapshot::of_all(
        "without_a_database_the_api_is_unavailable",
        503,
        "service_unavailable",
        &assert_the_rest_succeeded(responses),
    );
}

/// The tables that the gateway needs: those in the statements of admission and of the directory.
fn tables_of_the_gateway() -> BTreeSet<&'static str> {
    let table = Regex::new(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+([a-z_]+)").unwrap();
    let of_the_gateway = STATEMENTS.iter().filter(|statement| {
        let modules = ["::admission::", "::directory::"];
        modules.iter().any(|module| statement.name().contains(module))
    });
    of_the_gateway
        .flat_map(|statement| table.captures_iter(statement.sql()))
        .map(|found| found.extract::<1>().1[0])
        .collect()
}

/// ERR-1, ERR-8
#[tokio::test]
async fn the_response_to_an_internal_error_hides_its_cause() {
    let service = Service::start().await;
    // Every table that only handlers read is renamed.
    let kept = tables_of_the_gateway();
    let tables = "SELECT relname::text FROM pg_class \
                  WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition";
    let tables = service.db.query(tables, &[]).await.unwrap();
    for table in tables.iter().map(|row| row.get::<_, &str>(0)) {
        if !kept.contains(table) {
            let rename = format!("ALTER TABLE {table} RENAME TO {table}_gone");
            service.db.batch_execute(&rename).await.unwrap();
        }
    }
    let responses = responses(&service, |_, request| request.signed_by(&ALPHA)).await;
    snapshot::of_all(
        "an_internal_error_does_not_show_its_cause",
        500,
        "internal_error",
        &assert_the_rest_succeeded(responses),
    );
}
