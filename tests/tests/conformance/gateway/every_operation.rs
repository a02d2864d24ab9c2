//! The gateway rejects a request in the same way for every operation of the document.
//!
//! The answers of all operations to one fault are one snapshot in `snapshots/every_operation/`.

use std::collections::BTreeSet;

use partner_api_store::statement::STATEMENTS;
use partner_api_tests::fixture::{Subject, THREE_A_MINUTE};
use partner_api_tests::operations::{OPERATIONS, Operation};
use partner_api_tests::{ALPHA, Answer, Options, Request, Service, TestKey, snapshot};
use regex::Regex;

/// The answers to a good request to every operation, each changed by `change`.
async fn answers(service: &Service, change: impl Fn(&Operation, Request) -> Request) -> Vec<Answer> {
    let mut answers = Vec::new();
    for operation in OPERATIONS.iter() {
        let request = change(operation, operation.request(&Subject::MASKED));
        answers.push(service.send(request).await);
    }
    answers
}

/// REQ-11
#[tokio::test]
async fn a_good_request_passes_and_counts_once_for_every_operation() {
    let service = Service::start().await;
    let answers = answers(&service, |_, request| request.signed_by(&ALPHA)).await;
    let mut left = ALPHA.rate_limit;
    for answer in answers {
        assert!(answer.status.is_success(), "{}: {:?}", answer.target, answer.body);
        left -= 1;
        let field = answer.header("ratelimit").unwrap();
        assert!(field.contains(&format!(";r={left};")), "{}: {field}", answer.target);
    }
}

/// ERR-1
#[tokio::test]
async fn every_401_is_answered_alike() {
    let service = Service::start().await;
    let unknown = TestKey {
        id: "vip_test_UNKNOWNAAAAAAAAAAAAAAA",
        ..ALPHA
    };
    let thief = TestKey {
        secret: THREE_A_MINUTE.secret,
        ..ALPHA
    };
    let nonce = |operation: &Operation| format!("{}-0123456789abcdef", operation.id);
    let unsigned = answers(&service, |_, request| request).await;
    snapshot::of_all(
        "a_request_without_a_signature_is_refused",
        401,
        "missing_signature_headers",
        &unsigned,
    );
    let by_nobody = answers(&service, |_, request| request.signed_by(&unknown)).await;
    snapshot::of_all("an_unknown_key_is_refused", 401, "invalid_key", &by_nobody);
    let late = |_: &Operation, request: Request| request.signed_by(&ALPHA).clock_ahead_by(-301);
    let late = answers(&service, late).await;
    snapshot::of_all(
        "a_timestamp_of_301_seconds_ago_is_refused",
        401,
        "expired_timestamp",
        &late,
    );
    let forged = |operation: &Operation, request: Request| request.signed_by(&thief).nonce(&nonce(operation));
    let forged = answers(&service, forged).await;
    snapshot::of_all(
        "a_signature_with_another_secret_is_refused",
        401,
        "invalid_signature",
        &forged,
    );
    let signed = |operation: &Operation, request: Request| request.signed_by(&ALPHA).nonce(&nonce(operation));
    for answer in answers(&service, signed).await {
        assert!(answer.status.is_success(), "{}: {:?}", answer.target, answer.body);
    }
    let again = answers(&service, signed).await;
    snapshot::of_all("a_nonce_that_was_used_is_refused", 401, "replay_detected", &again);
}

#[tokio::test]
async fn a_used_up_quota_is_answered_alike() {
    let service = Service::start().await;
    for _ in 0..3 {
        service
            .get(&THREE_A_MINUTE, "/api/v1/partner/organizations")
            .await
            .assert_status(200);
    }
    let answers = answers(&service, |_, request| request.signed_by(&THREE_A_MINUTE)).await;
    snapshot::of_all("a_key_with_too_many_requests_waits", 429, "rate_limited", &answers);
}

#[tokio::test]
async fn an_address_with_too_many_requests_is_answered_alike() {
    let service = Service::start_with(Options {
        ip_limit: 1,
        ..Options::default()
    })
    .await;
    service.get(&ALPHA, "/api/v1/partner/health").await.assert_status(200);
    let answers = answers(&service, |_, request| request.signed_by(&ALPHA)).await;
    snapshot::of_all(
        "an_address_with_too_many_requests_waits",
        429,
        "ip_rate_limited",
        &answers,
    );
}

