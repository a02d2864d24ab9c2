//! Random headers and bodies of requests, compared with a simple implementation of the rules. Each run has new seeds. A failure
//! prints its smallest case; `PROPTEST_CASES` sets the number of cases, up to 256.

use partner_api_signing::{HEADER_KEY_ID, HEADER_NONCE, HEADER_SIGNATURE, HEADER_TIMESTAMP};
use partner_api_tests::measurements::MEASUREMENTS;
use partner_api_tests::{ALPHA, Request, Service, TestResponse};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use regex::Regex;
use serde_json::{Map, Number, Value, json};

const HEADERS: [&str; 4] = [HEADER_KEY_ID, HEADER_TIMESTAMP, HEADER_NONCE, HEADER_SIGNATURE];

/// Runs a property over HTTP against one service.
fn against_a_service<T: Clone + std::fmt::Debug>(
    cases: &impl Strategy<Value = T>,
    property: impl AsyncFn(&Service, T) -> Result<(), TestCaseError>,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let service = runtime.block_on(Service::start());
    let config = Config {
        cases: Config::default().cases.min(256),
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(cases, |case| runtime.block_on(property(&service, case)));
    // The service must be dropped within its runtime.
    runtime.block_on(async { drop(service) });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// SIG-1, REQ-1
#[test]
fn a_request_with_a_random_signature_header_is_rejected_and_consumes_no_nonce() {
    let value = prop_oneof![
        "[!-~]{0,140}",
        "[0-9]{1,20}",
        "sha256=[0-9a-fA-F]{0,70}",
        "vip_(test|live)_[A-Z2-7]{0,26}",
        "[a-zçğ\u{ff}]{1,40}",
    ];
    let case = (select(&HEADERS[..]), value, any::<bool>());
    against_a_service(&case, async |service, (name, value, is_added)| {
        let before = service.used_nonces().await;
        let request = Request::get("/api/v1/partner/organizations").signed_by(&ALPHA);
        let request = match is_added {
            // Beside the valid header of the same name.
            true => request.header(name, &value),
            false => request.with(name, &value),
        };
        let response = service.send(request).await;
        prop_assert_eq!(response.status.as_u16(), 401, "{} {:?}", name, response.code());
        prop_assert_eq!(service.used_nonces().await, before);
        Ok(())
    });
}

/// The text of a member. Controls, invisible characters and characters of several bytes are frequent.
fn text() -> impl Strategy<Value = String> {
    let frequent: Vec<char> = "Aa0-_ iİ\u{0}\t\n\u{1f}\u{7f}\u{80}\u{9b}\u{9f}\u{a0}\u{202e}ş車\u{1f600}"
        .chars()
        .collect();
    let character = prop_oneof![3 => select(frequent), 1 => any::<char>()];
    prop_oneof![
        6 => vec(character.clone(), 0..12).prop_map(String::from_iter),
        1 => (select(vec![31_usize, 32, 33, 63, 64, 65, 119, 120, 121]), character)
            .prop_map(|(length, character)| character.to_string().repeat(length)),
    ]
}

fn plate() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(0[1-9]|[1-7][0-9]|8[01])[ .–-]?[A-Za-z]{1,3}[ .\u{a0}-]?[0-9]{2,5}",
        1 => "[0-9]{1,3} ?[A-ZŞ]{0,4} ?[0-9]{0,6}",
        1 => text(),
    ]
}

/// A value with its text, because the number of its digits matters.
fn number() -> impl Strategy<Value = Value> {
    let number = |text: String| serde_json::from_str::<Number>(&text).map_or(Value::Null, Value::Number);
    prop_oneof![
        4 => "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,4})?",
        1 => "-?[1-9][0-9]{14,20}(\\.[0-9]{1,6})?",
        1 => "-?[0-9]\\.[0-9]{1,20}",
    ]
    .prop_map(number)
}

fn other() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number(),
        text().prop_map(Value::String),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{ "a": 1 }])),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let code = prop_oneof![
        6 => "(BRAKE|SUSP)_(FRONT|REAR)_(LEFT|RIGHT)",
        2 => "[A-Z][A-Z0-9_]{0,10}",
        1 => select(vec!["A".repeat(64), "A".repeat(65), String::new(), "a".into(), "1A".into(), "Ş".into()]),
    ];
    let value = prop_oneof![9 => number(), 1 => other()];
    let few = vec((code.clone(), value.clone()), 0..4);
    let many = vec(number(), 49..52).prop_map(|values| {
        let values = values.into_iter().enumerate();
        values
            .map(|(number, value)| (format!("P{number}"), value))
            .collect::<Vec<_>>()
    });
    prop_oneof![8 => few, 1 => many].prop_map(|members| Value::Object(members.into_iter().collect()))
}

const MEMBERS: &[&str] = &[
    "branch_code",
    "plate",
    "measured_at",
    "external_id",
    "device_serial",
    "measurements",
    "more",
];

