//! The operation `order_photos`.

use partner_api_tests::fixture::inspections;
use partner_api_tests::inspectors::InspectorClient;
use partner_api_tests::{AYSE, DERYA, Request, Service};
use serde_json::{Value, json};

fn target(id: &str) -> String {
    format!("/inspector/v1/reports/{id}/photos")
}

/// Adds three photos to the draft; returns their IDs in order, and the report's version.
async fn photos(service: &Service, inspector: &InspectorClient) -> (Vec<Value>, Value) {
    for _ in 0..3 {
        let request = Request::new("POST", &format!("{}?kind=EXTERIOR", target(inspections::DRAFT)))
            .body(sandbox_pictures::SCENES[0].draw().unwrap().full)
            .header("content-type", "application/octet-stream");
        service.send(inspector.sends(request)).await.assert_status(201);
    }
    let report = inspector.report(service, inspections::DRAFT).await;
    let ids = report["photos"]
        .as_array()
        .unwrap()
        .iter()
        .map(|photo| photo["id"].clone());
    (ids.collect(), report["version"].clone())
}

/// INS-9
#[tokio::test]
async fn the_order_of_photos_is_changed_and_kept() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let (mut ids, version) = photos(&service, &inspector).await;
    ids.rotate_left(1);
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let body = json!({ "version": version, "photo_ids": ids });
    let body: partner_api_inspector_client::types::OrderPhotos = serde_json::from_value(body).unwrap();
    let id = inspections::DRAFT.parse::<uuid::Uuid>().unwrap();
    client.order_photos().id(id).body(body).send().await.unwrap();
    received.last().snapshot("the_order_of_photos_is_changed");
    let report = inspector.report(&service, inspections::DRAFT).await;
    let now: Vec<Value> = report["photos"]
        .as_array()
        .unwrap()
        .iter()
        .map(|photo| photo["id"].clone())
        .collect();
    assert_eq!(now, ids);
}

/// INS-9
#[tokio::test]
async fn an_order_must_name_every_photo_once() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let (ids, version) = photos(&service, &inspector).await;
    for wrong in [
        vec![ids[0].clone()],
        vec![ids[0].clone(), ids[1].clone(), ids[1].clone()],
        [ids.clone(), vec![json!(inspections::UNKNOWN)]].concat(),
    ] {
        let body = json!({ "version": version, "photo_ids": wrong });
        let rejected = inspector
            .write(&service, "PUT", &target(inspections::DRAFT), body)
            .await;
        rejected.assert_rejected(400, "invalid_request");
        if wrong.len() == 1 {
            rejected.snapshot("an_order_must_name_every_photo_once");
        }
    }
}

/// INS-5, INS-6, INS-7
#[tokio::test]
async fn photos_are_not_ordered_from_an_old_version_in_review_or_from_another_branch() {
    let service = Service::start().await;
    let (inspector, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let body = |version: i64| json!({ "version": version, "photo_ids": [inspections::UNKNOWN] });
    inspector
        .write(&service, "PUT", &target(inspections::DRAFT), body(99))
        .await
        .assert_rejected(409, "changed_meanwhile")
        .snapshot("photos_are_not_ordered_from_an_old_version");
    let version = inspector.report(&service, inspections::IN_REVIEW).await["version"]
        .as_i64()
        .unwrap();
    inspector
        .write(&service, "PUT", &target(inspections::IN_REVIEW), body(version))
        .await
        .assert_rejected(409, "transition_rejected")
        .snapshot("photos_of_a_report_in_review_are_not_ordered");
    derya
        .write(&service, "PUT", &target(inspections::DRAFT), body(1))
        .await
        .assert_rejected(404, "not_found")
        .snapshot("photos_of_another_branch_are_not_ordered");
}
