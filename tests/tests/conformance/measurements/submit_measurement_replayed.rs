//! One record for each external ID, however often it is sent.

use std::time::Duration;

use futures::future::join_all;
use partner_api::plausible::documented;
use partner_api_store::connection::Connection;
use partner_api_store::measurements::apply;
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_tests::fixture::{ALPHA_ROTATED, inspections, organizations};
use partner_api_tests::{ALPHA, Service, TestKey, TestResponse};
use serde_json::{Value, json};

use partner_api_tests::measurements::{contents, package};

const MISMATCH: &str = "x-idempotency-payload-mismatch";

/// Sends the package until the service is not busy, as a partner does.
async fn measure_at_last(service: &Service, key: &TestKey, body: &str) -> TestResponse {
    loop {
        let response = service.measure(key, body.to_owned()).await;
        if response.status != 503 {
            return response;
        }
    }
}

/// MEA-13
#[tokio::test]
async fn a_replay_reports_whether_its_measurement_is_pending_or_applied() {
    let service = Service::start().await;
    let body = r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123","external_id":"M-1",
        "measurements":{"BRAKE_FRONT_LEFT":2.85,"SUSP_FRONT_LEFT":70}}"#;
    let first = service.measure(&ALPHA, body).await.json()["data"].clone();
    let waiting = service.measure(&ALPHA, body).await;
    waiting
        .assert_status(200)
        .snapshot("a_replay_reports_that_its_measurement_is_pending");
    assert_eq!(waiting.header(MISMATCH), None);

    // An inspector has opened a report for the plate and applies the measurement with one click.
    let set = format!(
        "UPDATE inspections SET plate = '34ABC123' WHERE id = '{}'",
        inspections::DRAFT
    );
    service.db.execute(&set, &[]).await.unwrap();
    let pool = pool(service.database(), &PoolSettings::default()).unwrap();
    let id = first["measurement_id"].as_str().unwrap().parse().unwrap();
    let db = Connection::take(&pool, Duration::from_secs(60)).await.unwrap();
    let transaction = db.transaction();
    let applied = apply(
        &transaction,
        organizations::MASKED.parse().unwrap(),
        id,
        inspections::DRAFT.parse().unwrap(),
        "Mehmet Usta",
        documented,
    )
    .await
    .unwrap();
    assert!(applied.is_some());
    transaction.commit().await.unwrap();

    let response = service.measure(&ALPHA, body).await;
    response
        .assert_status(200)
        .snapshot("a_replay_reports_that_its_measurement_was_applied");
    assert_eq!(response.json()["data"]["measurement_id"], first["measurement_id"]);
}

/// MEA-10, MEA-11
#[tokio::test]
async fn a_replay_changes_nothing_and_a_different_body_is_kept() {
    let service = Service::start().await;
    for (external_id, plate) in [("M-1", "35 OPN 205"), ("M-2", "34 ABC 123")] {
        service
            .measure(&ALPHA, package(external_id, plate))
            .await
            .assert_status(201);
    }
    let before = contents(&service).await;
    for (external_id, plate) in [("M-1", "35 OPN 205"), ("M-2", "34 ABC 123")] {
        let response = service.measure(&ALPHA, package(external_id, plate)).await;
        assert_eq!(response.assert_status(200).json()["data"].get("payload_mismatch"), None);
    }
    assert_eq!(contents(&service).await, before);

    let other = package("M-2", "35 OPN 205");
    for _ in 0..2 {
        let response = service.measure(&ALPHA, other.clone()).await;
        assert_eq!(response.assert_status(200).json()["data"]["payload_mismatch"], true);
    }
    let mut after = contents(&service).await;
    after.insert(
        "measurement_mismatches".into(),
        before["measurement_mismatches"].clone(),
    );
    assert_eq!(after, before);
    let recorded = service
        .rows("SELECT m.external_id, convert_from(o.raw, 'UTF8') AS raw FROM measurement_mismatches o JOIN measurements m ON m.id = o.measurement_id")
        .await;
    assert_eq!(recorded, json!([{ "external_id": "M-2", "raw": other }]));
}

