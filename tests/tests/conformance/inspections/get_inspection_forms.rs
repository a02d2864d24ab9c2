use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, Service};
use serde_json::json;

fn path(id: &str) -> String {
    format!("/api/v1/partner/inspections/{id}/forms")
}

/// REP-6
#[tokio::test]
async fn forms_merge_the_template_with_the_answers() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .get_inspection_forms()
        .id(inspections::PUBLISHED)
        .send()
        .await
        .unwrap();
    service.last().snapshot("forms_merge_the_template_with_the_answers");
}

/// PII-2
#[tokio::test]
async fn notes_are_scrubbed_where_personal_data_is_hidden() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .get_inspection_forms()
        .id(inspections::NONE_PUBLISHED)
        .send()
        .await
        .unwrap();
    service
        .last()
        .snapshot("notes_are_scrubbed_where_personal_data_is_hidden");
}

/// PII-2
#[tokio::test]
async fn notes_are_plain_where_personal_data_is_shown() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .get_inspection_forms()
        .id(inspections::FULL_PUBLISHED)
        .send()
        .await
        .unwrap();
    service.last().snapshot("notes_are_plain_where_personal_data_is_shown");
}

#[tokio::test]
async fn a_measured_value_keeps_its_decimals() {
    let service = Service::start().await;
    let response = service.get(&ALPHA, &path(inspections::PUBLISHED)).await;
    let text = String::from_utf8(response.body.to_vec()).unwrap();
    assert!(text.contains("\"numeric_value\":-6.250"), "{text}");
}

/// REP-6
#[tokio::test]
async fn a_report_without_forms_gives_an_empty_array() {
    let service = Service::start().await;
    let response = service.get(&ALPHA, &path(inspections::WITHOUT_SLUG)).await;
    assert_eq!(
        response.assert_status(200).json(),
        json!({ "inspection_id": inspections::WITHOUT_SLUG, "forms": [] })
    );
}

/// REP-6. `rules::reports` shows that forms are hidden exactly as their report is.
#[tokio::test]
async fn forms_of_an_unknown_report_are_not_found() {
    let service = Service::start().await;
    let response = service.get(&ALPHA, &path(inspections::UNKNOWN)).await;
    response
        .assert_rejected(404, "not_found")
        .snapshot("forms_of_an_unknown_report_are_not_found");
}
