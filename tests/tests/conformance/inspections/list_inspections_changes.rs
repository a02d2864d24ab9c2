//! The list of changes (`updated_from`, `updated_to`), and reports by their numbers.

use partner_api_tests::fixture::{inspections, organizations};
use partner_api_tests::{ALPHA, BETA, DELTA, Service, TestResponse};

const LIST: &str = "/api/v1/partner/inspections";

async fn list(service: &Service, query: &str) -> TestResponse {
    service.get(&ALPHA, &format!("{LIST}?{query}")).await
}

/// REP-13, REP-14
#[tokio::test]
async fn a_sync_learns_of_reports_that_were_archived_or_cancelled_later() {
    let service = Service::start().await;
    let synced = "updated_from=2026-06-01T00:00:00Z";
    assert!(list(&service, synced).await.data("id").is_empty());
    for (id, change) in [
        (inspections::PUBLISHED, "status = 'CANCELLED'"),
        (inspections::FULL_PUBLISHED, "status = 'ARCHIVED'"),
        (inspections::OTHER_BRANCH, "final_price = 950"),
    ] {
        let sql = format!("UPDATE inspections SET {change} WHERE id = '{id}'");
        service.db.batch_execute(&sql).await.unwrap();
    }
    let sql = format!(
        "UPDATE photos SET caption = 'x' WHERE inspection_id = '{}'",
        inspections::WITHOUT_SLUG
    );
    service.db.batch_execute(&sql).await.unwrap();
    let changed = list(&service, synced).await;
    // In the order of the changes. The other one has no photos, so it has not changed.
    assert_eq!(
        changed.data("id"),
        [
            inspections::PUBLISHED,
            inspections::FULL_PUBLISHED,
            inspections::OTHER_BRANCH
        ]
    );
    assert_eq!(changed.data("status"), ["cancelled", "archived", "published"]);
    let detail = service.get(&ALPHA, &format!("{LIST}/{}", inspections::PUBLISHED)).await;
    assert_eq!(detail.json()["updated_at"], changed.json()["data"][0]["updated_at"]);
}

/// REP-14
#[tokio::test]
async fn a_list_of_changes_has_reports_of_every_status_in_order_of_change() {
    let service = Service::start().await;
    let response = list(&service, "updated_from=2026-05-11T00:00:00Z&limit=2").await;
    response.snapshot("a_list_of_changes_has_reports_of_every_status_in_order_of_change");
    let mut ids = response.data("id");
    let mut page = response.json()["page"].clone();
    while let Some(cursor) = page["next_cursor"].as_str() {
        let next = list(
            &service,
            &format!("updated_from=2026-05-11T00:00:00Z&limit=2&cursor={cursor}"),
        )
        .await;
        ids.extend(next.data("id"));
        page = next.json()["page"].clone();
    }
    let expected = [
        inspections::NONE_PUBLISHED,
        // Cancelled ten days after it was published.
        inspections::CANCELLED,
        inspections::OTHER_BRANCH,
        inspections::PUBLISHED,
        inspections::WITHOUT_SLUG,
        inspections::FULL_PUBLISHED,
    ];
    assert_eq!(ids, expected);
}

/// REP-14
#[tokio::test]
async fn a_change_of_organization_data_changes_all_of_its_reports() {
    let service = Service::start().await;
    let sql = format!(
        "UPDATE organizations SET pii_mode = 'NONE' WHERE id = '{}'",
        organizations::MASKED
    );
    service.db.batch_execute(&sql).await.unwrap();
    let changed = list(&service, "updated_from=2026-06-01T00:00:00Z").await;
    let expected = [
        inspections::ARCHIVED,
        inspections::CANCELLED,
        inspections::OTHER_BRANCH,
        inspections::PUBLISHED,
        inspections::WITHOUT_SLUG,
    ];
    assert_eq!(changed.data("id"), expected);
    assert!(
        changed
            .data("updated_at")
            .iter()
            .all(|time| time.as_str() > "2026-06-01")
    );
    // Only the last change has to be within the range.
    let until = list(&service, "updated_to=2026-06-01T00:00:00Z").await.data("id");
    assert!(!until.contains(&inspections::PUBLISHED.to_owned()));
    assert!(until.contains(&inspections::NONE_PUBLISHED.to_owned()));
}

