//! Immediate publishing: the rendered PDF is served and kept.

use partner_api::publishing::{MIME_TYPE, PublishError, RenderOutcome};
use partner_api_domain::pdf_key;
use partner_api_store::renderings::{self, Published};
use partner_api_tests::fixture::inspections::{DRAFT, PUBLISHED};
use partner_api_tests::{ALPHA, Service};

use super::{LEASE, connection, id, object_key, pdf, request_rendering, rewrite, uploaded, worker};

/// Each PDF that the report has referenced: its key, and the SHA-256 of the stored object.
async fn published_pdfs(service: &Service, report: &str) -> Vec<(String, Vec<u8>, i64)> {
    let sql =
        "SELECT object_key, sha256, size_bytes FROM published_pdfs WHERE inspection_id = $1 ORDER BY published_at";
    let rows = service.db.query(sql, &[&id(report)]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

/// REP-19
#[tokio::test]
async fn an_immediately_published_pdf_is_served_unchanged_and_its_sha256_is_kept() {
    let service = Service::start().await;
    let worker = worker(&service);
    let before = published_pdfs(&service, PUBLISHED).await;
    rewrite(&service, PUBLISHED, "Hemen.").await;
    let published = worker.publish(id(PUBLISHED)).await.unwrap();
    let response = service.get(&ALPHA, &pdf(PUBLISHED)).await;
    assert_eq!(response.status, 200);
    assert!(response.body.starts_with(b"%PDF"));
    let sha256: Vec<u8> = service
        .db
        .query_one("SELECT sha256($1)", &[&response.body.to_vec()])
        .await
        .unwrap()
        .get(0);
    assert_eq!(
        (&published.sha256, published.size_bytes),
        (&sha256, response.body.len() as i64)
    );
    assert_eq!(published.object_key, object_key(&service, PUBLISHED).await);
    let now = published_pdfs(&service, PUBLISHED).await;
    assert_eq!(now[..before.len()], before, "earlier PDFs are kept");
    assert_eq!(
        now[before.len()..],
        [(published.object_key.clone(), sha256, published.size_bytes)]
    );
    // Nothing is rendered twice, and the queue is empty.
    assert_eq!(worker.publish(id(PUBLISHED)).await.unwrap(), published);
    assert_eq!(published_pdfs(&service, PUBLISHED).await.len(), now.len());
    assert_eq!(worker.render_next().await.unwrap(), RenderOutcome::Idle);
    // The rows cannot be changed or deleted.
    for lost in [
        "DELETE FROM published_pdfs",
        "UPDATE published_pdfs SET size_bytes = 0",
        "TRUNCATE published_pdfs",
    ] {
        service.db.batch_execute(lost).await.unwrap_err();
    }
}

#[tokio::test]
async fn publishing_waits_for_the_renderer_that_has_the_report() {
    let service = Service::start().await;
    rewrite(&service, PUBLISHED, "Bekle.").await;
    request_rendering(&service, PUBLISHED).await;
    let client = connection(&service).await;
    let claim = renderings::claim(&client, LEASE).await.unwrap().unwrap();
    let document = renderings::document(&client, &claim).await.unwrap().unwrap();
    let other = uploaded(&pdf_key::new_key(id(PUBLISHED), &document.fingerprint));
    let publisher = worker(&service);
    let waits = tokio::spawn(async move { publisher.publish(id(PUBLISHED)).await });
    renderings::record(&client, &claim, &other.object_key).await.unwrap();
    let storage = &service.context().storage;
    storage.put(&other.object_key, "x".into(), MIME_TYPE).await.unwrap();
    assert!(
        renderings::switch(&client, &claim, &other, &document.fingerprint)
            .await
            .unwrap()
    );
    assert_eq!(waits.await.unwrap().unwrap(), other);
    assert_eq!(
        renderings::published(&client, id(PUBLISHED)).await.unwrap(),
        Published::Now(other)
    );
}

#[tokio::test]
async fn an_unpublished_report_has_no_pdf_to_publish() {
    let service = Service::start().await;
    let error = worker(&service).publish(id(DRAFT)).await.unwrap_err();
    assert!(matches!(error, PublishError::NotPublished), "{error}");
    assert_eq!(worker(&service).render_next().await.unwrap(), RenderOutcome::Idle);
}
