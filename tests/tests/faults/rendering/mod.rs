//! Failures of renderers, and several renderers at once.

mod ended;
mod line;
mod publishing;

use std::time::Duration;

use partner_api::publishing::{RenderOutcome, Worker};
use partner_api_store::connection::Connection;
use partner_api_store::renderings::StoredPdf;
use partner_api_tests::{ALPHA, Service};
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