/// A package: each member is valid, almost valid, of another type, or missing.
fn package() -> impl Strategy<Value = Value> {
    let time = prop_oneof![
        "20[0-2][0-5]-(0[1-9]|1[0-2])-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|\\+0[0-9]:00)",
        text()
    ];
    let branch = prop_oneof![4 => Just("IZMIR-01".to_owned()), 1 => text()];
    // One member at most is arbitrary, so that most packages have at most one error.
    let broken = prop_oneof![
        3 => Just(None),
        1 => (select(MEMBERS), proptest::option::of(other())).prop_map(Some),
    ];
    let optional = |strategy: BoxedStrategy<String>| proptest::option::of(strategy);
    (
        branch,
        plate(),
        values(),
        optional(time.boxed()),
        optional(text().boxed()),
        optional(text().boxed()),
        broken,
    )
        .prop_map(|(branch, plate, values, time, id, serial, broken)| {
            let mut package = Map::new();
            package.insert("branch_code".into(), branch.into());
            package.insert("plate".into(), plate.into());
            for (name, value) in [("measured_at", time), ("external_id", id), ("device_serial", serial)] {
                package.extend(value.map(|value| (name.to_owned(), value.into())));
            }
            package.insert("measurements".into(), values);
            match broken {
                Some((name, Some(value))) => drop(package.insert(name.to_owned(), value)),
                Some((name, None)) => drop(package.remove(name)),
                None => {}
            }
            Value::Object(package)
        })
}

/// Returns the error code for a package by the contract's rules, in their simplest form; `None` if it is accepted.
fn expected(package: &Value) -> Option<&'static str> {
    let matches = |pattern: &str, text: &str| Regex::new(pattern).unwrap().is_match(text);
    let is_text = |name: &str, range: std::ops::RangeInclusive<usize>, is_required: bool| match &package[name] {
        Value::String(text) => range.contains(&text.chars().count()) && matches(r"\A[^\x00-\x1F\x7F]*\z", text),
        Value::Null => !is_required,
        _ => false,
    };
    let is_plate = package["plate"].as_str().is_some_and(|text| {
        let compact: String = text
            .chars()
            .filter(|c| !c.is_whitespace() && !".-–—‐‑‒―−".contains(*c))
            .collect();
        let letters = Regex::new("[iIıİ]\u{307}*")
            .unwrap()
            .replace_all(&compact, "I")
            .to_ascii_uppercase();
        text.chars().count() <= 32 && matches("^(0[1-9]|[1-7][0-9]|8[01])[A-Z]{1,3}[0-9]{2,5}$", &letters)
    });
    let is_time = match &package["measured_at"] {
        Value::String(text) => {
            let time = chrono::DateTime::parse_from_rfc3339(text);
            time.is_ok_and(|time| time.signed_duration_since(chrono::Utc::now()) <= chrono::TimeDelta::minutes(5))
        }
        Value::Null => true,
        _ => false,
    };
    let is_value = |(code, value): (&String, &Value)| {
        let text = value.to_string();
        let significand = text.split(['e', 'E']).next().unwrap_or_default();
        let digits: String = significand.chars().filter(char::is_ascii_digit).collect();
        matches(r"\A[A-Z][A-Z0-9_]{0,63}\z", code) && value.is_number() && digits.trim_start_matches('0').len() <= 18
    };
    let has_values = package["measurements"]
        .as_object()
        .is_some_and(|values| (1..=50).contains(&values.len()) && values.iter().all(is_value));
    let is_valid = is_text("branch_code", 1..=64, true)
        && is_text("external_id", 1..=120, false)
        && is_text("device_serial", 0..=120, false)
        && is_plate
        && is_time
        && has_values;
    match is_valid {
        false => Some("invalid_request"),
        true if package["branch_code"] != "IZMIR-01" => Some("not_found"),
        true => None,
    }
}

/// Checks what is true of every response, whatever the body is: the body was recorded byte for byte, or nothing was.
async fn check_recorded(service: &Service, before: i64, response: &TestResponse) -> Result<(), TestCaseError> {
    let created = i64::from(response.status == 201);
    prop_assert_eq!(service.count("measurements").await, before + created);
    if created == 1 {
        let id = response.json()["data"]["measurement_id"].as_str().unwrap().to_owned();
        let select = "SELECT raw FROM measurements WHERE id = $1::text::uuid";
        let raw: Vec<u8> = service.db.query_one(select, &[&id]).await.unwrap().get(0);
        prop_assert_eq!(raw, &response.sent[..]);
    }
    Ok(())
}

/// REQ-20, MEA-1, MEA-2, MEA-3, ERR-9
#[test]
fn a_random_package_is_accepted_exactly_if_it_follows_the_rules() {
    against_a_service(&package(), async |service, package| {
        let before = service.count("measurements").await;
        let response = service.measure(&ALPHA, package.to_string()).await;
        let code = response.code();
        prop_assert_eq!(code.as_deref(), expected(&package), "{:?}", response.body);
        check_recorded(service, before, &response).await
    });
}

/// REQ-17
#[test]
fn a_package_with_random_bytes_is_recorded_byte_for_byte_or_rejected() {
    let piece = prop_oneof![
        vec(any::<u8>(), 0..4),
        select(vec![
            "\"", "{", "}", "[", ",", ":", "\\", "\\u0000", "\\ud800", "null", "1e999", "-", "\u{feff}", "/**/"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    let edits = vec((any::<Index>(), any::<bool>(), piece), 1..4);
    against_a_service(&(package(), edits), async |service, (package, edits)| {
        let mut body = package.to_string().into_bytes();
        for (place, replaces, piece) in edits {
            let place = place.index(body.len() + 1);
            let end = (place + usize::from(replaces)).min(body.len());
            body.splice(place..end, piece);
        }
        let before = service.count("measurements").await;
        let response = service.send(Request::post(MEASUREMENTS, body).signed_by(&ALPHA)).await;
        prop_assert!(
            matches!(response.status.as_u16(), 200 | 201 | 400 | 404),
            "{}",
            response.status
        );
        check_recorded(service, before, &response).await
    });
}
