//! Commands that only read, shell completions, and manual pages.

use std::fs;
use std::process::Command;

use chrono::{TimeDelta, Utc};
use clap::CommandFactory as _;
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::fixture::inspections::PUBLISHED;
use partner_api_tests::{ALPHA, Service};
use serde_json::json;

use super::program::Deployment;

#[path = "../../../src/cli.rs"]
#[allow(dead_code, unreachable_pub)]
mod cli;

/// OPS-5
#[tokio::test]
async fn every_list_is_a_table_or_one_json_document() {
    let deployment = Deployment::of(Database::create().await);
    for list in [
        &["partner", "list"][..],
        &["key", "list", "--all"],
        &["grant", "list"],
        &["organization", "list"],
        &["branch", "list"],
        &["threshold", "list"],
        &["inspector", "list"],
    ] {
        let rows = deployment.json(list);
        let rows = rows.as_array().unwrap();
        assert!(!rows.is_empty(), "{list:?}");
        let table = deployment.run(list).stdout;
        assert_eq!(table.lines().count(), rows.len() + 1, "{list:?}\n{table}");
        assert!(table.lines().all(|line| line == line.trim_end()), "{list:?}\n{table}");
    }
    for (list, none) in [
        ("audit", "There are no changes.\n"),
        ("measurement", "No measurements match.\n"),
    ] {
        assert_eq!(deployment.run(&[list, "list"]).stdout, none);
        assert_eq!(deployment.run(&[list, "list", "--json"]).stdout, "[]\n");
    }
}

#[tokio::test]
async fn requests_of_the_last_24_hours_are_listed_unless_since_is_longer() {
    let database = Database::create().await;
    let client = cluster::connect(&database.config()).await;
    client
        .batch_execute(
            "CREATE TABLE older_requests PARTITION OF request_log
                 FOR VALUES FROM (now() - interval '40 hours') TO (now() - interval '26 hours');
             INSERT INTO request_log (arrived_at, request_id, duration_us, received_bytes, status, address, method, route)
             VALUES (now() - interval '30 hours', gen_random_uuid(), 900, 0, 404, '10.0.0.1', 'GET', '/*')",
        )
        .await
        .unwrap();
    let deployment = Deployment::of(database);
    assert_eq!(
        deployment.run(&["request", "list"]).stdout,
        "No requests match. Search a longer time with --since; the default is 24h.\n"
    );
    for options in [
        &["--since", "2days"][..],
        &["--until", &ago(29)],
        &["--until", &ago(20), "--since", "11h"],
    ] {
        let listed = deployment.json(&[&["request", "list"], options].concat());
        assert_eq!(listed[0]["status"], json!(404), "{options:?}: {listed}");
    }
    let listed = deployment.json(&["request", "list", "--until", &ago(20), "--since", "1h"]);
    assert_eq!(listed, json!([]));
}

/// Returns a time so many hours before now, as an option's value.
fn ago(hours: i64) -> String {
    (Utc::now() - TimeDelta::hours(hours)).to_rfc3339()
}

/// MEA-5
#[tokio::test]
async fn a_measurement_is_shown_without_personal_data_and_its_raw_bytes_as_sent() {
    let service = Service::start().await;
    let body = r#"{ "branch_code":"IZMIR-01", "plate":"34 ZZ 999", "external_id":"raw-1",  "measurements":{"BRAKE_FRONT_LEFT":2.850} }"#;
    let response = service.measure(&ALPHA, body).await;
    assert_eq!(response.status, 201);
    let deployment = Deployment::over(service.database(), None);
    let listed = deployment.json(&["measurement", "list", "--external-id", "raw-1"]);
    let id = listed[0]["id"].as_str().unwrap();
    let raw = deployment.run(&["measurement", "raw", id]);
    assert_eq!(raw.stdout, body);
    let shown = deployment.json(&["measurement", "show", id]);
    assert_eq!(
        shown["points"],
        json!([{ "code": "BRAKE_FRONT_LEFT", "value": "2.850", "outcome": null }])
    );
    assert!(!shown.to_string().contains("34ZZ999"), "{shown}");
}

