//! The contents of the log.

use partner_api_tests::fixture::{ALLOWLISTED, KEYS, MASTER_KEY, REPORTED, inspections};
use partner_api_tests::log::logging;
use partner_api_tests::{ALPHA, Request, Service};

const HEALTH: &str = "/api/v1/partner/health";

/// SVC-5, KEY-2
#[tokio::test]
async fn a_log_holds_no_secret_no_signature_no_body_and_no_personal_data() {
    let (log, _guard) = logging("debug,refinery_core=warn,tokio_postgres=warn");
    let service = Service::start().await;
    service.get(&ALPHA, HEALTH).await.assert_status(200);
    let report = format!("/api/v1/partner/inspections/{}", inspections::FULL_PUBLISHED);
    service.get(&ALPHA, &report).await.assert_status(200);
    let list = "/api/v1/partner/inspections?branch_id=said-in-a-query";
    service.get(&ALPHA, list).await.assert_status(200);
    let body = r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123","device_serial":"said-in-a-body","measurements":{"BRAKE_FRONT_LEFT":2.85}}"#;
    service.measure(&ALPHA, body).await.assert_status(201);
    service
        .measure(&ALPHA, body.replace("34 ABC 123", "34 ABC 123 4567"))
        .await
        .assert_rejected(400, "invalid_request");
    let forged = format!("sha256={}", "ab".repeat(32));
    let request = Request::get(HEALTH)
        .signed_by(&ALPHA)
        .with("x-partner-signature", &forged);
    service.send(request).await.assert_rejected(401, "invalid_signature");
    service
        .get(&ALLOWLISTED, HEALTH)
        .await
        .assert_rejected(401, "invalid_key");
    service
        .db
        .batch_execute("ALTER VIEW shown_photos RENAME TO gone")
        .await
        .unwrap();
    service
        .get(&ALPHA, &format!("{report}/photos"))
        .await
        .assert_rejected(500, "internal_error");
    let log = log.text();
    // The log contains these requests and their senders.
    assert!(
        log.contains(ALPHA.id) && log.contains("submit_measurement") && log.contains("invalid_signature"),
        "{log}"
    );
    let hidden = [
        MASTER_KEY,
        "sha256=",
        &forged[7..],
        "said-in-a-body",
        "said-in-a-query",
        "BRAKE_FRONT_LEFT",
        "34ABC123",
        "34 ABC 123",
        "0534 333",
        "34FUL301",
        "5YJ3E7EB9KF000301",
    ];
    for hidden in KEYS.iter().map(|key| key.secret).chain(hidden) {
        assert!(!log.contains(hidden), "{hidden} is in the log:\n{log}");
    }
}

/// KEY-5
#[tokio::test]
async fn an_allowlist_in_report_mode_logs_the_key_and_address_it_would_reject() {
    let (log, _guard) = logging("warn");
    let service = Service::start().await;
    service.get(&REPORTED, HEALTH).await.assert_status(200);
    let log = log.text();
    let line = log
        .lines()
        .find(|line| line.contains("allowlist"))
        .unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains(REPORTED.id) && line.contains("127.0.0.1"), "{line}");
}

/// ERR-1, SVC-5
#[tokio::test]
async fn values_that_an_error_repeats_to_its_sender_are_not_logged() {
    let (log, _guard) = logging("debug,refinery_core=warn,tokio_postgres=warn");
    let service = Service::start().await;
    // The number has more digits than any number or part of an ID that a log line can contain.
    for (body, repeated) in [
        (
            r#"{"branch_code":"IZMIR-01","plate":"34 GIZLI 7654321098765","measurements":{"A":1}}"#,
            "34GIZLI7654321098765",
        ),
        (
            r#"{"branch_code":"IZMIR-01","plate":"35 OPN 205","measurements":{"BRAKE_FRONT_LEFT":"7654321098765"}}"#,
            "7654321098765",
        ),
    ] {
        let response = service.measure(&ALPHA, body).await;
        let message = response.assert_rejected(400, "invalid_request").message();
        assert!(message.contains(repeated), "{message}");
    }
    let text = log.text();
    assert!(text.contains("invalid_request"), "{text}");
    assert!(!text.contains("7654321098765") && !text.contains("GIZLI"), "{text}");
}
