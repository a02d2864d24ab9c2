//! Error messages for common mistakes in first requests. Each table of requests and messages is one snapshot. The tables share their
//! functions, so they are in one file.

use chrono::{SecondsFormat, TimeDelta, Utc};
use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, BETA, Request, Service, TestKey, TestResponse, snapshot};

const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";
const LIST: &str = "/api/v1/partner/inspections";

/// Words of parsers and libraries, which must not appear in messages.
const FOREIGN_WORDS: &[&str] = &[
    "serde",
    "expected ",
    "invalid type",
    "missing field",
    "unknown field",
    "EOF",
    "struct ",
    "sequence",
    "i32",
    "f64",
    "premature end",
    "ParseError",
    "Utf8Error",
    "invalid digit",
    "unable to parse",
    "Option",
    "line_start",
];

struct Table<'s> {
    service: &'s Service,
    rows: Vec<(String, TestResponse)>,
}

impl<'s> Table<'s> {
    fn of(service: &'s Service) -> Self {
        Table {
            service,
            rows: Vec::new(),
        }
    }

    async fn send(&mut self, sent: &str, request: Request) {
        let response = self.service.send(request).await;
        let error = &response.json()["error"];
        let text = format!("{} {}", error["message"], error["details"]);
        for word in FOREIGN_WORDS {
            assert!(!text.contains(word), "{sent}: {word:?} in {text}");
        }
        self.rows.push((sent.to_string(), response));
    }

    async fn body(&mut self, sent: &str, body: impl Into<Vec<u8>>) {
        let body: Vec<u8> = body.into();
        self.send(sent, Request::post(MEASUREMENTS, body).signed_by(&ALPHA))
            .await;
    }

    #[track_caller]
    fn assert_snapshot(self, case: &str, status: u16, code: &str) {
        snapshot::of_messages(case, status, code, &self.rows);
    }
}

