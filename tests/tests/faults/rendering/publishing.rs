//! Published at once: what is drawn is what is served, and it is kept.

use partner_api::publishing::{MIME_TYPE, PublishError, Turn};
use partner_api_domain::pdf_key;
use partner_api_store::renderings::{self, Published};
use partner_api_tests::fixture::inspections::{DRAFT, PUBLISHED};
use partner_api_tests::{ALPHA, Service};

use super::{LEASE, ask, connection, id, object_key, pdf, rewrite, uploaded, worker};

/// Each PDF that the report came to name: its key, and the SHA-256 of what the storage holds under it.
async fn kept(service: &Service, report: &str) -> Vec<(String, Vec<u8>, i64)> {
    let sql =
        "SELECT object_key, sha256, size_bytes FROM published_pdfs WHERE inspection_id = $1 ORDER BY published_at";
    let rows = service.db.query(sql, &[&id(report)]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

/// REP-19
#[tokio::test]
async fn what_is_published_at_once_is_what_is_served_and_its_sha256_is_kept() {
    let service = Service::start().await;
    let worker = worker(&service);
    let before = kept(&service, PUBLISHED).await;
    rewrite(&service, PUBLISHED, "Hemen.").await;
    let pdf_of_it = worker.publish(id(PUBLISHED)).await.unwrap();
    let answer = service.get(&ALPHA, &pdf(PUBLISHED)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with(b"%PDF"));
    let sha256: Vec<u8> = service
        .db
        .query_one("SELECT sha256($1)", &[&answer.body.to_vec()])
        .await
        .unwrap()
        .get(0);
    assert_eq!(
        (&pdf_of_it.sha256, pdf_of_it.size_bytes),
        (&sha256, answer.body.len() as i64)
    );
    assert_eq!(pdf_of_it.object_key, object_key(&service, PUBLISHED).await);
    let now = kept(&service, PUBLISHED).await;
    assert_eq!(now[..before.len()], before, "what was kept stays");
    assert_eq!(
        now[before.len()..],
        [(pdf_of_it.object_key.clone(), sha256, pdf_of_it.size_bytes)]
    );
    // Nothing is drawn twice, and nothing is left in line.
    assert_eq!(worker.publish(id(PUBLISHED)).await.unwrap(), pdf_of_it);
    assert_eq!(kept(&service, PUBLISHED).await.len(), now.len());
    assert_eq!(worker.turn().await.unwrap(), Turn::Idle);
    // Nobody takes any of it away.
    for lost in [
        "DELETE FROM published_pdfs",
        "UPDATE published_pdfs SET size_bytes = 0",
        "TRUNCATE published_pdfs",
    ] {
        service.db.batch_execute(lost).await.unwrap_err();
    }
}

#[tokio::test]
async fn who_publishes_waits_for_the_renderer_that_has_the_report() {
    let service = Service::start().await;
    rewrite(&service, PUBLISHED, "Bekle.").await;
    ask(&service, PUBLISHED).await;
    let client = connection(&service).await;
    let claim = renderings::claim(&client, LEASE).await.unwrap().unwrap();
    let document = renderings::document(&client, &claim).await.unwrap().unwrap();
    let other = uploaded(&pdf_key::fresh(id(PUBLISHED), &document.fingerprint));
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
async fn a_report_that_is_not_published_has_no_pdf_to_publish() {
    let service = Service::start().await;
    let error = worker(&service).publish(id(DRAFT)).await.unwrap_err();
    assert!(matches!(error, PublishError::NotPublished), "{error}");
    assert_eq!(worker(&service).turn().await.unwrap(), Turn::Idle);
}
