//! The operation `correct_vehicle`.

use partner_api_tests::fixture::branches;
use partner_api_tests::fixture::inspections::{DRAFT, PUBLISHED};
use partner_api_tests::{ALPHA, AYSE, DERYA, Service};
use serde_json::{Value, json};

fn target(id: &str) -> String {
    format!("/inspector/v1/reports/{id}/vehicle")
}

fn correction(version: &Value) -> Value {
    json!({ "version": version, "vehicle": {
        "vin": "WBA8E9G50GN000299", "brand": "BMW", "model": "318i", "year": 2017, "type": "SEDAN", "fuel_type": "DIESEL",
        "transmission": "MANUAL", "color": "Beyaz", "factory_power_hp": "150.00"
    } })
}

/// INS-12, INS-15
#[tokio::test]
async fn a_corrected_vehicle_changes_the_report_and_its_ratio_and_no_other_report() {
    let service = Service::start().await;
    // Another report has the same vehicle.
    let share = format!(
        "WITH draft AS MATERIALIZED (SELECT vehicle_id FROM inspections WHERE id = '{DRAFT}')
         UPDATE inspections SET vehicle_id = draft.vehicle_id FROM draft WHERE id = '{PUBLISHED}'"
    );
    service.db.batch_execute(&share).await.unwrap();
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let inspector = service.inspector(&AYSE).await;
    let form = format!("/inspector/v1/reports/{DRAFT}/forms/TEST_LINE");
    let power = json!({ "answers": [{ "point_code": "DYNO_MEASURED_HP", "numeric_value": 136 }] });
    inspector.write(&service, "PUT", &form, power).await.assert_status(200);
    let before = inspector.report(&service, PUBLISHED).await["vehicle"].clone();
    let version = inspector.report(&service, DRAFT).await["version"].clone();
    let body: partner_api_inspector_client::types::CorrectVehicle =
        serde_json::from_value(correction(&version)).unwrap();
    let call = client
        .correct_vehicle()
        .id(DRAFT.parse::<uuid::Uuid>().unwrap())
        .body(body);
    call.send().await.unwrap();
    let response = received.last();
    response.snapshot("a_vehicle_is_corrected");
    let corrected = response.json()["data"].clone();
    assert_eq!(
        (&corrected["vehicle"]["vin"], &corrected["vehicle"]["fuel_type"]),
        (&json!("WBA8E9G50GN000299"), &json!("DIESEL"))
    );
    let forms = corrected["forms"].as_array().unwrap();
    let mut points = forms.iter().flat_map(|form| form["points"].as_array().unwrap());
    let ratio = points.find(|point| point["code"] == "DYNO_RATIO").unwrap();
    assert_eq!(ratio["numeric_value"], 90.67);
    assert_eq!(inspector.report(&service, PUBLISHED).await["vehicle"], before);
    // A vehicle that only this report has is changed itself.
    let vehicles = service.count("vehicles").await;
    let mut again = correction(&corrected["version"]);
    again["vehicle"]["color"] = json!("Kırmızı");
    inspector
        .write(&service, "PUT", &target(DRAFT), again)
        .await
        .assert_status(200);
    assert_eq!(service.count("vehicles").await, vehicles);
    assert_eq!(
        service
            .count("vehicles WHERE color = 'Kırmızı' AND vin = 'WBA8E9G50GN000299'")
            .await,
        1
    );
}