/// MEA-10, KEY-12
#[tokio::test]
async fn a_retry_with_another_key_of_the_partner_is_a_replay() {
    let service = Service::start().await;
    let first = service.measure(&ALPHA, package("M-1", "34 ABC 123")).await;
    let again = service.measure(&ALPHA_ROTATED, package("M-1", "34 ABC 123")).await;
    assert_eq!(again.assert_status(200).header(MISMATCH), None);
    assert_eq!(
        again.json()["data"]["measurement_id"],
        first.json()["data"]["measurement_id"]
    );
    assert_eq!(
        service.rows("SELECT key_id FROM measurements").await,
        json!([{ "key_id": ALPHA.id }])
    );
}

#[tokio::test]
async fn an_extra_space_is_a_different_body_and_the_recorded_plate_is_returned() {
    let service = Service::start().await;
    service
        .measure(&ALPHA, package("M-1", "34 ABC 123"))
        .await
        .assert_status(201);
    let spaced = service.measure(&ALPHA, package("M-1", "34 ABC 123") + " ").await;
    assert_eq!(spaced.assert_status(200).header(MISMATCH), Some("true"));
    let other_plate = service.measure(&ALPHA, package("M-1", "06 Z 9999")).await;
    assert_eq!(other_plate.assert_status(200).header(MISMATCH), Some("true"));
    assert_eq!(other_plate.json()["data"]["plate"], "34ABC123");
}

#[tokio::test]
async fn external_ids_are_compared_exactly_and_measured_in_characters() {
    let service = Service::start().await;
    let longest = "ş".repeat(120);
    for external_id in ["M-1", "m-1", "M-1 ", " ", &longest] {
        service
            .measure(&ALPHA, package(external_id, "34 ABC 123"))
            .await
            .assert_status(201);
        service
            .measure(&ALPHA, package(external_id, "34 ABC 123"))
            .await
            .assert_status(200);
    }
    assert_eq!(service.count("measurements").await, 5);
}

#[tokio::test]
async fn every_package_without_an_external_id_is_recorded() {
    let service = Service::start().await;
    let mut body: Value = serde_json::from_str(&package("", "34 ABC 123")).unwrap();
    body.as_object_mut().unwrap().remove("external_id");
    for _ in 0..2 {
        service.measure(&ALPHA, body.to_string()).await.assert_status(201);
    }
    assert_eq!(service.count("measurements").await, 2);
}

/// MEA-10, SVC-3
#[tokio::test(flavor = "multi_thread")]
async fn of_100_concurrent_packages_with_the_same_external_id_one_is_recorded() {
    let service = Service::start().await;
    let replica = service.replica().await;
    // The plate of the first has an open report; the second is pending.
    for (external_id, plate) in [("M-1", "35 OPN 205"), ("M-2", "34 ABC 123")] {
        let body = package(external_id, plate);
        // With two replicas and two keys of the partner, only the database can decide.
        let send = |number: usize| {
            let service = if number.is_multiple_of(2) { &service } else { &replica };
            let key = if number % 4 < 2 { &ALPHA } else { &ALPHA_ROTATED };
            measure_at_last(service, key, &body)
        };
        let responses = join_all((0..100).map(send)).await;
        let count = |status| responses.iter().filter(|response| response.status == status).count();
        assert_eq!((count(201_u16), count(200)), (1, 99), "{plate}");
        let first = &responses[0].json()["data"]["measurement_id"];
        for response in &responses {
            assert_eq!(response.json()["data"]["measurement_id"], *first, "{plate}");
            assert_eq!(response.header(MISMATCH), None, "{plate}");
        }
    }
    assert_eq!(service.count("measurements").await, 2);
    assert_eq!(service.count("inspection_form_answer_history").await, 1, "applied once");
}
