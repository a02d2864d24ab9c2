//! `open_report`

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
async fn a_known_plate_becomes_a_draft_with_the_organizations_forms() {
    let service = Service::start().await;
    let (client, seen) = service.generated_inspector_client(&AYSE).await;
    let body: partner_api_inspector_client::types::OpenReport = serde_json::from_value(report("35 msk 201")).unwrap();
    client.open_report().body(body).send().await.unwrap();
    seen.last()
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
    // And is where a device's values go from now on.
    let package = r#"{"branch_code":"IZMIR-01","plate":"35MSK201","measurements":{"BRAKE_FRONT_LEFT":3}}"#;
    let answer = service.measure(&ALPHA, package).await;
    assert_eq!(answer.json()["data"]["status"], "applied");
}

#[tokio::test]
async fn a_plate_without_a_vehicle_needs_one() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let mut body = report("35 yni 777");
    let refused = inspector.write(&service, "POST", OPEN, body.clone()).await;
    refused
        .assert_refused(400, "invalid_request")
        .snapshot("an_unknown_plate_needs_a_vehicle");
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
async fn no_report_is_opened_at_a_branch_of_others_or_a_closed_one() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    for branch in [branches::ANK_01, branches::IST_02, branches::ESK_01] {
        let mut body = report("35MSK201");
        body["branch_id"] = json!(branch);
        let refused = inspector.write(&service, "POST", OPEN, body).await;
        refused.assert_refused(404, "not_found");
        if branch == branches::ANK_01 {
            refused.snapshot("no_report_is_opened_at_anothers_branch");
        }
    }
}

/// ERR-9
#[tokio::test]
async fn everything_that_is_wrong_with_a_report_is_said_at_once() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let body = json!({ "branch_id": branches::IZMIR_01, "plate": "35Ж01", "package_name": "", "base_price": "1,50" });
    let refused = inspector.write(&service, "POST", OPEN, body).await;
    refused
        .assert_refused(400, "invalid_request")
        .snapshot("everything_wrong_with_a_report_is_said_at_once");
    let mut body = report("??");
    body["base_price"] = json!("-1.00");
    let refused = inspector.write(&service, "POST", OPEN, body).await;
    refused.assert_refused(400, "invalid_request");
    assert_eq!(
        refused.json()["error"]["details"].as_array().map(Vec::len),
        Some(2),
        "{}",
        refused.message()
    );
}

/// INS-6
#[tokio::test]
async fn what_is_sent_again_under_its_id_opens_nothing_twice_and_a_taken_number_is_passed_by() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let year: String = service
        .db
        .query_one("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY')", &[])
        .await
        .unwrap()
        .get(0);
    let taken = format!("UPDATE inspections SET report_number = 'IZMIR-01-{year}-000001' WHERE plate = '35DUZ207'");
    service.db.batch_execute(&taken).await.unwrap();
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
    let later = inspector.write(&service, "POST", OPEN, report("35MSK201")).await;
    assert_eq!(
        later.json()["data"]["report_number"],
        format!("IZMIR-01-{year}-1000000")
    );
}

/// INS-5
#[tokio::test]
async fn of_two_at_once_under_one_id_one_report_comes_and_anothers_id_is_refused() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let mut body = report("35MSK201");
    body["id"] = json!(uuid::Uuid::now_v7());
    let twice = futures::future::join_all((0..4).map(|_| inspector.write(&service, "POST", OPEN, body.clone()))).await;
    for answer in &twice {
        answer.assert_status(201);
    }
    assert_eq!(
        service
            .count("inspections WHERE plate = '35MSK201' AND status = 'DRAFT'")
            .await,
        1
    );
    body["id"] = json!(partner_api_tests::fixture::inspections::FULL_DRAFT);
    let refused = inspector.write(&service, "POST", OPEN, body).await;
    refused
        .assert_refused(400, "invalid_request")
        .snapshot("the_id_of_anothers_report_is_refused");
}

/// INS-5
#[tokio::test]
async fn what_another_organization_knows_about_a_plate_is_not_shown() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let refused = inspector.write(&service, "POST", OPEN, report("34FUL301")).await;
    refused.assert_refused(400, "invalid_request");
    assert_eq!(refused.json()["error"]["field"], "/vehicle");
    // A plate that was given to another car brings that car.
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
async fn a_price_and_a_power_beyond_all_are_refused() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let mut body = report("35YNI778");
    body["base_price"] = json!("10000000000.00");
    body["vehicle"] = json!({
        "vin": "WVWZZZAUZLW000778", "brand": "Seat", "model": "Leon", "year": 2022, "type": "HATCHBACK",
        "fuel_type": "GASOLINE", "transmission": "MANUAL", "color": "Gri", "factory_power_hp": "0.00"
    });
    let refused = inspector.write(&service, "POST", OPEN, body).await;
    refused
        .assert_refused(400, "invalid_request")
        .snapshot("a_price_and_a_power_have_bounds");
}
