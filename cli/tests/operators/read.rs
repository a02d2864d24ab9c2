//! Commands that look.

use partner_api_tests::cluster::Database;
use partner_api_tests::{ALPHA, Service};
use serde_json::json;

use crate::program::Deployment;

/// OPS-5
#[tokio::test]
async fn every_list_is_a_table_for_people_and_one_document_for_scripts() {
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
        ("audit", "Nothing was changed.\n"),
        ("measurement", "There are no such measurements.\n"),
    ] {
        assert_eq!(deployment.run(&[list, "list"]).stdout, none);
        assert_eq!(deployment.run(&[list, "list", "--json"]).stdout, "[]\n");
    }
}

/// MEA-5
#[tokio::test]
async fn a_measurement_is_shown_without_what_is_personal_and_its_bytes_as_they_were_sent() {
    let service = Service::start().await;
    let body = r#"{ "branch_code":"IZMIR-01", "plate":"34 ZZ 999", "external_id":"raw-1",  "measurements":{"BRAKE_FRONT_LEFT":2.850} }"#;
    let answer = service.measure(&ALPHA, body).await;
    assert_eq!(answer.status, 201);
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