/// A valid package with these measurements.
fn measured(measurements: &str) -> String {
    format!(r#"{{"branch_code":"IZMIR-01","plate":"35 OPN 205","measurements":{measurements}}}"#)
}

/// A valid package with these members before the others.
fn with(members: &str) -> String {
    format!(r#"{{{members},"measurements":{{"BRAKE_FRONT_LEFT":2.85}}}}"#)
}

/// ERR-1, ERR-8, ERR-9, REQ-8
#[tokio::test]
async fn messages_about_a_body_say_what_to_send() {
    let service = Service::start().await;
    let mut table = Table::of(&service);
    let whole = measured(r#"{"BRAKE_FRONT_LEFT":2.85}"#);
    table
        .body("2,85, not in quotes", measured(r#"{"BRAKE_FRONT_LEFT":2,85}"#))
        .await;
    table
        .body("2,85, in quotes", measured(r#"{"BRAKE_FRONT_LEFT":"2,85"}"#))
        .await;
    table
        .body("2.85, in quotes", measured(r#"{"BRAKE_FRONT_LEFT":"2.85"}"#))
        .await;
    table.body("nothing", "").await;
    table.body("an array", "[]").await;
    table.body("an empty object", "{}").await;
    table.body("text", "\"measurement\"").await;
    table.body("a form", "branch_code=IZMIR-01&plate=35OPN205").await;
    table.body("XML", "<measurement/>").await;
    table.body("half a body", &whole[..40]).await;
    table.body("two documents", format!("{whole}{whole}")).await;
    table
        .body("a byte-order mark", [b"\xef\xbb\xbf", whole.as_bytes()].concat())
        .await;
    let utf16: Vec<u8> = whole.encode_utf16().flat_map(u16::to_le_bytes).collect();
    table.body("UTF-16", utf16).await;
    table
        .body(
            "gzip, without its header",
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".as_slice(),
        )
        .await;
    let gzip = Request::post(MEASUREMENTS, b"\x1f\x8b\x08\x00".as_slice()).header("content-encoding", "gzip");
    table.send("gzip, with its header", gzip.signed_by(&ALPHA)).await;
    let latin =
        b"{\"branch_code\":\"IZMIR-01\",\"plate\":\"35 OPN 205\",\"device_serial\":\"\xdeANLI-1\",\"measurements\":{}}";
    table.body("ISO-8859-9", latin.as_slice()).await;
    table.body("NaN", measured(r#"{"BRAKE_FRONT_LEFT":NaN}"#)).await;
    table
        .body("-Infinity", measured(r#"{"BRAKE_FRONT_LEFT":-Infinity}"#))
        .await;
    table.body("None", measured(r#"{"BRAKE_FRONT_LEFT":None}"#)).await;
    table.body("+2.85", measured(r#"{"BRAKE_FRONT_LEFT":+2.85}"#)).await;
    table.body(".85", measured(r#"{"BRAKE_FRONT_LEFT":.85}"#)).await;
    table
        .body("null for a value", measured(r#"{"BRAKE_FRONT_LEFT":null}"#))
        .await;
    table
        .body("an empty text for a value", measured(r#"{"BRAKE_FRONT_LEFT":""}"#))
        .await;
    table.body("1e400", measured(r#"{"BRAKE_FRONT_LEFT":1e400}"#)).await;
    table
        .body(
            "a calculated value",
            measured(r#"{"BRAKE_FRONT_LEFT":2.8500000000000000888}"#),
        )
        .await;
    table
        .body("a code with a Turkish letter", measured(r#"{"FREN_ÖN_SOL":2.85}"#))
        .await;
    table.body("no measurements", measured("{}")).await;
    table
        .body(
            "measurements as an array",
            measured(r#"[{"code":"BRAKE_FRONT_LEFT","value":2.85}]"#),
        )
        .await;
    table
        .body("a code in small letters", measured(r#"{"brake_front_left":2.85}"#))
        .await;
    table
        .body("a code in camel case", measured(r#"{"brakeFrontLeft":2.85}"#))
        .await;
    table
        .body("a code with dashes", measured(r#"{"BRAKE-FRONT-LEFT":2.85}"#))
        .await;
    table
        .body(
            "a misspelled code in small letters",
            measured(r#"{"brake_front_leff":2.85}"#),
        )
        .await;
    table
        .body(
            "a misspelled code beside another error",
            measured(r#"{"BRAKE_FRONT_LEFF":2.85,"SLIP_FRONT":"1"}"#),
        )
        .await;
    table
        .body("a code twice", measured(r#"{"SLIP_FRONT":1,"SLIP_FRONT":2}"#))
        .await;
    table
        .body("nineteen digits", measured(r#"{"SLIP_FRONT":1.234567890123456789}"#))
        .await;
    table
        .body(
            "51 measurements",
            measured(&format!(
                "{{{}}}",
                (0..51).map(|n| format!("\"P{n}\":{n}")).collect::<Vec<_>>().join(",")
            )),
        )
        .await;
    table
        .body("a trailing comma", measured(r#"{"BRAKE_FRONT_LEFT":2.85,}"#))
        .await;
    table.body("single quotes", "{'branch_code':'IZMIR-01'}").await;
    table.body("camel case", r#"{"branchCode":"IZMIR-01","Plate":"35 OPN 205","measuredAt":"2026-06-15T12:05:00Z","externalId":"M-1","measurements":{"BRAKE_FRONT_LEFT":2.85}}"#).await;
    table
        .body(
            "a number for text",
            with(r#""branch_code":"IZMIR-01","plate":"35 OPN 205","external_id":123"#),
        )
        .await;
    table
        .body(
            "null for a required member",
            with(r#""branch_code":null,"plate":"35 OPN 205""#),
        )
        .await;
    table
        .body(
            "a line feed in a code",
            with(r#""branch_code":"IZMIR-01\n","plate":"35 OPN 205""#),
        )
        .await;
    table
        .body(
            "a Windows path",
            with(r#""branch_code":"IZMIR-01","plate":"35 OPN 205","device_serial":"C:\devices\1""#),
        )
        .await;
    for (sent, time) in [("UNIX time", "1795383442"), ("UNIX time, in quotes", r#""1795383442""#)] {
        let members = format!(r#""branch_code":"IZMIR-01","plate":"35 OPN 205","measured_at":{time}"#);
        table.body(sent, with(&members)).await;
    }
    table
        .body(
            "a time without an offset",
            with(r#""branch_code":"IZMIR-01","plate":"35 OPN 205","measured_at":"2026-06-15T12:05:00""#),
        )
        .await;
    table
        .body(
            "a time in the local form",
            with(r#""branch_code":"IZMIR-01","plate":"35 OPN 205","measured_at":"15.06.2026 12:05""#),
        )
        .await;
    let tomorrow = (Utc::now() + TimeDelta::days(1)).to_rfc3339_opts(SecondsFormat::Secs, true);
    table
        .body(
            "a time in the future, and a plate without digits",
            with(&format!(
                r#""branch_code":"IZMIR-01","plate":"34 ABC","measured_at":"{tomorrow}""#
            )),
        )
        .await;
    table
        .body(
            "five errors",
            r#"{"branch_code":"","plate":"34 ABC","external_id":1,"measurements":{"a":"x","B":true}}"#,
        )
        .await;
    let many = (0..30).map(|n| format!("\"p{n}\":{n}")).collect::<Vec<_>>().join(",");
    table.body("thirty errors", measured(&format!("{{{many}}}"))).await;
    for value in ["", "; charset=utf-8", "text/plain", "application/x-www-form-urlencoded"] {
        let request = Request::new("POST", MEASUREMENTS).body(whole.clone());
        let request = request.header("content-type", value).signed_by(&ALPHA);
        table.send(&format!("Content-Type: {value}"), request).await;
    }
    let without_content_type = Request::new("POST", MEASUREMENTS).body("").signed_by(&ALPHA);
    table
        .send("nothing, not even a Content-Type", without_content_type)
        .await;
    table.assert_snapshot("messages_about_a_body", 400, "invalid_request");
    assert_eq!(service.count("measurements").await, 0);
}

/// ERR-9, MEA-2
#[tokio::test]
async fn messages_about_a_plate_name_the_character_and_the_plate_as_read() {
    let service = Service::start().await;
    let mut table = Table::of(&service);
    for plate in [
        "",
        "34 123",
        "34 abcd 123",
        "34/ABC/123",
        "ŞĞÜ",
        "34 ŞĞÜ 123",
        "34 ABC 1",
        "34 ABC 123456",
        "82 ABC 123",
        "3 ABC 123",
        "TR 34 ABC 123",
        "34 ABC 12D",
        "34_ABC_123",
        "34 ABC 123\u{200b}",
        "O6 ABC 123",
    ] {
        let members = serde_json::json!({ "branch_code": "IZMIR-01", "plate": plate }).to_string();
        table
            .body(&format!("{plate:?}"), with(&members[1..members.len() - 1]))
            .await;
    }
    table.assert_snapshot("messages_about_a_plate", 400, "invalid_request");
}

/// MEA-1
#[tokio::test]
async fn a_message_about_a_branch_code_mentions_an_extra_space() {
    let service = Service::start().await;
    let mut table = Table::of(&service);
    for code in ["NOWHERE", "IZMIR-01 ", " IZMIR-01"] {
        let members = format!(r#""branch_code":"{code}","plate":"35 OPN 205""#);
        table.body(&format!("{code:?}"), with(&members)).await;
    }
    table.assert_snapshot("messages_about_a_branch_code", 404, "not_found");
}

/// ERR-9, REQ-5
#[tokio::test]
async fn messages_about_a_query_name_each_parameter() {
    let service = Service::start().await;
    let mut table = Table::of(&service);
    for query in [
        "publishedFrom=2026-05-01T00:00:00Z",
        "page=2",
        "offset=20",
        "per_page=20",
        "plate=34ABC123",
        "limit=5&limit=6",
        "limit=many",
        "limit=0",
        "limit=1000",
        "status=Published",
        "status=",
        "status=published,archived",
        "status=published&status=archived",
        "published_from=2026-05-01",
        "published_from=2026-05-01T00:00:00+03:00",
        "published_from=2026-05-02T00:00:00Z&published_to=2026-05-01T00:00:00Z&created_from=2026-05-02T00:00:00Z&created_to=2026-05-01T00:00:00Z",
        "cursor=",
        "cursor=abc",
        "branch_id=%ff",
        "%ff=1",
        "publishedFrom=x&limit=0&status=draft&created_to=yesterday",
    ] {
        let request = Request::get(&format!("{LIST}?{query}")).signed_by(&ALPHA);
        table.send(query, request).await;
    }
    table.assert_snapshot("messages_about_a_query", 400, "invalid_request");
}

/// SIG-4
#[tokio::test]
async fn messages_about_a_percent_sign_name_the_parameter() {
    let service = Service::start().await;
    let mut table = Table::of(&service);
    for query in ["branch_id=%zz", "limit=5&branch_id=100%", "%zz=1", "%"] {
        let request = Request::get(&format!("{LIST}?{query}")).signed_by(&ALPHA);
        table.send(query, request).await;
    }
    table.assert_snapshot("messages_about_a_percent_sign", 400, "invalid_request");
}

/// REQ-3
#[tokio::test]
async fn messages_about_a_path_name_the_excess_part() {
    let service = Service::start().await;
    let mut table = Table::of(&service);
    for path in [
        "/api/v1/partner/inspections/",
        "/api/v1/partner//inspections",
        "/api/v1/partner/%69nspections",
        "/api/v1/partner/Inspections",
        "/api/v1/partner/nowhere",
        "/api/v1/partner/",
        "/api/v1/partner/test-line/measurements/0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f",
    ] {
        table.send(path, Request::get(path).signed_by(&ALPHA)).await;
    }
    table.assert_snapshot("messages_about_a_path", 404, "not_found");
}

/// MEA-10
#[tokio::test]
async fn a_request_for_the_status_of_a_measurement_is_told_how_to_get_it() {
    let service = Service::start().await;
    let response = service.send(Request::get(MEASUREMENTS).signed_by(&ALPHA)).await;
    let message = response.assert_rejected(405, "method_not_allowed").message();
    assert!(
        message.starts_with("GET is not allowed; allowed: POST; ")
            && message.contains("send its package again with the same external_id"),
        "{message}"
    );
}

/// ERR-2, ERR-9
#[tokio::test]
async fn messages_about_the_signature_headers_name_the_header() {
    let service = Service::start().await;
    let mut table = Table::of(&service);
    let health = || Request::get("/api/v1/partner/health").signed_by(&ALPHA);
    for (sent, request) in [
        ("no headers", Request::get("/api/v1/partner/health")),
        (
            "only a bearer token",
            Request::get("/api/v1/partner/health").header("authorization", "Bearer x"),
        ),
        ("a short nonce", health().with("x-partner-nonce", "short")),
        (
            "a time in RFC 3339",
            health().with("x-partner-timestamp", "2026-06-15T09:30:00Z"),
        ),
        ("an empty signature", health().with("x-partner-signature", "")),
        ("two nonces", health().header("x-partner-nonce", "0123456789abcdef")),
    ] {
        table.send(sent, request).await;
    }
    table.assert_snapshot("messages_about_the_signature_headers", 401, "missing_signature_headers");
}

/// ERR-4
#[tokio::test]
async fn messages_about_a_signature_distinguish_its_format_from_its_value() {
    let service = Service::start().await;
    let mut table = Table::of(&service);
    let with_another_secret = TestKey {
        secret: BETA.secret,
        ..ALPHA
    };
    let health = || {
        Request::get("/api/v1/partner/health")
            .nonce("0123456789abcdef")
            .signed_by(&ALPHA)
    };
    table
        .send(
            "signed with another key's secret",
            health().signed_by(&with_another_secret),
        )
        .await;
    let digest = "0123456789abcdef".repeat(4);
    for (sent, value) in [
        ("without sha256=", digest.clone()),
        ("in capitals", format!("sha256={}", digest.to_uppercase())),
        (
            "in Base64",
            "sha256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".to_string(),
        ),
        ("too short", format!("sha256={}", &digest[..32])),
        ("no hex", format!("sha256={}", digest.replace('0', "g"))),
    ] {
        table.send(sent, health().with("x-partner-signature", &value)).await;
    }
    table.assert_snapshot("messages_about_a_signature", 401, "invalid_signature");
}

/// ERR-5, SIG-5
#[tokio::test]
async fn messages_about_a_timestamp_name_the_likely_cause() {
    let service = Service::start().await;
    let mut table = Table::of(&service);
    let now = Utc::now();
    for (sent, time) in [
        ("milliseconds", now.timestamp_millis()),
        ("an hour ago", now.timestamp() - 1_800 * 2 - 5),
        ("three hours ahead", now.timestamp() + 3 * 3_600),
        ("ten minutes ago", now.timestamp() - 600),
        ("zero", 0),
    ] {
        let request = Request::get("/api/v1/partner/health").signed_by(&ALPHA);
        table
            .send(sent, request.with("x-partner-timestamp", &time.to_string()))
            .await;
    }
    table.assert_snapshot("messages_about_a_timestamp", 401, "expired_timestamp");
}

/// ERR-6, REP-8
#[tokio::test]
async fn a_missing_pdf_is_distinguished_from_a_missing_report() {
    let service = Service::start().await;
    let mut table = Table::of(&service);
    for (sent, id) in [
        ("archived", inspections::ARCHIVED),
        ("cancelled", inspections::CANCELLED),
        ("published without a public link", inspections::WITHOUT_SLUG),
        ("unknown", inspections::UNKNOWN),
        ("no id at all", "1"),
    ] {
        let request = Request::get(&format!("{LIST}/{id}/pdf")).signed_by(&ALPHA);
        table.send(sent, request).await;
    }
    table.assert_snapshot("messages_about_a_missing_pdf", 404, "not_found");
}
