//! The operation `fill_form`. All tests of an operation are in one file.

use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, AYSE, DERYA, MEHMET, Service, TestResponse};
use serde_json::{Value, json};

fn target(id: &str, form: &str) -> String {
    format!("/inspector/v1/reports/{id}/forms/{form}")
}

/// The point with this code in the report of a response.
#[track_caller]
fn point(response: &TestResponse, code: &str) -> Value {
    let report = response.json();
    let forms = report["data"]["forms"].as_array().unwrap().clone();
    let mut points = forms.iter().flat_map(|form| form["points"].as_array().unwrap());
    points.find(|point| point["code"] == code).unwrap().clone()
}

/// INS-7
#[tokio::test]
async fn answers_are_written_and_replaced_ones_are_kept() {
    let service = Service::start().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let id = inspections::DRAFT.parse::<uuid::Uuid>().unwrap();
    for (status, note) in [("PAINTED", "Sol kenarda"), ("LOCAL_PAINT", "Bakıldı")] {
        let body = json!({ "answers": [{ "point_code": "FRONT_HOOD", "status_code": status, "note": note }] });
        let body: partner_api_inspector_client::types::FillForm = serde_json::from_value(body).unwrap();
        client
            .fill_form()
            .id(id)
            .template_code("BODY")
            .body(body)
            .send()
            .await
            .unwrap();
    }
    let response = received.last();
    response.snapshot("answers_are_written_into_a_form");
    let before = service
        .rows("SELECT status_code, note, written_by FROM inspection_form_answer_history")
        .await;
    assert_eq!(
        before,
        json!([{ "status_code": "PAINTED", "note": "Sol kenarda", "written_by": AYSE.name }])
    );
}

/// INS-7, MEA-9, MEA-12
#[tokio::test]
async fn a_test_line_value_gets_its_status_from_the_thresholds_and_a_power_gets_a_ratio() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let target = target(inspections::DRAFT, "TEST_LINE");
    let body = json!({ "general_note": "Elle girildi.", "answers": [
        { "point_code": "BRAKE_FRONT_LEFT", "numeric_value": 2.10 },
        { "point_code": "DYNO_MEASURED_HP", "numeric_value": 153 },
    ] });
    let response = inspector.write(&service, "PUT", &target, body).await;
    response.assert_status(200);
    let status = |code: &str| point(&response, code)["status_code"].clone();
    assert_eq!(
        [
            status("BRAKE_FRONT_LEFT"),
            status("DYNO_MEASURED_HP"),
            status("DYNO_RATIO")
        ],
        ["BORDERLINE", "GOOD", "GOOD"]
    );
    assert_eq!(point(&response, "DYNO_RATIO")["numeric_value"], 90.0);
    // A status that contradicts the thresholds is rejected.
    let body = json!({ "answers": [
        { "point_code": "BRAKE_FRONT_LEFT", "numeric_value": 1.00, "status_code": "GOOD" },
        { "point_code": "BRAKE_FRONT_RIGHT", "numeric_value": 2850 },
        { "point_code": "HANDBRAKE_LEFT", "numeric_value": 1 },
        { "point_code": "ABS", "status_code": "GOOD" },
        { "point_code": "HANDBRAKE_LEFT", "status_code": "GOOD" },
    ] });
    let rejected = inspector.write(&service, "PUT", &target, body).await;
    rejected
        .assert_rejected(400, "invalid_request")
        .snapshot("all_errors_in_answers_are_reported_at_once");
    assert_eq!(
        point(
            &inspector
                .get(&service, &format!("/inspector/v1/reports/{}", inspections::DRAFT))
                .await,
            "BRAKE_FRONT_LEFT"
        )["numeric_value"],
        2.10
    );
}

/// INS-7
#[tokio::test]
async fn an_inspector_may_correct_a_device_value_and_the_device_no_longer_overwrites_it() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let package =
        r#"{"branch_code":"IZMIR-01","plate":"35OPN205","device_serial":"BT-1","measurements":{"BRAKE_FRONT_LEFT":3}}"#;
    service.measure(&ALPHA, package).await.assert_status(201);
    let before = inspector.report(&service, inspections::DRAFT).await;
    let body = json!({ "answers": [{ "point_code": "BRAKE_FRONT_LEFT", "numeric_value": 1.5 }] });
    let response = inspector
        .write(&service, "PUT", &target(inspections::DRAFT, "TEST_LINE"), body)
        .await;
    assert_eq!(point(&response, "BRAKE_FRONT_LEFT")["written_by"], AYSE.name);
    assert!(response.json()["data"]["version"].as_i64() > before["version"].as_i64());
    let history = service
        .rows("SELECT numeric_value::text FROM inspection_form_answer_history WHERE by_device")
        .await;
    assert_eq!(history, json!([{ "numeric_value": "3" }]));
}

