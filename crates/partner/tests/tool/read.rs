use std::fs;

use partner_api_tests::fixture::{inspections, partners};
use partner_api_tests::{ALPHA, BETA, GAMMA, Service};
use serde_json::json;

use crate::gateway::scripted;
use crate::program::Program;

/// SVC-6
#[tokio::test]
async fn health_shows_the_partner_and_whether_the_clock_agrees() {
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
async fn reports_are_listed_with_filters_across_all_pages() {
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

/// REP-1
#[tokio::test]
async fn reports_are_listed_by_change_number_and_vin() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let list = async |filter: &[&str]| -> Vec<serde_json::Value> {
        let list = ["inspections", "list", "--limit", "0"];
        program
            .json(&[&list[..], filter].concat())
            .await
            .as_array()
            .unwrap()
            .clone()
    };
    let changed = list(&["--updated-from", "2000-01-01T00:00:00Z"]).await;
    assert!(
        changed.iter().any(|report| report["id"] == inspections::CANCELLED),
        "{changed:?}"
    );
    assert!(list(&["--updated-to", "2000-01-01T00:00:00Z"]).await.is_empty());
    let number = changed[0]["report_number"].as_str().unwrap();
    let found = list(&["--updated-from", "2000-01-01T00:00:00Z", "--report-number", number]).await;
    assert_eq!(found, [changed[0].clone()]);
    assert!(list(&["--vin", "NONE"]).await.is_empty());
    assert_eq!(
        list(&["--status", "CANCELLED"]).await,
        list(&["--status", "cancelled"]).await
    );
    let unknown = program.run(&["inspections", "list", "--status", "draft"]).await;
    unknown.failed(2, "[possible values: published, archived, cancelled]");
}

#[tokio::test]
async fn a_wait_for_the_quota_is_announced() {
    let base_url = scripted(&[
        "HTTP/1.1 429 x\r\nretry-after: 1\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 200 x\r\nconnection: close\r\n\r\n{\"data\":[]}",
    ])
    .await;
    let ran = Program::at(&base_url, &ALPHA).run(&["orgs"]).await;
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (0, "the quota is used up; waiting 1 s\n")
    );
}

/// ERR-8
#[tokio::test]
async fn an_unknown_report_is_exit_code_3_with_the_request_id() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let missing = program.run(&["inspections", "get", inspections::UNKNOWN]).await;
    missing.failed(3, "(request ID ");
    let missing = program
        .run(&["inspections", "get", inspections::UNKNOWN, "--json"])
        .await;
    assert_eq!((missing.code, missing.stdout.as_str()), (3, ""));
    let failure: serde_json::Value = serde_json::from_str(&missing.stderr).unwrap();
    assert_eq!(failure["error"]["code"], "not_found");
    assert!(failure["error"]["request_id"].is_string());
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
async fn a_pdf_is_written_whole_and_overwrites_no_file() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let pdf = ["inspections", "pdf", inspections::PUBLISHED, "--output", "report.pdf"];
    let output = program.json(&pdf).await;
    let written = fs::read(program.path("report.pdf")).unwrap();
    assert!(written.starts_with(b"%PDF-1.7 report"));
    assert_eq!(output["bytes"], written.len());
    fs::write(program.path("report.pdf"), "mine").unwrap();
    program.run(&pdf).await.failed(4, "is not overwritten");
    assert_eq!(fs::read(program.path("report.pdf")).unwrap(), b"mine");
    // A failed download leaves no file behind.
    let none = ["inspections", "pdf", inspections::ARCHIVED, "--output", "none.pdf"];
    program.run(&none).await.failed(3, "not_found");
    assert_eq!(fs::read_dir(program.folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn photos_are_downloaded_once() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let photos = ["inspections", "photos", inspections::PUBLISHED, "--into", "photos"];
    // The sizes in the fixture's rows differ from those of its objects.
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
    assert_eq!(files[0], format!("photos/{}.jpg", fetched[0]["id"].as_str().unwrap()));
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
    // A file of another size is not one of these photos.
    fs::write(program.path(files[0]), "mine").unwrap();
    program.run(&photos).await.failed(4, "is not overwritten");
}
