//! The operation `move_report`. All tests of an operation are in one file.

use partner_api_domain::pdf_key::RENDERER_VERSION;
use partner_api_tests::fixture::{branches, inspections};
use partner_api_tests::{ALPHA, AYSE, DERYA, MEHMET, Service, TestResponse};
use serde_json::{Value, json};

/// INS-6
#[tokio::test]
async fn each_transition_of_a_report_is_recorded_with_its_author_and_time() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let id = inspections::DRAFT;
    inspector.answer_required_points(&service, id).await;
    for (to, reason) in [
        ("IN_REVIEW", None),
        ("REVISION_REQUESTED", Some("Motor bölümü eksik.")),
        ("IN_REVIEW", None),
        ("PUBLISHED", None),
        ("REVISION_REQUESTED", Some("Kilometre yanlış.")),
        ("PUBLISHED", None),
        ("ARCHIVED", Some("Yeni rapor var.")),
        ("CANCEL_REQUESTED", Some("Yanlış araç.")),
        ("ARCHIVED", None),
        ("CANCEL_REQUESTED", Some("Yanlış araç.")),
        ("CANCELLED", None),
    ] {
        inspector.move_to(&service, id, to, reason).await.assert_status(200);
    }
    let last = inspector.get(&service, &format!("/inspector/v1/reports/{id}")).await;
    assert_eq!(last.json()["data"]["may_become"], json!([]));
    assert_eq!(last.json()["data"]["transitions"].as_array().map(Vec::len), Some(11));
    assert_eq!(
        service
            .count("inspection_transitions WHERE inspector_name = 'Ayşe Demir'")
            .await,
        11
    );
    for write in [
        "DELETE FROM inspection_transitions",
        "UPDATE inspection_transitions SET inspector_name = 'nobody'",
    ] {
        service.db.batch_execute(write).await.expect_err("a trigger rejects");
    }
}

/// INS-6, INS-8, REP-8
#[tokio::test]
async fn a_published_report_has_a_score_and_a_slug_and_is_visible_to_partners() {
    let service = Service::start().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
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
    received
        .last()
        .snapshot("a_report_is_published_with_its_score_and_slug");
    let partner = service.get(&ALPHA, &format!("/api/v1/partner/inspections/{id}")).await;
    partner.assert_status(200);
    assert_eq!(
        (&partner.json()["status"], &partner.json()["overall_score"]),
        (&json!("published"), &json!(89))
    );
    // Any replica may render its PDF.
    assert_eq!(
        service
            .count(&format!("report_renderings WHERE inspection_id = '{id}'"))
            .await,
        1
    );
    // While its cancellation is requested, it is hidden; after the request is withdrawn, it is visible again.
    let slug = |response: &TestResponse| response.json()["data"]["public_slug"].clone();
    let before: Value = slug(&received.last());
    inspector
        .move_to(&service, inspections::DRAFT, "CANCEL_REQUESTED", Some("?"))
        .await
        .assert_status(200);
    service
        .get(&ALPHA, &format!("/api/v1/partner/inspections/{id}"))
        .await
        .assert_rejected(404, "not_found");
    let back = inspector.move_to(&service, inspections::DRAFT, "PUBLISHED", None).await;
    assert_eq!(slug(&back), before);
}

/// INS-6
#[tokio::test]
async fn a_forbidden_transition_is_rejected_and_names_the_allowed_ones() {
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
        "DISCARDED",
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
            let rejected = inspector.move_to(&service, id, to, Some("?")).await;
            rejected.assert_rejected(409, "transition_rejected");
            if (id, *to) == (inspections::DRAFT, "ARCHIVED") {
                rejected.snapshot("a_draft_is_not_archived");
            }
        }
        assert_eq!(inspector.report(&service, id).await["version"], report["version"]);
    }
    assert_eq!(service.count("inspection_transitions").await, 0);
}