/// REP-14
#[tokio::test]
async fn a_report_that_changes_between_pages_moves_to_the_end() {
    let service = Service::start().await;
    let query = "updated_from=2026-01-01T00:00:00Z&limit=3";
    let first = list(&service, query).await;
    assert!(first.data("id").contains(&inspections::NONE_ARCHIVED.to_owned()));
    let sql = format!(
        "UPDATE inspections SET summary = 'x' WHERE id IN ('{}', '{}')",
        inspections::NONE_ARCHIVED,
        inspections::FULL_PUBLISHED
    );
    service.db.batch_execute(&sql).await.unwrap();
    let mut ids = Vec::new();
    let mut page = first.json()["page"].clone();
    while let Some(cursor) = page["next_cursor"].as_str() {
        let next = list(&service, &format!("{query}&cursor={cursor}")).await;
        ids.extend(next.data("id"));
        page = next.json()["page"].clone();
    }
    let last: Vec<_> = ids[ids.len() - 2..].to_vec();
    assert!(last.contains(&inspections::NONE_ARCHIVED.to_owned()), "{ids:?}");
    assert!(last.contains(&inspections::FULL_PUBLISHED.to_owned()), "{ids:?}");
}

/// REP-4
#[tokio::test]
async fn a_cursor_of_one_order_is_invalid_in_the_other() {
    let service = Service::start().await;
    for (one, other) in [
        ("limit=1", "updated_from=2026-01-01T00:00:00Z"),
        ("updated_from=2026-01-01T00:00:00Z&limit=1", "limit=1"),
    ] {
        let cursor = list(&service, one).await.json()["page"]["next_cursor"]
            .as_str()
            .unwrap()
            .to_owned();
        list(&service, &format!("{other}&cursor={cursor}"))
            .await
            .assert_rejected(400, "invalid_request");
    }
}

/// REP-5
#[tokio::test]
async fn a_range_of_changes_that_ends_before_it_begins_is_rejected() {
    let service = Service::start().await;
    let response = list(
        &service,
        "updated_from=2026-06-01T00:00:00Z&updated_to=2026-05-01T00:00:00Z",
    )
    .await;
    let message = response.assert_rejected(400, "invalid_request").message();
    assert!(
        message.contains("updated_from") && message.contains("updated_to"),
        "{message}"
    );
}

/// REP-15
#[tokio::test]
async fn a_report_is_found_by_its_number() {
    let service = Service::start().await;
    let found = list(&service, "report_number=IZM-2026-000201").await;
    assert_eq!(found.data("id"), [inspections::PUBLISHED]);
    for (query, expected) in [
        ("report_number=izm-2026-000201", vec![]),
        ("report_number=IZM-2026-00020", vec![]),
        // Cancelled, a draft.
        ("report_number=IZM-2026-000204", vec![]),
        (
            "report_number=IZM-2026-000204&status=cancelled",
            vec![inspections::CANCELLED],
        ),
        (
            "report_number=IZM-2026-000204&updated_from=2026-05-01T00:00:00Z",
            vec![inspections::CANCELLED],
        ),
        ("report_number=TASLAK-205", vec![]),
        (
            "report_number=IZM-2026-000201&published_to=2026-05-12T09:29:59Z",
            vec![],
        ),
    ] {
        assert_eq!(
            list(&service, query).await.assert_status(200).data("id"),
            expected,
            "{query}"
        );
    }
    for (key, number) in [(&BETA, "ANK-2026-000211"), (&DELTA, "IZM-2026-000201")] {
        let hidden = service.get(key, &format!("{LIST}?report_number={number}")).await;
        assert!(hidden.assert_status(200).data("id").is_empty(), "{number}");
    }
    list(&service, "report_number=")
        .await
        .assert_rejected(400, "invalid_request");
}

/// PII-4
#[tokio::test]
async fn a_vin_finds_only_reports_of_organizations_that_show_it() {
    let service = Service::start().await;
    let of_vin = async |vin: &str| {
        list(&service, &format!("vin={vin}"))
            .await
            .assert_status(200)
            .data("id")
    };
    assert_eq!(of_vin("5YJ3E7EB9KF000301").await, [inspections::FULL_PUBLISHED]);
    let hidden = [
        "WVWZZZAUZLW000101",
        "NM0GXXTTPGL000201",
        "5YJ3E7EB9KF00030",
        "***",
        "NM0***0201",
    ];
    for vin in hidden {
        assert!(of_vin(vin).await.is_empty(), "{vin}");
    }
    // Searching follows the mode of the organization from the moment of the change on.
    let sql = format!(
        "UPDATE organizations SET pii_mode = 'MASKED' WHERE id = '{}'",
        organizations::FULL
    );
    service.db.batch_execute(&sql).await.unwrap();
    assert!(of_vin("5YJ3E7EB9KF000301").await.is_empty());
    let masked = list(&service, "vin=5YJ3E7EB9KF000301&report_number=IST-2026-000301").await;
    assert!(masked.assert_status(200).data("id").is_empty());
}
