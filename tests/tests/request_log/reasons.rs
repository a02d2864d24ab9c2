//! Every reason for a rejection or failure is produced by a test.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use futures::future::join_all;
use partner_api::request_log::Reason;
use partner_api_store::connection::Connection;
use partner_api_tests::fixture::inspections;

use partner_api_tests::{ALPHA, Request, Service, cluster};

use partner_api_tests::measurements::package;
use partner_api_tests::request_log::Log;

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// Reasons that no test produces with the real service, and why none can.
const EXCEPTIONS: &[(Reason, &str)] = &[
    (
        Reason::AllBodies,
        "needs 64 MB of concurrent bodies from nine addresses; gateway/body_budget.rs tests the budget",
    ),
    (
        Reason::RecorderCrowded,
        "needs 16 MB of concurrent packages of one partner; recorder/budget.rs tests the budget",
    ),
    (
        Reason::RecorderOverdue,
        "database/measurements/recording.rs produces it in the recorder with a backend that hangs",
    ),
    (
        Reason::AdmissionCrowded,
        "needs 2,500 waiting requests of one key, each on a separate connection",
    ),
    (
        Reason::RequestOverdue,
        "each wait of a request ends before the request's own deadline",
    ),
    (
        Reason::Panicked,
        "no request is known that makes a handler panic; crates/gateway/src/response.rs tests a handler that does",
    ),
    (
        Reason::AnswerUnbuildable,
        "no stored value is known that cannot be a header",
    ),
];

#[test]
fn each_reason_is_produced_by_a_test_or_is_a_listed_exception() {
    let mut tests = String::new();
    for folder in ["faults", "request_log"] {
        for file in glob::glob(&format!("tests/{folder}/**/*.rs")).unwrap() {
            let text = fs::read_to_string(file.unwrap()).unwrap();
            // The list of exceptions does not count as a test.
            let exceptions = text.find("const EXCEPTIONS").map(|start| {
                let end = text[start..].find("\n];").unwrap();
                start..start + end
            });
            tests += &exceptions.map_or(text.clone(), |range| text.replace(&text[range], ""));
        }
    }
    let names: Vec<&str> = tests
        .split("Reason::")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next())
        .collect();
    for reason in Reason::ALL {
        let is_tested = names.contains(&format!("{reason:?}").as_str());
        let is_excepted = EXCEPTIONS.iter().any(|(excepted, _)| excepted == reason);
        assert!(
            is_tested != is_excepted,
            "{reason:?} must either be produced by a test in tests/request_log or tests/faults, or be listed in \
             EXCEPTIONS"
        );
    }
}

/// SVC-5
#[tokio::test]
async fn a_row_that_violates_the_expected_schema() {
    let service = Service::start().await;
    let body = package("M-1", "35 OPN 205");
    service.measure(&ALPHA, body.clone()).await.assert_status(201);
    // An outcome of a point that this version does not know.
    let set_unknown_outcome = "ALTER TABLE measurements DISABLE TRIGGER ALL; \
               ALTER TABLE measurements DROP CONSTRAINT measurements_point_outcomes; \
               UPDATE measurements SET point_outcomes = '{odd}'";
    service.db.batch_execute(set_unknown_outcome).await.unwrap();
    let response = service.measure(&ALPHA, body).await;
    response.assert_rejected(500, "internal_error");
    Log::of(&service).assert_reason(&response, Reason::RowUnexpected).await;
}

/// SVC-5
#[tokio::test]
async fn a_pdf_that_is_not_rendered_yet_and_one_that_cannot_be_read() {
    let service = Service::start().await;
    let log = Log::of(&service);
    let pdf = format!("/api/v1/partner/inspections/{}/pdf", inspections::PUBLISHED);
    let named = "SELECT pdf_object_key FROM inspections WHERE id = $1";
    let id: uuid::Uuid = inspections::PUBLISHED.parse().unwrap();
    let key: String = service.db.query_one(named, &[&id]).await.unwrap().get(0);
    // A symbolic link to itself, which exists but cannot be opened.
    let stored = service.objects().join(key);
    fs::remove_file(&stored).unwrap();
    symlink(&stored, &stored).unwrap();
    let response = service.get(&ALPHA, &pdf).await;
    response.assert_rejected(503, "service_unavailable");
    log.assert_reason(&response, Reason::StorageUnavailable).await;

    let changed = "UPDATE inspections SET summary = 'something else' WHERE id = $1";
    service.db.execute(changed, &[&id]).await.unwrap();
    let response = service.get(&ALPHA, &pdf).await;
    response.assert_rejected(503, "service_unavailable");
    log.assert_reason(&response, Reason::PdfNotReady).await;
}

/// SVC-5
#[tokio::test]
async fn a_photo_that_is_missing_from_the_storage() {
    let service = Service::start().await;
    let elsewhere = "UPDATE photos SET object_key = '../elsewhere.jpg'";
    service.db.execute(elsewhere, &[]).await.unwrap();
    let photos = format!("/api/v1/partner/inspections/{}/photos", inspections::FULL_PUBLISHED);
    let response = service.get(&ALPHA, &photos).await;
    response.assert_rejected(500, "internal_error");
    Log::of(&service).assert_reason(&response, Reason::StorageFailed).await;
}

/// SVC-5
#[tokio::test]
async fn a_request_without_a_free_connection() {
    let service = Service::start().await;
    let pool = service.pool();
    let all = join_all((0..pool.status().max_size).map(|_| Connection::take(pool, Duration::from_secs(5)))).await;
    assert!(all.iter().all(Result::is_ok));
    let response = service.get(&ALPHA, ORGANIZATIONS).await;
    response.assert_rejected(503, "service_unavailable");
    drop(all);
    Log::of(&service).assert_reason(&response, Reason::NoConnection).await;
}

/// SVC-5, SVC-10
#[tokio::test]
async fn a_preferred_response() {
    let service = Service::start().await;
    let ordered = Request::get(ORGANIZATIONS)
        .header("prefer", "code=500")
        .signed_by(&ALPHA);
    let response = service.send(ordered).await;
    response.assert_rejected(500, "internal_error");
    Log::of(&service).assert_reason(&response, Reason::AnswerOrdered).await;
}

/// SVC-5
#[tokio::test]
async fn admission_without_a_connection() {
    let service = Service::start().await;
    let (config, mut elsewhere) = (service.database(), service.database());
    elsewhere.dbname("postgres");
    let maintenance = cluster::connect(&elsewhere).await;
    service.cut_off_from_database().await;
    // The first requests may find connections that have just ended.
    let mut responses = Vec::new();
    for _ in 0..4 {
        let response = service.get(&ALPHA, ORGANIZATIONS).await;
        response.assert_rejected(503, "service_unavailable");
        responses.push(response);
    }
    let open = format!("ALTER DATABASE {} ALLOW_CONNECTIONS true", config.get_dbname().unwrap());
    maintenance.batch_execute(&open).await.unwrap();
    // The request log has waited for the database.
    Log::of(&service)
        .assert_reason(&responses[3], Reason::AdmissionNoConnection)
        .await;
}