/// INS-5, INS-6
#[tokio::test]
async fn a_missing_form_or_report_or_one_in_review_is_not_filled() {
    let service = Service::start().await;
    let (ayse, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let body = json!({ "answers": [{ "point_code": "FRONT_HOOD", "status_code": "ORIGINAL" }] });
    let no_form = ayse
        .write(&service, "PUT", &target(inspections::DRAFT, "ROOF"), body.clone())
        .await;
    no_form
        .assert_rejected(404, "not_found")
        .snapshot("an_unknown_form_is_not_filled");
    let theirs = derya
        .write(&service, "PUT", &target(inspections::DRAFT, "BODY"), body.clone())
        .await;
    theirs.assert_rejected(404, "not_found");
    let reviewed = ayse
        .write(&service, "PUT", &target(inspections::IN_REVIEW, "BODY"), body)
        .await;
    reviewed
        .assert_rejected(409, "transition_rejected")
        .snapshot("a_form_of_a_report_in_review_is_not_filled");
    assert_eq!(
        service
            .count("inspection_form_answers WHERE written_by = 'Ayşe Demir'")
            .await,
        0
    );
}

/// INS-7
#[tokio::test]
async fn a_note_keeps_the_device_value_and_its_author() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let package = r#"{"branch_code":"IZMIR-01","plate":"35OPN205","device_serial":"BT-1","measurements":{"BRAKE_FRONT_LEFT":3.10}}"#;
    service.measure(&ALPHA, package).await.assert_status(201);
    let target = target(inspections::DRAFT, "TEST_LINE");
    for answer in [
        json!({ "point_code": "BRAKE_FRONT_LEFT", "note": "Balata yeni." }),
        json!({ "point_code": "BRAKE_FRONT_LEFT", "numeric_value": 3.1 }),
        json!({ "point_code": "BRAKE_FRONT_LEFT", "status_code": "GOOD" }),
    ] {
        let response = inspector
            .write(&service, "PUT", &target, json!({ "answers": [answer] }))
            .await;
        response.assert_status(200);
        let point = point(&response, "BRAKE_FRONT_LEFT");
        assert_eq!(
            [&point["written_by"], &point["note"], &point["status_code"]],
            ["device BT-1", "Balata yeni.", "GOOD"]
        );
        assert_eq!(point["numeric_value"], 3.1);
    }
    // The point has no answer to which the note could belong.
    let alone = json!({ "answers": [{ "point_code": "HANDBRAKE_LEFT", "note": "?" }] });
    let rejected = inspector.write(&service, "PUT", &target, alone).await;
    rejected.assert_rejected(400, "invalid_request");
}

/// INS-7, MEA-9
#[tokio::test]
async fn a_ratio_is_removed_when_its_power_changes() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let target = target(inspections::DRAFT, "TEST_LINE");
    let power = async |value: f64| {
        let body = json!({ "answers": [{ "point_code": "DYNO_MEASURED_HP", "numeric_value": value }] });
        inspector.write(&service, "PUT", &target, body).await
    };
    assert_eq!(point(&power(153.0).await, "DYNO_RATIO")["numeric_value"], 90.0);
    // The organization removes its thresholds, so ratios no longer have a status.
    let remove_thresholds = "DELETE FROM thresholds WHERE point_code = 'DYNO_RATIO'";
    service.db.batch_execute(remove_thresholds).await.unwrap();
    let without = power(140.0).await;
    without.assert_status(200);
    assert_eq!(
        point(&without, "DYNO_RATIO").get("numeric_value"),
        None,
        "{}",
        point(&without, "DYNO_RATIO")
    );
    assert_eq!(
        service
            .count("inspection_form_answer_history WHERE numeric_value = 90")
            .await,
        1
    );
}

