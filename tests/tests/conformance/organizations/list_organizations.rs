use partner_api_tests::fixture::{organizations, partners};
use partner_api_tests::{ALPHA, BETA, GAMMA, Service};

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// REP-10, REQ-15
#[tokio::test]
async fn a_partner_sees_its_granted_organizations_ordered_by_name() {
    let service = Service::start().await;
    service.client(&ALPHA).list_organizations().send().await.unwrap();
    service
        .last()
        .snapshot("a_partner_sees_its_granted_organizations_ordered_by_name");
}

/// REP-2
#[tokio::test]
async fn a_restricted_partner_sees_the_number_of_its_branches() {
    let service = Service::start().await;
    service.client(&BETA).list_organizations().send().await.unwrap();
    let response = service.last();
    response.snapshot("a_restricted_partner_sees_the_number_of_its_branches");
    assert_eq!(response.data("id"), [organizations::MASKED]);
}

#[tokio::test]
async fn a_partner_without_grants_gets_an_empty_list() {
    let service = Service::start().await;
    let list = service.client(&GAMMA).list_organizations().send().await.unwrap();
    service.last().snapshot("a_partner_without_grants_gets_an_empty_list");
    assert!(list.data.is_empty());
}

/// KEY-8
#[tokio::test]
async fn a_revoked_grant_ends_eventually() {
    let service = Service::start().await;
    assert_eq!(
        service.get(&BETA, ORGANIZATIONS).await.data("id"),
        [organizations::MASKED]
    );
    service
        .db
        .execute(
            &format!("DELETE FROM grants WHERE partner_id = '{}'", partners::BETA),
            &[],
        )
        .await
        .unwrap();
    let narrowed = async || service.get(&BETA, ORGANIZATIONS).await.data("id").is_empty();
    service.eventually(narrowed).await;
}
