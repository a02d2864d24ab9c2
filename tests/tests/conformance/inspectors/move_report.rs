//! `move_report`

use partner_api_tests::fixture::inspections;
use partner_api_tests::inspectors::InspectorClient;
use partner_api_tests::{ALPHA, AYSE, Answer, DERYA, Service};
use serde_json::{Value, json};

async fn moved(service: &Service, inspector: &InspectorClient, id: &str, to: &str, reason: Option<&str>) -> Answer {
    let version = inspector.report(service, id).await["version"].clone();
    let mut body = json!({ "version": version, "to": to });
    if let Some(reason) = reason {
        body["reason"] = json!(reason);
    }
    inspector
        .write(service, "PUT", &format!("/inspector/v1/reports/{id}/status"), body)
        .await
}

/// INS-6
#[tokio::test]
async fn a_report_goes_its_way_and_each_step_is_kept_with_who_and_when() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let id = inspections::DRAFT;
    for (to, reason) in [
        ("IN_REVIEW", None),
        ("REVISION_REQUESTED", Some("Motor bölümü eksik.")),
        ("IN_REVIEW", None),
        ("PUBLISHED", None),
        ("ARCHIVED", None),
        ("CANCEL_REQUESTED", Some("Yanlış araç.")),
        ("ARCHIVED", None),
        ("CANCEL_REQUESTED", Some("Yanlış araç.")),
        ("CANCELLED", None),
    ] {
        moved(&service, &inspector, id, to, reason).await.assert_status(200);
    }
    let last = inspector.get(&service, &format!("/inspector/v1/reports/{id}")).await;
    assert_eq!(last.json()["data"]["may_become"], json!([]));
    assert_eq!(last.json()["data"]["transitions"].as_array().map(Vec::len), Some(9));
    assert_eq!(
        service
            .count("inspection_transitions WHERE inspector_name = 'Ayşe Demir'")
            .await,
        9
    );
    for write in [
        "DELETE FROM inspection_transitions",
        "UPDATE inspection_transitions SET inspector_name = 'nobody'",
    ] {
        service.db.batch_execute(write).await.expect_err("a trigger refuses");
    }
}

/// INS-6, INS-8, REP-8
#[tokio::test]
async fn a_published_report_has_its_score_its_slug_and_is_what_partners_see() {
    let service = Service::start().await;
    let (client, seen) = service.generated_inspector_client(&AYSE).await;
    let inspector = service.inspector(&AYSE).await;
    let answers = json!({ "answers": [
        { "point_code": "FRONT_HOOD", "status_code": "REPLACED" },
        { "point_code": "REAR_RIGHT_FENDER", "status_code": "LOCAL_PAINT" },
    ] });
    let form = format!("/inspector/v1/reports/{}/forms/BODY", inspections::DRAFT);
    inspector
        .write(&service, "PUT", &form, answers)
        .await
        .assert_status(200);
    let version = inspector.report(&service, inspections::DRAFT).await["version"].clone();
    let body = json!({ "version": version, "to": "PUBLISHED" });
    let body: partner_api_inspector_client::types::MoveReport = serde_json::from_value(body).unwrap();
    let id = inspections::DRAFT.parse::<uuid::Uuid>().unwrap();
    client.move_report().id(id).body(body).send().await.unwrap();
    seen.last().snapshot("a_report_is_published_with_its_score_and_slug");
    let partner = service.get(&ALPHA, &format!("/api/v1/partner/inspections/{id}")).await;
    partner.assert_status(200);
    assert_eq!(
        (&partner.json()["status"], &partner.json()["overall_score"]),
        (&json!("published"), &json!(89))
    );
    // Its PDF is work for whichever replica draws.
    assert_eq!(
        service
            .count(&format!("report_renderings WHERE inspection_id = '{id}'"))
            .await,
        1
    );
    // Requested to be withdrawn, it is not seen; taken back, it is what it was.
    let slug = |answer: &Answer| answer.json()["data"]["public_slug"].clone();
    let before: Value = slug(&seen.last());
    moved(&service, &inspector, inspections::DRAFT, "CANCEL_REQUESTED", Some("?"))
        .await
        .assert_status(200);
    service
        .get(&ALPHA, &format!("/api/v1/partner/inspections/{id}"))
        .await
        .assert_refused(404, "not_found");
    let back = moved(&service, &inspector, inspections::DRAFT, "PUBLISHED", None).await;
    assert_eq!(slug(&back), before);
}

/// INS-6
#[tokio::test]
async fn what_is_not_allowed_is_refused_and_says_what_is() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let all = [
        "DRAFT",
        "IN_REVIEW",
        "REVISION_REQUESTED",
        "CANCEL_REQUESTED",
        "PUBLISHED",
        "ARCHIVED",
        "CANCELLED",
    ];
    for id in [
        inspections::REVISION_REQUESTED,
        inspections::CANCEL_REQUESTED,
        inspections::CANCELLED,
        inspections::DRAFT,
    ] {
        let report = inspector.report(&service, id).await;
        let possible = report["may_become"].as_array().unwrap().clone();
        for to in all.iter().filter(|to| !possible.contains(&json!(to))) {
            let refused = moved(&service, &inspector, id, to, Some("?")).await;
            refused.assert_refused(409, "transition_refused");
            if (id, *to) == (inspections::DRAFT, "ARCHIVED") {
                refused.snapshot("a_draft_is_not_archived");
            }
        }
        assert_eq!(inspector.report(&service, id).await["version"], report["version"]);
    }
    assert_eq!(service.count("inspection_transitions").await, 0);
}

/// INS-6
#[tokio::test]
async fn a_revision_and_a_cancellation_say_why() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    for (id, to) in [
        (inspections::IN_REVIEW, "REVISION_REQUESTED"),
        (inspections::PUBLISHED, "CANCEL_REQUESTED"),
    ] {
        for reason in [None, Some("  ")] {
            let refused = moved(&service, &inspector, id, to, reason).await;
            refused.assert_refused(400, "invalid_request");
            if (to, reason) == ("REVISION_REQUESTED", None) {
                refused.snapshot("a_revision_says_why");
            }
        }
    }
}

/// INS-5, INS-7
#[tokio::test]
async fn a_report_is_not_moved_by_an_old_version_nor_from_another_branch() {
    let service = Service::start().await;
    let (inspector, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let target = format!("/inspector/v1/reports/{}/status", inspections::DRAFT);
    let version = inspector.report(&service, inspections::DRAFT).await["version"].clone();
    let body = json!({ "version": version, "to": "PUBLISHED" });
    derya
        .write(&service, "PUT", &target, body.clone())
        .await
        .assert_refused(404, "not_found")
        .snapshot("a_report_of_another_branch_is_not_moved");
    // What a device wrote since is to be seen before it is published.
    let package = r#"{"branch_code":"IZMIR-01","plate":"35OPN205","measurements":{"BRAKE_FRONT_LEFT":1}}"#;
    service.measure(&ALPHA, package).await.assert_status(201);
    inspector
        .write(&service, "PUT", &target, body)
        .await
        .assert_refused(409, "changed_meanwhile")
        .snapshot("a_report_that_a_device_wrote_in_is_read_before_it_is_published");
}
