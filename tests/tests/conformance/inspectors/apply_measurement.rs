//! The operation `apply_measurement`.

use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, AYSE, DERYA, MEHMET, Service};
use serde_json::{Value, json};

/// Submits a package that stays pending, because the plate's report is older than a day.
async fn submit_pending(service: &Service, plate: &str, external_id: &str) -> String {
    let package = json!({
        "branch_code": "IZMIR-01", "plate": plate, "external_id": external_id, "device_serial": "BT3000-77812",
        "measurements": { "BRAKE_FRONT_LEFT": 2.1, "DYNO_MEASURED_HP": 100.1, "ABS": 1 }
    });
    let response = service.measure(&ALPHA, package.to_string()).await;
    assert_eq!(response.json()["data"]["status"], "pending", "{}", response.json());
    response.json()["data"]["measurement_id"].as_str().unwrap().to_owned()
}

fn target(report: &str, measurement: &str) -> String {
    format!("/inspector/v1/reports/{report}/measurements/{measurement}")
}

/// MEA-13, INS-5
#[tokio::test]
async fn one_click_writes_the_values_with_their_statuses_and_the_ratio() {
    let service = Service::start().await;
    let measurement = submit_pending(&service, "35OLD209", "m-1").await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let id = |text: &str| text.parse::<uuid::Uuid>().unwrap();
    let call = client
        .apply_measurement()
        .id(id(inspections::OLD_DRAFT))
        .measurement_id(id(&measurement));
    call.send().await.unwrap();
    received
        .last()
        .snapshot("one_click_writes_a_measurement_into_the_report");
    let recorded = service
        .rows("SELECT status, settled_by, inspection_id FROM measurements")
        .await;
    assert_eq!(
        recorded,
        json!([{ "status": "APPLIED", "settled_by": AYSE.name, "inspection_id": inspections::OLD_DRAFT }])
    );
    // If the device sends it again, the replay says that it was applied.
    let package = json!({
        "branch_code": "IZMIR-01", "plate": "35OLD209", "external_id": "m-1", "device_serial": "BT3000-77812",
        "measurements": { "BRAKE_FRONT_LEFT": 2.1, "DYNO_MEASURED_HP": 100.1, "ABS": 1 }
    });
    let replay = service.measure(&ALPHA, package.to_string()).await;
    let data = replay.json()["data"].clone();
    assert_eq!(
        (
            &data["status"],
            &data["inspection_id"],
            &data["skipped_points"][0]["code"]
        ),
        (&json!("applied"), &json!(inspections::OLD_DRAFT), &json!("ABS"))
    );
}

/// INS-5
#[tokio::test]
async fn of_concurrent_decisions_on_a_measurement_one_wins() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let (ayse, mehmet) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
    for round in 0..5 {
        let measurement = submit_pending(&service, "35OLD209", &format!("race-{round}")).await;
        let apply = target(inspections::OLD_DRAFT, &measurement);
        let discard = format!("/inspector/v1/measurements/{measurement}");
        let responses = futures::join!(
            ayse.act(&service, "PUT", &apply),
            mehmet.act(&replica, "PUT", &apply),
            mehmet.act(&service, "DELETE", &discard),
            ayse.act(&replica, "DELETE", &discard),
        );
        let responses = [responses.0, responses.1, responses.2, responses.3];
        let won = responses.iter().filter(|response| response.status.is_success()).count();
        assert_eq!(won, 1, "{:?}", responses.map(|response| response.status));
        for lost in responses.iter().filter(|response| !response.status.is_success()) {
            lost.assert_rejected(409, "already_settled");
        }
    }
    assert_eq!(service.count("measurements WHERE status = 'PENDING'").await, 0);
    let again = submit_pending(&service, "35OLD209", "again").await;
    let apply = target(inspections::OLD_DRAFT, &again);
    ayse.act(&service, "PUT", &apply).await.assert_status(200);
    mehmet
        .act(&service, "PUT", &apply)
        .await
        .assert_rejected(409, "already_settled")
        .snapshot("a_measurement_that_was_already_settled_is_rejected");
}

/// INS-5
#[tokio::test]
async fn a_measurement_is_applied_only_to_an_editable_report_of_its_plate_and_branch() {
    let service = Service::start().await;
    let (ayse, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let measurement = submit_pending(&service, "35REV206", "m-2").await;
    let in_review = ayse
        .act(&service, "PUT", &target(inspections::IN_REVIEW, &measurement))
        .await;
    in_review
        .assert_rejected(409, "transition_rejected")
        .snapshot("a_measurement_for_a_report_in_review_is_rejected");
    let other_plate = ayse
        .act(&service, "PUT", &target(inspections::DRAFT, &measurement))
        .await;
    other_plate
        .assert_rejected(404, "not_found")
        .snapshot("a_measurement_of_another_plate_is_not_found");
    for report in [inspections::FULL_DRAFT, inspections::IN_REVIEW] {
        let theirs = derya.act(&service, "PUT", &target(report, &measurement)).await;
        theirs.assert_rejected(404, "not_found");
    }
    assert_eq!(service.count("measurements WHERE status = 'PENDING'").await, 1);
}

/// INS-5
#[tokio::test]
async fn an_older_measurement_is_applied_without_superseded_values() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let (old, new) = (
        submit_pending(&service, "35OLD209", "old").await,
        submit_pending(&service, "35OLD209", "new").await,
    );
    inspector
        .act(&service, "PUT", &target(inspections::OLD_DRAFT, &new))
        .await
        .assert_status(200);
    let report = inspector.report(&service, inspections::OLD_DRAFT).await;
    let reasons: Vec<&Value> = report["waiting"][0]["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| &value["skipped_for"])
        .collect();
    assert_eq!(reasons, ["unknown_point", "superseded", "superseded", "superseded"]);
    inspector
        .act(&service, "PUT", &target(inspections::OLD_DRAFT, &old))
        .await
        .assert_status(200);
    let recorded = service
        .rows("SELECT count(*) FROM inspection_form_answer_history")
        .await;
    assert_eq!(recorded, json!([{ "count": 0 }]));
}
