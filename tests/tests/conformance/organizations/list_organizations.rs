use partner_api_tests::fixture::{organizations, partners};
use partner_api_tests::{ALPHA, BETA, GAMMA, Request, Service};

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
async fn a_grant_that_is_taken_away_is_gone_within_five_seconds() {
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
    service.within_five_seconds(narrowed).await;
}

#[tokio::test]
async fn a_query_parameter_is_refused_for_it_has_none() {
    let service = Service::start().await;
    let answer = service.get(&ALPHA, "/api/v1/partner/organizations?limit=5").await;
    answer.assert_refused(400, "invalid_request");
}

#[tokio::test]
async fn another_method_is_told_which_one_there_is() {
    let service = Service::start().await;
    let answer = service
        .send(Request::new("DELETE", ORGANIZATIONS).signed_by(&ALPHA))
        .await;
    assert_eq!(
        answer.assert_refused(405, "method_not_allowed").header("allow"),
        Some("GET")
    );
}

#[tokio::test]
async fn it_is_unavailable_while_the_database_is_down() {
    let service = Service::start().await;
    service.cut_off_from_database().await;
    let answer = service.get(&ALPHA, ORGANIZATIONS).await;
    answer.assert_refused(503, "service_unavailable");
}