#[tokio::test]
async fn a_body_too_large_or_too_slow_is_answered_alike() {
    let body_timeout = std::time::Duration::from_millis(100);
    let service = Service::start_with(Options {
        body_timeout,
        ..Options::default()
    })
    .await;
    let unfinished = |request: Request| request.body("{").stalled().signed_by(&ALPHA);
    let large = |_: &Operation, request| unfinished(request).header("content-length", "1048577");
    let large = answers(&service, large).await;
    snapshot::of_all(
        "a_body_that_is_announced_too_large_is_refused",
        413,
        "payload_too_large",
        &large,
    );
    let slow = answers(&service, |_, request| unfinished(request)).await;
    snapshot::of_all(
        "a_body_that_does_not_arrive_in_time_is_given_up",
        408,
        "request_timeout",
        &slow,
    );
}

/// REQ-4
#[tokio::test]
async fn another_method_is_answered_alike() {
    let service = Service::start().await;
    let deletion = |_: &Operation, request: Request| request.with_method("DELETE").signed_by(&ALPHA);
    let answers = answers(&service, deletion).await;
    snapshot::of_all(
        "a_method_that_its_path_does_not_have_is_refused",
        405,
        "method_not_allowed",
        &answers,
    );
}

/// REQ-5
#[tokio::test]
async fn an_unknown_query_parameter_is_answered_alike() {
    let service = Service::start().await;
    let verbose = |_: &Operation, request: Request| request.with_query("verbose=1").signed_by(&ALPHA);
    let answers = answers(&service, verbose).await;
    snapshot::of_all(
        "an_unknown_query_parameter_is_refused",
        400,
        "invalid_request",
        &answers,
    );
}

/// The answers of the operations that need a database, once those that do not have been seen to succeed.
fn of_those_with_a_database(answers: Vec<Answer>) -> Vec<Answer> {
    let (without, with): (Vec<_>, Vec<_>) = answers
        .into_iter()
        .zip(OPERATIONS.iter())
        .partition(|(_, operation)| operation.needs_no_database());
    for (answer, operation) in without {
        assert!(answer.status.is_success(), "{}: {}", operation.id, answer.status);
    }
    with.into_iter().map(|(answer, _)| answer).collect()
}

/// REQ-12, KEY-9
#[tokio::test]
async fn without_a_database_every_operation_but_health_is_unavailable() {
    let service = Service::start().await;
    service.cut_off_from_database().await;
    let answers = answers(&service, |_, request| request.signed_by(&ALPHA)).await;
    snapshot::of_all(
        "without_a_database_it_is_unavailable",
        503,
        "service_unavailable",
        &of_those_with_a_database(answers),
    );
}

/// The tables that the way to the handlers needs: those of the statements of admission and of the directory.
fn tables_of_the_way_in() -> BTreeSet<&'static str> {
    let table = Regex::new(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+([a-z_]+)").unwrap();
    let of_the_way_in = STATEMENTS.iter().filter(|statement| {
        let rooms = ["::admission::", "::directory::"];
        rooms.iter().any(|room| statement.name().contains(room))
    });
    of_the_way_in
        .flat_map(|statement| table.captures_iter(statement.sql()))
        .map(|found| found.extract::<1>().1[0])
        .collect()
}

/// ERR-1, ERR-8
#[tokio::test]
async fn a_fault_inside_is_answered_without_its_cause() {
    let service = Service::start().await;
    // Every table that only handlers read is taken away.
    let kept = tables_of_the_way_in();
    let tables = "SELECT relname::text FROM pg_class \
                  WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition";
    let tables = service.db.query(tables, &[]).await.unwrap();
    for table in tables.iter().map(|row| row.get::<_, &str>(0)) {
        if !kept.contains(table) {
            let away = format!("ALTER TABLE {table} RENAME TO {table}_gone");
            service.db.batch_execute(&away).await.unwrap();
        }
    }
    let answers = answers(&service, |_, request| request.signed_by(&ALPHA)).await;
    snapshot::of_all(
        "a_fault_inside_shows_no_cause",
        500,
        "internal_error",
        &of_those_with_a_database(answers),
    );
}
