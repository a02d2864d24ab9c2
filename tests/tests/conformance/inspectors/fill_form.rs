//! `fill_form`

use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, AYSE, Answer, DERYA, Service};
use serde_json::{Value, json};

fn target(id: &str, form: &str) -> String {
    format!("/inspector/v1/reports/{id}/forms/{form}")
}

/// The point of an answer's report.
#[track_caller]
fn point(answer: &Answer, code: &str) -> Value {
    let report = answer.json();
    let forms = report["data"]["forms"].as_array().unwrap().clone();
    let mut points = forms.iter().flat_map(|form| form["points"].as_array().unwrap());
    points.find(|point| point["code"] == code).unwrap().clone()
}

/// INS-7
#[tokio::test]
async fn answers_are_written_and_what_they_replace_is_kept() {
    let service = Service::start().await;
    let (client, seen) = service.generated_inspector_client(&AYSE).await;
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
    let answer = seen.last();
    answer.snapshot("answers_are_written_into_a_form");
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
async fn a_number_on_the_test_line_gets_its_status_by_the_thresholds_and_a_power_its_ratio() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let target = target(inspections::DRAFT, "TEST_LINE");
    let body = json!({ "general_note": "Elle girildi.", "answers": [
        { "point_code": "BRAKE_FRONT_LEFT", "numeric_value": 2.10 },
        { "point_code": "DYNO_MEASURED_HP", "numeric_value": 153 },
    ] });
    let answer = inspector.write(&service, "PUT", &target, body).await;
    answer.assert_status(200);
    let status = |code: &str| point(&answer, code)["status_code"].clone();
    assert_eq!(
        [
            status("BRAKE_FRONT_LEFT"),
            status("DYNO_MEASURED_HP"),
            status("DYNO_RATIO")
        ],
        ["BORDERLINE", "GOOD", "GOOD"]
    );
    assert_eq!(point(&answer, "DYNO_RATIO")["numeric_value"], 90.0);
    // What says otherwise than the thresholds is refused.
    let body = json!({ "answers": [
        { "point_code": "BRAKE_FRONT_LEFT", "numeric_value": 1.00, "status_code": "GOOD" },
        { "point_code": "BRAKE_FRONT_RIGHT", "numeric_value": 2850 },
        { "point_code": "HANDBRAKE_LEFT", "numeric_value": 1 },
        { "point_code": "ABS", "status_code": "GOOD" },
        { "point_code": "HANDBRAKE_LEFT", "status_code": "GOOD" },
    ] });
    let refused = inspector.write(&service, "PUT", &target, body).await;
    refused
        .assert_refused(400, "invalid_request")
        .snapshot("everything_wrong_with_answers_is_said_at_once");
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
async fn what_a_device_wrote_may_be_corrected_and_the_device_writes_no_more_over_a_person() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let package =
        r#"{"branch_code":"IZMIR-01","plate":"35OPN205","device_serial":"BT-1","measurements":{"BRAKE_FRONT_LEFT":3}}"#;
    service.measure(&ALPHA, package).await.assert_status(201);
    let before = inspector.report(&service, inspections::DRAFT).await;
    let body = json!({ "answers": [{ "point_code": "BRAKE_FRONT_LEFT", "numeric_value": 1.5 }] });
    let answer = inspector
        .write(&service, "PUT", &target(inspections::DRAFT, "TEST_LINE"), body)
        .await;
    assert_eq!(point(&answer, "BRAKE_FRONT_LEFT")["written_by"], AYSE.name);
    assert!(answer.json()["data"]["version"].as_i64() > before["version"].as_i64());
    let kept = service
        .rows("SELECT numeric_value::text FROM inspection_form_answer_history WHERE by_device")
        .await;
    assert_eq!(kept, json!([{ "numeric_value": "3" }]));
}

