//! The database's server is killed and restarted.

use std::collections::BTreeMap;

use futures::future::join_all;
use partner_api_tests::{ALPHA, Answer, Request, Service};
use serde_json::json;
use tokio::sync::mpsc;

use super::durable_cluster::DurableCluster;
use partner_api_tests::measurements::{MEASUREMENTS, package};

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// SVC-2
#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_outlives_a_killed_database() {
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
            post(package("M-2", "no plate")).nonce("of-a-refused-one-before-it"),
            400,
        ),
    ];
    for (request, status) in &requests {
        service.send(request.clone()).await.assert_status(*status);
    }
    cluster.kill().await;
    drop(service);
    cluster.restart().await;

    // A service that remembers nothing itself.
    let service = Service::start_on(cluster.config()).await;
    for (request, _) in requests {
        service.send(request).await.assert_refused(401, "replay_detected");
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
async fn a_service_goes_on_while_its_database_is_gone_and_when_it_is_back() {
    let mut cluster = DurableCluster::start().await;
    let service = Service::start_on(cluster.config()).await;
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    cluster.kill().await;

    let health = Request::get(HEALTH).signed_by(&ALPHA).nonce("health-without-database");
    service.send(health.clone()).await.assert_status(200);
    service
        .send(health.clone())
        .await
        .assert_refused(401, "replay_detected");
    let read = service.get(&ALPHA, ORGANIZATIONS).await;
    read.assert_refused(503, "service_unavailable");
    let write = service.measure(&ALPHA, package("M-1", "35 OPN 205")).await;
    write.assert_refused(503, "service_unavailable");
    for answer in [read, write] {
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
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
    service.send(health).await.assert_refused(401, "replay_detected");
}

/// Sends a package once more, and as often as it is told to: a database that has just come back may still be slow.
async fn again(service: &Service, external_id: &str) -> Answer {
    loop {
        let answer = service.measure(&ALPHA, package(external_id, "34 ABC 123")).await;
        if answer.status != 503 {
            return answer;
        }
    }
}

/// SVC-2
#[tokio::test(flavor = "multi_thread")]
async fn no_recorded_package_is_lost_when_the_database_is_killed_in_the_middle() {
    let mut cluster = DurableCluster::start().await;
    let service = Service::start_on(cluster.config()).await;
    let (answered, mut answers) = mpsc::unbounded_channel();
    let station = async |number: usize| {
        let mut recorded = BTreeMap::new();
        for measurement in 0.. {
            let external_id = format!("S{number}-{measurement}");
            let answer = service.measure(&ALPHA, package(&external_id, "34 ABC 123")).await;
            if answer.status != 201 {
                answer.assert_refused(503, "service_unavailable");
                return (recorded, external_id);
            }
            recorded.insert(external_id, answer.json()["data"]["measurement_id"].clone());
            let _ = answered.send(());
        }
        unreachable!("the database is killed");
    };
    let killer = async {
        for _ in 0..20 {
            answers.recv().await.unwrap();
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
            let answer = again(&service, &external_id).await;
            assert_eq!(
                answer.assert_status(200).json()["data"]["measurement_id"],
                id,
                "{external_id}"
            );
        }
        // Recorded or not: sent again, it is there once.
        let answer = again(&service, &uncertain).await;
        assert!(answer.status.is_success(), "{}", answer.status);
        let there = format!("measurements WHERE external_id = '{uncertain}'");
        let db = partner_api_tests::cluster::connect(&cluster.config()).await;
        let count: i64 = db
            .query_one(&format!("SELECT count(*) FROM {there}"), &[])
            .await
            .unwrap()
            .get(0);
        assert_eq!(count, 1);
    }
}
