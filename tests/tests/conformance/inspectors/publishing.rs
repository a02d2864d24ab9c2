//! The path from a device's measurement to the published report that a partner downloads.

use lopdf::Document;
use partner_api::publishing::{RenderOutcome, Worker};
use partner_api_tests::fixture::inspections::{DRAFT, OLD_DRAFT, PUBLISHED};
use partner_api_tests::{ALPHA, AYSE, Service};
use serde_json::json;

/// INS-6, INS-8, MEA-13, REP-8, REP-21
#[tokio::test]
async fn the_pdf_of_a_published_report_shows_the_device_values_and_is_served_unchanged() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let package = json!({
        "branch_code": "IZMIR-01", "plate": "35OLD209", "device_serial": "BT3000-77812",
        "measurements": { "BRAKE_FRONT_LEFT": 2.85, "BRAKE_FRONT_RIGHT": 2.11 }
    });
    let sent = service.measure(&ALPHA, package.to_string()).await;
    let measurement = sent.json()["data"]["measurement_id"].as_str().unwrap().to_owned();
    let apply = format!("/inspector/v1/reports/{OLD_DRAFT}/measurements/{measurement}");
    let applied = inspector.act(&service, "PUT", &apply).await;
    applied.assert_status(200);
    // Other reports are queued, but nobody waits for them.
    service
        .db
        .execute(
            "SELECT enqueue_rendering($1::text::uuid, NULL, 0, false)",
            &[&PUBLISHED],
        )
        .await
        .unwrap();
    inspector.answer_required_points(&service, OLD_DRAFT).await;
    let photo = format!(
        r#"UPDATE form_templates SET photo_kinds = '[{{"code": "WHEEL", "label": "Sol ön jant"}}]';
           INSERT INTO photos (id, organization_id, inspection_id, position, kind, object_key, mime_type, size_bytes)
           SELECT gen_random_uuid(), organization_id, id, 1, 'WHEEL', 'photos/1.jpg', 'image/jpeg', 1
           FROM inspections WHERE id = '{OLD_DRAFT}'"#
    );
    service.db.batch_execute(&photo).await.unwrap();
    let published = inspector.move_to(&service, OLD_DRAFT, "PUBLISHED", None).await;
    published.assert_status(200);
    assert_eq!(published.json()["data"]["pdf_sha256"], json!(null), "not rendered yet");

    let worker = Worker::new(service.pool().clone(), service.context().storage.clone(), 1);
    let rendered = RenderOutcome::Rendered {
        report: OLD_DRAFT.parse().unwrap(),
        is_requested: true,
    };
    assert_eq!(worker.render_next().await.unwrap(), rendered);
    let report = inspector.report(&service, OLD_DRAFT).await;
    let pdf = service
        .get(&ALPHA, &format!("/api/v1/partner/inspections/{OLD_DRAFT}/pdf"))
        .await;
    pdf.assert_status(200);
    let digest = "SELECT encode(sha256($1), 'hex')";
    let served: String = service.db.query_one(digest, &[&&pdf.body[..]]).await.unwrap().get(0);
    assert_eq!(report["pdf_sha256"], json!(served));

    let document = Document::load_mem(&pdf.body).unwrap();
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    let text = document.extract_text(&pages).unwrap();
    let text: String = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '\u{200b}')
        .collect();
    for shown in ["2,85", "2,11", "Solönjant"] {
        assert!(text.contains(shown), "no {shown} in {text}");
    }
    // The other reports are unchanged.
    assert_eq!(inspector.report(&service, DRAFT).await["status"], "DRAFT");
}
