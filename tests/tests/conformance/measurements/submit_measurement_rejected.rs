//! Rejected packages, of which nothing is recorded.

use chrono::{SecondsFormat, TimeDelta, Utc};
use partner_api_tests::{ALPHA, BETA, GAMMA, Request, Service, TestResponse};
use serde_json::{Map, Value, json};

const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";

fn package() -> Value {
    json!({ "branch_code": "IZMIR-01", "plate": "35 OPN 205", "external_id": "M-1", "measurements": { "BRAKE_FRONT_LEFT": 2.85 } })
}

/// [`package`] with one member replaced; null removes it.
fn with(member: &str, value: Value) -> String {
    let mut package = package();
    if value.is_null() {
        package.as_object_mut().unwrap().remove(member);
    } else {
        package[member] = value;
    }
    package.to_string()
}

async fn rejected(service: &Service, body: String, status: u16, code: &str) -> TestResponse {
    let response = service.measure(&ALPHA, body).await;
    response.assert_rejected(status, code);
    response
}

/// KEY-4, ERR-6
#[tokio::test]
async fn a_key_without_the_scope_is_rejected() {
    let service = Service::start().await;
    let response = service.measure(&BETA, package().to_string()).await;
    response
        .assert_rejected(403, "scope_required")
        .snapshot("a_key_without_the_scope_is_rejected");
    // The scope is checked before the body.
    service
        .measure(&BETA, "no json")
        .await
        .assert_rejected(403, "scope_required");
    assert_eq!(service.count("measurements").await, 0);
}

/// MEA-1
#[tokio::test]
async fn a_branch_that_is_closed_to_the_partner_is_not_found() {
    let service = Service::start().await;
    let unknown = rejected(&service, with("branch_code", json!("NOWHERE")), 404, "not_found").await;
    unknown.snapshot("an_unknown_branch_code_is_not_found");
    let inactive = rejected(&service, with("branch_code", json!("ESK-01")), 404, "not_found").await;
    assert_eq!(inactive.message(), unknown.message());
    let not_granted = service.measure(&GAMMA, package().to_string()).await;
    assert_eq!(
        not_granted.assert_rejected(404, "not_found").message(),
        unknown.message()
    );
    assert_eq!(service.count("measurements").await, 0);
}

/// MEA-1
#[tokio::test]
async fn a_branch_code_that_matches_two_branches_is_rejected() {
    let service = Service::start().await;
    let response = rejected(&service, with("branch_code", json!("ortak")), 400, "invalid_request").await;
    response.snapshot("a_branch_code_that_matches_two_branches_is_rejected");
    // If only one of them is granted, the code means that one.
    let one = service
        .measure(&partner_api_tests::DELTA, with("branch_code", json!("ORTAK")))
        .await;
    one.assert_status(201);
}

/// MEA-2
#[tokio::test]
async fn an_invalid_plate_is_rejected() {
    let service = Service::start().await;
    rejected(&service, with("plate", json!("ABC")), 400, "invalid_request")
        .await
        .snapshot("an_invalid_plate_is_rejected");
    for plate in [
        "",
        "34",
        "00 ABC 123",
        "82 ABC 123",
        "34 ABCD 12",
        "34 ABC 1",
        "34 ABC 123456",
        "34 ÇBC 123",
        "3 ABC 123",
        "34 123",
    ] {
        let message = rejected(&service, with("plate", json!(plate)), 400, "invalid_request")
            .await
            .message();
        assert!(message.contains("plate"), "{plate}: {message}");
    }
    assert_eq!(service.count("measurements").await, 0);
}

