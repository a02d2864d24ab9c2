//! The operation `update_report`.

use partner_api_tests::fixture::inspections;
use partner_api_tests::{AYSE, DERYA, MEHMET, Service};
use serde_json::json;

fn target(id: &str) -> String {
    format!("/inspector/v1/reports/{id}")
}

/// INS-7
#[tokio::test]
async fn an_update_changes_the_given_members_and_computes_the_price() {
    let service = Service::start().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let id = inspections::DRAFT.parse::<uuid::Uuid>().unwrap();
    let version = client
        .get_report()
        .id(id)
        .send()
        .await
        .unwrap()
        .into_inner()
        .data
        .version;
    let body = json!({
        "version": version, "summary": "Sağ ön çamurluk boyalı.", "discount_percent": "12.50", "base_price": "3333.33",
        "mileage_km": 145_020
    });
    let body: partner_api_inspector_client::types::UpdateReport = serde_json::from_value(body).unwrap();
    let report = client
        .update_report()
        .id(id)
        .body(body)
        .send()
        .await
        .unwrap()
        .into_inner()
        .data;
    assert!(report.version > version);
    received.last().snapshot("texts_mileage_and_pricing_are_changed");
    let recorded = service
        .rows(&format!(
            "SELECT summary, final_price::text, snapshot_mileage_km FROM inspections WHERE id = '{id}'"
        ))
        .await;
    assert_eq!(
        recorded,
        json!([{ "summary": "Sağ ön çamurluk boyalı.", "final_price": "2916.66", "snapshot_mileage_km": 145_020 }])
    );
}

/// INS-7
#[tokio::test]
async fn of_two_writes_from_the_same_version_the_second_is_rejected() {
    let service = Service::start().await;
    let (ayse, mehmet) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
    let version = ayse.report(&service, inspections::DRAFT).await["version"].clone();
    let write = async |inspector: &partner_api_tests::inspectors::InspectorClient, text: &str| {
        let body = json!({ "version": version, "summary": text });
        inspector
            .write(&service, "PATCH", &target(inspections::DRAFT), body)
            .await
    };
    let (first, second) = futures::join!(write(&ayse, "Ayşe"), write(&mehmet, "Mehmet"));
    let (won, lost, text) = match first.status.as_u16() {
        200 => (first, second, "Ayşe"),
        _ => (second, first, "Mehmet"),
    };
    won.assert_status(200);
    lost.assert_rejected(409, "changed_meanwhile");
    let late = write(&mehmet, "Mehmet").await;
    late.assert_rejected(409, "changed_meanwhile")
        .snapshot("a_write_from_an_old_version_is_rejected");
    assert_eq!(ayse.report(&service, inspections::DRAFT).await["summary"], text);
}

/// INS-6, INS-7
#[tokio::test]
async fn a_report_is_changed_only_in_an_editable_status() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    for (id, may) in [
        (inspections::DRAFT, true),
        (inspections::REVISION_REQUESTED, true),
        (inspections::IN_REVIEW, false),
        (inspections::CANCEL_REQUESTED, false),
        (inspections::PUBLISHED, false),
        (inspections::CANCELLED, false),
    ] {
        let version = inspector.report(&service, id).await["version"].clone();
        let body = json!({ "version": version, "recommendation": "Alınabilir." });
        let response = inspector.write(&service, "PATCH", &target(id), body).await;
        match may {
            true => response.assert_status(200),
            false => response.assert_rejected(409, "transition_rejected"),
        };
        if id == inspections::PUBLISHED {
            response.snapshot("a_published_report_is_not_changed");
        }
    }
}

/// INS-5
#[tokio::test]
async fn a_report_of_another_branch_cannot_be_changed() {
    let service = Service::start().await;
    let inspector = service.inspector(&DERYA).await;
    let body = json!({ "version": 1, "summary": "x" });
    let response = inspector
        .write(&service, "PATCH", &target(inspections::DRAFT), body)
        .await;
    response
        .assert_rejected(404, "not_found")
        .snapshot("a_report_of_another_branch_is_not_changed");
}

#[tokio::test]
async fn an_excessive_discount_is_rejected() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let body = json!({ "version": 1, "discount_percent": "100.01", "base_price": "-0.01" });
    let response = inspector
        .write(&service, "PATCH", &target(inspections::DRAFT), body)
        .await;
    response
        .assert_rejected(400, "invalid_request")
        .snapshot("prices_and_discounts_are_limited");
}
