use futures::TryStreamExt;
use partner_api_domain::pdf_key;
use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, BETA, Service};

fn path(id: &str) -> String {
    format!("/api/v1/partner/inspections/{id}/pdf")
}

#[tokio::test]
async fn the_pdf_of_a_published_report_is_streamed() {
    let service = Service::start().await;
    let pdf = service
        .client(&ALPHA)
        .get_inspection_pdf()
        .id(inspections::PUBLISHED)
        .send()
        .await
        .unwrap();
    service.last().snapshot("the_pdf_of_a_published_report_is_streamed");
    let bytes: Vec<bytes::Bytes> = pdf.into_inner_stream().try_collect().await.unwrap();
    assert_eq!(bytes.concat(), b"%PDF-1.7 report 201");
}

/// REP-8
#[tokio::test]
async fn a_report_without_a_public_slug_has_no_pdf() {
    let service = Service::start().await;
    let response = service.get(&ALPHA, &path(inspections::WITHOUT_SLUG)).await;
    response
        .assert_rejected(404, "not_found")
        .snapshot("a_report_without_a_public_slug_has_no_pdf");
}

/// REP-8
#[tokio::test]
async fn an_unpublished_report_has_no_pdf() {
    let service = Service::start().await;
    for id in [inspections::ARCHIVED, inspections::CANCELLED] {
        // Not even one that was rendered while the report was published.
        let id_of: uuid::Uuid = id.parse().unwrap();
        let fingerprint = service.db.query_one("SELECT report_fingerprint($1)", &[&id_of]).await;
        let key = pdf_key::new_key(id_of, fingerprint.unwrap().get(0));
        let set = "UPDATE inspections SET pdf_object_key = $2 WHERE id = $1";
        service.db.execute(set, &[&id_of, &key]).await.unwrap();
        service.get(&ALPHA, &path(id)).await.assert_rejected(404, "not_found");
    }
    for id in inspections::INVISIBLE {
        service.get(&ALPHA, &path(id)).await.assert_rejected(404, "not_found");
    }
    service
        .get(&BETA, &path(inspections::NONE_PUBLISHED))
        .await
        .assert_rejected(404, "not_found");
    service
        .get(&ALPHA, &path(inspections::UNKNOWN))
        .await
        .assert_rejected(404, "not_found");
    service.get(&ALPHA, &path("1")).await.assert_rejected(404, "not_found");
}
