//! `list_open_reports`

use partner_api_tests::fixture::branches;
use partner_api_tests::{ALPHA, AYSE, DERYA, MEHMET, Service};

const LIST: &str = "/inspector/v1/reports";

/// INS-5
#[tokio::test]
async fn the_reports_of_ones_own_branches_are_listed_with_what_waits() {
    let service = Service::start().await;
    let package = r#"{"branch_code":"IZMIR-01","plate":"35OLD209","measurements":{"BRAKE_FRONT_LEFT":3}}"#;
    service.measure(&ALPHA, package).await.assert_status(201);
    let (client, seen) = service.generated_inspector_client(&AYSE).await;
    client.list_open_reports().send().await.unwrap();
    seen.last().snapshot("the_open_reports_are_listed_the_newest_first");
    let derya = service.inspector(&DERYA).await;
    let list = derya.get(&service, LIST).await;
    assert_eq!(list.data("report_number"), ["TASLAK-305"]);
}

#[tokio::test]
async fn a_branch_and_a_status_narrow_the_list_and_anothers_branch_empties_it() {
    let service = Service::start().await;
    let inspector = service.inspector(&MEHMET).await;
    let count = async |query: String| {
        inspector
            .get(&service, &format!("{LIST}?{query}"))
            .await
            .data("id")
            .len()
    };
    assert_eq!(count(format!("branch_id={}", branches::IZMIR_01)).await, 5);
    assert_eq!(count(format!("branch_id={}", branches::ANK_01)).await, 0);
    assert_eq!(count(format!("branch_id={}", branches::IST_02)).await, 0);
    assert_eq!(count("status=DRAFT".to_owned()).await, 2);
    inspector
        .get(&service, &format!("{LIST}?status=PUBLISHED"))
        .await
        .assert_refused(400, "invalid_request")
        .snapshot("a_status_that_is_not_open_is_refused");
}

/// REP-4
#[tokio::test]
async fn pages_follow_each_other_and_a_cursor_is_of_its_inspector_and_filters() {
    let service = Service::start().await;
    let (inspector, other) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
    let all = inspector.get(&service, LIST).await.data("id");
    let (mut seen, mut target) = (Vec::new(), format!("{LIST}?limit=2"));
    loop {
        let page = inspector.get(&service, &target).await;
        seen.extend(page.data("id"));
        let cursor = page.json()["page"]["next_cursor"].clone();
        let Some(cursor) = cursor.as_str() else { break };
        target = format!("{LIST}?limit=2&cursor={cursor}");
        for (inspector, target) in [(&other, target.clone()), (&inspector, format!("{target}&status=DRAFT"))] {
            let refused = inspector.get(&service, &target).await;
            refused.assert_refused(400, "invalid_request");
        }
    }
    assert_eq!(seen, all);
    assert_eq!(seen.len(), 5);
}
