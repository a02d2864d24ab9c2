use std::fs;

use partner_api_tests::fixture::{inspections, partners};
use partner_api_tests::{ALPHA, BETA, GAMMA, Service};
use serde_json::json;

use crate::program::Program;

/// SVC-6
#[tokio::test]
async fn health_says_who_one_is_and_whether_the_clock_agrees() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let health = program.json(&["health"]).await;
    assert_eq!(
        (&health["status"], &health["partner"]),
        (&json!("ok"), &json!(partners::ALPHA))
    );
    assert!(health["seconds_ahead"].as_i64().unwrap().abs() < 5);
    let text = program.run(&["health"]).await.stdout;
    assert!(
        text.contains("agrees with this machine's") && text.contains("requests left"),
        "{text}"
    );
}

#[tokio::test]
async fn organizations_and_branches_are_listed_by_name() {
    let service = Service::start().await;
    let program = Program::new(&service, &BETA);
    let organizations = program.json(&["orgs"]).await;
    assert_eq!(organizations.as_array().unwrap().len(), 1);
    let slug = organizations[0]["slug"].as_str().unwrap().to_owned();
    let branches = program.json(&["branches", &slug]).await;
    let codes: Vec<_> = branches
        .as_array()
        .unwrap()
        .iter()
        .map(|branch| &branch["code"])
        .collect();
    assert_eq!(codes, ["IZMIR-01"]);
    let closed = program.json(&["branches", "--inactive"]).await;
    assert_eq!(closed[0]["code"], "ESK-01");
    program
        .run(&["branches", &format!("{slug}x")])
        .await
        .failed(3, &format!("did you mean `{slug}`?"));
    let nothing = Program::new(&service, &GAMMA).run(&["orgs"]).await;
    assert!(
        nothing.stdout.contains("ask the operator for a grant"),
        "{}",
        nothing.stdout
    );
}

/// REP-1
#[tokio::test]
async fn reports_are_listed_with_filters_over_as_many_pages_as_it_takes() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let all = program.json(&["inspections", "list", "--limit", "0"]).await;
    let one = program.json(&["inspections", "list", "--limit", "1"]).await;
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!(one[0], all[0]);
    let cancelled = program.json(&["inspections", "list", "--status", "cancelled"]).await;
    assert_eq!(cancelled[0]["id"], inspections::CANCELLED);
    let published = all
        .as_array()
        .unwrap()
        .iter()
        .find(|report| report["status"] == "published")
        .unwrap();
    let since = published["published_at"].as_str().unwrap();
    let later = program
        .json(&["inspections", "list", "--published-from", since, "--limit", "0"])
        .await;
    let later = later.as_array().unwrap();
    assert!(!later.is_empty() && later.len() <= all.as_array().unwrap().len());
    assert!(
        later
            .iter()
            .all(|report| report["published_at"].as_str().unwrap() >= since),
        "{later:?}"
    );
    program
        .run(&["inspections", "list", "--published-from", "yesterday"])
        .await
        .failed(2, "2026-12-01T00:00:00+03:00");
}

/// ERR-8
#[tokio::test]
async fn what_is_not_there_is_exit_code_3_with_the_request_id() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let missing = program.run(&["inspections", "get", inspections::UNKNOWN]).await;
    missing.failed(3, "(request id ");
    let missing = program
        .run(&["inspections", "get", inspections::UNKNOWN, "--json"])
        .await;
    assert_eq!((missing.code, missing.stdout.as_str()), (3, ""));
    let told: serde_json::Value = serde_json::from_str(&missing.stderr).unwrap();
    assert_eq!(told["error"]["code"], "not_found");
    assert!(told["error"]["request_id"].is_string());
}

#[tokio::test]
async fn a_report_is_shown_with_its_forms() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let report = program.json(&["inspections", "get", inspections::PUBLISHED]).await;
    assert_eq!(report["id"], inspections::PUBLISHED);
    let forms = program.json(&["inspections", "forms", inspections::PUBLISHED]).await;
    assert!(
        forms[0]["form"].is_string() && forms[0]["status_code"].is_string(),
        "{forms}"
    );
}

#[tokio::test]
async fn a_pdf_is_written_whole_and_over_nothing() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let pdf = ["inspections", "pdf", inspections::PUBLISHED, "--output", "report.pdf"];
    let told = program.json(&pdf).await;
    let written = fs::read(program.path("report.pdf")).unwrap();
    assert!(written.starts_with(b"%PDF-1.7 report"));
    assert_eq!(told["bytes"], written.len());
    fs::write(program.path("report.pdf"), "mine").unwrap();
    program.run(&pdf).await.failed(4, "nothing is overwritten");
    assert_eq!(fs::read(program.path("report.pdf")).unwrap(), b"mine");
    // What failed leaves nothing behind.
    let none = ["inspections", "pdf", inspections::ARCHIVED, "--output", "none.pdf"];
    program.run(&none).await.failed(3, "not_found");
    assert_eq!(fs::read_dir(program.folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn photos_are_fetched_into_a_folder_and_not_twice() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let photos = ["inspections", "photos", inspections::PUBLISHED, "--into", "photos"];
    // The fixture's rows name other sizes than its objects have.
    service
        .db
        .batch_execute(
            "UPDATE photos SET size_bytes = 22 WHERE object_key = 'photos/20101.jpg'; \
                        UPDATE photos SET size_bytes = 18 WHERE object_key = 'photos/20102.jpg'",
        )
        .await
        .unwrap();
    let fetched = program.json(&photos).await;
    let files: Vec<_> = fetched
        .as_array()
        .unwrap()
        .iter()
        .map(|photo| photo["file"].as_str().unwrap())
        .collect();
    assert_eq!(files.len(), 2, "{fetched}");
    assert!(files[0].starts_with("photos/01-"), "{files:?}");
    let mut contents: Vec<_> = files
        .iter()
        .map(|file| fs::read_to_string(program.path(file)).unwrap())
        .collect();
    contents.sort_unstable();
    assert_eq!(contents, ["a picture of a car", "a picture of a scratch"]);
    let modified = || fs::metadata(program.path(files[0])).unwrap().modified().unwrap();
    let before = modified();
    program.json(&photos).await;
    assert_eq!(modified(), before);
    // One of another size is somebody else's.
    fs::write(program.path(files[0]), "mine").unwrap();
    program.run(&photos).await.failed(4, "nothing is overwritten");
}
