//! `apply_measurement`

use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, AYSE, DERYA, MEHMET, Service};
use serde_json::{Value, json};

/// A package that waits: the plate's report is older than a day.
async fn waiting(service: &Service, plate: &str, external_id: &str) -> String {
    let package = json!({
        "branch_code": "IZMIR-01", "plate": plate, "external_id": external_id, "device_serial": "BT3000-77812",
        "measurements": { "BRAKE_FRONT_LEFT": 2.1, "DYNO_MEASURED_HP": 100.1, "ABS": 1 }
    });
    let answer = service.measure(&ALPHA, package.to_string()).await;
    assert_eq!(answer.json()["data"]["status"], "pending", "{}", answer.json());
    answer.json()["data"]["measurement_id"].as_str().unwrap().to_owned()
}

fn target(report: &str, measurement: &str) -> String {
    format!("/inspector/v1/reports/{report}/measurements/{measurement}")
}

/// MEA-13, INS-5
#[tokio::test]
async fn one_click_writes_the_values_with_their_statuses_and_the_ratio() {
    let service = Service::start().await;
    let measurement = waiting(&service, "35OLD209", "m-1").await;
    let (client, seen) = service.generated_inspector_client(&AYSE).await;
    let id = |text: &str| text.parse::<uuid::Uuid>().unwrap();
    let call = client
        .apply_measurement()
        .id(id(inspections::OLD_DRAFT))
        .measurement_id(id(&measurement));
    call.send().await.unwrap();
    seen.last().snapshot("one_click_writes_a_measurement_into_the_report");
    let kept = service
        .rows("SELECT status, settled_by, inspection_id FROM measurements")
        .await;
    assert_eq!(
        kept,
        json!([{ "status": "APPLIED", "settled_by": AYSE.name, "inspection_id": inspections::OLD_DRAFT }])
    );
    // The device is told, should it ask again.
    let package = json!({
        "branch_code": "IZMIR-01", "plate": "35OLD209", "external_id": "m-1", "device_serial": "BT3000-77812",
        "measurements": { "BRAKE_FRONT_LEFT": 2.1, "DYNO_MEASURED_HP": 100.1, "ABS": 1 }
    });
    let replay = service.measure(&ALPHA, package.to_string()).await;
    let told = replay.json()["data"].clone();
    assert_eq!(
        (
            &told["status"],
            &told["inspection_id"],
            &told["skipped_points"][0]["code"]
        ),
        (&json!("applied"), &json!(inspections::OLD_DRAFT), &json!("ABS"))
    );
}

/// INS-5
#[tokio::test]
async fn of_many_who_settle_one_measurement_one_wins() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let (ayse, mehmet) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
    for round in 0..5 {
        let measurement = waiting(&service, "35OLD209", &format!("race-{round}")).await;
        let apply = target(inspections::OLD_DRAFT, &measurement);
        let discard = format!("/inspector/v1/measurements/{measurement}");
        let answers = futures::join!(
            ayse.act(&service, "PUT", &apply),
            mehmet.act(&replica, "PUT", &apply),
            mehmet.act(&service, "DELETE", &discard),
            ayse.act(&replica, "DELETE", &discard),
        );
        let answers = [answers.0, answers.1, answers.2, answers.3];
        let won = answers.iter().filter(|answer| answer.status.is_success()).count();
        assert_eq!(won, 1, "{:?}", answers.map(|answer| answer.status));
        for lost in answers.iter().filter(|answer| !answer.status.is_success()) {
            lost.assert_refused(409, "already_settled");
        }
    }
    assert_eq!(service.count("measurements WHERE status = 'PENDING'").await, 0);
    let again = waiting(&service, "35OLD209", "again").await;
    let apply = target(inspections::OLD_DRAFT, &again);
    ayse.act(&service, "PUT", &apply).await.assert_status(200);
    mehmet
        .act(&service, "PUT", &apply)
        .await
        .assert_refused(409, "already_settled")
        .snapshot("who_comes_second_is_told_so");
}

/// INS-5
#[tokio::test]
async fn a_measurement_goes_into_no_report_but_one_of_its_plate_that_is_written_and_ones_own() {
    let service = Service::start().await;
    let (ayse, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let measurement = waiting(&service, "35REV206", "m-2").await;
    let in_review = ayse
        .act(&service, "PUT", &target(inspections::IN_REVIEW, &measurement))
        .await;
    in_review
        .assert_refused(409, "transition_refused")
        .snapshot("a_report_in_review_takes_no_measurement");
    let other_plate = ayse
        .act(&service, "PUT", &target(inspections::DRAFT, &measurement))
        .await;
    other_plate
        .assert_refused(404, "not_found")
        .snapshot("a_measurement_of_another_plate_is_not_found");
    for report in [inspections::FULL_DRAFT, inspections::IN_REVIEW] {
        let theirs = derya.act(&service, "PUT", &target(report, &measurement)).await;
        theirs.assert_refused(404, "not_found");
    }
    assert_eq!(service.count("measurements WHERE status = 'PENDING'").await, 1);
}

/// INS-5
#[tokio::test]
async fn a_measurement_older_than_the_reports_values_is_applied_without_them() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let (old, new) = (
        waiting(&service, "35OLD209", "old").await,
        waiting(&service, "35OLD209", "new").await,
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
    let kept = service
        .rows("SELECT count(*) FROM inspection_form_answer_history")
        .await;
    assert_eq!(kept, json!([{ "count": 0 }]));
}
