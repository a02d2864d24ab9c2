//! The public page of a report, to which the QR code of its PDF leads.

use std::time::Duration;

use partner_api_store::connection::Connection;
use partner_api_store::public_reports;
use partner_api_tests::fixture::inspections::PUBLISHED;
use partner_api_tests::{AYSE, Request, Service, TestResponse};

async fn slug(service: &Service) -> String {
    let query = format!("SELECT public_slug FROM inspections WHERE id = '{PUBLISHED}'");
    service.db.query_one(&query, &[]).await.unwrap().get(0)
}

async fn page(service: &Service, slug: &str) -> TestResponse {
    let request = Request::get(&format!("/r/{slug}")).header("accept", "text/html,*/*");
    service.send(request).await
}

/// REP-22
#[tokio::test]
async fn the_page_of_a_published_report_shows_its_number_date_digest_and_nothing_personal() {
    let service = Service::start().await;
    let slug = slug(&service).await;
    let stored = service
        .rows(&format!(
            "SELECT i.report_number, v.plate, i.snapshot_vin, i.summary, encode(d.sha256, 'hex') AS sha256
             FROM inspections i JOIN vehicles v ON v.id = i.vehicle_id JOIN published_pdfs d ON d.object_key = i.pdf_object_key
             WHERE i.id = '{PUBLISHED}'"
        ))
        .await;
    // The plate is masked in every mode, also where partners see it whole.
    for (mode, plate) in [("FULL", "35***01"), ("MASKED", "35***01"), ("NONE", "***")] {
        let set = format!("UPDATE organizations SET pii_mode = '{mode}'");
        service.db.batch_execute(&set).await.unwrap();
        let response = page(&service, &slug).await;
        response.assert_status(200);
        let text = String::from_utf8(response.body.to_vec()).unwrap();
        assert!(text.contains(stored[0]["report_number"].as_str().unwrap()), "{text}");
        assert!(text.contains(&format!("<dd>{plate}</dd>")), "{mode}: {text}");
        for personal in ["plate", "snapshot_vin", "summary"] {
            let personal = stored[0][personal].as_str().unwrap();
            assert!(
                personal.is_empty() || !text.contains(personal),
                "{mode}: {personal} in {text}"
            );
        }
        // The PDF was rendered in the mode MASKED.
        let digest = stored[0]["sha256"].as_str().unwrap();
        assert_eq!(
            text.contains(&format!("data-current=\"{digest}\"")),
            mode == "MASKED",
            "{text}"
        );
        assert_eq!(
            text.contains(&format!("data-earlier=\"{digest}\"")),
            mode != "MASKED",
            "{text}"
        );
    }
}

/// REP-22
#[tokio::test]
async fn the_page_may_be_cached_for_a_minute_and_restricts_its_scripts() {
    let service = Service::start().await;
    let slug = slug(&service).await;
    let response = page(&service, &slug).await;
    assert_eq!(response.header("cache-control"), Some("public, max-age=60"));
    let policy = response.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"),
        "{policy}"
    );
    let tag = response.header("etag").unwrap().to_owned();
    let again = Request::get(&format!("/r/{slug}")).header("if-none-match", &tag);
    assert_eq!(service.send(again).await.status.as_u16(), 304);
    for (asset, kind) in [
        ("verify.js", "text/javascript; charset=utf-8"),
        ("verify.css", "text/css; charset=utf-8"),
    ] {
        let response = service.send(Request::get(&format!("/r/assets/{asset}"))).await;
        assert_eq!(response.assert_status(200).header("content-type"), Some(kind));
    }
    let english = Request::get(&format!("/r/{slug}")).header("accept-language", "en-GB,en");
    let text = String::from_utf8(service.send(english).await.body.to_vec()).unwrap();
    assert!(text.contains("<html lang=\"en\">"), "{text}");
    let write = Request::post(&format!("/r/{slug}"), "");
    service.send(write).await.assert_rejected(405, "method_not_allowed");
}

/// REP-22, INS-14
#[tokio::test]
async fn a_report_without_a_publication_or_under_revision_has_no_page() {
    let service = Service::start().await;
    let slug = slug(&service).await;
    let inspector = service.inspector(&AYSE).await;
    page(&service, &slug).await.assert_status(200);
    inspector
        .move_to(&service, PUBLISHED, "REVISION_REQUESTED", Some("Kilometre yanlış."))
        .await
        .assert_status(200);
    let missing = page(&service, &slug).await;
    missing.assert_status(404);
    assert_eq!(missing.header("cache-control"), Some("no-store"));
    assert_eq!(missing.header("content-type"), Some("text/html; charset=utf-8"));
    // A program gets the error envelope, and the same for a slug that never existed.
    for path in [
        format!("/r/{slug}"),
        "/r/unknown".to_owned(),
        "/r/assets/other.js".to_owned(),
    ] {
        service
            .send(Request::get(&path))
            .await
            .assert_rejected(404, "not_found");
    }
}

/// REP-22
#[tokio::test]
async fn an_address_may_send_sixty_requests_per_minute() {
    let service = Service::start().await;
    for _ in 0..60 {
        service.send(Request::get("/r/unknown")).await.assert_status(404);
    }
    let response = service.send(Request::get("/r/unknown")).await;
    response.assert_rejected(429, "ip_rate_limited");
    assert!(response.header("retry-after").is_some());
    // Other paths have their own limit.
    service.send(Request::get("/openapi.yaml")).await.assert_status(200);
}

/// REP-20
#[tokio::test]
async fn the_services_own_pages_are_the_default_unless_the_operator_has_chosen() {
    let service = Service::start().await;
    let client = Connection::take(service.pool(), Duration::from_secs(20)).await.unwrap();
    let stored = async || {
        let row = service
            .db
            .query_one("SELECT public_report_url FROM report_settings", &[])
            .await;
        row.unwrap().get::<_, Option<String>>(0)
    };
    let own = "https://api.example.org/r/{slug}";
    assert!(public_reports::set_default_address(&client, own).await.unwrap());
    assert_eq!(stored().await.as_deref(), Some(own));
    for chosen in [Some("https://reports.example/{slug}"), None] {
        assert!(public_reports::set_address(&client, chosen).await.unwrap());
        assert!(!public_reports::set_default_address(&client, own).await.unwrap());
        assert_eq!(stored().await.as_deref(), Some(chosen.unwrap_or_default()));
    }
}