/// INS-12
#[tokio::test]
async fn an_entered_ratio_must_match_the_power() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let target = target(inspections::DRAFT, "TEST_LINE");
    let fill = async |answers: Value| {
        let body = json!({ "answers": answers });
        inspector.write(&service, "PUT", &target, body).await
    };
    let power = |value: f64| json!({ "point_code": "DYNO_MEASURED_HP", "numeric_value": value });
    let ratio = |value: f64| json!({ "point_code": "DYNO_RATIO", "numeric_value": value });
    let note = || json!({ "point_code": "DYNO_RATIO", "note": "İki kez ölçüldü." });

    fill(json!([power(153.0), ratio(95.0)]))
        .await
        .assert_rejected(400, "invalid_request")
        .snapshot("a_ratio_that_contradicts_the_power_is_rejected");
    let written = "inspection_form_answers WHERE written_by = 'Ayşe Demir'";
    assert_eq!(service.count(written).await, 0);
    // Sending the same ratio again changes nothing.
    let agrees = fill(json!([ratio(90.0), power(153.0)])).await;
    assert_eq!(point(agrees.assert_status(200), "DYNO_RATIO")["numeric_value"], 90.0);
    // With the existing power.
    fill(json!([ratio(91.0)])).await.assert_rejected(400, "invalid_request");
    // A note on it belongs to the new ratio.
    let noted = fill(json!([note(), power(136.0)])).await;
    let noted = point(noted.assert_status(200), "DYNO_RATIO");
    assert_eq!(
        [&noted["numeric_value"], &noted["status_code"]],
        [&json!(80.0), &json!("BORDERLINE")]
    );
    assert_eq!(noted["note"], "İki kez ölçüldü.");

    let remove_thresholds = "DELETE FROM thresholds WHERE point_code = 'DYNO_RATIO'";
    service.db.batch_execute(remove_thresholds).await.unwrap();
    fill(json!([note(), power(140.0)]))
        .await
        .assert_rejected(400, "invalid_request");
    // A ratio that cannot be computed is the inspector's to enter.
    let unknown = "UPDATE vehicles SET factory_power_hp = NULL";
    service.db.batch_execute(unknown).await.unwrap();
    let typed = json!({ "point_code": "DYNO_RATIO", "numeric_value": 77, "status_code": "BORDERLINE" });
    let filled = fill(json!([typed, power(140.0)])).await;
    assert_eq!(point(filled.assert_status(200), "DYNO_RATIO")["numeric_value"], 77.0);
}

#[tokio::test]
async fn a_text_that_the_database_cannot_store_is_rejected() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let body = json!({ "answers": [{ "point_code": "FRONT_HOOD", "status_code": "GOOD", "note": "a\u{0}b" }] });
    let rejected = inspector
        .write(&service, "PUT", &target(inspections::DRAFT, "BODY"), body)
        .await;
    rejected.assert_rejected(400, "invalid_request");
}

/// INS-7, INS-12
#[tokio::test]
async fn answers_are_cleared_with_the_ratio_of_their_power_and_kept_in_the_history() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let target = target(inspections::DRAFT, "TEST_LINE");
    let body = json!({ "answers": [
        { "point_code": "DYNO_MEASURED_HP", "numeric_value": 153 },
        { "point_code": "HANDBRAKE_LEFT", "numeric_value": 2, "status_code": "GOOD", "note": "Sıkı" },
    ] });
    let written = inspector.write(&service, "PUT", &target, body).await;
    assert_eq!(point(&written, "DYNO_RATIO")["numeric_value"], 90.0);
    // A point that is cleared and answered loses what the new answer does not have.
    let body = json!({
        "clear": ["DYNO_MEASURED_HP", "HANDBRAKE_LEFT"],
        "answers": [{ "point_code": "HANDBRAKE_LEFT", "status_code": "GOOD" }],
    });
    let cleared = inspector.write(&service, "PUT", &target, body).await;
    cleared.assert_status(200);
    for code in ["DYNO_MEASURED_HP", "DYNO_RATIO"] {
        assert_eq!(point(&cleared, code)["status_code"], json!(null), "{code}");
    }
    let handbrake = point(&cleared, "HANDBRAKE_LEFT");
    assert_eq!(
        (
            &handbrake["status_code"],
            &handbrake["numeric_value"],
            &handbrake["note"]
        ),
        (&json!("GOOD"), &json!(null), &json!(""))
    );
    assert!(cleared.json()["data"]["version"].as_i64() > written.json()["data"]["version"].as_i64());
    assert_eq!(service.count("inspection_form_answer_history").await, 3);
    let unknown = inspector
        .write(&service, "PUT", &target, json!({ "clear": ["ABS"] }))
        .await;
    unknown
        .assert_rejected(400, "invalid_request")
        .snapshot("an_unknown_point_is_not_cleared");
}

