use std::num::NonZeroU32;

use partner_api_client::types::InspectionStatus;
use partner_api_tests::fixture::{branches, inspections, organizations};
use partner_api_tests::{ALPHA, BETA, GAMMA, Service, TestResponse};

const LIST: &str = "/api/v1/partner/inspections";

async fn list(service: &Service, query: &str) -> TestResponse {
    service.get(&ALPHA, &format!("{LIST}?{query}")).await
}

/// REP-3
#[tokio::test]
async fn published_and_archived_reports_are_listed_newest_first() {
    let service = Service::start().await;
    service.client(&ALPHA).list_inspections().send().await.unwrap();
    let response = service.last();
    response.snapshot("published_and_archived_reports_are_listed_newest_first");
    let expected = [
        inspections::FULL_PUBLISHED,
        // Of reports that were created at the same time, the greater ID comes first.
        inspections::OTHER_BRANCH,
        inspections::WITHOUT_SLUG,
        inspections::PUBLISHED,
        inspections::NONE_PUBLISHED,
        inspections::NONE_ARCHIVED,
        inspections::ARCHIVED,
    ];
    assert_eq!(response.data("id"), expected);
}

/// REP-1, REP-3
#[tokio::test]
async fn cancelled_reports_are_listed_only_on_request() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .list_inspections()
        .status(InspectionStatus::Cancelled)
        .send()
        .await
        .unwrap();
    let response = service.last();
    response.snapshot("cancelled_reports_are_listed_only_on_request");
    assert_eq!(response.data("id"), [inspections::CANCELLED]);
}

/// REP-2
#[tokio::test]
async fn a_restricted_partner_sees_only_the_reports_of_its_branches() {
    let service = Service::start().await;
    let list = service.client(&BETA).list_inspections().send().await.unwrap();
    assert_eq!(
        service.last().data("id"),
        [inspections::WITHOUT_SLUG, inspections::PUBLISHED, inspections::ARCHIVED]
    );
    assert!(!list.page.has_more);
    let none = service.client(&GAMMA).list_inspections().send().await.unwrap();
    service.last().snapshot("a_partner_without_grants_gets_an_empty_list");
    assert!(none.data.is_empty());
}

/// REP-5
#[tokio::test]
async fn filters_combine() {
    let service = Service::start().await;
    for (query, expected) in [
        (
            format!("organization_id={}", organizations::NONE),
            vec![inspections::NONE_PUBLISHED, inspections::NONE_ARCHIVED],
        ),
        (
            format!("branch_id={}", branches::ANK_01),
            vec![inspections::OTHER_BRANCH],
        ),
        (
            format!("branch_id={}&organization_id={}", branches::ANK_01, organizations::NONE),
            vec![],
        ),
        (
            format!("status=archived&organization_id={}", organizations::MASKED),
            vec![inspections::ARCHIVED],
        ),
        (
            "created_from=2026-05-20T11:00:00Z".to_owned(),
            vec![inspections::FULL_PUBLISHED],
        ),
        (
            "created_from=2026-05-12T11:00:00%2B03:00&created_to=2026-05-12T08:00:00Z&limit=100".to_owned(),
            vec![
                inspections::OTHER_BRANCH,
                inspections::WITHOUT_SLUG,
                inspections::PUBLISHED,
            ],
        ),
        (
            "created_to=2026-03-10T08:00:00Z".to_owned(),
            vec![inspections::ARCHIVED],
        ),
        ("created_to=2026-03-10T07:59:59.999999Z".to_owned(), vec![]),
        (
            "published_from=2026-05-12T10:15:00Z".to_owned(),
            vec![inspections::FULL_PUBLISHED, inspections::WITHOUT_SLUG],
        ),
        (
            "published_from=2026-05-12T10:15:01Z&published_to=2026-05-20T12:00:00Z".to_owned(),
            vec![inspections::FULL_PUBLISHED],
        ),
        (
            "published_to=2026-03-10T09:30:00Z".to_owned(),
            vec![inspections::ARCHIVED],
        ),
    ] {
        assert_eq!(
            list(&service, &query).await.assert_status(200).data("id"),
            expected,
            "{query}"
        );
    }
}

/// REP-3
#[tokio::test]
async fn a_filter_for_something_not_granted_returns_an_empty_list() {
    let service = Service::start().await;
    for query in [
        format!("organization_id={}", organizations::FULL),
        format!("branch_id={}", branches::ANK_01),
        "organization_id=01974d1a-7c00-7a00-8000-000000000999".to_owned(),
        "branch_id=nonsense".to_owned(),
        "organization_id=".to_owned(),
        format!("organization_id={}", organizations::MASKED.to_uppercase()),
    ] {
        let response = service.get(&BETA, &format!("{LIST}?{query}")).await;
        assert!(response.assert_status(200).data("id").is_empty(), "{query}");
    }
}