/// INS-6
#[tokio::test]
async fn a_revision_an_archiving_and_a_cancellation_require_a_reason() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    for (id, to) in [
        (inspections::IN_REVIEW, "REVISION_REQUESTED"),
        (inspections::PUBLISHED, "CANCEL_REQUESTED"),
        (inspections::PUBLISHED, "REVISION_REQUESTED"),
        (inspections::PUBLISHED, "ARCHIVED"),
    ] {
        for reason in [None, Some("  ")] {
            let rejected = inspector.move_to(&service, id, to, reason).await;
            rejected.assert_rejected(400, "invalid_request");
            if (id, to, reason) == (inspections::IN_REVIEW, "REVISION_REQUESTED", None) {
                rejected.snapshot("a_revision_requires_a_reason");
            }
        }
    }
}

/// INS-5, INS-7
#[tokio::test]
async fn a_report_is_not_moved_from_an_old_version_or_another_branch() {
    let service = Service::start().await;
    let (inspector, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let target = format!("/inspector/v1/reports/{}/status", inspections::DRAFT);
    let version = inspector.report(&service, inspections::DRAFT).await["version"].clone();
    let body = json!({ "version": version, "to": "PUBLISHED" });
    derya
        .write(&service, "PUT", &target, body.clone())
        .await
        .assert_rejected(404, "not_found")
        .snapshot("a_report_of_another_branch_is_not_moved");
    // The inspector must see what a device wrote in the meantime before the report is published.
    let package = r#"{"branch_code":"IZMIR-01","plate":"35OPN205","measurements":{"BRAKE_FRONT_LEFT":1}}"#;
    service.measure(&ALPHA, package).await.assert_status(201);
    inspector
        .write(&service, "PUT", &target, body)
        .await
        .assert_rejected(409, "changed_meanwhile")
        .snapshot("a_report_that_a_device_changed_is_not_published_from_an_old_version");
}

/// INS-13
#[tokio::test]
async fn a_report_is_published_only_if_its_required_points_have_answers() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let id = inspections::DRAFT;
    let empty = "DELETE FROM inspection_form_answers a USING inspection_forms f WHERE f.id = a.inspection_form_id
                 AND f.organization_id = a.organization_id AND f.inspection_id = '0197c2a4-6f00-7e00-8000-000000000205'";
    service.db.batch_execute(empty).await.unwrap();
    inspector
        .move_to(&service, id, "PUBLISHED", None)
        .await
        .assert_rejected(409, "report_incomplete")
        .snapshot("a_report_without_an_inspection_is_not_published");
    let form = format!("/inspector/v1/reports/{id}/forms/BODY");
    let body = json!({ "answers": [{ "point_code": "FRONT_HOOD", "status_code": "PAINTED" }] });
    inspector.write(&service, "PUT", &form, body).await.assert_status(200);
    inspector
        .move_to(&service, id, "PUBLISHED", None)
        .await
        .assert_rejected(409, "report_incomplete")
        .snapshot("a_report_with_an_unanswered_required_point_is_not_published");
    assert_eq!(inspector.report(&service, id).await["status"], "DRAFT");
    // A point may be exempt from its template's rule, and the reverse.
    let exempt = "UPDATE form_template_points SET is_required = (code = 'SLIP_FRONT')
                  WHERE code IN ('REAR_RIGHT_FENDER', 'SLIP_FRONT')";
    service.db.batch_execute(exempt).await.unwrap();
    let rejected = inspector.move_to(&service, id, "PUBLISHED", None).await;
    rejected.assert_rejected(409, "report_incomplete");
    assert!(rejected.message().contains("Ön yanal kayma"), "{}", rejected.message());
    let form = format!("/inspector/v1/reports/{id}/forms/TEST_LINE");
    let body = json!({ "answers": [{ "point_code": "SLIP_FRONT", "numeric_value": 1 }] });
    inspector.write(&service, "PUT", &form, body).await.assert_status(200);
    let published = inspector.move_to(&service, id, "PUBLISHED", None).await;
    published.assert_status(200);
    assert_eq!(published.json()["data"]["overall_score"], 98);
}

