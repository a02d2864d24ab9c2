//! The operation `get_report_pdf`.

use partner_api_tests::fixture::inspections::{DRAFT, OTHER_BRANCH, PUBLISHED};
use partner_api_tests::{AYSE, DERYA, Service};
use serde_json::json;

fn target(id: &str) -> String {
    format!("/inspector/v1/reports/{id}/pdf")
}

/// INS-19
#[tokio::test]
async fn the_pdf_of_a_published_report_is_shown_in_the_browser() {
    let service = Service::start().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let id = PUBLISHED.parse::<uuid::Uuid>().unwrap();
    client.get_report_pdf().id(id).send().await.unwrap();
    let response = received.last();
    response.snapshot("the_pdf_of_a_published_report_is_shown_in_the_browser");
    let inspector = service.inspector(&AYSE).await;
    let response = inspector.get(&service, &target(PUBLISHED)).await;
    assert_eq!(&response.body[..], b"%PDF-1.7 report 201");
    // Only the page itself may embed it.
    assert_eq!(
        response.header("content-security-policy"),
        Some("frame-ancestors 'self'")
    );
}

/// INS-5, INS-14, INS-19
#[tokio::test]
async fn there_is_no_pdf_of_another_branch_of_a_draft_during_a_revision_and_after_a_change() {
    let service = Service::start().await;
    let (ayse, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    for (inspector, id) in [(&derya, PUBLISHED), (&ayse, OTHER_BRANCH), (&ayse, DRAFT)] {
        let response = inspector.get(&service, &target(id)).await;
        response.assert_rejected(404, "not_found");
        if id == DRAFT {
            response.snapshot("a_report_without_a_pdf_is_not_found");
        }
    }
    let drive = async |kilometers: i32| {
        let drive = format!(
            "UPDATE inspections SET snapshot_mileage_km = snapshot_mileage_km + {kilometers} WHERE id = '{PUBLISHED}'"
        );
        service.db.batch_execute(&drive).await.unwrap();
    };
    let pdf = async || ayse.get(&service, &target(PUBLISHED)).await;
    pdf().await.assert_status(200);
    drive(1).await;
    pdf().await.assert_rejected(404, "not_found");
    assert_eq!(ayse.report(&service, PUBLISHED).await["pdf_sha256"], json!(null));
    drive(-1).await;
    pdf().await.assert_status(200);
    ayse.move_to(&service, PUBLISHED, "REVISION_REQUESTED", Some("Kilometre yanlış."))
        .await
        .assert_status(200);
    pdf().await.assert_rejected(404, "not_found");
}
