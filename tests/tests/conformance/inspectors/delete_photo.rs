//! The operation `delete_photo`.

use partner_api_tests::fixture::inspections::{DRAFT, PUBLISHED};
use partner_api_tests::{AYSE, DERYA, Request, Service};
use sandbox_pictures as pictures;

/// INS-9
#[tokio::test]
async fn a_deleted_photo_leaves_the_report_and_its_files_are_deleted_later() {
    let service = Service::start().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let inspector = service.inspector(&AYSE).await;
    let add = Request::new("POST", &format!("/inspector/v1/reports/{DRAFT}/photos?kind=DAMAGE"))
        .body(pictures::SCENES[0].draw().unwrap().full)
        .header("content-type", "application/octet-stream");
    let added = service.send(inspector.sends(add)).await;
    added.assert_status(201);
    let before = service.count("photos").await;
    let photo: uuid::Uuid = added.json()["data"]["photos"][0]["id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let call = client
        .delete_photo()
        .id(DRAFT.parse::<uuid::Uuid>().unwrap())
        .photo_id(photo);
    call.send().await.unwrap();
    received.last().snapshot("a_photo_is_deleted");
    assert_eq!(service.count("photos").await, before - 1);
    assert_eq!(
        service
            .count(&format!(
                "orphaned_objects WHERE object_key LIKE 'photos/{DRAFT}/{photo}%' AND delete_at > now()"
            ))
            .await,
        2
    );
    let again = inspector
        .act(
            &service,
            "DELETE",
            &format!("/inspector/v1/reports/{DRAFT}/photos/{photo}"),
        )
        .await;
    again
        .assert_rejected(404, "not_found")
        .snapshot("a_deleted_photo_is_not_deleted_again");
}

/// INS-5, INS-6
#[tokio::test]
async fn a_photo_of_another_branch_or_of_a_published_report_is_not_deleted() {
    let service = Service::start().await;
    let (inspector, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let before = service.count("photos").await;
    let row = service
        .rows(&format!(
            "SELECT id FROM photos WHERE inspection_id = '{PUBLISHED}' LIMIT 1"
        ))
        .await;
    let target = format!(
        "/inspector/v1/reports/{PUBLISHED}/photos/{}",
        row[0]["id"].as_str().expect("a photo")
    );
    derya
        .act(&service, "DELETE", &target)
        .await
        .assert_rejected(404, "not_found");
    inspector
        .act(&service, "DELETE", &target)
        .await
        .assert_rejected(409, "transition_rejected")
        .snapshot("a_photo_of_a_published_report_is_not_deleted");
    assert_eq!(service.count("photos").await, before);
}
