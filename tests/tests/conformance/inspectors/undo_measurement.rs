//! The operation `undo_measurement`.

use partner_api_tests::fixture::inspections::{DRAFT, OLD_DRAFT};
use partner_api_tests::inspectors::InspectorClient;
use partner_api_tests::{ALPHA, AYSE, DERYA, MEHMET, Service};
use serde_json::{Value, json};

fn target(measurement: &str) -> String {
    format!("/inspector/v1/measurements/{measurement}/settlement")
}

async fn submit(service: &Service, plate: &str) -> String {
    let package = json!({
        "branch_code": "IZMIR-01", "plate": plate, "external_id": "m-1",
        "measurements": { "BRAKE_FRONT_LEFT": 2.1, "DYNO_MEASURED_HP": 100.1 }
    });
    let sent = service.measure(&ALPHA, package.to_string()).await;
    sent.json()["data"]["measurement_id"].as_str().unwrap().to_owned()
}

async fn number(service: &Service, inspector: &InspectorClient, report: &str, code: &str) -> Value {
    let report = inspector.report(service, report).await;
    let forms = report["forms"].as_array().unwrap().clone();
    let mut points = forms.iter().flat_map(|form| form["points"].as_array().unwrap());
    points.find(|point| point["code"] == code).unwrap()["numeric_value"].clone()
}

/// INS-15
#[tokio::test]
async fn an_applied_measurement_is_pending_again_and_the_values_from_before_are_back() {
    let service = Service::start().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let inspector = service.inspector(&AYSE).await;
    let form = format!("/inspector/v1/reports/{OLD_DRAFT}/forms/TEST_LINE");
    let typed = json!({ "answers": [{ "point_code": "BRAKE_FRONT_LEFT", "numeric_value": 2.7 }] });
    inspector.write(&service, "PUT", &form, typed).await.assert_status(200);
    let measurement = submit(&service, "35OLD209").await;
    let apply = format!("/inspector/v1/reports/{OLD_DRAFT}/measurements/{measurement}");
    let applied = inspector.act(&service, "PUT", &apply).await;
    applied.assert_status(200);
    assert_eq!(applied.json()["data"]["settled"][0]["id"], json!(measurement));
    // Written after the measurement, so it stays.
    let later = json!({ "answers": [{ "point_code": "HANDBRAKE_LEFT", "numeric_value": 1, "status_code": "GOOD" }] });
    inspector.write(&service, "PUT", &form, later).await.assert_status(200);
    let version = inspector.report(&service, OLD_DRAFT).await["version"].as_i64();

    let call = client
        .undo_measurement()
        .measurement_id(measurement.parse::<uuid::Uuid>().unwrap());
    call.send().await.unwrap();
    received.last().snapshot("an_applied_measurement_is_pending_again");
    assert_eq!(
        number(&service, &inspector, OLD_DRAFT, "BRAKE_FRONT_LEFT").await,
        json!(2.7)
    );
    assert_eq!(
        number(&service, &inspector, OLD_DRAFT, "HANDBRAKE_LEFT").await,
        json!(1)
    );
    for code in ["DYNO_MEASURED_HP", "DYNO_RATIO"] {
        assert_eq!(
            number(&service, &inspector, OLD_DRAFT, code).await,
            json!(null),
            "{code}"
        );
    }
    let report = inspector.report(&service, OLD_DRAFT).await;
    assert!(report["version"].as_i64() > version);
    // The computed ratio is not one of its values, but it is previewed again.
    let stored = service
        .rows("SELECT status, point_codes, settled_by FROM measurements")
        .await;
    assert_eq!(stored[0]["status"], "PENDING");
    assert_eq!(stored[0]["point_codes"].as_array().map(Vec::len), Some(2));
    inspector.act(&service, "PUT", &apply).await.assert_status(200);
    assert_eq!(
        number(&service, &inspector, OLD_DRAFT, "BRAKE_FRONT_LEFT").await,
        json!(2.1)
    );
}

