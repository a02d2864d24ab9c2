//! The operation `sign_out`.

use partner_api_tests::{AYSE, Service};

/// INS-4
#[tokio::test]
async fn signing_out_ends_the_session_on_every_replica_and_no_other_session() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let other = service.inspector(&AYSE).await;
    client.sign_out().send().await.unwrap();
    received.last().snapshot("an_inspector_signs_out");
    assert_eq!(service.count("inspector_sessions").await, 1);
    other.get(&replica, "/inspector/v1/session").await.assert_status(200);
    other
        .act(&service, "DELETE", "/inspector/v1/session")
        .await
        .assert_status(204);
    other
        .get(&replica, "/inspector/v1/session")
        .await
        .assert_rejected(401, "signed_out");
}
