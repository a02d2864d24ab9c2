use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, BETA, GAMMA, Service};

fn path(id: &str) -> String {
    format!("/api/v1/partner/inspections/{id}")
}

/// PII-1, REP-12, REQ-15
#[tokio::test]
async fn a_report_is_shown_with_masked_personal_data() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .get_inspection()
        .id(inspections::PUBLISHED)
        .send()
        .await
        .unwrap();
    service.last().snapshot("a_report_is_shown_with_masked_personal_data");
}

/// PII-1
#[tokio::test]
async fn a_report_is_shown_without_personal_data() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .get_inspection()
        .id(inspections::NONE_PUBLISHED)
        .send()
        .await
        .unwrap();
    service.last().snapshot("a_report_is_shown_without_personal_data");
}

/// PII-1
#[tokio::test]
async fn a_report_is_shown_with_plain_personal_data() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .get_inspection()
        .id(inspections::FULL_PUBLISHED)
        .send()
        .await
        .unwrap();
    let response = service.last();
    response.snapshot("a_report_is_shown_with_plain_personal_data");
    assert_eq!(response.json()["vehicle"]["plate_masked"], "34 FUL 301");
    assert_eq!(response.json()["summary"], "Sahibi 0534 333 03 01.");
}

/// REP-1
#[tokio::test]
async fn archived_and_cancelled_reports_are_shown() {
    let service = Service::start().await;
    for (id, status) in [
        (inspections::ARCHIVED, "archived"),
        (inspections::CANCELLED, "cancelled"),
    ] {
        let response = service.get(&ALPHA, &path(id)).await;
        assert_eq!(response.assert_status(200).json()["status"], status);
    }
}

/// REP-1, ERR-6
#[tokio::test]
async fn a_hidden_report_looks_like_an_unknown_one() {
    let service = Service::start().await;
    let unknown = service.get(&ALPHA, &path(inspections::UNKNOWN)).await;
    unknown
        .assert_rejected(404, "not_found")
        .snapshot("an_unknown_report_is_not_found");
    for id in inspections::INVISIBLE {
        let hidden = service.get(&ALPHA, &path(id)).await;
        assert_eq!(
            hidden.assert_rejected(404, "not_found").message(),
            unknown.message(),
            "{id}"
        );
    }
    for (key, id) in [
        (&BETA, inspections::OTHER_BRANCH),
        (&BETA, inspections::FULL_PUBLISHED),
        (&GAMMA, inspections::PUBLISHED),
    ] {
        let hidden = service.get(key, &path(id)).await;
        assert_eq!(
            hidden.assert_rejected(404, "not_found").message(),
            unknown.message(),
            "{id}"
        );
    }
}

#[tokio::test]
async fn a_malformed_id_is_not_found() {
    let service = Service::start().await;
    for id in [
        "1",
        "IZM-2026-000201",
        "x'--",
        &inspections::PUBLISHED.to_uppercase(),
        &inspections::PUBLISHED.replace('-', ""),
    ] {
        service.get(&ALPHA, &path(id)).await.assert_rejected(404, "not_found");
    }
}

/// REP-12
#[tokio::test]
async fn the_links_of_a_report_lead_to_its_parts() {
    let service = Service::start().await;
    let links = service.get(&ALPHA, &path(inspections::PUBLISHED)).await.json()["links"].clone();
    for part in ["forms", "photos", "pdf"] {
        let link = links[part].as_str().unwrap();
        let target = link.strip_prefix(&service.base_url).unwrap();
        service.get(&ALPHA, target).await.assert_status(200);
    }
}

/// REQ-16
#[tokio::test]
async fn a_read_writes_only_its_nonce() {
    let service = Service::start().await;
    service
        .get(&ALPHA, &path(inspections::PUBLISHED))
        .await
        .assert_status(200);
    assert_eq!(service.used_nonces().await, 1);
    assert_eq!(service.count("inspection_form_answer_history").await, 0);
    assert_eq!(service.count("measurements").await, 0);
}