/// INS-15
#[tokio::test]
async fn a_cleared_value_does_not_come_back_with_an_undo() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let form = format!("/inspector/v1/reports/{OLD_DRAFT}/forms/TEST_LINE");
    let typed = json!({ "answers": [{ "point_code": "BRAKE_FRONT_LEFT", "numeric_value": 2.7 }] });
    inspector.write(&service, "PUT", &form, typed).await.assert_status(200);
    inspector
        .write(&service, "PUT", &form, json!({ "clear": ["BRAKE_FRONT_LEFT"] }))
        .await
        .assert_status(200);
    let measurement = submit(&service, "35OLD209").await;
    let apply = format!("/inspector/v1/reports/{OLD_DRAFT}/measurements/{measurement}");
    inspector.act(&service, "PUT", &apply).await.assert_status(200);
    inspector
        .act(&service, "DELETE", &target(&measurement))
        .await
        .assert_status(204);
    assert_eq!(
        number(&service, &inspector, OLD_DRAFT, "BRAKE_FRONT_LEFT").await,
        json!(null)
    );
}

/// INS-15
#[tokio::test]
async fn a_discarded_measurement_is_pending_again_and_a_pending_one_has_nothing_to_undo() {
    let service = Service::start().await;
    let (inspector, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let measurement = submit(&service, "35OLD209").await;
    inspector
        .act(&service, "DELETE", &target(&measurement))
        .await
        .assert_rejected(409, "not_settled")
        .snapshot("a_pending_measurement_has_nothing_to_undo");
    let discard = format!("/inspector/v1/measurements/{measurement}");
    inspector.act(&service, "DELETE", &discard).await.assert_status(204);
    let settled = inspector.report(&service, OLD_DRAFT).await["settled"].clone();
    assert_eq!(
        (&settled[0]["id"], &settled[0]["is_applied"]),
        (&json!(measurement), &json!(false))
    );
    derya
        .act(&service, "DELETE", &target(&measurement))
        .await
        .assert_rejected(404, "not_found")
        .snapshot("a_measurement_of_another_branch_is_not_undone");
    inspector
        .act(&service, "DELETE", &target(&measurement))
        .await
        .assert_status(204);
    assert_eq!(
        inspector.report(&service, OLD_DRAFT).await["waiting"][0]["id"],
        json!(measurement)
    );
}

/// INS-6, INS-15
#[tokio::test]
async fn a_measurement_of_a_published_report_is_not_undone() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let measurement = submit(&service, "35OPN205").await;
    inspector.answer_required_points(&service, DRAFT).await;
    inspector
        .move_to(&service, DRAFT, "PUBLISHED", None)
        .await
        .assert_status(200);
    inspector
        .act(&service, "DELETE", &target(&measurement))
        .await
        .assert_rejected(409, "transition_rejected")
        .snapshot("a_measurement_of_a_published_report_is_not_undone");
    assert_eq!(
        number(&service, &inspector, DRAFT, "BRAKE_FRONT_LEFT").await,
        json!(2.1)
    );
}

/// INS-5
#[tokio::test]
async fn of_an_undo_and_a_publication_at_the_same_time_one_wins() {
    let service = Service::start().await;
    let (ayse, mehmet) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
    let measurement = submit(&service, "35OPN205").await;
    ayse.answer_required_points(&service, DRAFT).await;
    let body = json!({ "version": ayse.report(&service, DRAFT).await["version"], "to": "PUBLISHED" });
    let status = format!("/inspector/v1/reports/{DRAFT}/status");
    let undo = target(&measurement);
    let (published, undone) = tokio::join!(
        ayse.write(&service, "PUT", &status, body),
        mehmet.act(&service, "DELETE", &undo)
    );
    let statuses = (published.status.as_u16(), undone.status.as_u16());
    assert!([(200, 409), (409, 204)].contains(&statuses), "{statuses:?}");
    let value = number(&service, &ayse, DRAFT, "BRAKE_FRONT_LEFT").await;
    assert_eq!(value == json!(2.1), statuses.0 == 200);
}
