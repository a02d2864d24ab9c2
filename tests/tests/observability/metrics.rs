//! The metrics of a running service.

use partner_api::generated::errors::ErrorCode;
use partner_api::generated::operations::OPERATIONS;
use partner_api_tests::fixture::KEYS;
use partner_api_tests::{ALPHA, DELTA, Request, Service};

use partner_api_tests::measurements::package;
use partner_api_tests::metrics::Page;

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// OPS-6
#[tokio::test]
async fn requests_are_counted_by_operation_status_and_code_and_timed_by_class() {
    let service = Service::start().await;
    for _ in 0..3 {
        service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    }
    service.get(&ALPHA, HEALTH).await.assert_status(200);
    let forged = Request::get(ORGANIZATIONS)
        .signed_by(&ALPHA)
        .header("x-partner-signature", "sha256=00");
    service.send(forged).await;
    service.send(Request::get("/nothing-here")).await.assert_status(404);

    let page = Page::of(&service).await;
    let requests = |operation, status, code| {
        let labels = [("operation", operation), ("status", status), ("code", code)];
        page.value("partner_api_requests_total", &labels)
    };
    assert_eq!(requests("list_organizations", "200", "none"), 3.0);
    assert_eq!(requests("get_health", "200", "none"), 1.0);
    assert_eq!(requests("none", "404", "not_found"), 1.0);
    assert_eq!(
        page.count("partner_api_requests_total", &[("operation", "list_organizations")]),
        4.0
    );
    let timed = |name, class| page.count(name, &[("operation", "list_organizations"), ("class", class)]);
    assert_eq!(timed("partner_api_request_duration_seconds_count", "2xx"), 3.0);
    assert_eq!(timed("partner_api_request_duration_seconds_count", "4xx"), 1.0);
    assert!(timed("partner_api_request_duration_seconds_sum", "2xx") > 0.0);
    // The requests of the four that needed the database.
    assert_eq!(page.value("partner_api_pool_wait_seconds_count", &[]), 3.0);
    assert_eq!(page.value("partner_api_pool_wait_failures_total", &[]), 0.0);
    assert!(page.value("partner_api_admission_batches_total", &[("outcome", "succeeded")]) >= 3.0);
    assert!(page.value("partner_api_admission_batch_requests_sum", &[]) >= 3.0);
}

/// OPS-6
#[tokio::test]
async fn a_scrape_reads_only_memory() {
    let service = Service::start().await;
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    let page = Page::of(&service).await;
    assert_eq!(page.value("partner_api_ready", &[]), 1.0);
    for check in ["serving", "directory", "admission", "nonces"] {
        assert_eq!(page.value("partner_api_ready_check", &[("check", check)]), 1.0);
    }
    assert!(page.value("partner_api_directory_age_seconds", &[]) < 5.0);
    assert!(page.value("partner_api_directory_keys", &[]) >= 5.0);
    for pool in ["requests", "admission", "recorder", "request_log"] {
        let max = page.value("partner_api_pool_connections_max", &[("pool", pool)]);
        assert!(max >= 2.0);
        assert!(page.value("partner_api_pool_connections", &[("pool", pool)]) <= max);
        // Background tasks may be waiting for a connection of the other two pools at that moment.
        if ["requests", "recorder"].contains(&pool) {
            assert_eq!(page.value("partner_api_pool_waiting", &[("pool", pool)]), 0.0);
        }
    }
    assert!(page.value("partner_api_connections_accepted_total", &[]) >= 1.0);
    for zero in [
        "partner_api_admission_waiting",
        "partner_api_unverified_body_bytes",
        "partner_api_recorder_queued",
        "partner_api_recorder_reports",
        "partner_api_recorder_bytes",
        "partner_api_request_log_dropped_total",
        "partner_api_log_dropped_lines_total",
    ] {
        assert_eq!(page.count(zero, &[]), 0.0, "{zero}");
    }
    let build = [("version", env!("CARGO_PKG_VERSION")), ("environment", "test")];
    assert_eq!(page.value("partner_api_build_info", &build), 1.0);
    assert!(page.value("process_resident_memory_bytes", &[]) > 1e6);
    let open = page.value("process_open_fds", &[]);
    assert!((1.0..=page.value("process_max_fds", &[])).contains(&open));
    assert!(page.value("process_cpu_seconds_total", &[]) > 0.0);
    assert!(page.value("process_start_time_seconds", &[]) > 1.7e9);
}

