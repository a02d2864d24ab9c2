//! Failures of renderers, several renderers at once, and immediate publishing.

mod line;

use std::net::Ipv4Addr;
use std::time::Duration;

use partner_api::publishing::{MIME_TYPE, PublishError, RenderOutcome, Worker};
use partner_api::storage::{S3Settings, Storage};
use partner_api_domain::pdf_key;
use partner_api_store::connection::Connection;
use partner_api_store::renderings::{self, Published, StoredPdf};
use partner_api_tests::fixture::inspections::{DRAFT, PUBLISHED};
use partner_api_tests::{ALPHA, Service};
use tokio::net::TcpListener;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(120);

fn pdf(report: &str) -> String {
    format!("/api/v1/partner/inspections/{report}/pdf")
}

fn id(report: &str) -> Uuid {
    report.parse().unwrap()
}

fn worker(service: &Service) -> Worker {
    Worker::new(service.pool().clone(), service.context().storage.clone(), 1)
}

async fn connection(service: &Service) -> Connection {
    Connection::take(service.pool(), Duration::from_secs(20)).await.unwrap()
}

/// Makes the stored PDF stale.
async fn rewrite(service: &Service, report: &str, summary: &str) {
    let sql = "UPDATE inspections SET summary = $2 WHERE id = $1";
    assert_eq!(service.db.execute(sql, &[&id(report), &summary]).await.unwrap(), 1);
}

async fn request_rendering(service: &Service, report: &str) {
    service
        .get(&ALPHA, &pdf(report))
        .await
        .assert_rejected(503, "service_unavailable");
}

fn rendered(report: &str) -> RenderOutcome {
    RenderOutcome::Rendered {
        report: id(report),
        is_requested: true,
    }
}

async fn object_key(service: &Service, report: &str) -> String {
    let sql = "SELECT pdf_object_key FROM inspections WHERE id = $1";
    service.db.query_one(sql, &[&id(report)]).await.unwrap().get(0)
}

/// The database's clock moves past every lease and backoff.
async fn expire_leases(service: &Service) {
    let sql = "UPDATE report_renderings SET due_at = now()";
    service.db.execute(sql, &[]).await.unwrap();
}

/// A PDF under this key.
fn uploaded(key: &str) -> StoredPdf {
    StoredPdf {
        object_key: key.to_owned(),
        sha256: vec![7; 32],
        size_bytes: 1,
    }
}

/// A store that accepts connections and never responds. It exists as long as the listener.
async fn hung_store() -> (Storage, TcpListener) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let settings = S3Settings {
        bucket: "reports".to_owned(),
        region: Some("eu-central-1".to_owned()),
        endpoint: Some(format!("http://{}", listener.local_addr().unwrap())),
        access_key_id: Some("AKIATEST".to_owned()),
        secret_access_key: Some("a secret of the test".to_owned().into()),
        ..S3Settings::default()
    };
    (Storage::s3(&settings).unwrap(), listener)
}

/// A renderer in the middle of its upload, which does not come to an end; the report has no photos to read before.
async fn renderer_stuck_in_upload(service: &Service) -> (tokio::task::JoinHandle<()>, TcpListener) {
    service.db.execute("DELETE FROM photos", &[]).await.unwrap();
    request_rendering(service, PUBLISHED).await;
    let (storage, listener) = hung_store().await;
    let worker = Worker::new(service.pool().clone(), storage, 1);
    let task = tokio::spawn(async move { drop(worker.render_next().await) });
    let (_socket, _) = listener.accept().await.unwrap();
    assert_eq!(
        service.count("orphaned_objects").await,
        1,
        "an object is noted before it is uploaded"
    );
    (task, listener)
}

#[tokio::test]
async fn the_work_of_a_killed_renderer_is_resumed_by_another_replica() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let (task, _listener) = renderer_stuck_in_upload(&service).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(
        worker(&replica).render_next().await.unwrap(),
        RenderOutcome::Idle,
        "its lease still runs"
    );
    expire_leases(&service).await;
    assert_eq!(worker(&replica).render_next().await.unwrap(), rendered(PUBLISHED));
    replica.get(&ALPHA, &pdf(PUBLISHED)).await.assert_status(200);
    // Its object is orphaned, so it stays recorded beside the replaced one.
    assert_eq!(service.count("orphaned_objects").await, 2);
}

