use partner_api_tests::fixture::{organizations, partners};
use partner_api_tests::{ALPHA, BETA, GAMMA, Service};

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// REP-10, REQ-15
#[tokio::test]
async fn a_partner_sees_all_organizations_it_was_granted_by_name() {
    let service = Service::start().await;
    service.client(&ALPHA).list_organizations().send().await.unwrap();
    service
        .last()
        .snapshot("a_partner_sees_all_organizations_it_was_granted_by_name");
}

/// REP-2
#[tokio::test]
async fn a_restricted_partner_counts_its_own_branches_only() {
    let service = Service::start().await;
    service.client(&BETA).list_organizations().send().await.unwrap();
    let answer = service.last();
    answer.snapshot("a_restricted_partner_counts_its_own_branches_only");
    assert_eq!(answer.data("id"), [organizations::MASKED]);
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
async fn a_grant_that_is_taken_away_is_gone_eventually() {
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
