//! The operation `get_report`.

use chrono::TimeDelta;
use partner_api_tests::fixture::inspections;
use partner_api_tests::fixture::organizations::MASKED;
use partner_api_tests::measurements::measured_at;
use partner_api_tests::{ALPHA, AYSE, DERYA, MEHMET, Service};
use serde_json::json;

/// MEA-13, INS-5
#[tokio::test]
async fn a_report_is_shown_with_its_pending_measurements_and_a_preview() {
    let service = Service::start().await;
    // The report is older than a day, so nothing is applied automatically.
    for (id, left) in [("old", "1.40"), ("new", "2.10")] {
        let package = format!(
            r#"{{"branch_code":"IZMIR-01","plate":"35OLD209","external_id":"{id}","device_serial":"BT3000-77812",
                "measured_at":"{at}","measurements":{{"BRAKE_FRONT_LEFT":{left},"BRAKE_FRONT_RIGHT":2850,
                "HANDBRAKE_LEFT":1.2,"DYNO_MEASURED_HP":100.5,"ABS":1}}}}"#,
            at = measured_at().to_rfc3339()
        );
        service.measure(&ALPHA, package).await.assert_status(201);
    }
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let id = inspections::OLD_DRAFT.parse::<uuid::Uuid>().unwrap();
    let report = client.get_report().id(id).send().await.unwrap().into_inner().data;
    assert_eq!(report.waiting.len(), 2);
    received
        .last()
        .snapshot("a_report_is_shown_with_its_pending_measurements");
    // Reading changes nothing.
    assert_eq!(service.count("measurements WHERE status = 'PENDING'").await, 2);
}

/// MEA-18, INS-19
#[tokio::test]
async fn sums_and_differences_of_axles_have_the_limits_of_the_pdf() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let limit = async |good_max: &str| {
        let set = format!(
            "INSERT INTO thresholds (organization_id, point_code, good_max, borderline_max)
             VALUES ('{MASKED}', 'BRAKE_FRONT_DIFFERENCE', {good_max}, 30)
             ON CONFLICT (organization_id, point_code) DO UPDATE SET good_max = excluded.good_max"
        );
        service.db.batch_execute(&set).await.unwrap();
    };
    let form = format!("/inspector/v1/reports/{}/forms/TEST_LINE", inspections::OLD_DRAFT);
    let answers = json!({ "answers": [
        { "point_code": "BRAKE_FRONT_LEFT", "numeric_value": 2.85 },
        { "point_code": "BRAKE_FRONT_RIGHT", "numeric_value": 2.28 },
    ] });
    limit("25").await;
    inspector
        .write(&service, "PUT", &form, answers)
        .await
        .assert_status(200);
    // Later limits do not concern the values, in the report as in the PDF, but a measurement that is applied from now on.
    limit("10").await;
    let package =
        json!({ "branch_code": "IZMIR-01", "plate": "35OLD209", "measurements": { "BRAKE_FRONT_RIGHT": 2.28 } });
    service.measure(&ALPHA, package.to_string()).await.assert_status(201);
    let report = inspector.report(&service, inspections::OLD_DRAFT).await;
    let forms = report["forms"].as_array().unwrap();
    let test_line = forms.iter().find(|form| form["is_test_line"] == true).unwrap();
    let values = |status: &str| {
        json!([
            { "code": "BRAKE_FRONT_SUM", "value": 5.13, "unit": "kN" },
            { "code": "BRAKE_FRONT_DIFFERENCE", "value": 20.0, "unit": "percent", "status_code": status },
        ])
    };
    assert_eq!(test_line["computed"], values("GOOD"));
    assert_eq!(report["waiting"][0]["computed"], values("BORDERLINE"));
    assert!(
        forms
            .iter()
            .all(|form| form["is_test_line"] == true || form["computed"].is_null())
    );
}

