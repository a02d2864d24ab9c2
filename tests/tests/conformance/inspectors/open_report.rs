//! The operation `open_report`.

use partner_api_tests::fixture::branches;
use partner_api_tests::{ALPHA, AYSE, Service};
use serde_json::{Value, json};

const OPEN: &str = "/inspector/v1/reports";

fn report(plate: &str) -> Value {
    json!({
        "branch_id": branches::IZMIR_01, "plate": plate, "package_name": "Full Ekspertiz", "base_price": "5750.00",
        "mileage_km": 133_000
    })
}

/// INS-6
#[tokio::test]
async fn a_draft_is_opened_for_a_known_plate_with_the_organizations_forms() {
    let service = Service::start().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let body: partner_api_inspector_client::types::OpenReport = serde_json::from_value(report("35 msk 201")).unwrap();
    client.open_report().body(body).send().await.unwrap();
    received
        .last()
        .assert_status(201)
        .snapshot("a_report_is_opened_for_a_known_plate");
    assert_eq!(
        service
            .count("inspections WHERE plate = '35MSK201' AND status = 'DRAFT'")
            .await,
        1
    );
    assert_eq!(
        service.count("inspection_transitions WHERE from_status IS NULL").await,
        1
    );
    // From now on it receives the values of devices.
    let package = r#"{"branch_code":"IZMIR-01","plate":"35MSK201","measurements":{"BRAKE_FRONT_LEFT":3}}"#;
    let response = service.measure(&ALPHA, package).await;
    assert_eq!(response.json()["data"]["status"], "applied");
}

#[tokio::test]
async fn an_unknown_plate_requires_a_vehicle() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let mut body = report("35 yni 777");
    let rejected = inspector.write(&service, "POST", OPEN, body.clone()).await;
    rejected
        .assert_rejected(400, "invalid_request")
        .snapshot("an_unknown_plate_without_a_vehicle_is_rejected");
    assert_eq!(service.count("inspections WHERE plate = '35YNI777'").await, 0);
    body["vehicle"] = json!({
        "vin": "WVWZZZAUZLW000777", "brand": "Volkswagen", "model": "Golf", "year": 2020, "type": "HATCHBACK",
        "fuel_type": "GASOLINE", "transmission": "MANUAL", "color": "Beyaz", "factory_power_hp": "150.00"
    });
    let opened = inspector.write(&service, "POST", OPEN, body).await;
    opened.assert_status(201);
    assert_eq!(opened.json()["data"]["vehicle"]["vin"], "WVWZZZAUZLW000777");
    assert_eq!(service.count("vehicles WHERE plate = '35YNI777'").await, 1);
}

/// INS-5
#[tokio::test]
async fn no_report_is_opened_at_a_closed_branch_or_another_inspectors_branch() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    for branch in [branches::ANK_01, branches::IST_02, branches::ESK_01] {
        let mut body = report("35MSK201");
        body["branch_id"] = json!(branch);
        let rejected = inspector.write(&service, "POST", OPEN, body).await;
        rejected.assert_rejected(404, "not_found");
        if branch == branches::ANK_01 {
            rejected.snapshot("no_report_is_opened_at_another_inspectors_branch");
        }
    }
}

/// ERR-9
#[tokio::test]
async fn all_errors_in_a_new_report_are_reported_at_once() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let body = json!({ "branch_id": branches::IZMIR_01, "plate": "35Ж01", "package_name": "", "base_price": "1,50" });
    let rejected = inspector.write(&service, "POST", OPEN, body).await;
    rejected
        .assert_rejected(400, "invalid_request")
        .snapshot("all_errors_in_a_report_are_reported_at_once");
    let mut body = report("??");
    body["base_price"] = json!("-1.00");
    let rejected = inspector.write(&service, "POST", OPEN, body).await;
    rejected.assert_rejected(400, "invalid_request");
    assert_eq!(
        rejected.json()["error"]["details"].as_array().map(Vec::len),
        Some(2),
        "{}",
        rejected.message()
    );
}

/// INS-6
#[tokio::test]
async fn a_retry_with_the_same_id_opens_one_report_and_a_used_number_is_skipped() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let year: String = service
        .db
        .query_one("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY')", &[])
        .await
        .unwrap()
        .get(0);
    let use_number =
        format!("UPDATE inspections SET report_number = 'IZMIR-01-{year}-000001' WHERE plate = '35DUZ207'");
    service.db.batch_execute(&use_number).await.unwrap();
    let mut body = report("35MSK201");
    body["id"] = json!(uuid::Uuid::now_v7());
    for _ in 0..2 {
        let opened = inspector.write(&service, "POST", OPEN, body.clone()).await;
        opened.assert_status(201);
        assert_eq!(opened.json()["data"]["id"], body["id"]);
        assert_eq!(
            opened.json()["data"]["report_number"],
            format!("IZMIR-01-{year}-000002")
        );
    }
    assert_eq!(
        service
            .count("inspections WHERE plate = '35MSK201' AND status = 'DRAFT'")
            .await,
        1
    );
    service
        .db
        .batch_execute("ALTER SEQUENCE report_numbers RESTART 1000000")
        .await
        .unwrap();
    let mut again = report("35MSK201");
    again["even_if_open"] = json!(true);
    let later = inspector.write(&service, "POST", OPEN, again).await;
    assert_eq!(
        later.json()["data"]["report_number"],
        format!("IZMIR-01-{year}-1000000")
    );
}

