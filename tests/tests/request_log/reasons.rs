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

/// Reasons that no test brings about with real parts, and why none can.
const NOT_BROUGHT_ABOUT: &[(Reason, &str)] = &[
    (
        Reason::AllBodies,
        "64 MB of nine addresses would have to be under way at once; gateway/body_budget.rs counts them",
    ),
    (
        Reason::RecorderCrowded,
        "16 MB of one partner would have to be under way at once; recorder/budget.rs counts them",
    ),
    (
        Reason::RecorderOverdue,
        "measurements_db/recording.rs brings it about at the recorder, by a backend that hangs",
    ),
    (
        Reason::AdmissionCrowded,
        "2,500 requests of one key would have to wait at once, each with a connection of its own",
    ),
    (
        Reason::RequestOverdue,
        "each wait of a request ends before the request's own bound does",
    ),
    (
        Reason::Panicked,
        "no request is known that a handler panics at; crates/gateway/src/response.rs tests one that does",
    ),
    (
        Reason::AnswerUnbuildable,
        "nothing that can be stored is known of which no header could be made",
    ),
];

#[test]
fn each_reason_is_brought_about_by_a_test_or_it_is_said_why_not() {
    let mut tests = String::new();
    for folder in ["faults", "request_log"] {
        for file in glob::glob(&format!("tests/{folder}/**/*.rs")).unwrap() {
            let text = fs::read_to_string(file.unwrap()).unwrap();
            // What stands in the list of exceptions is no test.
            let exceptions = text.find("const NOT_BROUGHT_ABOUT").map(|start| {
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
        let is_excepted = NOT_BROUGHT_ABOUT.iter().any(|(excepted, _)| excepted == reason);
        assert!(
            is_tested != is_excepted,
            "{reason:?} is to be brought about by a test of tests/request_log or tests/faults, or to be listed in \
             NOT_BROUGHT_ABOUT, and not both"
        );
    }
}

/// SVC-5
#[tokio::test]
async fn a_row_that_is_not_what_the_schema_promises() {
    let service = Service::start().await;
    let body = package("M-1", "35 OPN 205");
    service.measure(&ALPHA, body.clone()).await.assert_status(201);
    // An outcome of a point that only another version knows.
    let odd = "ALTER TABLE measurements DISABLE TRIGGER ALL; \
               ALTER TABLE measurements DROP CONSTRAINT measurements_point_outcomes; \
               UPDATE measurements SET point_outcomes = '{odd}'";
    service.db.batch_execute(odd).await.unwrap();
    let answer = service.measure(&ALPHA, body).await;
    answer.assert_refused(500, "internal_error");
    Log::of(&service).assert_reason(&answer, Reason::RowUnexpected).await;
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
    // A link that leads to itself: it is there, and nobody can open it.
    let stored = service.objects().join(key);
    fs::remove_file(&stored).unwrap();
    symlink(&stored, &stored).unwrap();
    let answer = service.get(&ALPHA, &pdf).await;
    answer.assert_refused(503, "service_unavailable");
    log.assert_reason(&answer, Reason::StorageUnavailable).await;

    let changed = "UPDATE inspections SET summary = 'something else' WHERE id = $1";
    service.db.execute(changed, &[&id]).await.unwrap();
    let answer = service.get(&ALPHA, &pdf).await;
    answer.assert_refused(503, "service_unavailable");
    log.assert_reason(&answer, Reason::PdfNotReady).await;
}

/// SVC-5
#[tokio::test]
async fn a_photo_under_a_key_that_the_storage_does_not_have() {
    let service = Service::start().await;
    let elsewhere = "UPDATE photos SET object_key = '../elsewhere.jpg'";
    service.db.execute(elsewhere, &[]).await.unwrap();
    let photos = format!("/api/v1/partner/inspections/{}/photos", inspections::FULL_PUBLISHED);
    let answer = service.get(&ALPHA, &photos).await;
    answer.assert_refused(500, "internal_error");
    Log::of(&service).assert_reason(&answer, Reason::StorageFailed).await;
}

/// SVC-5
#[tokio::test]
async fn a_request_for_which_no_connection_was_left() {
    let service = Service::start().await;
    let pool = service.pool();
    let all = join_all((0..pool.status().max_size).map(|_| Connection::take(pool, Duration::from_secs(5)))).await;
    assert!(all.iter().all(Result::is_ok));
    let answer = service.get(&ALPHA, ORGANIZATIONS).await;
    answer.assert_refused(503, "service_unavailable");
    drop(all);
    Log::of(&service).assert_reason(&answer, Reason::NoConnection).await;
}

/// SVC-5, SVC-10
#[tokio::test]
async fn an_answer_that_was_ordered() {
    let service = Service::start().await;
    let ordered = Request::get(ORGANIZATIONS)
        .header("prefer", "code=500")
        .signed_by(&ALPHA);
    let answer = service.send(ordered).await;
    answer.assert_refused(500, "internal_error");
    Log::of(&service).assert_reason(&answer, Reason::AnswerOrdered).await;
}

/// SVC-5
#[tokio::test]
async fn admission_without_a_connection() {
    let service = Service::start().await;
    let (config, mut elsewhere) = (service.database(), service.database());
    elsewhere.dbname("postgres");
    let maintenance = cluster::connect(&elsewhere).await;
    service.cut_off_from_database().await;
    // The first ones may find the connections that have just ended.
    let mut answers = Vec::new();
    for _ in 0..4 {
        let answer = service.get(&ALPHA, ORGANIZATIONS).await;
        answer.assert_refused(503, "service_unavailable");
        answers.push(answer);
    }
    let open = format!("ALTER DATABASE {} ALLOW_CONNECTIONS true", config.get_dbname().unwrap());
    maintenance.batch_execute(&open).await.unwrap();
    // The log has waited for the database.
    Log::of(&service)
        .assert_reason(&answers[3], Reason::AdmissionNoConnection)
        .await;
}
