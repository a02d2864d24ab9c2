//! `discard_measurement`

use partner_api_tests::{ALPHA, AYSE, DERYA, Service};
use serde_json::json;

const PACKAGE: &str =
    r#"{"branch_code":"IZMIR-01","plate":"35OLD209","external_id":"m-1","measurements":{"SLIP_FRONT":-1.40}}"#;

/// MEA-13, INS-5
#[tokio::test]
async fn what_is_ignored_waits_no_more_and_keeps_its_bytes() {
    let service = Service::start().await;
    let sent = service.measure(&ALPHA, PACKAGE).await;
    let measurement: uuid::Uuid = sent.json()["data"]["measurement_id"].as_str().unwrap().parse().unwrap();
    let (client, seen) = service.generated_inspector_client(&AYSE).await;
    client
        .discard_measurement()
        .measurement_id(measurement)
        .send()
        .await
        .unwrap();
    seen.last().snapshot("a_measurement_is_ignored");
    let replay = service.measure(&ALPHA, PACKAGE).await;
    assert_eq!(replay.json()["data"]["status"], "discarded");
    let kept = service
        .rows("SELECT status, settled_by, convert_from(raw, 'UTF8') AS raw FROM measurements")
        .await;
    assert_eq!(
        kept,
        json!([{ "status": "DISCARDED", "settled_by": AYSE.name, "raw": PACKAGE }])
    );
    let inspector = service.inspector(&AYSE).await;
    let again = inspector
        .act(&service, "DELETE", &format!("/inspector/v1/measurements/{measurement}"))
        .await;
    again
        .assert_refused(409, "already_settled")
        .snapshot("what_was_ignored_is_not_ignored_again");
}

/// INS-5
#[tokio::test]
async fn nobody_ignores_a_measurement_of_another_branch() {
    let service = Service::start().await;
    let sent = service.measure(&ALPHA, PACKAGE).await;
    let measurement = sent.json()["data"]["measurement_id"].as_str().unwrap().to_owned();
    let inspector = service.inspector(&DERYA).await;
    let refused = inspector
        .act(&service, "DELETE", &format!("/inspector/v1/measurements/{measurement}"))
        .await;
    refused
        .assert_refused(404, "not_found")
        .snapshot("a_measurement_of_another_branch_is_not_found");
    assert_eq!(service.count("measurements WHERE status = 'PENDING'").await, 1);
}
