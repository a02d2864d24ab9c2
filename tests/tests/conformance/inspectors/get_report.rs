//! `get_report`

use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, AYSE, DERYA, MEHMET, Service};

/// MEA-13, INS-5
#[tokio::test]
async fn a_report_is_shown_with_what_waits_for_it_and_what_would_become_of_it() {
    let service = Service::start().await;
    // Older than a day: nothing is written by itself.
    for (id, left) in [("old", "1.40"), ("new", "2.10")] {
        let package = format!(
            r#"{{"branch_code":"IZMIR-01","plate":"35OLD209","external_id":"{id}","device_serial":"BT3000-77812",
                "measured_at":"2026-06-30T09:00:00Z","measurements":{{"BRAKE_FRONT_LEFT":{left},"BRAKE_FRONT_RIGHT":2850,
                "HANDBRAKE_LEFT":1.2,"DYNO_MEASURED_HP":100.5,"ABS":1}}}}"#
        );
        service.measure(&ALPHA, package).await.assert_status(201);
    }
    let (client, seen) = service.generated_inspector_client(&AYSE).await;
    let id = inspections::OLD_DRAFT.parse::<uuid::Uuid>().unwrap();
    let report = client.get_report().id(id).send().await.unwrap().into_inner().data;
    assert_eq!(report.waiting.len(), 2);
    seen.last()
        .snapshot("a_report_is_shown_with_the_measurements_that_wait");
    // Looking changes nothing.
    assert_eq!(service.count("measurements WHERE status = 'PENDING'").await, 2);
}

/// INS-5
#[tokio::test]
async fn a_report_of_another_branch_is_not_found_whatever_its_status() {
    let service = Service::start().await;
    let (ayse, mehmet, derya) = (
        service.inspector(&AYSE).await,
        service.inspector(&MEHMET).await,
        service.inspector(&DERYA).await,
    );
    let target = |id: &str| format!("/inspector/v1/reports/{id}");
    for (inspector, id, is_theirs) in [
        (&ayse, inspections::PUBLISHED, true),
        (&ayse, inspections::OTHER_BRANCH, false),
        (&mehmet, inspections::OTHER_BRANCH, true),
        (&ayse, inspections::FULL_DRAFT, false),
        (&derya, inspections::FULL_DRAFT, true),
        (&derya, inspections::DRAFT, false),
        (&derya, inspections::UNKNOWN, false),
    ] {
        let answer = inspector.get(&service, &target(id)).await;
        match is_theirs {
            true => answer.assert_status(200),
            false => answer.assert_refused(404, "not_found"),
        };
        if id == inspections::UNKNOWN {
            answer.snapshot("a_report_of_nobodys_is_not_found");
        }
    }
    let malformed = ayse.get(&service, &target("7")).await;
    malformed
        .assert_refused(400, "invalid_request")
        .snapshot("what_is_no_id_is_refused");
}