#[tokio::test]
async fn a_stopped_renderer_releases_its_work() {
    let service = Service::start().await;
    service.db.execute("DELETE FROM photos", &[]).await.unwrap();
    request_rendering(&service, PUBLISHED).await;
    let (storage, listener) = hung_store().await;
    let stopped = Worker::new(service.pool().clone(), storage, 1);
    let at_its_upload = async { drop(listener.accept().await.unwrap()) };
    let turn = stopped.render_next_until(at_its_upload).await.unwrap();
    assert_eq!(turn, RenderOutcome::Stopped(id(PUBLISHED)));
    assert_eq!(
        service
            .count("report_renderings WHERE claim IS NULL AND attempts = 0")
            .await,
        1
    );
    assert_eq!(worker(&service).render_next().await.unwrap(), rendered(PUBLISHED));
}

#[tokio::test]
async fn a_suspended_renderer_that_resumes_changes_nothing() {
    let service = Service::start().await;
    rewrite(&service, PUBLISHED, "Yeniden.").await;
    request_rendering(&service, PUBLISHED).await;
    let client = connection(&service).await;
    let claimed = renderings::claim(&client, LEASE).await.unwrap().unwrap();
    let document = renderings::document(&client, &claimed).await.unwrap().unwrap();
    let late = format!("reports/{PUBLISHED}/late.pdf");
    renderings::record(&client, &claimed, &late).await.unwrap();
    expire_leases(&service).await;
    let other = renderings::claim(&client, LEASE).await.unwrap().unwrap();

    // While the other renderer is working, and after it.
    assert!(
        !renderings::switch(&client, &claimed, &uploaded(&late), &document.fingerprint)
            .await
            .unwrap()
    );
    assert!(
        !renderings::postpone(&client, &claimed, Duration::ZERO, 0)
            .await
            .unwrap()
    );
    let key = format!("reports/{PUBLISHED}/other.pdf");
    renderings::record(&client, &other, &key).await.unwrap();
    assert!(
        renderings::switch(&client, &other, &uploaded(&key), &document.fingerprint)
            .await
            .unwrap()
    );
    assert!(
        !renderings::switch(&client, &claimed, &uploaded(&late), &document.fingerprint)
            .await
            .unwrap()
    );
    assert_eq!(object_key(&service, PUBLISHED).await, key);
}

#[tokio::test]
async fn a_report_that_changes_while_it_is_rendered_is_rendered_again() {
    let service = Service::start().await;
    rewrite(&service, PUBLISHED, "Bir.").await;
    request_rendering(&service, PUBLISHED).await;
    let before = object_key(&service, PUBLISHED).await;
    let client = connection(&service).await;
    let claim = renderings::claim(&client, LEASE).await.unwrap().unwrap();
    let document = renderings::document(&client, &claim).await.unwrap().unwrap();
    let key = format!("reports/{PUBLISHED}/drawn.pdf");
    renderings::record(&client, &claim, &key).await.unwrap();

    // A transaction is changing the report. The renderer does not wait for it and replaces nothing.
    let editor = partner_api_tests::cluster::connect(&service.database()).await;
    let edit = format!("BEGIN; UPDATE inspections SET summary = 'İki.' WHERE id = '{PUBLISHED}'");
    editor.batch_execute(&edit).await.unwrap();
    assert!(
        !renderings::switch(&client, &claim, &uploaded(&key), &document.fingerprint)
            .await
            .unwrap()
    );
    editor.batch_execute("COMMIT").await.unwrap();
    assert!(
        !renderings::switch(&client, &claim, &uploaded(&key), &document.fingerprint)
            .await
            .unwrap()
    );
    assert_eq!(object_key(&service, PUBLISHED).await, before);
    assert!(renderings::postpone(&client, &claim, Duration::ZERO, 0).await.unwrap());
    drop(client);

    request_rendering(&service, PUBLISHED).await;
    assert_eq!(worker(&service).render_next().await.unwrap(), rendered(PUBLISHED));
    service.get(&ALPHA, &pdf(PUBLISHED)).await.assert_status(200);
}

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
