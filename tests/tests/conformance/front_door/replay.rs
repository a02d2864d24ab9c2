use futures::future::join_all;
use partner_api_tests::fixture::ALPHA_ROTATED;
use partner_api_tests::{ALPHA, BETA, Request, Service};

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
    let answer = service.send(request).await;
    answer
        .assert_refused(401, "replay_detected")
        .snapshot("a_nonce_works_once");
}

/// KEY-7
#[tokio::test]
async fn a_nonce_is_burnt_whatever_is_answered() {
    let service = Service::start().await;
    for (number, (target, status)) in [
        (HEALTH, 200),
        ("/api/v1/partner/nowhere", 404),
        ("/api/v1/partner/inspections?limit=0", 400),
    ]
    .into_iter()
    .enumerate()
    {
        let nonce = format!("burnt-by-request-{number}");
        service
            .send(Request::get(target).signed_by(&ALPHA).nonce(&nonce))
            .await
            .assert_status(status);
        service
            .send(Request::get(ORGANIZATIONS).signed_by(&ALPHA).nonce(&nonce))
            .await
            .assert_refused(401, "replay_detected");
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

/// KEY-6
#[tokio::test(flavor = "multi_thread")]
async fn of_100_simultaneous_uses_exactly_one_passes() {
    let service = Service::start().await;
    for target in [ORGANIZATIONS, HEALTH] {
        let request = Request::get(target)
            .signed_by(&ALPHA)
            .nonce(&format!("{target}-100-times"));
        let answers = join_all((0..100).map(|_| service.send(request.clone()))).await;
        let passed = answers.iter().filter(|answer| answer.status == 200).count();
        let replayed = answers
            .iter()
            .filter(|answer| answer.code().as_deref() == Some("replay_detected"))
            .count();
        assert_eq!((passed, replayed), (1, 99), "{target}");
    }
}

/// KEY-6, SVC-3
#[tokio::test]
async fn a_nonce_is_used_up_for_every_replica() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let request = Request::get(ORGANIZATIONS)
        .signed_by(&ALPHA)
        .nonce("once-in-all-replicas");
    service.send(request.clone()).await.assert_status(200);
    replica.send(request).await.assert_refused(401, "replay_detected");
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
