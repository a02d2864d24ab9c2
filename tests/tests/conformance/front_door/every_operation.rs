//! What the front door refuses, it refuses alike for every operation of the document.

use http::Method;
use partner_api_tests::contract::operations;
use partner_api_tests::fixture::{THREE_A_MINUTE, inspections, organizations};
use partner_api_tests::{ALPHA, Options, Request, Service, TestKey};

const BODY: &str = r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123","measurements":{"BRAKE_FRONT_LEFT":2.85}}"#;

/// One good request, unsigned, for each operation.
fn requests() -> Vec<(String, Request)> {
    let request = |(id, method, path): (String, Method, String)| {
        let path = if id == "list_branches" {
            path.replace(inspections::PUBLISHED, organizations::MASKED)
        } else {
            path
        };
        let request = match method {
            Method::POST => Request::post(&path, BODY),
            method => Request::new(method.as_str(), &path),
        };
        (id, request)
    };
    operations(inspections::PUBLISHED).into_iter().map(request).collect()
}

#[tokio::test]
async fn a_good_request_passes_for_every_operation() {
    let service = Service::start().await;
    let requests = requests();
    assert_eq!(requests.len(), 9);
    for (id, request) in requests {
        let answer = service.send(request.signed_by(&ALPHA)).await;
        assert!(answer.status.is_success(), "{id}: {}", answer.status);
    }
}

/// ERR-1
#[tokio::test]
async fn every_401_is_answered_alike() {
    let service = Service::start().await;
    let unknown = TestKey {
        id: "vip_test_UNKNOWNAAAAAAAAAAAAAAA",
        ..ALPHA
    };
    let thief = TestKey {
        secret: THREE_A_MINUTE.secret,
        ..ALPHA
    };
    for (id, request) in requests() {
        let answer = service.send(request.clone()).await;
        answer
            .assert_refused(401, "missing_signature_headers")
            .snapshot("missing_signature_headers");
        let answer = service.send(request.clone().signed_by(&unknown)).await;
        answer.assert_refused(401, "invalid_key").snapshot("invalid_key");
        let answer = service
            .send(request.clone().signed_by(&ALPHA).clock_ahead_by(-301))
            .await;
        answer
            .assert_refused(401, "expired_timestamp")
            .snapshot("expired_timestamp");
        let nonce = format!("{id}-0123456789abcdef");
        let answer = service.send(request.clone().signed_by(&thief).nonce(&nonce)).await;
        answer
            .assert_refused(401, "invalid_signature")
            .snapshot("invalid_signature");
        let request = request.signed_by(&ALPHA).nonce(&nonce);
        assert!(service.send(request.clone()).await.status.is_success(), "{id}");
        let answer = service.send(request).await;
        answer
            .assert_refused(401, "replay_detected")
            .snapshot("replay_detected");
    }
}

#[tokio::test]
async fn a_used_up_quota_is_answered_alike() {
    let service = Service::start().await;
    for _ in 0..3 {
        service
            .get(&THREE_A_MINUTE, "/api/v1/partner/organizations")
            .await
            .assert_status(200);
    }
    for (_, request) in requests() {
        let answer = service.send(request.signed_by(&THREE_A_MINUTE)).await;
        answer.assert_refused(429, "rate_limited").snapshot("rate_limited");
    }
}

#[tokio::test]
async fn an_address_with_too_many_requests_is_answered_alike() {
    let service = Service::start_with(Options {
        ip_limit: 1,
        ..Options::default()
    })
    .await;
    service.get(&ALPHA, "/api/v1/partner/health").await.assert_status(200);
    for (_, request) in requests() {
        let answer = service.send(request.signed_by(&ALPHA)).await;
        answer
            .assert_refused(429, "ip_rate_limited")
            .snapshot("ip_rate_limited");
    }
}

#[tokio::test]
async fn a_body_too_large_or_too_slow_is_answered_alike() {
    let body_timeout = std::time::Duration::from_millis(100);
    let service = Service::start_with(Options {
        body_timeout,
        ..Options::default()
    })
    .await;
    for (_, request) in requests() {
        let announced = request
            .clone()
            .body("{")
            .header("content-length", "1048577")
            .stalled()
            .signed_by(&ALPHA);
        let answer = service.send(announced).await;
        answer
            .assert_refused(413, "payload_too_large")
            .snapshot("payload_too_large");
        let answer = service.send(request.body("{").stalled().signed_by(&ALPHA)).await;
        answer
            .assert_refused(408, "request_timeout")
            .snapshot("request_timeout");
    }
}

#[tokio::test]
async fn another_method_is_answered_alike() {
    let service = Service::start().await;
    for (_, mut request) in requests() {
        request = request.with_method("DELETE");
        let answer = service.send(request.signed_by(&ALPHA)).await;
        answer
            .assert_refused(405, "method_not_allowed")
            .snapshot("method_not_allowed");
    }
}

/// REQ-5
#[tokio::test]
async fn an_unknown_query_parameter_is_answered_alike() {
    let service = Service::start().await;
    for (_, request) in requests() {
        let answer = service.send(request.with_query("verbose=1").signed_by(&ALPHA)).await;
        answer
            .assert_refused(400, "invalid_request")
            .snapshot("invalid_request");
    }
}

/// REQ-12, KEY-9
#[tokio::test]
async fn without_a_database_every_operation_but_health_is_unavailable() {
    let service = Service::start().await;
    service.cut_off_from_database().await;
    for (id, request) in requests() {
        let answer = service.send(request.signed_by(&ALPHA)).await;
        if id == "get_health" {
            answer.assert_status(200);
        } else {
            answer
                .assert_refused(503, "service_unavailable")
                .snapshot("service_unavailable");
        }
    }
}

/// ERR-1, ERR-8
#[tokio::test]
async fn a_fault_inside_is_answered_without_its_cause() {
    let service = Service::start().await;
    for table in ["organizations", "branches", "inspections", "measurements"] {
        service
            .db
            .batch_execute(&format!("ALTER TABLE {table} RENAME TO {table}_gone"))
            .await
            .unwrap();
    }
    for (id, request) in requests() {
        let answer = service.send(request.signed_by(&ALPHA)).await;
        if id == "get_health" {
            answer.assert_status(200);
        } else {
            answer.assert_refused(500, "internal_error").snapshot("internal_error");
        }
    }
}
