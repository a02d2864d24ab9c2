//! The bounds of accepted packages; a rejected package changes nothing.

use chrono::{SecondsFormat, TimeDelta, Utc};
use partner_api_tests::fixture::ALLOWLISTED;
use partner_api_tests::{ALPHA, BETA, DELTA, Request, Service};
use serde_json::{Value, json};

use partner_api_tests::measurements::{MEASUREMENTS, contents, package};

/// [`package`] with one member replaced.
fn with(member: &str, value: Value) -> String {
    let mut package: Value = serde_json::from_str(&package("M-1", "35 OPN 205")).unwrap();
    package[member] = value;
    package.to_string()
}

/// A package with this text as its measurements.
fn measuring(measurements: &str) -> String {
    format!(r#"{{"branch_code":"IZMIR-01","plate":"34 ABC 123","measurements":{measurements}}}"#)
}

/// REQ-17
#[tokio::test]
async fn null_means_a_missing_member() {
    let service = Service::start().await;
    for (member, status) in [("measured_at", 201), ("external_id", 201), ("device_serial", 200)] {
        let response = service.measure(&ALPHA, with(member, Value::Null)).await;
        response.assert_status(status);
    }
    let recorded = "SELECT external_id FROM measurements ORDER BY external_id";
    assert_eq!(
        service.rows(recorded).await,
        json!([{ "external_id": "M-1" }, { "external_id": null }])
    );
}

#[tokio::test]
async fn a_required_member_must_not_be_null() {
    let service = Service::start().await;
    let before = contents(&service).await;
    for member in ["branch_code", "plate", "measurements"] {
        let response = service.measure(&ALPHA, with(member, Value::Null)).await;
        let message = response.assert_rejected(400, "invalid_request").message();
        assert!(message.contains(member), "{member}: {message}");
    }
    assert_eq!(contents(&service).await, before);
}

#[tokio::test]
async fn a_missing_member_is_named() {
    let service = Service::start().await;
    for (member, body) in [
        ("branch_code", r#"{"plate":"34 ABC 123","measurements":{"A":1}}"#),
        ("plate", r#"{"branch_code":"IZMIR-01","measurements":{"A":1}}"#),
        ("measurements", r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123"}"#),
    ] {
        let response = service.measure(&ALPHA, body).await;
        response
            .assert_rejected(400, "invalid_request")
            .snapshot(&format!("a_package_without_{member}_is_rejected"));
        assert!(response.message().contains(member), "{}", response.message());
    }
}

#[tokio::test]
async fn a_member_that_is_sent_twice_is_rejected() {
    let service = Service::start().await;
    let body = r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123","plate":"34 ABC 124","measurements":{"A":1}}"#;
    let message = service
        .measure(&ALPHA, body)
        .await
        .assert_rejected(400, "invalid_request")
        .message();
    assert!(message.contains("plate"), "{message}");
}

/// MEA-4
#[tokio::test]
async fn keys_of_measurements_have_1_to_64_characters_of_their_alphabet() {
    let service = Service::start().await;
    let longest = format!("A{}", "_".repeat(63));
    for good in ["A", "A1_", &longest] {
        service
            .measure(&ALPHA, measuring(&json!({ good: 1 }).to_string()))
            .await
            .assert_status(201);
    }
    let too_long = format!("{longest}_");
    for bad in ["dyno", "A-B", "_A", "1A", "A B", "Ş", "A\u{130}", "", "A\n", &too_long] {
        let response = service.measure(&ALPHA, measuring(&json!({ bad: 1 }).to_string())).await;
        let message = response.assert_rejected(400, "invalid_request").message();
        assert!(message.contains("measurements"), "{bad:?}: {message}");
    }
    assert_eq!(service.count("measurements").await, 3);
}

/// MEA-4
#[tokio::test]
async fn a_value_has_at_most_18_significant_digits() {
    let service = Service::start().await;
    let before = contents(&service).await;
    for bad in [
        "1234567890123456789",
        "0.1234567890123456789",
        "-123456789.0123456789",
        "1.000000000000000000",
        "1E400",
        "-Infinity",
        "nan",
        "\"NaN\"",
        "\"2.85\"",
        "0x10",
        "01",
        "1.",
        "2,85",
        "[1]",
        "{\"value\":1}",
    ] {
        let response = service.measure(&ALPHA, measuring(&format!(r#"{{"A":{bad}}}"#))).await;
        response.assert_rejected(400, "invalid_request");
    }
    assert_eq!(contents(&service).await, before);
    let good = ["123456789012345678", "0.123456789012345678", "-1.5e-3", "0.000"];
    for good in good {
        service
            .measure(&ALPHA, measuring(&format!(r#"{{"A":{good}}}"#)))
            .await
            .assert_status(201);
    }
    let texts = service
        .rows("SELECT unnest(point_texts) AS value_text FROM measurements ORDER BY id")
        .await;
    let expected: Vec<_> = good.iter().map(|text| json!({ "value_text": text })).collect();
    assert_eq!(texts, json!(expected));
}

/// MEA-3
#[tokio::test]
async fn the_clock_of_a_device_may_be_ahead_by_at_most_five_minutes() {
    let service = Service::start().await;
    let time = |seconds| {
        let time = Utc::now() + TimeDelta::seconds(seconds);
        json!(time.to_rfc3339_opts(SecondsFormat::Millis, false))
    };
    service
        .measure(&ALPHA, with("measured_at", time(299)))
        .await
        .assert_status(201);
    let response = service.measure(&ALPHA, with("measured_at", time(310))).await;
    response.assert_rejected(400, "invalid_request");
    assert!(response.message().starts_with("measured_at"), "{}", response.message());
    // Any age and any offset are accepted.
    for time in [
        "1999-12-31T23:59:59Z",
        "2026-06-15T12:05:00+14:00",
        "2026-06-15t12:05:00.123456789-05:30",
    ] {
        let body = with("measured_at", json!(time)).replace("M-1", time);
        service.measure(&ALPHA, body).await.assert_status(201);
    }
    for wrong in [
        "2026-06-15T12:05:00",
        "2026-06-15 12:05",
        "2026-13-01T00:00:00Z",
        "1781517900",
    ] {
        let message = service
            .measure(&ALPHA, with("measured_at", json!(wrong)))
            .await
            .assert_rejected(400, "invalid_request")
            .message();
        assert!(message.contains("measured_at"), "{wrong}: {message}");
    }
}

/// MEA-15
#[tokio::test]
async fn texts_of_the_maximum_length_are_accepted() {
    let service = Service::start().await;
    let body = with("device_serial", json!("ğ".repeat(120))).replace("M-1", &"x".repeat(120));
    service.measure(&ALPHA, body).await.assert_status(201);
    let lengths = "SELECT length(external_id) AS id, length(device_serial) AS serial FROM measurements";
    assert_eq!(service.rows(lengths).await, json!([{ "id": 120, "serial": 120 }]));
}

#[tokio::test]
async fn a_package_must_be_declared_as_json() {
    let service = Service::start().await;
    let before = contents(&service).await;
    let send = |content_type: &str| {
        let request = Request::new("POST", MEASUREMENTS).body(package("M-1", "34 ABC 123"));
        service.send(request.header("content-type", content_type).signed_by(&ALPHA))
    };
    for other in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/xml",
        "json",
        "",
    ] {
        let response = send(other).await;
        assert!(
            response
                .assert_rejected(400, "invalid_request")
                .message()
                .contains("Content-Type"),
            "{other}"
        );
    }
    send("text/plain")
        .await
        .snapshot("a_package_with_another_content_type_is_rejected");
    assert_eq!(contents(&service).await, before);
    send("Application/JSON; charset=utf-8").await.assert_status(201);
    // A body without a content type is read as JSON.
    let without_content_type = Request::new("POST", MEASUREMENTS).body(package("M-2", "34 ABC 123"));
    service
        .send(without_content_type.signed_by(&ALPHA))
        .await
        .assert_status(201);
}

#[tokio::test]
async fn an_unavailable_branch_looks_like_an_unknown_one() {
    let first = Service::start().await;
    let scoped = format!(
        "UPDATE api_keys SET scopes = '{{test-line:write}}' WHERE key_id = '{}'",
        BETA.id
    );
    first.db.execute(&scoped, &[]).await.unwrap();
    let service = first.replica().await;
    let to = |branch: &str| with("branch_code", json!(branch));
    let body_of = |response: &partner_api_tests::TestResponse| {
        let mut body = response.assert_rejected(404, "not_found").json();
        body["error"]["request_id"] = Value::Null;
        body
    };
    let unknown = body_of(&service.measure(&ALPHA, to("NOWHERE")).await);
    for (key, branch) in [
        (&ALPHA, "ESK-01"),
        // A branch of another organization, another branch of the same one, and a closed one of its own.
        (&DELTA, "IZMIR-01"),
        (&BETA, "ANK-01"),
        (&BETA, "ESK-01"),
        (&BETA, "KAP-01"),
    ] {
        let response = service.measure(key, to(branch)).await;
        assert_eq!(body_of(&response), unknown, "{branch}");
    }
    service.measure(&BETA, to("izmir-01")).await.assert_status(201);
}

/// KEY-7
#[tokio::test]
async fn a_rejected_package_records_only_its_nonce() {
    let service = Service::start().await;
    let before = contents(&service).await;
    for (number, (body, status)) in [
        ("no json".to_owned(), 400),
        (with("plate", json!("ABC")), 400),
        (with("branch_code", json!("ORTAK")), 400),
        (with("branch_code", json!("NOWHERE")), 404),
    ]
    .into_iter()
    .enumerate()
    {
        let nonce = format!("of-a-rejected-package-{number}");
        let request = Request::post(MEASUREMENTS, body).signed_by(&ALPHA).nonce(&nonce);
        service.send(request.clone()).await.assert_status(status);
        service.send(request).await.assert_rejected(401, "replay_detected");
        assert!(service.knows_nonce(&ALPHA, &nonce).await);
    }
    assert_eq!(contents(&service).await, before);
    // A request from a rejected address does not even record its nonce.
    let used = service.used_nonces().await;
    service
        .measure(&ALLOWLISTED, package("M-1", "35 OPN 205"))
        .await
        .assert_rejected(401, "invalid_key");
    assert_eq!(service.used_nonces().await, used);
}

/// REQ-8
#[tokio::test]
async fn a_body_is_exactly_one_json_object_in_utf8() {
    let service = Service::start().await;
    let whole = package("M-1", "34 ABC 123").into_bytes();
    let with_end = |end: &[u8]| [&whole, end].concat();
    // An unknown member that is not valid UTF-8.
    let unknown = [&whole[..whole.len() - 1], b",\"note\":\"\xff\"}"].concat();
    for (body, what) in [
        (with_end(&whole), "a second document"),
        (with_end(b" x"), "a word"),
        (with_end(b"\0"), "a zero byte"),
        (with_end(b"\xff"), "a byte that is not UTF-8"),
        (with_end(b","), "a comma"),
        (br#"["34ABC123","IZMIR-01"]"#.to_vec(), "an array"),
        (unknown, "an unknown member that is not UTF-8"),
        ([b"\xef\xbb\xbf".as_slice(), &whole].concat(), "a byte order mark"),
    ] {
        let response = service.measure(&ALPHA, body).await;
        let (status, code) = (response.status.as_u16(), response.code());
        assert_eq!((status, code.as_deref()), (400, Some("invalid_request")), "{what}");
    }
    assert_eq!(service.count("measurements").await, 0);
    service.measure(&ALPHA, with_end(b" \r\n\t")).await.assert_status(201);
}
