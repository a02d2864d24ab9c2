//! Helpers of the client's tests: a key, scripted responses, and checks that every attempt was signed.

use std::collections::{HashMap, HashSet};

use partner_api_client::{Client, Connector, DecimalNumber, RetryPolicy, types};
use partner_api_signing::{Canonical, Secret, body_sha256, canonical_query, split_target, verify};
use serde_json::json;

use crate::server::{Received, Server, Step};

pub const KEY_ID: &str = "vip_test_ABCDEFGHIJKLMNOPQRSTUV";
pub const SECRET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The default policy without a timeout per attempt, because a paused clock would reach it while the test waits for the network.
pub fn policy() -> RetryPolicy {
    RetryPolicy {
        attempt: None,
        ..RetryPolicy::default()
    }
}

pub fn client(server: &Server, policy: RetryPolicy) -> Client {
    let connector = Connector::new(&server.base_url, KEY_ID, SECRET).unwrap();
    connector
        .http_client(reqwest::Client::new())
        .retry(policy)
        .connect()
        .unwrap()
}

pub fn ok() -> Step {
    let body = json!({
        "status": "ok", "partner": "01974d1a-7c00-7b21-9a51-6f0c2d3e4f50", "environment": "test",
        "server_time": "2026-06-15T09:30:00Z"
    });
    Step::Respond(200, vec![], body.to_string())
}

pub fn created() -> Step {
    let body = json!({ "data": {
        "measurement_id": "0197c2b0-3c00-7f66-a071-7c8d9e0f1a2b", "status": "pending", "plate": "34ABC123",
        "inspection_id": null, "applied_points": [], "idempotent_replay": false
    }});
    Step::Respond(201, vec![], body.to_string())
}

pub fn rejected(status: u16, code: &str, headers: &[&str]) -> Step {
    let body = json!({ "error": { "code": code, "message": "not now", "request_id": "r-1" } });
    Step::Respond(
        status,
        headers.iter().map(ToString::to_string).collect(),
        body.to_string(),
    )
}

pub fn package(external_id: Option<&str>) -> types::builder::MeasurementRequest {
    let measurements: HashMap<String, DecimalNumber> = (0..20)
        .map(|number| (format!("POINT_{number}"), rust_decimal::Decimal::from(number).into()))
        .collect();
    types::MeasurementRequest::builder()
        .branch_code("ANK-01")
        .plate("34 ABC 123")
        .external_id(external_id.map(|id| id.parse().unwrap()))
        .measurements(measurements)
}

#[track_caller]
pub fn assert_signed(request: &Received) {
    let secret: Secret = SECRET.parse().unwrap();
    let mut line = request.line.split(' ');
    let method = line.next().unwrap();
    let (path, query) = split_target(line.next().unwrap());
    let canonical = Canonical {
        method,
        path,
        canonical_query: &canonical_query(query.as_bytes()).unwrap(),
        timestamp: request.header("x-partner-timestamp"),
        nonce: request.header("x-partner-nonce"),
        body_sha256: &body_sha256(&request.body),
    };
    assert_eq!(request.header("x-partner-key-id"), KEY_ID);
    assert!(
        verify(&secret, &canonical.render(), request.header("x-partner-signature")),
        "{request:?}"
    );
}

/// Asserts that all attempts were signed, each with a new nonce, and had the same bytes.
#[track_caller]
pub fn assert_attempts(server: &Server, count: usize) {
    let received = server.received();
    assert_eq!(received.len(), count);
    received.iter().for_each(assert_signed);
    let nonces: HashSet<_> = received
        .iter()
        .map(|request| request.header("x-partner-nonce"))
        .collect();
    assert_eq!(nonces.len(), count, "a nonce was used twice");
    assert!(
        received
            .windows(2)
            .all(|pair| pair[0].line == pair[1].line && pair[0].body == pair[1].body)
    );
}

pub fn page(ids: &[&str], next_cursor: Option<&str>, has_more: bool) -> Step {
    let item = |id: &&str| {
        json!({
            "id": id, "report_number": "R-1", "organization_id": id, "branch_id": id, "status": "published",
            "package_name": "Tam", "overall_score": 84, "final_price_try": "2250.00",
            "vehicle": {
                "plate_masked": "***", "vin_masked": "***", "brand": "Volkswagen", "model": "Golf", "year": 2021,
                "type": "HATCHBACK", "fuel_type": "GASOLINE", "transmission": "MANUAL", "color": "Beyaz",
                "mileage_km": 1
            },
            "published_at": "2026-06-15T09:30:00Z", "updated_at": "2026-06-15T09:30:00Z", "created_at": "2026-06-15T08:05:12Z"
        })
    };
    let mut page = json!({ "has_more": has_more });
    if let Some(cursor) = next_cursor {
        page["next_cursor"] = json!(cursor);
    }
    let data: Vec<_> = ids.iter().map(item).collect();
    Step::Respond(200, vec![], json!({ "data": data, "page": page }).to_string())
}

pub const FIRST: &str = "0197c2a4-6f00-7d33-8e4f-000000000001";
pub const SECOND: &str = "0197c2a4-6f00-7d33-8e4f-000000000002";
