use futures::future::join_all;
use partner_api_client::types::{MeasurementRequest, MeasurementStatus};
use partner_api_tests::fixture::{self, inspections, partners};
use partner_api_tests::{ALPHA, DELTA, Request, Service};
use serde_json::{Value, json};

use partner_api_tests::measurements::points;

const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";

fn package(external_id: &str) -> String {
    json!({
        "branch_code": "IZMIR-01", "plate": "35 OPN 205", "external_id": external_id, "device_serial": "BT-1",
        "measurements": {
            "BRAKE_FRONT_LEFT": 2.85, "BRAKE_FRONT_RIGHT": 2.1, "HANDBRAKE_LEFT": 1.5, "SLIP_FRONT": -7.5,
            "DYNO_MEASURED_HP": 146.5, "SUSP_FRONT_LEFT": 70, "DYNO_RATIO": 99, "BRAKE_FRONT_LEFF": 2.8
        }
    })
    .to_string()
}

async fn answers_of(service: &Service, report: &str) -> Value {
    service
        .rows(&format!(
            "SELECT p.code, a.status_code, a.status_label, a.severity, a.numeric_value::text AS value, a.note, \
             a.by_device FROM inspection_form_answers a \
             JOIN inspection_forms f ON f.id = a.inspection_form_id JOIN form_template_points p ON p.id = a.point_id \
             WHERE f.inspection_id = '{report}' ORDER BY p.position"
        ))
        .await
}

/// MEA-6, MEA-14, REQ-15
#[tokio::test]
async fn a_package_is_written_into_the_open_report() {
    let service = Service::start().await;
    let response = service.measure(&ALPHA, package("M-1")).await;
    response
        .assert_status(201)
        .snapshot("a_package_is_written_into_the_open_report");
    assert_report_has_the_values(&service).await;
    let record = service
        .rows(
            "SELECT status, inspection_id, external_id, device_serial, plate, partner_id, key_id, \
             convert_from(raw, 'UTF8') AS raw, raw_sha256 = sha256(raw) AS digest, settled_by FROM measurements",
        )
        .await;
    let expected = json!([{
        "status": "APPLIED", "inspection_id": inspections::DRAFT, "external_id": "M-1", "device_serial": "BT-1",
        "plate": "35OPN205", "partner_id": partners::ALPHA, "key_id": ALPHA.id, "raw": package("M-1"), "digest": true,
        "settled_by": null
    }]);
    assert_eq!(record, expected);
}

/// Asserts the values after [`package`]: good, borderline and out of limit, with the computed ratio, without the handbrake.
async fn assert_report_has_the_values(service: &Service) {
    let written = answers_of(service, inspections::DRAFT).await;
    let shown: Vec<_> = written
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["code"].as_str().unwrap(),
                row["status_code"].as_str().unwrap(),
                row["value"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("BRAKE_FRONT_LEFT", "GOOD", "2.85"),
        ("BRAKE_FRONT_RIGHT", "BORDERLINE", "2.1"),
        ("SLIP_FRONT", "OUT_OF_LIMIT", "-7.5"),
        ("DYNO_MEASURED_HP", "GOOD", "146.5"),
        // 100 × 146.5 / 170, two decimals.
        ("DYNO_RATIO", "BORDERLINE", "86.18"),
    ];
    assert_eq!(shown, expected);
    assert!(
        written.as_array().unwrap().iter().all(|row| row["by_device"] == true),
        "{written}"
    );
}

/// MEA-8
#[tokio::test]
async fn an_overwritten_value_is_kept_with_its_author() {
    let service = Service::start().await;
    service.measure(&ALPHA, package("M-1")).await.assert_status(201);
    let history = service
        .rows("SELECT numeric_value::text AS value, written_by, note FROM inspection_form_answer_history")
        .await;
    assert_eq!(
        history,
        json!([{ "value": "1.00", "written_by": "Mehmet Usta", "note": "elle girildi" }])
    );
}

/// MEA-6, MEA-14
#[tokio::test]
async fn a_package_without_an_open_report_is_pending() {
    let service = Service::start().await;
    let body = r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123","measurements":{"BRAKE_FRONT_LEFT":2.850}}"#;
    let response = service.measure(&ALPHA, body).await;
    response
        .assert_status(201)
        .snapshot("a_package_without_an_open_report_is_pending");
    assert_eq!(
        points(&service).await,
        json!([{ "code": "BRAKE_FRONT_LEFT", "value_text": "2.850", "outcome": null }])
    );
}

