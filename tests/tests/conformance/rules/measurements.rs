//! Recorded measurements are never lost.

use partner_api_store::statement::STATEMENTS;
use partner_api_tests::{ALPHA, Service};
use serde_json::json;

use partner_api_tests::fixture::inspections;
use partner_api_tests::measurements::{answers, package, points};

/// MEA-5
#[test]
fn no_statement_deletes_a_package_or_changes_its_bytes() {
    let losing = [
        "DELETE FROM measurements",
        "TRUNCATE",
        "SET raw",
        ", raw =",
        "DROP TABLE measurements",
        "DELETE FROM measurement_mismatches",
        "UPDATE measurement_mismatches",
    ];
    for statement in STATEMENTS {
        let sql = statement.sql().split_whitespace().collect::<Vec<_>>().join(" ");
        for losing in losing {
            assert!(!sql.contains(losing), "{}: {sql}", statement.name());
        }
    }
}

/// MEA-5
#[tokio::test]
async fn the_database_rejects_to_delete_or_alter_a_package_in_any_state() {
    let service = Service::start().await;
    service
        .measure(&ALPHA, package("M-1", "35 OPN 205"))
        .await
        .assert_status(201);
    for external_id in ["M-2", "M-3"] {
        service
            .measure(&ALPHA, package(external_id, "34 ABC 123"))
            .await
            .assert_status(201);
    }
    let discard = "UPDATE measurements SET status = 'DISCARDED', settled_at = now(), settled_by = 'Mehmet Usta' \
                   WHERE external_id = 'M-3'";
    service.db.execute(discard, &[]).await.unwrap();
    let packages = "SELECT external_id, status, convert_from(raw, 'UTF8') AS raw FROM measurements ORDER BY 1";
    let before = service.rows(packages).await;
    for lose in ["DELETE FROM measurements", "UPDATE measurements SET raw = ''"] {
        for external_id in ["M-1", "M-2", "M-3"] {
            let lose = format!("{lose} WHERE external_id = '{external_id}'");
            assert!(service.db.execute(&lose, &[]).await.is_err(), "{lose}");
        }
    }
    let truncate = service
        .db
        .execute("TRUNCATE measurements CASCADE", &[])
        .await
        .unwrap_err();
    assert!(
        truncate
            .as_db_error()
            .is_some_and(|error| error.message() == "measurements are never deleted")
    );
    assert_eq!(service.rows(packages).await, before);
    let states: Vec<_> = before.as_array().unwrap().iter().map(|row| &row["status"]).collect();
    assert_eq!(json!(states), json!(["APPLIED", "PENDING", "DISCARDED"]));
}

/// MEA-7, MEA-14
#[tokio::test]
async fn a_skipped_point_is_reported_and_recorded_but_not_written() {
    let service = Service::start().await;
    let before = answers(&service, inspections::DRAFT).await;
    let body =
        r#"{"branch_code":"IZMIR-01","plate":"35 OPN 205","measurements":{"SUSP_FRONT_LEFT":70,"HANDBRAKE_LEFT":1.5}}"#;
    let response = service.measure(&ALPHA, body).await;
    let data = response.assert_status(201).json()["data"].clone();
    assert_eq!(data["applied_points"], json!([]));
    let reasons: std::collections::BTreeMap<_, _> = data["skipped_points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| (point["code"].as_str().unwrap(), point["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        Vec::from_iter(reasons),
        [("HANDBRAKE_LEFT", "no_status"), ("SUSP_FRONT_LEFT", "unknown_point")]
    );
    assert_eq!(points(&service).await.as_array().map(Vec::len), Some(2));
    assert_eq!(answers(&service, inspections::DRAFT).await, before);
}
