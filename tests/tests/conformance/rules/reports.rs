//! Visibility of reports in every operation.

use partner_api_tests::fixture::{inspections, organizations};
use partner_api_tests::operations::readable_parts;
use partner_api_tests::{ALPHA, BETA, Service};
use serde_json::json;

fn report(id: &str, part: &str) -> String {
    format!("/api/v1/partner/inspections/{id}{part}")
}

/// REP-1, REP-6
#[tokio::test]
async fn every_part_of_a_hidden_report_looks_like_that_of_an_unknown_one() {
    let service = Service::start().await;
    let not_granted = [
        inspections::OTHER_BRANCH,
        inspections::FULL_PUBLISHED,
        inspections::NONE_PUBLISHED,
    ];
    for part in readable_parts("inspections") {
        let unknown = service.get(&BETA, &report(inspections::UNKNOWN, part)).await;
        let message = unknown.assert_rejected(404, "not_found").message();
        for id in inspections::INVISIBLE.into_iter().chain(not_granted) {
            let response = service.get(&BETA, &report(id, part)).await;
            assert_eq!(
                response.assert_rejected(404, "not_found").message(),
                message,
                "{part} of {id}"
            );
        }
    }
}

/// REP-6
#[tokio::test]
async fn all_parts_of_a_visible_report_except_its_pdf_are_available_in_every_status() {
    let service = Service::start().await;
    for id in [inspections::PUBLISHED, inspections::ARCHIVED, inspections::CANCELLED] {
        for part in readable_parts("inspections").into_iter().filter(|part| *part != "/pdf") {
            service.get(&BETA, &report(id, part)).await.assert_status(200);
        }
    }
}

/// REP-7
#[tokio::test]
async fn photos_of_hidden_kinds_are_hidden_in_every_privacy_mode() {
    let service = Service::start().await;
    for mode in ["NONE", "MASKED", "FULL"] {
        let set = format!(
            "UPDATE organizations SET pii_mode = '{mode}' WHERE id = '{}'",
            organizations::FULL
        );
        service.db.execute(&set, &[]).await.unwrap();
        for (set, shown) in [
            ("kind = 'ODOMETER', show_in_report = true", 1),
            ("kind = 'REGISTRATION', show_in_report = true", 0),
            ("kind = 'OTOSICIL_PDF', show_in_report = true", 0),
            ("kind = 'ODOMETER', show_in_report = false", 0),
        ] {
            let set_photo = format!(
                "UPDATE photos SET {set} WHERE inspection_id = '{}'",
                inspections::FULL_PUBLISHED
            );
            service.db.execute(&set_photo, &[]).await.unwrap();
            let response = service
                .get(&ALPHA, &report(inspections::FULL_PUBLISHED, "/photos"))
                .await;
            let photos = response.assert_status(200).json()["photos"].clone();
            assert_eq!(photos.as_array().map(Vec::len), Some(shown), "{mode}: {set}");
        }
    }
}

/// REP-8
#[tokio::test]
async fn a_pdf_requires_a_published_report_a_slug_and_a_rendering() {
    let service = Service::start().await;
    let pdf = report(inspections::PUBLISHED, "/pdf");
    service.get(&ALPHA, &pdf).await.assert_status(200);
    let saved = service
        .rows(&format!(
            "SELECT public_slug, pdf_object_key, status FROM inspections WHERE id = '{}'",
            inspections::PUBLISHED
        ))
        .await;
    let saved = &saved[0];
    for (without, status, code) in [
        ("pdf_object_key = NULL", 503, "service_unavailable"),
        ("public_slug = NULL", 404, "not_found"),
        ("status = 'ARCHIVED'", 404, "not_found"),
    ] {
        let set = format!(
            "UPDATE inspections SET {without} WHERE id = '{}'",
            inspections::PUBLISHED
        );
        service.db.execute(&set, &[]).await.unwrap();
        service.get(&ALPHA, &pdf).await.assert_rejected(status, code);
        let put_back = "UPDATE inspections SET public_slug = $1, pdf_object_key = $2, status = $3 WHERE id = $4";
        let text = |column: &str| saved[column].as_str().unwrap().to_owned();
        let id: uuid::Uuid = inspections::PUBLISHED.parse().unwrap();
        service
            .db
            .execute(
                put_back,
                &[&text("public_slug"), &text("pdf_object_key"), &text("status"), &id],
            )
            .await
            .unwrap();
        service.get(&ALPHA, &pdf).await.assert_status(200);
    }
}

/// REP-3
#[tokio::test]
async fn a_status_filter_takes_one_value() {
    let service = Service::start().await;
    for query in [
        "status=published&status=archived",
        "status=published,archived",
        "status=published%20archived",
        "status[]=published",
        "status=DRAFT",
        "status=in_review",
    ] {
        service
            .get(&ALPHA, &format!("/api/v1/partner/inspections?{query}"))
            .await
            .assert_rejected(400, "invalid_request");
    }
}

/// PII-1
#[tokio::test]
async fn masked_fields_are_never_null() {
    let service = Service::start().await;
    for id in [
        inspections::NONE_PUBLISHED,
        inspections::PUBLISHED,
        inspections::FULL_PUBLISHED,
    ] {
        let set = "UPDATE vehicles SET plate = '', vin = ''";
        service.db.execute(set, &[]).await.unwrap();
        let vehicle = service.get(&ALPHA, &report(id, "")).await.json()["vehicle"].clone();
        for field in ["plate_masked", "vin_masked"] {
            assert!(vehicle[field].is_string(), "{field} of {}", json!(vehicle));
        }
    }
}