/// INS-5, INS-6
#[tokio::test]
async fn nothing_is_filled_in_where_there_is_no_form_no_report_or_no_writing() {
    let service = Service::start().await;
    let (ayse, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let body = json!({ "answers": [{ "point_code": "FRONT_HOOD", "status_code": "ORIGINAL" }] });
    let no_form = ayse
        .write(&service, "PUT", &target(inspections::DRAFT, "ROOF"), body.clone())
        .await;
    no_form
        .assert_refused(404, "not_found")
        .snapshot("a_form_that_there_is_not_is_not_filled");
    let theirs = derya
        .write(&service, "PUT", &target(inspections::DRAFT, "BODY"), body.clone())
        .await;
    theirs.assert_refused(404, "not_found");
    let reviewed = ayse
        .write(&service, "PUT", &target(inspections::IN_REVIEW, "BODY"), body)
        .await;
    reviewed
        .assert_refused(409, "transition_refused")
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
async fn a_note_alone_leaves_a_devices_value_and_who_wrote_it() {
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
        let answer = inspector
            .write(&service, "PUT", &target, json!({ "answers": [answer] }))
            .await;
        answer.assert_status(200);
        let point = point(&answer, "BRAKE_FRONT_LEFT");
        assert_eq!(
            [&point["written_by"], &point["note"], &point["status_code"]],
            ["device BT-1", "Balata yeni.", "GOOD"]
        );
        assert_eq!(point["numeric_value"], 3.1);
    }
    // There is nothing that a note could stand beside.
    let alone = json!({ "answers": [{ "point_code": "HANDBRAKE_LEFT", "note": "?" }] });
    let refused = inspector.write(&service, "PUT", &target, alone).await;
    refused.assert_refused(400, "invalid_request");
}

/// INS-7, MEA-9
#[tokio::test]
async fn a_ratio_goes_with_the_power_that_it_does_not_follow_from() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let target = target(inspections::DRAFT, "TEST_LINE");
    let power = async |value: f64| {
        let body = json!({ "answers": [{ "point_code": "DYNO_MEASURED_HP", "numeric_value": value }] });
        inspector.write(&service, "PUT", &target, body).await
    };
    assert_eq!(point(&power(153.0).await, "DYNO_RATIO")["numeric_value"], 90.0);
    // The organization takes its thresholds away: no ratio has a status any more.
    let away = "DELETE FROM thresholds WHERE point_code = 'DYNO_RATIO'";
    service.db.batch_execute(away).await.unwrap();
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
async fn a_ratio_that_is_typed_in_is_the_one_that_follows_from_the_power_or_is_refused() {
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
        .assert_refused(400, "invalid_request")
        .snapshot("a_ratio_that_contradicts_the_power_is_refused");
    let is_there = "inspection_form_answers WHERE written_by = 'Ayşe Demir'";
    assert_eq!(service.count(is_there).await, 0);
    // The same said twice is none.
    let agrees = fill(json!([ratio(90.0), power(153.0)])).await;
    assert_eq!(point(agrees.assert_status(200), "DYNO_RATIO")["numeric_value"], 90.0);
    // Beside the power that is there.
    fill(json!([ratio(91.0)])).await.assert_refused(400, "invalid_request");
    // A note on it is one on the new ratio.
    let noted = fill(json!([note(), power(136.0)])).await;
    let noted = point(noted.assert_status(200), "DYNO_RATIO");
    assert_eq!(
        [&noted["numeric_value"], &noted["status_code"]],
        [&json!(80.0), &json!("BORDERLINE")]
    );
    assert_eq!(noted["note"], "İki kez ölçüldü.");

    let away = "DELETE FROM thresholds WHERE point_code = 'DYNO_RATIO'";
    service.db.batch_execute(away).await.unwrap();
    fill(json!([note(), power(140.0)]))
        .await
        .assert_refused(400, "invalid_request");
    // Nobody knows better than the inspector where it cannot be computed.
    let unknown = "UPDATE vehicles SET factory_power_hp = NULL";
    service.db.batch_execute(unknown).await.unwrap();
    let typed = json!({ "point_code": "DYNO_RATIO", "numeric_value": 77, "status_code": "BORDERLINE" });
    let said = fill(json!([typed, power(140.0)])).await;
    assert_eq!(point(said.assert_status(200), "DYNO_RATIO")["numeric_value"], 77.0);
}

#[tokio::test]
async fn a_text_that_the_database_cannot_hold_is_refused() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let body = json!({ "answers": [{ "point_code": "FRONT_HOOD", "status_code": "GOOD", "note": "a\u{0}b" }] });
    let refused = inspector
        .write(&service, "PUT", &target(inspections::DRAFT, "BODY"), body)
        .await;
    refused.assert_refused(400, "invalid_request");
}