/// INS-5, INS-6, INS-7
#[tokio::test]
async fn a_vehicle_is_corrected_only_in_an_editable_report_with_valid_data_and_the_current_version() {
    let service = Service::start().await;
    let (inspector, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let version = inspector.report(&service, DRAFT).await["version"].clone();
    derya
        .write(&service, "PUT", &target(DRAFT), correction(&version))
        .await
        .assert_rejected(404, "not_found")
        .snapshot("a_vehicle_of_another_branch_is_not_corrected");
    inspector
        .write(&service, "PUT", &target(DRAFT), correction(&json!(999)))
        .await
        .assert_rejected(409, "changed_meanwhile")
        .snapshot("a_vehicle_is_not_corrected_from_an_old_version");
    let published = inspector.report(&service, PUBLISHED).await["version"].clone();
    inspector
        .write(&service, "PUT", &target(PUBLISHED), correction(&published))
        .await
        .assert_rejected(409, "transition_rejected")
        .snapshot("a_vehicle_of_a_published_report_is_not_corrected");
    let mut invalid = correction(&version);
    invalid["vehicle"]["fuel_type"] = json!("Benzin");
    inspector
        .write(&service, "PUT", &target(DRAFT), invalid)
        .await
        .assert_rejected(400, "invalid_request")
        .snapshot("a_vehicle_is_not_corrected_with_an_unknown_fuel");
    assert_eq!(service.count("vehicles WHERE vin = 'WBA8E9G50GN000299'").await, 0);
}

/// INS-7, INS-24
#[tokio::test]
async fn a_corrected_plate_is_recorded_and_gets_the_measurements_of_the_plate() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let measure = async |plate: &str| {
        let package = json!({ "branch_code": "IZMIR-01", "plate": plate, "measurements": { "BRAKE_FRONT_LEFT": 2.5 } });
        service.measure(&ALPHA, package.to_string()).await.json()["data"].clone()
    };
    // One was written to the report under the wrong plate, and one waits for the right one.
    assert_eq!(measure("35 OPN 205").await["status"], "applied");
    let pending = measure("35 YNI 777").await["measurement_id"].clone();
    let version = inspector.report(&service, DRAFT).await["version"].clone();
    let mut body = correction(&version);
    body["plate"] = json!("35 yni 777");
    let corrected = inspector.write(&service, "PUT", &target(DRAFT), body).await;
    corrected.assert_status(200);
    let report = corrected.json()["data"].clone();
    assert_eq!(
        (&report["plate"], &report["vehicle"]["plate"]),
        (&json!("35YNI777"), &json!("35YNI777"))
    );
    assert_eq!(report["waiting"][0]["id"], pending);
    let by = &report["plate_corrections"][0];
    assert_eq!(
        (&by["from"], &by["to"], &by["by"]),
        (&json!("35OPN205"), &json!("35YNI777"), &json!(AYSE.name))
    );
    assert_eq!(
        report["settled"][0]["is_applied"], true,
        "it stays until it is taken back"
    );
    assert_eq!(measure("35 OPN 205").await["status"], "pending");
    assert_eq!(measure("35 YNI 777").await["status"], "applied");
    // The same plate again is no correction.
    let mut again = correction(&inspector.report(&service, DRAFT).await["version"]);
    again["plate"] = json!("35YNI777");
    inspector
        .write(&service, "PUT", &target(DRAFT), again)
        .await
        .assert_status(200);
    assert_eq!(service.count("plate_corrections").await, 1);
    for write in [
        "DELETE FROM plate_corrections",
        "UPDATE plate_corrections SET old_plate = ''",
    ] {
        service.db.batch_execute(write).await.expect_err("a trigger rejects");
    }
}

/// INS-6, INS-24
#[tokio::test]
async fn a_plate_with_another_open_report_is_used_only_on_request() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let other = json!({ "branch_id": branches::IZMIR_01, "plate": "35MSK203", "package_name": "Full", "base_price": "1.00",
                        "mileage_km": 1 });
    inspector
        .write(&service, "POST", "/inspector/v1/reports", other)
        .await
        .assert_status(201);
    let mut body = correction(&inspector.report(&service, DRAFT).await["version"]);
    body["plate"] = json!("35 ABC");
    let invalid = inspector.write(&service, "PUT", &target(DRAFT), body.clone()).await;
    invalid.assert_rejected(400, "invalid_request");
    assert_eq!(invalid.json()["error"]["field"], "/plate");
    body["plate"] = json!("35 MSK 203");
    inspector
        .write(&service, "PUT", &target(DRAFT), body.clone())
        .await
        .assert_rejected(409, "already_open")
        .snapshot("a_plate_with_another_open_report_is_not_taken");
    assert_eq!(inspector.report(&service, DRAFT).await["plate"], "35OPN205");
    body["even_if_open"] = json!(true);
    inspector
        .write(&service, "PUT", &target(DRAFT), body)
        .await
        .assert_status(200);
}