/// INS-5
#[tokio::test]
async fn two_concurrent_requests_with_the_same_id_open_one_report_and_an_id_in_use_is_rejected() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let mut body = report("35MSK201");
    body["id"] = json!(uuid::Uuid::now_v7());
    let twice = futures::future::join_all((0..4).map(|_| inspector.write(&service, "POST", OPEN, body.clone()))).await;
    for response in &twice {
        response.assert_status(201);
    }
    assert_eq!(
        service
            .count("inspections WHERE plate = '35MSK201' AND status = 'DRAFT'")
            .await,
        1
    );
    body["id"] = json!(partner_api_tests::fixture::inspections::FULL_DRAFT);
    let rejected = inspector.write(&service, "POST", OPEN, body).await;
    rejected
        .assert_rejected(400, "invalid_request")
        .snapshot("an_id_of_another_inspectors_report_is_rejected");
}

/// INS-5
#[tokio::test]
async fn vehicle_data_of_another_organization_is_not_shown() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let rejected = inspector.write(&service, "POST", OPEN, report("34FUL301")).await;
    rejected.assert_rejected(400, "invalid_request");
    assert_eq!(rejected.json()["error"]["field"], "/vehicle");
    // If the plate was given to another car, that car is added.
    let mut body = report("35MSK201");
    body["vehicle"] = json!({
        "vin": "WVWZZZAUZLW000888", "brand": "Seat", "model": "Leon", "year": 2022, "type": "HATCHBACK",
        "fuel_type": "GASOLINE", "transmission": "MANUAL", "color": "Gri"
    });
    let opened = inspector.write(&service, "POST", OPEN, body).await;
    assert_eq!(opened.json()["data"]["vehicle"]["vin"], "WVWZZZAUZLW000888");
    assert_eq!(service.count("vehicles WHERE plate = '35MSK201'").await, 2);
}

#[tokio::test]
async fn an_excessive_price_or_power_is_rejected() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let mut body = report("35YNI778");
    body["base_price"] = json!("10000000000.00");
    body["vehicle"] = json!({
        "vin": "WVWZZZAUZLW000778", "brand": "Seat", "model": "Leon", "year": 2022, "type": "HATCHBACK",
        "fuel_type": "GASOLINE", "transmission": "MANUAL", "color": "Gri", "factory_power_hp": "0.00"
    });
    let rejected = inspector.write(&service, "POST", OPEN, body).await;
    rejected
        .assert_rejected(400, "invalid_request")
        .snapshot("prices_and_powers_are_limited");
}

/// INS-6
#[tokio::test]
async fn a_plate_with_an_open_report_is_opened_again_only_on_request() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let mut body = report("35OPN205");
    inspector
        .write(&service, "POST", OPEN, body.clone())
        .await
        .assert_rejected(409, "already_open")
        .snapshot("a_plate_with_an_open_report_is_rejected");
    assert_eq!(service.count("inspections WHERE plate = '35OPN205'").await, 1);
    body["even_if_open"] = json!(true);
    inspector.write(&service, "POST", OPEN, body).await.assert_status(201);
}

/// INS-18
#[tokio::test]
async fn a_vehicle_outside_the_vocabularies_is_rejected_by_the_api_and_by_the_database() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let mut body = report("35YNI779");
    body["vehicle"] = json!({
        "vin": "WVWZZZAUZLW000779", "brand": "Seat", "model": "Leon", "year": 2022, "type": "sedan",
        "fuel_type": "Benzin", "transmission": "Otomatik", "color": "Gri"
    });
    inspector
        .write(&service, "POST", OPEN, body)
        .await
        .assert_rejected(400, "invalid_request")
        .snapshot("a_vehicle_outside_the_vocabularies_is_rejected");
    for change in [
        "UPDATE vehicles SET type = 'sedan'",
        "UPDATE vehicles SET fuel_type = 'Benzin'",
        "UPDATE vehicles SET transmission = 'Otomatik'",
        "UPDATE inspections SET payment_type = 'Nakit'",
    ] {
        let error = service.db.batch_execute(change).await.unwrap_err();
        assert_eq!(
            error.code().unwrap(),
            &tokio_postgres::error::SqlState::CHECK_VIOLATION,
            "{change}"
        );
    }
}

/// INS-23
#[tokio::test]
async fn only_a_vehicle_before_the_model_year_1981_has_a_short_vin() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let mut body = report("35 ESK 079");
    body["vehicle"] = json!({
        "vin": "131A0079421", "brand": "Tofaş", "model": "Murat 131", "year": 1981, "type": "SEDAN",
        "fuel_type": "GASOLINE", "transmission": "MANUAL", "color": "Bej"
    });
    let rejected = inspector.write(&service, "POST", OPEN, body.clone()).await;
    rejected
        .assert_rejected(400, "invalid_request")
        .snapshot("a_short_vin_of_a_newer_vehicle_is_rejected");
    body["vehicle"]["year"] = json!(1979);
    let opened = inspector.write(&service, "POST", OPEN, body).await;
    opened.assert_status(201);
    assert_eq!(service.count("vehicles WHERE vin = '131A0079421'").await, 1);
}
