//! The operation `list_open_reports`.

use partner_api_tests::fixture::branches;
use partner_api_tests::{ALPHA, AYSE, DERYA, MEHMET, Service};

const LIST: &str = "/inspector/v1/reports";

/// INS-5
#[tokio::test]
async fn reports_of_the_inspectors_branches_are_listed_with_pending_measurements() {
    let service = Service::start().await;
    let package = r#"{"branch_code":"IZMIR-01","plate":"35OLD209","measurements":{"BRAKE_FRONT_LEFT":3}}"#;
    service.measure(&ALPHA, package).await.assert_status(201);
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    client.list_open_reports().send().await.unwrap();
    received.last().snapshot("open_reports_are_listed_newest_first");
    let derya = service.inspector(&DERYA).await;
    let list = derya.get(&service, LIST).await;
    assert_eq!(list.data("report_number"), ["TASLAK-305"]);
}

#[tokio::test]
async fn the_list_is_filtered_by_branch_and_status_and_is_empty_for_another_branch() {
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
    assert_eq!(count("status=PUBLISHED".to_owned()).await, 3);
    inspector
        .get(&service, &format!("{LIST}?status=GONE"))
        .await
        .assert_rejected(400, "invalid_request")
        .snapshot("an_unknown_status_is_rejected");
}

/// REP-4
#[tokio::test]
async fn pages_are_consecutive_and_a_cursor_is_valid_only_for_its_inspector_and_filters() {
    let service = Service::start().await;
    let (inspector, other) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
    let all = inspector.get(&service, LIST).await.data("id");
    let (mut listed, mut target) = (Vec::new(), format!("{LIST}?limit=2"));
    loop {
        let page = inspector.get(&service, &target).await;
        listed.extend(page.data("id"));
        let cursor = page.json()["page"]["next_cursor"].clone();
        let Some(cursor) = cursor.as_str() else { break };
        target = format!("{LIST}?limit=2&cursor={cursor}");
        for (inspector, target) in [(&other, target.clone()), (&inspector, format!("{target}&status=DRAFT"))] {
            let rejected = inspector.get(&service, &target).await;
            rejected.assert_rejected(400, "invalid_request");
        }
    }
    assert_eq!(listed, all);
    assert_eq!(listed.len(), 5);
}

/// INS-5, INS-17
#[tokio::test]
async fn a_search_finds_plates_numbers_and_vins_in_every_status_at_the_inspectors_branches() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let found = async |query: &str| {
        let list = inspector.get(&service, &format!("{LIST}?{query}")).await;
        list.assert_status(200);
        list.data("report_number")
    };
    // A plate as it is typed, a part of a number, and the end of a VIN.
    assert_eq!(found("search=35%20msk%20201").await, ["IZM-2026-000201"]);
    assert_eq!(found("search=2026-000203").await, ["IZM-2026-000203"]);
    assert_eq!(found("search=8e9g50gn000205").await, ["TASLAK-205"]);
    assert_eq!(found("search=35msk&status=ARCHIVED").await, ["IZM-2026-000203"]);
    // Reports of another branch and of another organization.
    assert_eq!(found("search=06msk211").await, Vec::<String>::new());
    assert_eq!(found("search=34ful301").await, Vec::<String>::new());
    // No pattern.
    assert_eq!(found("search=35%25201").await, Vec::<String>::new());
}
