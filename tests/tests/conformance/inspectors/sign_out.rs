//! `sign_out`

use partner_api_tests::{AYSE, Service};

/// INS-4
#[tokio::test]
async fn who_signs_out_is_out_at_every_replica_and_others_stay() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let (client, seen) = service.generated_inspector_client(&AYSE).await;
    let other = service.inspector(&AYSE).await;
    client.sign_out().send().await.unwrap();
    seen.last().snapshot("an_inspector_signs_out");
    assert_eq!(service.count("inspector_sessions").await, 1);
    other.get(&replica, "/inspector/v1/session").await.assert_status(200);
    other
        .act(&service, "DELETE", "/inspector/v1/session")
        .await
        .assert_status(204);
    other
        .get(&replica, "/inspector/v1/session")
        .await
        .assert_refused(401, "signed_out");
}
