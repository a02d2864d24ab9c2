//! Nonces: each works once for its key, in every replica.

use futures::{StreamExt, stream};
use partner_api_tests::fixture::ALPHA_ROTATED;
use partner_api_tests::measurements::MEASUREMENTS;
use partner_api_tests::{ALPHA, BETA, Request, Service, TestResponse};

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";
const HEALTH: &str = "/api/v1/partner/health";

/// KEY-6, ERR-5
#[tokio::test]
async fn a_nonce_works_once() {
    let service = Service::start().await;
    let request = Request::get(ORGANIZATIONS)
        .signed_by(&ALPHA)
        .nonce("used-for-the-first-time");
    service.send(request.clone()).await.assert_status(200);
    let response = service.send(request).await;
    response.assert_rejected(401, "replay_detected");
}

/// KEY-7
#[tokio::test]
async fn a_nonce_is_consumed_whatever_the_response() {
    let service = Service::start().await;
    for (number, (target, status)) in [
        (HEALTH, 200),
        ("/api/v1/partner/nowhere", 404),
        ("/api/v1/partner/inspections?limit=0", 400),
    ]
    .into_iter()
    .enumerate()
    {
        let nonce = format!("consumed-by-request-{number}");
        service
            .send(Request::get(target).signed_by(&ALPHA).nonce(&nonce))
            .await
            .assert_status(status);
        service
            .send(Request::get(ORGANIZATIONS).signed_by(&ALPHA).nonce(&nonce))
            .await
            .assert_rejected(401, "replay_detected");
    }
}

/// KEY-6, KEY-12
#[tokio::test]
async fn a_nonce_belongs_to_its_key() {
    let service = Service::start().await;
    for key in [&ALPHA, &BETA, &ALPHA_ROTATED] {
        service
            .send(
                Request::get(ORGANIZATIONS)
                    .signed_by(key)
                    .nonce("the-same-for-each-key"),
            )
            .await
            .assert_status(200);
    }
}

/// KEY-6, SVC-3
#[tokio::test(flavor = "multi_thread")]
async fn of_100_concurrent_uses_in_two_replicas_exactly_one_passes() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let package = r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123","measurements":{"BRAKE_FRONT_LEFT":2.85}}"#;
    for (number, (request, status, replicas)) in [
        (Request::get(ORGANIZATIONS), 200, 2),
        // Health records its nonce after the response, so the other replica may accept the nonce in the meantime.
        (Request::get(HEALTH), 200, 1),
        (Request::post(MEASUREMENTS, package), 201, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let request = request.signed_by(&ALPHA).nonce(&format!("100-uses-of-nonce-{number}"));
        let send = |number: usize| {
            let service = [&service, &replica][number % replicas];
            service.send(request.clone())
        };
        // Not all at once: a busy machine would respond to some of them with 503.
        let responses: Vec<TestResponse> = stream::iter((0..100).map(send)).buffer_unordered(16).collect().await;
        let passed = responses.iter().filter(|response| response.status == status).count();
        let replayed = responses
            .iter()
            .filter(|response| response.code().as_deref() == Some("replay_detected"))
            .count();
        assert_eq!((passed, replayed), (1, 99), "{}", responses[0].target);
    }
    assert_eq!(service.count("measurements").await, 1);
}

#[tokio::test]
async fn a_nonce_is_kept_in_the_database() {
    let service = Service::start().await;
    service
        .send(
            Request::get(ORGANIZATIONS)
                .signed_by(&ALPHA)
                .nonce("kept-in-the-database"),
        )
        .await
        .assert_status(200);
    assert!(service.knows_nonce(&ALPHA, "kept-in-the-database").await);
    let unlogged = service
        .count("pg_class WHERE relname LIKE 'used_nonces%' AND relpersistence <> 'p'")
        .await;
    assert_eq!(unlogged, 0, "an unlogged table loses nonces in a crash");
}
