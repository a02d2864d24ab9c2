//! The operation `update_photo`.

use partner_api_tests::fixture::inspections::{DRAFT, PUBLISHED};
use partner_api_tests::{AYSE, DERYA, Service};
use serde_json::json;

const PHOTO: &str = "0197c2b0-3c00-7f66-a071-7c8d9e0f1a2b";

async fn with_photo() -> Service {
    let service = Service::start().await;
    let insert = format!(
        "INSERT INTO photos (id, organization_id, inspection_id, position, kind, caption, object_key, mime_type, size_bytes)
         SELECT '{PHOTO}', organization_id, id, 1, 'EXTERIOR', 'Önden', 'photos/1.jpg', 'image/jpeg', 1
         FROM inspections WHERE id = '{DRAFT}'"
    );
    service.db.batch_execute(&insert).await.unwrap();
    service
}

fn target(report: &str) -> String {
    format!("/inspector/v1/reports/{report}/photos/{PHOTO}")
}

/// INS-9
#[tokio::test]
async fn a_photo_is_hidden_renamed_and_shown_again() {
    let service = with_photo().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let inspector = service.inspector(&AYSE).await;
    let id = |text: &str| text.parse::<uuid::Uuid>().unwrap();
    let hidden = json!({ "is_shown": false, "caption": "Sağ ön", "kind": "DAMAGE" });
    let hidden: partner_api_inspector_client::types::UpdatePhoto = serde_json::from_value(hidden).unwrap();
    let call = client.update_photo().id(id(DRAFT)).photo_id(id(PHOTO)).body(hidden);
    call.send().await.unwrap();
    let response = received.last();
    response.snapshot("a_photo_is_hidden_and_renamed");
    let photo = response.json()["data"]["photos"][0].clone();
    assert_eq!((&photo["kind"], &photo["is_shown"]), (&json!("DAMAGE"), &json!(false)));
    let shown = inspector
        .write(
            &service,
            "PATCH",
            &target(DRAFT),
            json!({ "is_shown": true, "caption": "" }),
        )
        .await;
    let photo = shown.json()["data"]["photos"][0].clone();
    assert_eq!(
        (&photo["is_shown"], &photo["caption"], &photo["kind"]),
        (&json!(true), &json!(null), &json!("DAMAGE"))
    );
}

/// INS-5, INS-6
#[tokio::test]
async fn a_photo_of_another_report_or_branch_or_of_a_published_report_is_not_changed() {
    let service = with_photo().await;
    let (inspector, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let body = || json!({ "is_shown": false });
    derya
        .write(&service, "PATCH", &target(DRAFT), body())
        .await
        .assert_rejected(404, "not_found");
    inspector
        .write(&service, "PATCH", &target(PUBLISHED), body())
        .await
        .assert_rejected(409, "transition_rejected")
        .snapshot("a_photo_of_a_published_report_is_not_changed");
    let other = format!("/inspector/v1/reports/{DRAFT}/photos/{DRAFT}");
    inspector
        .write(&service, "PATCH", &other, body())
        .await
        .assert_rejected(404, "not_found")
        .snapshot("an_unknown_photo_is_not_changed");
    assert_eq!(
        service
            .count(&format!("photos WHERE id = '{PHOTO}' AND show_in_report"))
            .await,
        1
    );
}