/// OPS-6
#[tokio::test]
async fn database_metrics_are_sampled_at_the_start_and_report_their_age() {
    let service = Service::start().await;
    let before = service.count("measurements WHERE status = 'PENDING'").await;
    service
        .measure(&ALPHA, package("M-1", "06 NEW 001"))
        .await
        .assert_status(201);
    service
        .db
        .batch_execute(
            "UPDATE measurements SET received_at = now() - interval '2 hours' WHERE external_id = 'M-1';
             DELETE FROM report_renderings",
        )
        .await
        .unwrap();
    let replica = service.replica().await;
    service
        .eventually(async || Page::of(&replica).await.count("partner_api_replicas", &[]) > 0.0)
        .await;
    let page = Page::of(&replica).await;
    assert_eq!(page.value("partner_api_pending_measurements", &[]), before as f64 + 1.0);
    assert!(page.value("partner_api_pending_measurements_oldest_seconds", &[]) >= 7200.0);
    assert!(page.value("partner_api_nonce_rows", &[]) >= 0.0);
    assert!(page.value("partner_api_partitions_ahead", &[("table", "used_nonces")]) >= 5.0);
    assert!(page.value("partner_api_partitions_ahead", &[("table", "request_log")]) >= 0.0);
    assert_eq!(page.value("partner_api_renderings_due", &[]), 0.0);
    assert!(page.value("partner_api_sample_age_seconds", &[]) < 30.0);
}

/// OPS-6: what the alerts about partners, clocks and partitions need.
#[tokio::test]
async fn a_silent_partner_a_partner_with_wrong_signatures_and_partitions_in_use_are_measured() {
    let service = Service::start().await;
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    service.get(&DELTA, ORGANIZATIONS).await.assert_status(200);
    for _ in 0..3 {
        let forged = Request::get(ORGANIZATIONS)
            .signed_by(&ALPHA)
            .header("x-partner-signature", "sha256=00");
        service.send(forged).await.assert_status(401);
    }
    let page = Page::of(&service).await;
    assert_eq!(page.value("partner_api_unauthenticated_of_one_partner", &[]), 3.0);

    // One partner's last request was three days ago. A transaction reads an old day of the request log.
    let old = "UPDATE rate_windows SET started_at = now() - interval '3 days' WHERE key_id = $1";
    assert_eq!(service.db.execute(old, &[&ALPHA.id]).await.unwrap(), 1);
    for sql in [
        "CREATE TABLE request_log_20200101 PARTITION OF request_log FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')",
        "BEGIN; SELECT FROM request_log_20200101",
    ] {
        service.db.batch_execute(sql).await.unwrap();
    }
    let replica = service.replica().await;
    service
        .eventually(async || Page::of(&replica).await.count("partner_api_replicas", &[]) > 0.0)
        .await;
    let page = Page::of(&replica).await;
    assert_eq!(page.value("partner_api_partners_silent", &[]), 1.0);
    assert_eq!(
        page.value("partner_api_partitions_expired", &[("table", "request_log")]),
        1.0
    );
    assert_eq!(
        page.value("partner_api_partitions_expired", &[("table", "used_nonces")]),
        0.0
    );
    assert!(page.value("partner_api_database_clock_ahead_seconds", &[]).abs() < 2.0);
    service.db.batch_execute("ROLLBACK").await.unwrap();
}

/// OPS-6, KEY-2
#[tokio::test]
async fn no_key_partner_path_or_other_input_becomes_a_label() {
    let service = Service::start().await;
    for target in [
        "/34ABC123?plate=34ABC123",
        "/files/34ABC123.pdf",
        "/api/v1/partner/34ABC123",
    ] {
        service.send(Request::get(target)).await;
    }
    service.get(&DELTA, "/api/v1/partner/inspections/34ABC123").await;
    service
        .send(Request::new("34ABC123", "/").header("user-agent", "34ABC123"))
        .await;
    let (_, text) = service.internal("/metrics").await;
    for hidden in KEYS.iter().flat_map(|key| [key.id, key.secret]).chain(["34ABC123"]) {
        assert!(!text.contains(hidden), "{hidden}:\n{text}");
    }
    let codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    for sample in Page::read(&text)
        .0
        .iter()
        .filter(|sample| sample.name.starts_with("partner_api_request"))
    {
        for (label, value) in &sample.labels {
            let known = match label.as_str() {
                "operation" => {
                    let of_partners = OPERATIONS.iter().any(|operation| operation.id == value);
                    let mut of_inspectors = partner_api_inspector::generated::operations::OPERATIONS.iter();
                    of_partners || of_inspectors.any(|operation| operation.id == value) || value == "none"
                }
                "code" => codes.contains(&value.as_str()) || value == "none",
                "status" => value.parse().is_ok_and(|status: u16| (200..600).contains(&status)),
                "class" => ["2xx", "3xx", "4xx", "5xx"].contains(&value.as_str()),
                "le" | "reason" => true,
                _ => false,
            };
            assert!(known, "{label}={value} of {}", sample.name);
        }
    }
}