/// REP-11, REQ-15
#[tokio::test]
async fn the_first_page_has_a_cursor_of_the_next_one() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .list_inspections()
        .limit(NonZeroU32::new(2).unwrap())
        .send()
        .await
        .unwrap();
    service.last().snapshot("the_first_page_has_a_cursor_of_the_next_one");
}

/// REP-4
#[tokio::test]
async fn a_cursor_is_valid_only_for_its_partner_and_filters() {
    let service = Service::start().await;
    let altered = list(&service, "cursor=AZdNGwqAfES0r2eVq0xk3Q").await;
    altered
        .assert_rejected(400, "invalid_request")
        .snapshot("an_altered_cursor_is_rejected");
    let cursor = list(&service, "limit=1").await.json()["page"]["next_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    // With the same partner and filters, it is valid for another limit.
    list(&service, &format!("limit=5&cursor={cursor}"))
        .await
        .assert_status(200);
    let altered = format!(
        "{}{}",
        &cursor[..cursor.len() - 1],
        if cursor.ends_with('A') { 'B' } else { 'A' }
    );
    let first = cursor.chars().next().unwrap();
    let altered_at_the_front = format!("{}{}", if first == 'A' { 'B' } else { 'A' }, &cursor[1..]);
    for query in [
        format!("cursor={cursor}&status=published"),
        format!("cursor={cursor}&organization_id={}", organizations::MASKED),
        format!("cursor={cursor}&published_from=2026-01-01T00:00:00Z"),
        format!("cursor={altered}"),
        format!("cursor={altered_at_the_front}"),
        format!("cursor={cursor}%3D"),
        "cursor=AAAA".to_owned(),
        "cursor=".to_owned(),
        format!("cursor={}", "A".repeat(1025)),
    ] {
        let message = list(&service, &query)
            .await
            .assert_rejected(400, "invalid_request")
            .message();
        assert!(message.contains("cursor"), "{query}: {message}");
    }
    let response = service.get(&BETA, &format!("{LIST}?cursor={cursor}")).await;
    response.assert_rejected(400, "invalid_request");
}

/// ERR-8, REP-11
#[tokio::test]
async fn an_invalid_parameter_is_rejected_and_named() {
    let service = Service::start().await;
    list(&service, "limit=101")
        .await
        .assert_rejected(400, "invalid_request")
        .snapshot("a_limit_over_100_is_rejected");
    for (query, name) in [
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=2.5", "limit"),
        ("limit=ten", "limit"),
        ("limit=", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("status=PUBLISHED", "status"),
        ("status=draft", "status"),
        ("status=", "status"),
        ("status=published,archived", "status"),
        ("published_from=2026-05-01", "published_from"),
        ("published_from=2026-05-01T00:00:00", "published_from"),
        ("created_to=yesterday", "created_to"),
        ("created_from=2026-02-30T00:00:00Z", "created_from"),
        ("publishedFrom=2026-05-01T00:00:00Z", "publishedFrom"),
        ("limit=5&limit=5", "limit"),
        ("branch_id=%ff", "branch_id"),
    ] {
        let message = list(&service, query)
            .await
            .assert_rejected(400, "invalid_request")
            .message();
        assert!(message.contains(name), "{query}: {message}");
    }
}

#[tokio::test]
async fn a_literal_plus_in_a_time_is_rejected_with_a_hint() {
    let service = Service::start().await;
    let response = list(&service, "published_from=2026-05-01T00:00:00+03:00").await;
    response
        .assert_rejected(400, "invalid_request")
        .snapshot("a_literal_plus_in_a_time_is_rejected_with_a_hint");
    assert!(response.message().contains("%2B"), "{}", response.message());
}

/// REP-5
#[tokio::test]
async fn a_range_that_ends_before_it_begins_is_rejected() {
    let service = Service::start().await;
    let response = list(
        &service,
        "created_from=2026-05-02T00:00:00Z&created_to=2026-05-01T00:00:00Z",
    )
    .await;
    response
        .assert_rejected(400, "invalid_request")
        .snapshot("a_range_that_ends_before_it_begins_is_rejected");
    list(
        &service,
        "published_from=2026-05-02T00:00:00Z&published_to=2026-05-01T00:00:00Z",
    )
    .await
    .assert_rejected(400, "invalid_request");
    list(
        &service,
        "created_from=2026-05-01T00:00:00Z&created_to=2026-05-01T03:00:00%2B03:00",
    )
    .await
    .assert_status(200);
}
