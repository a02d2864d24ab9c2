use partner_api_client::{Code, Problem};
use partner_api_tests::fixture::partners;
use partner_api_tests::{ALPHA, GAMMA, Request, Service};

const HEALTH: &str = "/api/v1/partner/health";

/// SVC-6. The harness checks in every response that times have at most microseconds (REQ-18).
#[tokio::test]
async fn health_returns_the_partner_and_the_time() {
    let service = Service::start().await;
    let health = service.client(&ALPHA).get_health().send().await.unwrap();
    service.last().snapshot("health_returns_the_partner_and_the_time");
    assert_eq!(health.partner.to_string(), partners::ALPHA);
    assert!((chrono::Utc::now() - health.server_time).num_seconds().abs() <= 5);
}

#[tokio::test]
async fn a_partner_without_grants_can_check_its_health() {
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
    service.send(request).await.assert_rejected(401, "replay_detected");
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
    service.last().assert_rejected(401, "invalid_signature");
}
