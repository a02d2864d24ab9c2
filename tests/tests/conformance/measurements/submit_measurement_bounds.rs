//! Where what is accepted ends, and that a refusal leaves nothing behind.

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
async fn a_null_is_a_member_that_is_left_out() {
    let service = Service::start().await;
    for (member, status) in [("measured_at", 201), ("external_id", 201), ("device_serial", 200)] {
        let answer = service.measure(&ALPHA, with(member, Value::Null)).await;
        answer.assert_status(status);
    }
    let recorded = "SELECT external_id FROM measurements ORDER BY external_id";
    assert_eq!(
        service.rows(recorded).await,
        json!([{ "external_id": "M-1" }, { "external_id": null }])
    );
}

#[tokio::test]
async fn what_must_be_there_must_not_be_null() {
    let service = Service::start().await;
    let before = contents(&service).await;
    for member in ["branch_code", "plate", "measurements"] {
        let answer = service.measure(&ALPHA, with(member, Value::Null)).await;
        let message = answer.assert_refused(400, "invalid_request").message();
        assert!(message.contains(member), "{member}: {message}");
    }
    assert_eq!(contents(&service).await, before);
}

#[tokio::test]
async fn a_member_that_is_missing_is_named() {
    let service = Service::start().await;
    for (member, body) in [
        ("branch_code", r#"{"plate":"34 ABC 123","measurements":{"A":1}}"#),
        ("plate", r#"{"branch_code":"IZMIR-01","measurements":{"A":1}}"#),
        ("measurements", r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123"}"#),
    ] {
        let answer = service.measure(&ALPHA, body).await;
        answer
            .assert_refused(400, "invalid_request")
            .snapshot(&format!("a_package_without_{member}_is_refused"));
        assert!(answer.message().contains(member), "{}", answer.message());
    }
}

#[tokio::test]
async fn a_member_that_is_sent_twice_is_refused() {
    let service = Service::start().await;
    let body = r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123","plate":"34 ABC 124","measurements":{"A":1}}"#;
    let message = service
        .measure(&ALPHA, body)
        .await
        .assert_refused(400, "invalid_request")
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
        let answer = service.measure(&ALPHA, measuring(&json!({ bad: 1 }).to_string())).await;
        let message = answer.assert_refused(400, "invalid_request").message();
        assert!(message.contains("measurements"), "{bad:?}: {message}");
    }
    assert_eq!(service.count("measurements").await, 3);
}

/// MEA-4
#[tokio::test]
async fn a_value_has_18_significant_digits_and_not_19() {
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
        let answer = service.measure(&ALPHA, measuring(&format!(r#"{{"A":{bad}}}"#))).await;
        answer.assert_refused(400, "invalid_request");
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
async fn a_device_may_be_ahead_by_five_minutes_and_not_by_more() {
    let service = Service::start().await;
    let time = |seconds| {
        let time = Utc::now() + TimeDelta::seconds(seconds);
        json!(time.to_rfc3339_opts(SecondsFormat::Millis, false))
    };
    service
        .measure(&ALPHA, with("measured_at", time(299)))
        .await
        .assert_status(201);
    let answer = service.measure(&ALPHA, with("measured_at", time(310))).await;
    answer.assert_refused(400, "invalid_request");
    assert!(answer.message().starts_with("measured_at"), "{}", answer.message());
    // Any age is accepted, and any offset.
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
            .assert_refused(400, "invalid_request")
            .message();
        assert!(message.contains("measured_at"), "{wrong}: {message}");
    }
}

/// MEA-15
#[tokio::test]
async fn the_longest_texts_pass() {
    let service = Service::start().await;
    let body = with("device_serial", json!("ğ".repeat(120))).replace("M-1", &"x".repeat(120));
    service.measure(&ALPHA, body).await.assert_status(201);
    let lengths = "SELECT length(external_id) AS id, length(device_serial) AS serial FROM measurements";
    assert_eq!(service.rows(lengths).await, json!([{ "id": 120, "serial": 120 }]));
}

#[tokio::test]
async fn a_package_is_json_and_says_so() {
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
        let answer = send(other).await;
        assert!(
            answer
                .assert_refused(400, "invalid_request")
                .message()
                .contains("Content-Type"),
            "{other}"
        );
    }
    send("text/plain")
        .await
        .snapshot("a_package_that_is_no_json_by_its_content_type_is_refused");
    assert_eq!(contents(&service).await, before);
    send("Application/JSON; charset=utf-8").await.assert_status(201);
    // Without one it is taken for what it has to be.
    let silent = Request::new("POST", MEASUREMENTS).body(package("M-2", "34 ABC 123"));
    service.send(silent.signed_by(&ALPHA)).await.assert_status(201);
}

#[tokio::test]
async fn a_branch_that_is_not_open_answers_like_one_that_does_not_exist() {
    let first = Service::start().await;
    let scoped = format!(
        "UPDATE api_keys SET scopes = '{{test-line:write}}' WHERE key_id = '{}'",
        BETA.id
    );
    first.db.execute(&scoped, &[]).await.unwrap();
    let service = first.replica().await;
    let to = |branch: &str| with("branch_code", json!(branch));
    let body_of = |answer: &partner_api_tests::Answer| {
        let mut body = answer.assert_refused(404, "not_found").json();
        body["error"]["request_id"] = Value::Null;
        body
    };
    let unknown = body_of(&service.measure(&ALPHA, to("NOWHERE")).await);
    for (key, branch) in [
        (&ALPHA, "ESK-01"),
        // Another organization, another branch of the same one, and a closed one of its own.
        (&DELTA, "IZMIR-01"),
        (&BETA, "ANK-01"),
        (&BETA, "ESK-01"),
        (&BETA, "KAP-01"),
    ] {
        let answer = service.measure(key, to(branch)).await;
        assert_eq!(body_of(&answer), unknown, "{branch}");
    }
    service.measure(&BETA, to("izmir-01")).await.assert_status(201);
}

/// KEY-7
#[tokio::test]
async fn a_refused_package_leaves_its_nonce_and_nothing_else() {
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
        let nonce = format!("of-a-refused-package-{number}");
        let request = Request::post(MEASUREMENTS, body).signed_by(&ALPHA).nonce(&nonce);
        service.send(request.clone()).await.assert_status(status);
        service.send(request).await.assert_refused(401, "replay_detected");
        assert!(service.knows_nonce(&ALPHA, &nonce).await);
    }
    assert_eq!(contents(&service).await, before);
    // A key that its address keeps out has not even that.
    let used = service.used_nonces().await;
    service
        .measure(&ALLOWLISTED, package("M-1", "35 OPN 205"))
        .await
        .assert_refused(401, "invalid_key");
    assert_eq!(service.used_nonces().await, used);
}

/// REQ-8
#[tokio::test]
async fn a_body_is_one_object_in_utf8_with_nothing_behind_it() {
    let service = Service::start().await;
    let whole = package("M-1", "34 ABC 123").into_bytes();
    let with_end = |end: &[u8]| [&whole, end].concat();
    // A member that nobody knows, and that is no text.
    let unknown = [&whole[..whole.len() - 1], b",\"note\":\"\xff\"}"].concat();
    for (body, what) in [
        (with_end(&whole), "a second document"),
        (with_end(b" x"), "a word"),
        (with_end(b"\0"), "a zero byte"),
        (with_end(b"\xff"), "a byte that is no text"),
        (with_end(b","), "a comma"),
        (br#"["34ABC123","IZMIR-01"]"#.to_vec(), "an array"),
        (unknown, "an unknown member that is no text"),
        ([b"\xef\xbb\xbf".as_slice(), &whole].concat(), "a byte order mark"),
    ] {
        let answer = service.measure(&ALPHA, body).await;
        let (status, code) = (answer.status.as_u16(), answer.code());
        assert_eq!((status, code.as_deref()), (400, Some("invalid_request")), "{what}");
    }
    assert_eq!(service.count("measurements").await, 0);
    service.measure(&ALPHA, with_end(b" \r\n\t")).await.assert_status(201);
}