/// INS-8, INS-13
#[tokio::test]
async fn an_answer_that_denies_an_inspection_counts_as_none() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let id = inspections::DRAFT;
    let set = r#"DELETE FROM inspection_form_answers;
        UPDATE form_templates SET statuses = statuses || '[
            {"code": "NOT_CHECKED", "label": "Kontrol edilmedi", "severity": "NONE"}]'"#;
    service.db.batch_execute(set).await.unwrap();
    let form = format!("/inspector/v1/reports/{id}/forms/BODY");
    let answer = async |point: &str, status: &str| {
        let body = json!({ "answers": [{ "point_code": point, "status_code": status }] });
        let written = inspector.write(&service, "PUT", &form, body).await;
        written.assert_status(200);
        written.json()["data"]["assessment"].clone()
    };
    answer("FRONT_HOOD", "NOT_CHECKED").await;
    let nothing = answer("REAR_RIGHT_FENDER", "NOT_CHECKED").await;
    assert_eq!((&nothing["inspected"], &nothing["score"]), (&json!(0), &json!(null)));
    let rejected = inspector.move_to(&service, id, "PUBLISHED", None).await;
    rejected.assert_rejected(409, "report_incomplete");
    assert!(
        rejected.message().contains("nothing has been inspected"),
        "{}",
        rejected.message()
    );
    let one = answer("FRONT_HOOD", "PAINTED").await;
    assert_eq!((&one["inspected"], &one["score"]), (&json!(1), &json!(98)));
    let rejected = inspector.move_to(&service, id, "PUBLISHED", None).await;
    rejected.assert_rejected(409, "report_incomplete");
    assert!(
        rejected.message().contains("Sağ arka çamurluk"),
        "{}",
        rejected.message()
    );
    let optional = "UPDATE form_template_points SET is_required = false WHERE code = 'REAR_RIGHT_FENDER'";
    service.db.batch_execute(optional).await.unwrap();
    let published = inspector.move_to(&service, id, "PUBLISHED", None).await;
    published.assert_status(200);
    // The score that was announced.
    assert_eq!(published.json()["data"]["overall_score"], 98);
}

/// INS-14, REP-1, REP-13
#[tokio::test]
async fn a_published_report_is_revised_unseen_by_partners_and_keeps_its_earlier_pdf() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let id = inspections::DRAFT;
    let partner = async || service.get(&ALPHA, &format!("/api/v1/partner/inspections/{id}")).await;
    inspector.answer_required_points(&service, id).await;
    let first = inspector.move_to(&service, id, "PUBLISHED", None).await.json()["data"].clone();
    let rendered = format!(
        "UPDATE inspections SET pdf_object_key = 'reports/{id}/{RENDERER_VERSION}-' || report_fingerprint('{id}') || '-1.pdf'
         WHERE id = '{id}';
         INSERT INTO published_pdfs (object_key, organization_id, inspection_id, sha256, size_bytes)
         SELECT pdf_object_key, organization_id, id, sha256('earlier'), 7 FROM inspections WHERE id = '{id}'"
    );
    service.db.batch_execute(&rendered).await.unwrap();
    let earlier = inspector.report(&service, id).await["pdf_sha256"].clone();
    assert!(earlier.is_string());
    let seen = partner().await.json()["updated_at"].as_str().unwrap().to_owned();

    inspector
        .move_to(&service, id, "REVISION_REQUESTED", Some("Kaput boyalı."))
        .await
        .assert_status(200);
    partner().await.assert_rejected(404, "not_found");
    let body = json!({ "answers": [{ "point_code": "FRONT_HOOD", "status_code": "PAINTED" }] });
    let form = format!("/inspector/v1/reports/{id}/forms/BODY");
    inspector.write(&service, "PUT", &form, body).await.assert_status(200);

    let second = inspector.move_to(&service, id, "PUBLISHED", None).await.json()["data"].clone();
    assert_eq!(
        (&second["overall_score"], &second["public_slug"]),
        (&json!(93), &first["public_slug"])
    );
    assert_eq!(second["published_at"], first["published_at"]);
    // The earlier PDF does not show the revision.
    assert_eq!(second["pdf_sha256"], json!(null));
    assert_eq!(
        (
            &second["published_pdfs"][0]["sha256"],
            &second["published_pdfs"][0]["revised_for"]
        ),
        (&earlier, &json!("Kaput boyalı."))
    );
    let reasons: Vec<&Value> = second["transitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["reason"])
        .collect();
    assert!(reasons.contains(&&json!("Kaput boyalı.")));
    // The list of changes has it again.
    let changed = service
        .get(&ALPHA, &format!("/api/v1/partner/inspections?updated_from={seen}"))
        .await;
    assert!(changed.data("id").contains(&id.to_owned()), "{}", changed.json());
    assert_eq!(partner().await.json()["overall_score"], 93);
}