/// REP-19, REP-20
#[tokio::test]
async fn a_report_is_shown_with_its_pdf_and_a_forged_file_is_detected() {
    let service = Service::start().await;
    let deployment = Deployment::over(service.database(), None);
    let response = service
        .get(&ALPHA, &format!("/api/v1/partner/inspections/{PUBLISHED}/pdf"))
        .await;
    assert_eq!(response.status, 200);
    let address = "UPDATE report_settings SET public_report_url = 'https://reports.example/{slug}'";
    let number = "IZM-2026-000201";
    let shown = deployment.json(&["report", "show", number]);
    assert_eq!((&shown["pdf_state"], &shown["link"]), (&json!("current"), &json!(null)));
    assert_eq!(shown["pdf"]["size_bytes"], json!(response.body.len()));

    // The bytes that partners receive, and the same with one more byte.
    let path = |name: &str| deployment.folder.path().join(name);
    fs::write(path("served.pdf"), &response.body).unwrap();
    fs::write(path("forged.pdf"), [&response.body[..], b" "].concat()).unwrap();
    let verified = deployment.json(&["report", "verify", "served.pdf"]);
    assert_eq!(verified["sha256"], shown["pdf"]["sha256"]);
    assert_eq!(
        (&verified["report_number"], &verified["is_current"]),
        (&json!(number), &json!(true))
    );
    deployment
        .run(&["report", "verify", "forged.pdf"])
        .failed(3, "no published PDF");
    deployment
        .run(&["report", "verify", "nothing.pdf"])
        .failed(2, "nothing.pdf");

    // Another public URL makes the PDF stale, and the new PDF that replaces it is reported.
    service.db.batch_execute(address).await.unwrap();
    let shown = deployment.json(&["report", "show", PUBLISHED]);
    assert_eq!(shown["pdf_state"], "stale");
    assert!(
        shown["link"].as_str().unwrap().starts_with("https://reports.example/"),
        "{shown}"
    );
    service
        .db
        .batch_execute(&format!(
            "INSERT INTO published_pdfs (object_key, inspection_id, organization_id, sha256, size_bytes)
             SELECT 'reports/next.pdf', id, organization_id, sha256('next'), 4 FROM inspections WHERE id = '{PUBLISHED}';
             UPDATE inspections SET pdf_object_key = 'reports/next.pdf' WHERE id = '{PUBLISHED}'"
        ))
        .await
        .unwrap();
    let verified = deployment.json(&["report", "verify", "served.pdf"]);
    assert_eq!(verified["is_current"], false);
    assert!(verified["replaced_at"].is_string(), "{verified}");
    let table = deployment.run(&["report", "show", number]).stdout;
    assert!(
        table.contains("earlier") && table.contains(verified["sha256"].as_str().unwrap()),
        "{table}"
    );
    deployment
        .run(&["report", "show", "IZM-2026-999999"])
        .failed(3, "no report");
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_partner-api"))
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = program().arg("man").arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let page = fs::read_to_string(folder.path().join("partner-api-key-rotate.1")).unwrap();
    assert!(page.contains("overlap"), "{page}");
    let mut expected = vec!["partner-api.1".to_owned()];
    names(&cli::Cli::command(), "partner-api", &mut expected);
    for name in expected {
        assert!(folder.path().join(&name).is_file(), "{name}");
    }
}

fn names(command: &clap::Command, path: &str, into: &mut Vec<String>) {
    for sub in command.get_subcommands() {
        let path = format!("{path}-{}", sub.get_name());
        into.push(format!("{path}.1"));
        names(sub, &path, into);
    }
}

#[test]
fn every_group_of_commands_has_examples() {
    for group in cli::Cli::command().get_subcommands() {
        let help = group.clone().render_help().to_string();
        assert!(help.contains("Example"), "{}", group.get_name());
    }
}

#[test]
fn bash_completes_the_commands() {
    let script = program().args(["completions", "bash"]).output().unwrap();
    assert!(script.status.success());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("completions");
    fs::write(&path, &script.stdout).unwrap();
    let script = format!(
        ". {}; COMP_WORDS=(partner-api key ro) COMP_CWORD=2; _partner-api partner-api ro key; echo \"${{COMPREPLY[@]}}\"",
        path.display()
    );
    let completed = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(
        String::from_utf8(completed.stdout).unwrap().trim(),
        "rotate",
        "{:?}",
        String::from_utf8(completed.stderr)
    );
}

/// A search that the database stops ends with the remedy, and not with the database's code.
#[tokio::test]
async fn a_search_that_takes_too_long_says_how_to_narrow_it() {
    let deployment = Deployment::new().await;
    let mut client = cluster::connect(&deployment.config).await;
    let holder = client.transaction().await.unwrap();
    // The search waits for the table until the database stops it.
    let lock = "LOCK TABLE request_log IN ACCESS EXCLUSIVE MODE";
    holder.batch_execute(lock).await.unwrap();
    let options = "&options=-c%20statement_timeout%3D3s%20-c%20lock_timeout%3D0";
    let line = format!("PARTNER_API_DATABASE_URL=\"$PARTNER_API_DATABASE_URL{options}\" partner-api request list");
    let ran = deployment.shell(&line);
    ran.failed(
        1,
        "the search took too long; use a shorter --since, or name a --partner or a --key",
    );
    assert!(!ran.stderr.contains("57014"), "{}", ran.stderr);
}