/// MEA-10
#[tokio::test]
async fn a_retry_with_the_same_external_id_is_recorded_once() {
    let service = Service::start().await;
    let first = service.measure(&ALPHA, package("M-1")).await;
    let again = service.measure(&ALPHA, package("M-1")).await;
    again
        .assert_status(200)
        .snapshot("a_retry_with_the_same_external_id_is_recorded_once");
    assert_eq!(
        again.json()["data"]["measurement_id"],
        first.json()["data"]["measurement_id"]
    );
    assert_eq!(service.count("measurements").await, 1);
}

/// MEA-11
#[tokio::test]
async fn a_replay_with_a_different_body_is_flagged() {
    let service = Service::start().await;
    service.measure(&ALPHA, package("M-1")).await.assert_status(201);
    let other = package("M-1").replace("2.85", "2.86");
    let response = service.measure(&fixture::ALPHA_ROTATED, other).await;
    response
        .assert_status(200)
        .snapshot("a_replay_with_a_different_body_is_flagged");
    let recorded = service
        .rows("SELECT convert_from(raw, 'UTF8') AS raw FROM measurements")
        .await;
    assert_eq!(recorded, json!([{ "raw": package("M-1") }]));
}

/// MEA-10
#[tokio::test]
async fn external_ids_of_different_partners_are_independent() {
    let service = Service::start().await;
    let body =
        r#"{"branch_code":"IST-02","plate":"34 ABC 123","external_id":"M-1","measurements":{"BRAKE_FRONT_LEFT":2}}"#;
    service.measure(&ALPHA, body).await.assert_status(201);
    service.measure(&DELTA, body).await.assert_status(201);
    assert_eq!(service.count("measurements").await, 2);
}

/// MEA-13
#[tokio::test]
async fn a_replay_reports_that_its_measurement_was_discarded() {
    let service = Service::start().await;
    let body =
        r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123","external_id":"M-1","measurements":{"BRAKE_FRONT_LEFT":2}}"#;
    service.measure(&ALPHA, body).await.assert_status(201);
    let discard = "UPDATE measurements SET status = 'DISCARDED', settled_at = now(), settled_by = 'Mehmet Usta'";
    service.db.execute(discard, &[]).await.unwrap();
    let response = service.measure(&ALPHA, body).await;
    response
        .assert_status(200)
        .snapshot("a_replay_reports_that_its_measurement_was_discarded");
}

/// MEA-10
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_packages_with_the_same_external_id_are_recorded_once() {
    let service = Service::start().await;
    let responses = join_all((0..10).map(|_| service.measure(&ALPHA, package("M-1")))).await;
    let (created, replayed) = (201, 200);
    let count = |status| responses.iter().filter(|response| response.status == status).count();
    assert_eq!((count(created), count(replayed)), (1, 9));
    assert_eq!(service.count("measurements").await, 1);
}

/// MEA-10
#[tokio::test]
async fn a_rejected_request_does_not_consume_its_external_id() {
    let service = Service::start().await;
    service
        .measure(&ALPHA, package("M-1").replace("35 OPN 205", "OPN"))
        .await
        .assert_rejected(400, "invalid_request");
    service
        .measure(&ALPHA, package("M-1").replace("IZMIR-01", "NOWHERE"))
        .await
        .assert_rejected(404, "not_found");
    service.measure(&ALPHA, package("M-1")).await.assert_status(201);
}

/// MEA-1, MEA-2
#[tokio::test]
async fn branch_code_and_plate_are_normalized_for_turkish_keyboards() {
    let service = Service::start().await;
    for (branch, plate, status) in [
        ("izmir-01", "35opn205", "applied"),
        ("İzmir-01", "35-OPN-205", "applied"),
        ("ızmır-01", "35.opn 205", "applied"),
        ("IZMIR-01", "35 duz 207", "applied"),
        ("IZMIR-01", "35 OLD 209", "pending"),
        ("IZMIR-01", "35 REV 206", "pending"),
        ("ANK-01", "35 OPN 205", "pending"),
    ] {
        let body = json!({ "branch_code": branch, "plate": plate, "measurements": { "BRAKE_FRONT_LEFT": 2.85 } });
        let response = service.measure(&ALPHA, body.to_string()).await;
        assert_eq!(
            response.assert_status(201).json()["data"]["status"],
            status,
            "{branch} {plate}"
        );
    }
}