/// INS-6
#[tokio::test]
async fn only_a_draft_without_content_is_discarded() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let body = json!({ "branch_id": branches::IZMIR_01, "plate": "35MSK203", "package_name": "Full", "base_price": "1.00",
                       "mileage_km": 1 });
    let opened = inspector.write(&service, "POST", "/inspector/v1/reports", body).await;
    let id = opened.json()["data"]["id"].as_str().unwrap().to_owned();
    let form = format!("/inspector/v1/reports/{id}/forms/BODY");
    let note = json!({ "general_note": "Kaput açılmadı." });
    inspector.write(&service, "PUT", &form, note).await.assert_status(200);
    assert!(
        !inspector.report(&service, &id).await["may_become"]
            .as_array()
            .unwrap()
            .contains(&json!("DISCARDED"))
    );
    inspector
        .move_to(&service, &id, "DISCARDED", None)
        .await
        .assert_rejected(409, "transition_rejected");
    inspector
        .write(&service, "PUT", &form, json!({ "general_note": "" }))
        .await
        .assert_status(200);
    let discarded = inspector.move_to(&service, &id, "DISCARDED", None).await;
    discarded.assert_status(200);
    assert_eq!(discarded.json()["data"]["may_become"], json!([]));
    assert!(
        !inspector
            .get(&service, "/inspector/v1/reports?limit=100")
            .await
            .data("id")
            .contains(&id)
    );
    // Devices no longer write into it.
    let package = r#"{"branch_code":"IZMIR-01","plate":"35MSK203","measurements":{"BRAKE_FRONT_LEFT":3}}"#;
    let sent = service.measure(&ALPHA, package).await;
    assert_eq!(sent.json()["data"]["status"], "pending");
}

/// INS-20
#[tokio::test]
async fn where_the_organization_requires_a_review_a_second_inspector_publishes() {
    let service = Service::start().await;
    let (author, other) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
    service
        .db
        .batch_execute("UPDATE organizations SET needs_review = true")
        .await
        .unwrap();
    let id = inspections::DRAFT;
    author.answer_required_points(&service, id).await;
    let draft = author.report(&service, id).await;
    assert_eq!(draft["needs_review"], true);
    assert!(!draft["may_become"].as_array().unwrap().contains(&json!("PUBLISHED")));
    // Neither the one who wrote the answers nor the one who asked for the review.
    other.move_to(&service, id, "IN_REVIEW", None).await.assert_status(200);
    for inspector in [&author, &other] {
        inspector
            .move_to(&service, id, "PUBLISHED", None)
            .await
            .assert_rejected(409, "transition_rejected");
    }
    other
        .move_to(&service, id, "REVISION_REQUESTED", Some("Yazan göndersin."))
        .await
        .assert_status(200);
    author
        .move_to(&service, id, "PUBLISHED", None)
        .await
        .assert_rejected(409, "transition_rejected")
        .snapshot("a_report_is_not_published_without_a_required_review");
    author.move_to(&service, id, "IN_REVIEW", None).await.assert_status(200);
    author
        .move_to(&service, id, "PUBLISHED", None)
        .await
        .assert_rejected(409, "transition_rejected");
    let reviewed = other.report(&service, id).await;
    assert!(reviewed["may_become"].as_array().unwrap().contains(&json!("PUBLISHED")));
    other.move_to(&service, id, "PUBLISHED", None).await.assert_status(200);
    let row = format!("SELECT status, inspector_name FROM inspections WHERE id = '{id}'");
    assert_eq!(
        service.rows(&row).await,
        json!([{ "status": "PUBLISHED", "inspector_name": MEHMET.name }])
    );
}
