//! Two services over one database are one.

use futures::future::join_all;
use partner_api_tests::{ALPHA, DELTA, Request, Service};

use crate::measurements::state::{MEASUREMENTS, package};

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// KEY-6, SVC-3
#[tokio::test]
async fn a_nonce_of_a_write_is_used_up_for_every_replica() {
    let service = Service::start().await;
    let replica = service.replica().await;
    for (number, (external_id, plate, status)) in [
        ("M-1", "35 OPN 205", 201),
        ("M-1", "35 OPN 205", 200),
        ("M-2", "no plate", 400),
    ]
    .into_iter()
    .enumerate()
    {
        let request = Request::post(MEASUREMENTS, package(external_id, plate))
            .signed_by(&ALPHA)
            .nonce(&format!("of-a-write-number-{number}"));
        service.send(request.clone()).await.assert_status(status);
        replica.send(request).await.assert_refused(401, "replay_detected");
    }
}

/// KEY-9
#[tokio::test]
async fn a_nonce_of_health_is_recorded_behind_its_answer() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let nonce = "recorded-behind-the-answer";
    service
        .send(Request::get(HEALTH).signed_by(&ALPHA).nonce(nonce))
        .await
        .assert_status(200);
    service
        .within_five_seconds(async || service.count("used_nonces").await >= 1)
        .await;
    let elsewhere = Request::get(ORGANIZATIONS).signed_by(&ALPHA).nonce(nonce);
    replica.send(elsewhere).await.assert_refused(401, "replay_detected");
}

/// LIM-1, SVC-3
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_exact_among_reads_and_writes_of_two_replicas() {
    let first = Service::start().await;
    let limit = format!("UPDATE api_keys SET rate_limit = 10 WHERE key_id = '{}'", DELTA.id);
    first.db.execute(&limit, &[]).await.unwrap();
    let (service, replica) = (first.replica().await, first.replica().await);
    let send = async |number: usize| {
        let service = if number.is_multiple_of(2) { &service } else { &replica };
        if number.is_multiple_of(3) {
            let body = package(&format!("M-{number}"), "34 ABC 123").replace("IZMIR-01", "IST-02");
            service.measure(&DELTA, body).await
        } else {
            service.get(&DELTA, ORGANIZATIONS).await
        }
    };
    let answers = join_all((0..30).map(send)).await;
    let passed = answers.iter().filter(|answer| answer.status.is_success()).count();
    let refused = answers
        .iter()
        .filter(|answer| answer.code().as_deref() == Some("rate_limited"))
        .count();
    assert_eq!((passed, refused), (10, 20));
    let recorded = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(service.count("measurements").await, i64::try_from(recorded).unwrap());
}
