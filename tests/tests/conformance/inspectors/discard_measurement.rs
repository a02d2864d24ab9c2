//! The operation `discard_measurement`.

use partner_api_tests::{ALPHA, AYSE, DERYA, Service};
use serde_json::json;

const PACKAGE: &str =
    r#"{"branch_code":"IZMIR-01","plate":"35OLD209","external_id":"m-1","measurements":{"SLIP_FRONT":-1.40}}"#;

/// MEA-13, INS-5
#[tokio::test]
async fn a_discarded_measurement_is_no_longer_pending_and_keeps_its_bytes() {
    let service = Service::start().await;
    let sent = service.measure(&ALPHA, PACKAGE).await;
    let measurement: uuid::Uuid = sent.json()["data"]["measurement_id"].as_str().unwrap().parse().unwrap();
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    client
        .discard_measurement()
        .measurement_id(measurement)
        .send()
        .await
        .unwrap();
    received.last().snapshot("a_measurement_is_discarded");
    let replay = service.measure(&ALPHA, PACKAGE).await;
    assert_eq!(replay.json()["data"]["status"], "discarded");
    let recorded = service
        .rows("SELECT status, settled_by, convert_from(raw, 'UTF8') AS raw FROM measurements")
        .await;
    assert_eq!(
        recorded,
        json!([{ "status": "DISCARDED", "settled_by": AYSE.name, "raw": PACKAGE }])
    );
    let inspector = service.inspector(&AYSE).await;
    let again = inspector
        .act(&service, "DELETE", &format!("/inspector/v1/measurements/{measurement}"))
        .await;
    again
        .assert_rejected(409, "already_settled")
        .snapshot("a_discarded_measurement_is_not_discarded_again");
}

/// INS-5
#[tokio::test]
async fn a_measurement_of_another_branch_cannot_be_discarded() {
    let service = Service::start().await;
    let sent = service.measure(&ALPHA, PACKAGE).await;
    let measurement = sent.json()["data"]["measurement_id"].as_str().unwrap().to_owned();
    let inspector = service.inspector(&DERYA).await;
    let rejected = inspector
        .act(&service, "DELETE", &format!("/inspector/v1/measurements/{measurement}"))
        .await;
    rejected
        .assert_rejected(404, "not_found")
        .snapshot("a_measurement_of_another_branch_is_not_found");
    assert_eq!(service.count("measurements WHERE status = 'PENDING'").await, 1);
}