/// MEA-3
#[tokio::test]
async fn a_time_in_the_future_is_rejected() {
    let service = Service::start().await;
    let time = |seconds| (Utc::now() + TimeDelta::seconds(seconds)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let message = rejected(&service, with("measured_at", json!(time(330))), 400, "invalid_request")
        .await
        .message();
    assert!(message.contains("measured_at"), "{message}");
    for wrong in ["2026-06-15T12:05:00", "2026-06-15", "yesterday", ""] {
        let message = rejected(&service, with("measured_at", json!(wrong)), 400, "invalid_request")
            .await
            .message();
        assert!(message.contains("measured_at"), "{wrong}: {message}");
    }
    service
        .measure(&ALPHA, with("measured_at", json!(time(270))))
        .await
        .assert_status(201);
}

#[tokio::test]
async fn a_body_that_is_not_json_is_rejected() {
    let service = Service::start().await;
    rejected(&service, "{\"plate\":".to_owned(), 400, "invalid_request")
        .await
        .snapshot("a_body_that_is_not_json_is_rejected");
    for body in ["", "null", "[]", "\"text\"", "{} {}", "{'plate':1}", "\u{feff}{}", "1"] {
        rejected(&service, body.to_owned(), 400, "invalid_request").await;
    }
    let not_utf8 = Request::post(MEASUREMENTS, b"{\"plate\":\"\xff\"}".as_slice()).signed_by(&ALPHA);
    service.send(not_utf8).await.assert_rejected(400, "invalid_request");
}

/// ERR-8, MEA-15
#[tokio::test]
async fn an_invalid_member_is_rejected_with_its_path() {
    let service = Service::start().await;
    let response = rejected(
        &service,
        with("measurements", json!({ "BRAKE_FRONT_LEFT": "2.85" })),
        400,
        "invalid_request",
    )
    .await;
    response.snapshot("a_value_that_is_not_a_number_is_rejected_with_its_path");
    assert!(
        response.message().contains("measurements.BRAKE_FRONT_LEFT"),
        "{}",
        response.message()
    );
    for (member, value) in [
        ("branch_code", Value::Null),
        ("branch_code", json!("")),
        ("branch_code", json!(7)),
        ("branch_code", json!("x".repeat(65))),
        ("branch_code", json!("ANK\n01")),
        ("plate", Value::Null),
        ("plate", json!(34)),
        ("plate", json!("3".repeat(33))),
        ("external_id", json!("")),
        ("external_id", json!("x".repeat(121))),
        ("external_id", json!("a\u{0}b")),
        ("device_serial", json!("x".repeat(121))),
        ("device_serial", json!(12)),
        ("measurements", Value::Null),
        ("measurements", json!({})),
        ("measurements", json!([])),
        ("measurements", json!({ "brake": 1 })),
        ("measurements", json!({ "1BRAKE": 1 })),
        ("measurements", json!({ "BRAKE-LEFT": 1 })),
        ("measurements", json!({ "": 1 })),
        ("measurements", json!({ "A".repeat(65): 1 })),
        ("measurements", json!({ "A": null })),
        ("measurements", json!({ "A": true })),
    ] {
        let message = rejected(&service, with(member, value.clone()), 400, "invalid_request")
            .await
            .message();
        assert!(message.contains(member), "{member} {value}: {message}");
    }
    assert_eq!(service.count("measurements").await, 0);
}

/// MEA-4
#[tokio::test]
async fn a_package_has_1_to_50_measurements() {
    let service = Service::start().await;
    let measurements = |count| {
        (0..count)
            .map(|number| (format!("P{number}"), json!(number)))
            .collect::<Map<_, _>>()
            .into()
    };
    service
        .measure(&ALPHA, with("measurements", measurements(50)))
        .await
        .assert_status(201);
    rejected(&service, with("measurements", measurements(51)), 400, "invalid_request").await;
}

/// MEA-4
#[tokio::test]
async fn a_code_that_is_sent_twice_is_rejected() {
    let service = Service::start().await;
    let body = r#"{"branch_code":"IZMIR-01","plate":"35 OPN 205","measurements":{"SLIP_FRONT":1,"SLIP_FRONT":2}}"#;
    let response = rejected(&service, body.to_owned(), 400, "invalid_request").await;
    response.snapshot("a_code_that_is_sent_twice_is_rejected");
    assert!(response.message().contains("SLIP_FRONT"), "{}", response.message());
}

/// MEA-4
#[tokio::test]
async fn all_18_significant_digits_of_a_value_are_kept() {
    let service = Service::start().await;
    let body =
        |value: &str| format!(r#"{{"branch_code":"IZMIR-01","plate":"34 ABC 123","measurements":{{"A":{value}}}}}"#);
    for good in ["123456789.012345678", "-0.000000000000000001", "1e3", "1.50", "0"] {
        service.measure(&ALPHA, body(good)).await.assert_status(201);
    }
    for bad in ["1234567890.0123456789", "1e400", "NaN", "Infinity", "1,5", "+1", ".5"] {
        rejected(&service, body(bad), 400, "invalid_request").await;
    }
    let texts = service
        .rows("SELECT unnest(point_texts) AS value_text FROM measurements")
        .await;
    let texts: Vec<_> = texts
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["value_text"].as_str().unwrap())
        .collect();
    assert!(
        texts.contains(&"123456789.012345678") && texts.contains(&"1.50"),
        "{texts:?}"
    );
}
