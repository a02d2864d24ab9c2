use partner_api_client::{Code, Problem};
use partner_api_tests::fixture::partners;
use partner_api_tests::{ALPHA, GAMMA, Request, Service};

const HEALTH: &str = "/api/v1/partner/health";

/// SVC-6; that its time is no finer than a microsecond, the harness looks at in every answer: REQ-18
#[tokio::test]
async fn a_partner_is_told_who_it_is_and_what_time_it_is() {
    let service = Service::start().await;
    let health = service.client(&ALPHA).get_health().send().await.unwrap();
    service
        .last()
        .snapshot("a_partner_is_told_who_it_is_and_what_time_it_is");
    assert_eq!(health.partner.to_string(), partners::ALPHA);
    assert!((chrono::Utc::now() - health.server_time).num_seconds().abs() <= 5);
}

#[tokio::test]
async fn a_partner_without_grants_is_answered_too() {
    let service = Service::start().await;
    let health = service.client(&GAMMA).get_health().send().await.unwrap();
    assert_eq!(health.partner.to_string(), partners::GAMMA);
}

/// KEY-6, KEY-9
#[tokio::test]
async fn a_nonce_works_once_while_the_database_is_down() {
    let service = Service::start().await;
    service.cut_off_from_database().await;
    let request = Request::get(HEALTH).signed_by(&ALPHA).nonce("health-without-database");
    service.send(request.clone()).await.assert_status(200);
    service.send(request).await.assert_refused(401, "replay_detected");
}

#[tokio::test]
async fn a_wrong_secret_is_explained_to_the_client() {
    let service = Service::start().await;
    let thief = partner_api_tests::TestKey {
        secret: "WRONGWRONGWRONGWRONGWRONGWRONGWR",
        ..ALPHA
    };
    let error = service.client(&thief).get_health().send().await.unwrap_err();
    assert_eq!(Problem::from(error).code(), Some(&Code::InvalidSignature));
    service.last().assert_refused(401, "invalid_signature");
}