/// MEA-6
#[tokio::test]
async fn a_package_goes_to_the_newest_of_several_open_reports() {
    let service = Service::start().await;
    let same_plate = format!(
        "UPDATE inspections SET plate = '35OPN205' WHERE id = '{}'",
        inspections::REVISION_REQUESTED
    );
    service.db.execute(&same_plate, &[]).await.unwrap();
    let response = service.measure(&ALPHA, package("M-1")).await;
    assert_eq!(response.json()["data"]["inspection_id"], inspections::DRAFT);
}

/// MEA-6
#[tokio::test]
async fn a_report_is_open_for_24_hours() {
    let service = Service::start().await;
    let created = |age: &str| {
        format!(
            "UPDATE inspections SET created_at = now() - interval '{age}' WHERE id = '{}'",
            inspections::DRAFT
        )
    };
    service.db.execute(&created("24 hours 1 second"), &[]).await.unwrap();
    assert_eq!(
        service.measure(&ALPHA, package("M-1")).await.json()["data"]["status"],
        "pending"
    );
    service.db.execute(&created("23 hours 59 minutes"), &[]).await.unwrap();
    assert_eq!(
        service.measure(&ALPHA, package("M-2")).await.json()["data"]["status"],
        "applied"
    );
}

/// MEA-9
#[tokio::test]
async fn a_vehicle_without_registered_power_has_no_ratio() {
    let service = Service::start().await;
    let body =
        r#"{"branch_code":"IST-02","plate":"34 OPN 305","measurements":{"DYNO_MEASURED_HP":95,"BRAKE_FRONT_LEFT":3}}"#;
    let response = service.measure(&DELTA, body).await;
    response
        .assert_status(201)
        .snapshot("a_vehicle_without_registered_power_has_no_ratio");
}

#[tokio::test]
async fn the_generated_client_submits_a_measurement() {
    let service = Service::start().await;
    let package = MeasurementRequest::builder()
        .branch_code("IZMIR-01")
        .plate("35 OPN 205")
        .external_id(Some("M-1".parse().unwrap()))
        .measurements(std::collections::HashMap::from([(
            "BRAKE_FRONT_LEFT".to_owned(),
            "2.85".parse().unwrap(),
        )]));
    let client = service.client(&ALPHA);
    let first = client.submit_measurement().body(package.clone()).send().await.unwrap();
    assert_eq!(
        (first.status().as_u16(), first.data.status),
        (201, MeasurementStatus::Applied)
    );
    let again = client.submit_measurement().body(package).send().await.unwrap();
    assert_eq!((again.status().as_u16(), again.data.idempotent_replay), (200, true));
}

/// MEA-4
#[tokio::test]
async fn unknown_members_are_ignored_and_kept() {
    let service = Service::start().await;
    let body = "{ \"branch_code\":\"IZMIR-01\",\n\"plate\":\"34 ABC 123\", \"operator\":{\"name\":\"\\u0000\"}, \"measurements\":{\"A\":1} }";
    service.measure(&ALPHA, body).await.assert_status(201);
    let recorded: Vec<u8> = service
        .db
        .query_one("SELECT raw FROM measurements", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(recorded, body.as_bytes());
}

#[tokio::test]
async fn a_write_consumes_its_nonce() {
    let service = Service::start().await;
    let request = Request::post(MEASUREMENTS, package("M-1"))
        .signed_by(&ALPHA)
        .nonce("of-a-measurement");
    service.send(request.clone()).await.assert_status(201);
    service.send(request).await.assert_rejected(401, "replay_detected");
    let rejected = Request::post(MEASUREMENTS, "{}")
        .signed_by(&ALPHA)
        .nonce("of-a-rejected-one");
    service
        .send(rejected.clone())
        .await
        .assert_rejected(400, "invalid_request");
    service.send(rejected).await.assert_rejected(401, "replay_detected");
}