/// INS-5
#[tokio::test]
async fn a_report_of_another_branch_is_not_found_whatever_its_status() {
    let service = Service::start().await;
    let (ayse, mehmet, derya) = (
        service.inspector(&AYSE).await,
        service.inspector(&MEHMET).await,
        service.inspector(&DERYA).await,
    );
    let target = |id: &str| format!("/inspector/v1/reports/{id}");
    for (inspector, id, is_theirs) in [
        (&ayse, inspections::PUBLISHED, true),
        (&ayse, inspections::OTHER_BRANCH, false),
        (&mehmet, inspections::OTHER_BRANCH, true),
        (&ayse, inspections::FULL_DRAFT, false),
        (&derya, inspections::FULL_DRAFT, true),
        (&derya, inspections::DRAFT, false),
        (&derya, inspections::UNKNOWN, false),
    ] {
        let response = inspector.get(&service, &target(id)).await;
        match is_theirs {
            true => response.assert_status(200),
            false => response.assert_rejected(404, "not_found"),
        };
        if id == inspections::UNKNOWN {
            response.snapshot("an_unknown_report_is_not_found");
        }
    }
    let malformed = ayse.get(&service, &target("7")).await;
    malformed
        .assert_rejected(400, "invalid_request")
        .snapshot("a_malformed_id_is_rejected");
}

/// INS-16
#[tokio::test]
async fn the_measurement_that_was_measured_last_comes_first_whenever_it_arrived() {
    let service = Service::start().await;
    // A device sends its buffer: the older measurement arrives last.
    for (id, measured_at) in [
        ("now", measured_at()),
        ("buffered", measured_at() - TimeDelta::hours(20)),
    ] {
        let package = format!(
            r#"{{"branch_code":"IZMIR-01","plate":"35OLD209","external_id":"{id}","device_serial":"{id}",
                "measured_at":"{}","measurements":{{"BRAKE_FRONT_LEFT":2}}}}"#,
            measured_at.to_rfc3339()
        );
        service.measure(&ALPHA, package).await.assert_status(201);
    }
    let inspector = service.inspector(&AYSE).await;
    let report = inspector.report(&service, inspections::OLD_DRAFT).await;
    let order: Vec<_> = report["waiting"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["device_serial"].clone())
        .collect();
    assert_eq!(order, ["now", "buffered"]);
}

/// INS-16, MEA-8
#[tokio::test]
async fn a_typed_value_that_a_device_replaced_is_shown_until_an_inspector_writes_again() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let form = format!("/inspector/v1/reports/{}/forms/TEST_LINE", inspections::DRAFT);
    let point = async || {
        let report = inspector.report(&service, inspections::DRAFT).await;
        let forms = report["forms"].as_array().unwrap().clone();
        let mut points = forms.iter().flat_map(|form| form["points"].as_array().unwrap());
        points.find(|point| point["code"] == "SLIP_FRONT").unwrap().clone()
    };
    let typed = json!({ "answers": [{ "point_code": "SLIP_FRONT", "numeric_value": 2.5 }] });
    inspector
        .write(&service, "PUT", &form, typed.clone())
        .await
        .assert_status(200);
    assert_eq!(point().await.get("replaced"), None);
    let package =
        r#"{"branch_code":"IZMIR-01","plate":"35OPN205","device_serial":"BT-1","measurements":{"SLIP_FRONT":3.1}}"#;
    service.measure(&ALPHA, package).await.assert_status(201);
    let replaced = point().await;
    assert_eq!(
        (
            &replaced["numeric_value"],
            &replaced["replaced"]["numeric_value"],
            &replaced["replaced"]["written_by"]
        ),
        (&json!(3.1), &json!(2.5), &json!(AYSE.name))
    );
    inspector.write(&service, "PUT", &form, typed).await.assert_status(200);
    let again = point().await;
    assert_eq!((&again["numeric_value"], again.get("replaced")), (&json!(2.5), None));
}