/// INS-7
#[tokio::test]
async fn a_note_alone_and_more_than_two_hundred_answers_are_accepted() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let more = "INSERT INTO form_template_points (id, organization_id, template_id, code, name, position)
                SELECT gen_random_uuid(), organization_id, id, 'P' || n, 'Nokta ' || n, 100 + n
                FROM form_templates, generate_series(1, 300) AS n WHERE code = 'BODY' AND organization_id = (
                    SELECT organization_id FROM inspections WHERE id = '0197c2a4-6f00-7e00-8000-000000000205')";
    service.db.batch_execute(more).await.unwrap();
    let target = target(inspections::DRAFT, "BODY");
    let note = json!({ "answers": [], "general_note": "Araç kirli." });
    inspector.write(&service, "PUT", &target, note).await.assert_status(200);
    let answers: Vec<Value> = (1..=300)
        .map(|n| json!({ "point_code": format!("P{n}"), "status_code": "GOOD" }))
        .collect();
    let filled = inspector
        .write(&service, "PUT", &target, json!({ "answers": answers }))
        .await;
    filled.assert_status(200);
    assert_eq!(point(&filled, "P300")["status_code"], "GOOD");
}

/// INS-21
#[tokio::test]
async fn a_form_has_the_statuses_of_its_template_and_the_test_line_those_of_thresholds() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let set = r#"UPDATE form_templates SET statuses = '[
        {"code": "OK", "label": "Tamam", "label_en": "Fine", "severity": "NONE", "is_common": true},
        {"code": "DENTED", "label": "Göçük", "label_en": null, "severity": "HIGH", "is_common": false}]'"#;
    service.db.batch_execute(set).await.unwrap();
    let body = json!({ "answers": [{ "point_code": "FRONT_HOOD", "status_code": "DENTED" }] });
    let filled = inspector
        .write(&service, "PUT", &target(inspections::DRAFT, "BODY"), body)
        .await;
    let hood = point(&filled, "FRONT_HOOD");
    assert_eq!(
        [&hood["status_code"], &hood["status_label"], &hood["severity"]],
        ["DENTED", "Göçük", "HIGH"]
    );
    let report = filled.json()["data"].clone();
    let codes = |form: usize| {
        let statuses = report["forms"][form]["statuses"].as_array().unwrap();
        let codes = statuses.iter().map(|status| status["code"].as_str().unwrap());
        codes.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        (codes(0), codes(1)),
        (
            vec!["OK".to_owned(), "DENTED".to_owned()],
            ["GOOD", "BORDERLINE", "OUT_OF_LIMIT"].map(ToOwned::to_owned).to_vec()
        )
    );
    // A status of another form, or of the general list.
    for (form, code, status) in [
        ("BODY", "FRONT_HOOD", "PAINTED"),
        ("TEST_LINE", "HANDBRAKE_LEFT", "DENTED"),
    ] {
        let body = json!({ "answers": [{ "point_code": code, "status_code": status }] });
        let rejected = inspector
            .write(&service, "PUT", &target(inspections::DRAFT, form), body)
            .await;
        rejected.assert_rejected(400, "invalid_request");
        if form == "BODY" {
            rejected.snapshot("a_status_of_another_form_is_rejected");
        }
    }
    let stored = "SELECT status_label, severity FROM inspection_form_answers WHERE status_code = 'DENTED'";
    assert_eq!(
        service.rows(stored).await,
        json!([{ "status_label": "Göçük", "severity": "HIGH" }])
    );
}

/// INS-22
#[tokio::test]
async fn replaced_and_cleared_answers_are_shown_the_last_one_first() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let target = target(inspections::DRAFT, "BODY");
    let fill = async |body: Value| inspector.write(&service, "PUT", &target, body).await;
    fill(json!({ "answers": [{ "point_code": "FRONT_HOOD", "status_code": "PAINTED", "note": "Sol kenarda" }] })).await;
    fill(json!({ "clear": ["FRONT_HOOD"] })).await;
    let mehmet = service.inspector(&MEHMET).await;
    let body = json!({ "answers": [{ "point_code": "FRONT_HOOD", "status_code": "ORIGINAL" }] });
    mehmet.write(&service, "PUT", &target, body).await.assert_status(200);
    let filled = fill(json!({ "answers": [{ "point_code": "FRONT_HOOD", "status_code": "REPLACED" }] })).await;
    let hood = point(&filled, "FRONT_HOOD");
    let shown: Vec<Value> = hood["earlier"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| json!([one["status_label"], one["note"], one["written_by"]]))
        .collect();
    assert_eq!(
        shown,
        [
            json!(["Orijinal", "", MEHMET.name]),
            json!(["Boyalı", "Sol kenarda", AYSE.name])
        ]
    );
    assert_eq!(point(&filled, "REAR_RIGHT_FENDER")["earlier"], json!(null));
}
