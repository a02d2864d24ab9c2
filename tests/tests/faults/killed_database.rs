//! The database server is killed and restarted.

use std::collections::BTreeMap;

use futures::future::join_all;
use partner_api_tests::{ALPHA, Request, Service, TestResponse};
use serde_json::json;
use tokio::sync::mpsc;

use super::durable_cluster::DurableCluster;
use partner_api_tests::measurements::{MEASUREMENTS, package};

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// SVC-2
#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_a_killed_database() {
    let mut cluster = DurableCluster::start().await;
    let service = Service::start_on(cluster.config()).await;
    let post = |body: String| Request::post(MEASUREMENTS, body).signed_by(&ALPHA);
    let requests = [
        (
            Request::get(ORGANIZATIONS)
                .signed_by(&ALPHA)
                .nonce("of-a-read-before-the-kill"),
            200,
        ),
        (
            post(package("M-1", "35 OPN 205")).nonce("of-a-write-before-the-kill"),
            201,
        ),
        (
            post(package("M-2", "no plate")).nonce("of-a-rejected-one-before-it"),
            400,
        ),
    ];
    for (request, status) in &requests {
        service.send(request.clone()).await.assert_status(*status);
    }
    cluster.kill().await;
    drop(service);
    cluster.restart().await;

    // A new service without anything in memory.
    let service = Service::start_on(cluster.config()).await;
    for (request, _) in requests {
        service.send(request).await.assert_rejected(401, "replay_detected");
    }
    let records = service
        .rows("SELECT external_id, status, convert_from(raw, 'UTF8') AS raw FROM measurements")
        .await;
    let expected = json!([{ "external_id": "M-1", "status": "APPLIED", "raw": package("M-1", "35 OPN 205") }]);
    assert_eq!(records, expected);
    let written = "inspection_form_answers WHERE by_device AND numeric_value = 2.85 \
                   AND written_at > now() - interval '1 hour'";
    assert_eq!(service.count(written).await, 1);
    service
        .measure(&ALPHA, package("M-1", "35 OPN 205"))
        .await
        .assert_status(200);
}

/// REQ-12, KEY-9
#[tokio::test(flavor = "multi_thread")]
async fn a_service_survives_the_loss_of_its_database_and_recovers() {
    let mut cluster = DurableCluster::start().await;
    let service = Service::start_on(cluster.config()).await;
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    cluster.kill().await;

    let health = Request::get(HEALTH).signed_by(&ALPHA).nonce("health-without-database");
    service.send(health.clone()).await.assert_status(200);
    service
        .send(health.clone())
        .await
        .assert_rejected(401, "replay_detected");
    let read = service.get(&ALPHA, ORGANIZATIONS).await;
    read.assert_rejected(503, "service_unavailable");
    let write = service.measure(&ALPHA, package("M-1", "35 OPN 205")).await;
    write.assert_rejected(503, "service_unavailable");
    for response in [read, write] {
        let seconds: u64 = response.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds} s");
    }

    cluster.restart().await;
    service
        .eventually(async || service.get(&ALPHA, ORGANIZATIONS).await.status == 200)
        .await;
    service
        .measure(&ALPHA, package("M-1", "35 OPN 205"))
        .await
        .assert_status(201);
    service.send(health).await.assert_rejected(401, "replay_detected");
}

/// Sends a package again until the status is not 503, because a database that has just restarted may be slow.
async fn retry(service: &Service, external_id: &str) -> TestResponse {
    loop {
        let response = service.measure(&ALPHA, package(external_id, "34 ABC 123")).await;
        if response.status != 503 {
            return response;
        }
    }
}

/// SVC-2
#[tokio::test(flavor = "multi_thread")]
async fn no_recorded_package_is_lost_when_the_database_is_killed_under_load() {
    let mut cluster = DurableCluster::start().await;
    let service = Service::start_on(cluster.config()).await;
    let (answered, mut responses) = mpsc::unbounded_channel();
    let station = async |number: usize| {
        let mut recorded = BTreeMap::new();
        for measurement in 0.. {
            let external_id = format!("S{number}-{measurement}");
            let response = service.measure(&ALPHA, package(&external_id, "34 ABC 123")).await;
            if response.status != 201 {
                response.assert_rejected(503, "service_unavailable");
                return (recorded, external_id);
            }
            recorded.insert(external_id, response.json()["data"]["measurement_id"].clone());
            let _ = answered.send(());
        }
        unreachable!("the database is killed");
    };
    let killer = async {
        for _ in 0..20 {
            responses.recv().await.unwrap();
        }
        cluster.kill().await;
    };
    let (stations, ()) = futures::join!(join_all((0..4).map(station)), killer);
    cluster.restart().await;
    service
        .eventually(async || service.get(&ALPHA, ORGANIZATIONS).await.status == 200)
        .await;
    for (recorded, uncertain) in stations {
        assert!(!recorded.is_empty());
        for (external_id, id) in recorded {
            let response = retry(&service, &external_id).await;
            assert_eq!(
                response.assert_status(200).json()["data"]["measurement_id"],
                id,
                "{external_id}"
            );
        }
        // Whether it was recorded or not, after a retry it is recorded once.
        let response = retry(&service, &uncertain).await;
        assert!(response.status.is_success(), "{}", response.status);
        let recorded = format!("measurements WHERE external_id = '{uncertain}'");
        let db = partner_api_tests::cluster::connect(&cluster.config()).await;
        let count: i64 = db
            .query_one(&format!("SELECT count(*) FROM {recorded}"), &[])
            .await
            .unwrap()
            .get(0);
        assert_eq!(count, 1);
    }
}
