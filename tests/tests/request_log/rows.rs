//! The contents of an entry, and data that it must not contain.

use partner_api::request_log::Entry;
use partner_api_tests::fixture::{KEYS, inspections, partners};
use partner_api_tests::{ALPHA, Request, Service};

use partner_api_tests::request_log::{Log, id};

/// SVC-5
#[tokio::test]
async fn an_entry_describes_its_request_completely() {
    let service = Service::start().await;
    let log = Log::of(&service);
    let report = format!("/api/v1/partner/inspections/{}", inspections::FULL_PUBLISHED);
    let request = Request::get(&report)
        .signed_by(&ALPHA)
        .header("user-agent", "gateway/1.0");
    let before = chrono::Utc::now();
    let response = service.send(request).await;
    response.assert_status(200);
    let entry = log.entry(&response).await;
    let since = entry.at.signed_duration_since(before);
    assert!((-1..10).contains(&since.num_seconds()), "{since}");
    assert!((1..10_000_000).contains(&entry.took_us), "{}", entry.took_us);
    let expected = Entry {
        at: entry.at,
        request_id: id(&response),
        method: "GET".into(),
        route: "/api/v1/partner/inspections/{id}".into(),
        operation: Some("get_inspection".into()),
        status: 200,
        code: None,
        reason: None,
        reason_about: None,
        key_id: Some(ALPHA.id.into()),
        partner_id: Some(partners::ALPHA.parse().unwrap()),
        partner: entry.partner.clone(),
        address: [127, 0, 0, 1].into(),
        user_agent: Some("gateway/1.0".into()),
        took_us: entry.took_us,
        received_bytes: 0,
        sent_bytes: Some(response.body.len().try_into().unwrap()),
    };
    assert_eq!(entry, expected);
    let name: String = service
        .db
        .query_one("SELECT name FROM partners WHERE id::text = $1", &[&partners::ALPHA])
        .await
        .unwrap()
        .get(0);
    assert_eq!(entry.partner, Some(name));
}

/// SVC-5
#[tokio::test]
async fn paths_are_logged_as_their_templates() {
    let service = Service::start().await;
    let log = Log::of(&service);
    let body = r#"{"branch_code":"IST-02","plate":"34 TOO 001","measurements":{"BRAKE_FRONT_LEFT":2.85}}"#;
    let measured = service.measure(&ALPHA, body).await;
    let entry = log.entry(measured.assert_status(201)).await;
    assert_eq!(entry.received_bytes, i64::try_from(body.len()).unwrap());
    assert_eq!(entry.operation.as_deref(), Some("submit_measurement"));
    for (request, method, route) in [
        (Request::get("/openapi.yaml"), "GET", "/openapi.yaml"),
        (Request::new("HEAD", "/openapi.json"), "HEAD", "/openapi.json"),
        (Request::get("/files/reports/34ABC123.pdf"), "GET", "/files/{key}"),
        (Request::get("/docs/34ABC123.html"), "GET", "/docs/{page}"),
        (Request::get("/"), "GET", "/"),
        (Request::get("/34ABC123"), "GET", "/*"),
        (Request::get("/api/v1/partner/34ABC123"), "GET", "/api/v1/partner/*"),
        (Request::new("34ABC123", "/"), "OTHER", "/"),
        (
            Request::new("DELETE", "/api/v1/partner/inspections/34ABC123").signed_by(&ALPHA),
            "DELETE",
            "/api/v1/partner/inspections/{id}",
        ),
    ] {
        let response = service.send(request).await;
        let entry = log.entry(&response).await;
        assert_eq!((entry.method.as_str(), entry.route.as_str()), (method, route));
        assert_eq!(entry.sent_bytes, Some(response.body.len().try_into().unwrap()));
    }
}

/// SVC-5, KEY-2
#[tokio::test]
async fn no_entry_contains_a_secret_a_body_a_query_or_personal_data() {
    let service = Service::start().await;
    let log = Log::of(&service);
    let forged = "sha256=00b8332449583da2c92d54fa0ee432290c99864df6d9226fca919be2d027f8d7";
    let body = r#"{"branch_code":"IST-02","plate":"34 PLT 777","device_serial":"said-in-a-body","measurements":{"BRAKE_FRONT_LEFT":2.85}}"#;
    let agent = format!(
        "gateway/1 (+https://x.example/?token=said-in-an-address) {} {} 34 PLT 777 ayse.yilmaz@example.org 0532 123 45 67 \
         12345678901",
        ALPHA.secret, forged
    );
    let requests = [
        Request::get("/api/v1/partner/inspections/34PLT777?branch_id=said-in-a-query").signed_by(&ALPHA),
        Request::get("/api/v1/partner/said-in-a-path").signed_by(&ALPHA),
        Request::get("/said-in-a-path/34PLT777?plate=said-in-a-query"),
        Request::get("/files/said-in-a-path?expires=1&signature=said-in-a-query"),
        Request::new("SAID-IN-A-METHOD", "/"),
        Request::post("/api/v1/partner/test-line/measurements", body).signed_by(&ALPHA),
        Request::post(
            "/api/v1/partner/test-line/measurements",
            body.replace("34 PLT 777", "said-in-a-body"),
        )
        .signed_by(&ALPHA),
        Request::get("/api/v1/partner/health")
            .signed_by(&ALPHA)
            .with("x-partner-signature", forged),
        Request::get("/api/v1/partner/health")
            .signed_by(&ALPHA)
            .with("x-partner-key-id", ALPHA.secret),
        Request::get("/api/v1/partner/health")
            .signed_by(&ALPHA)
            .with("x-partner-nonce", "said-in-a-nonce-here"),
        Request::get("/api/v1/partner/health")
            .signed_by(&ALPHA)
            .header("cookie", "said-in-a-header")
            .header("x-forwarded-for", "said-in-a-header")
            .header("authorization", "said-in-a-header"),
    ];
    for request in requests {
        let response = service.send(request.header("user-agent", &agent)).await;
        log.entry(&response).await;
    }
    let rows = service.rows("SELECT * FROM request_log").await.to_string();
    assert!(
        rows.contains(ALPHA.id) && rows.contains("gateway/1") && rows.contains("[removed]"),
        "{rows}"
    );
    let hidden = [
        "said-in",
        "SAID-IN",
        "sha256=",
        &forged[7..],
        "34PLT777",
        "34 PLT 777",
        "yilmaz",
        "532 123",
        "12345678901",
        "BRAKE",
    ];
    for hidden in KEYS.iter().map(|key| key.secret).chain(hidden) {
        assert!(!rows.contains(hidden), "{hidden} is in the log:\n{rows}");
    }
}
