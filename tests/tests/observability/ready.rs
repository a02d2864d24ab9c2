//! Liveness and readiness.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use partner_api_gateway::TrustedProxies;
use partner_api_tests::service::internal;
use partner_api_tests::{ALPHA, Options, Request, Service, cluster};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use partner_api_tests::metrics::Page;

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// The failing checks of `/ready`.
async fn failing(service: &Service) -> Vec<String> {
    let (status, text) = service.internal("/ready").await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["ready"], status == 200, "{status} {text}");
    let checks = report["checks"].as_object().unwrap();
    assert_eq!(checks.len(), 4, "{text}");
    let failing = checks.iter().filter(|(_, check)| check["passes"] == false);
    let failing: Vec<String> = failing.map(|(name, _)| name.clone()).collect();
    assert_eq!(failing.is_empty(), status == 200, "{text}");
    failing
}

/// OPS-6
#[tokio::test]
async fn the_internal_listener_serves_three_paths_and_no_other_listener_does() {
    let service = Service::start().await;
    assert_eq!(
        service.internal("/live").await,
        (200.try_into().unwrap(), "live\n".to_owned())
    );
    assert_eq!(failing(&service).await, [""; 0]);
    let (status, page) = service.internal("/metrics").await;
    assert!(
        status == 200 && page.contains("# TYPE partner_api_ready gauge"),
        "{page}"
    );
    for path in ["/", "/metrics/", "/Ready", "/inspector/", ORGANIZATIONS] {
        assert_eq!(service.internal(path).await.0, 404, "{path}");
    }
    for path in ["/live", "/ready", "/metrics"] {
        service.send(Request::get(path)).await.assert_status(404);
        assert_eq!(internal(service.inspectors_address(), path).await.0, 404, "{path}");
    }
    let without_host = raw(service.internal_address(), b"GET /live HTTP/1.1\r\n\r\n").await;
    assert!(without_host.starts_with("HTTP/1.1 400 "), "{without_host}");
    let none = service
        .replica_with(Options {
            internal_listen: None,
            ..Options::default()
        })
        .await;
    none.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
}

/// Sends these bytes over a new connection, and returns the first bytes of the response.
async fn raw(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut response = [0; 1024];
    let length = stream.read(&mut response).await.unwrap();
    String::from_utf8_lossy(&response[..length]).into_owned()
}

/// OPS-6
#[tokio::test]
async fn probes_get_responses_while_the_inspectors_listener_is_full() {
    let service = Service::start().await;
    let mut signing_in = Vec::new();
    for number in 0..1_024_u16 {
        let socket = TcpSocket::new_v4().unwrap();
        // Four addresses, each with as many connections as it may have.
        let address = [127, 0, 1, (number / 256) as u8 + 1];
        socket.bind((address, 0).into()).unwrap();
        let mut stream = socket.connect(service.inspectors_address()).await.unwrap();
        let head = "POST /inspector/v1/session HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{";
        stream.write_all(head.as_bytes()).await.unwrap();
        signing_in.push(stream);
    }
    for _ in 0..20 {
        for path in ["/live", "/ready", "/metrics"] {
            assert_eq!(service.internal(path).await.0, 200, "{path}");
        }
    }
}

/// REQ-13, OPS-6
#[tokio::test]
async fn trusted_proxies_are_exempt_from_the_limit_per_address_of_every_listener() {
    let service = Service::start_with(Options {
        trusted_proxies: TrustedProxies(vec!["127.0.0.0/8".parse().unwrap()]),
        ..Options::default()
    })
    .await;
    // One more than an address may have that is not exempt.
    for (address, connections) in [
        (service.internal_address(), 17),
        (service.inspectors_address(), 257),
        (service.address(ORGANIZATIONS), 513),
    ] {
        let mut open = Vec::new();
        for _ in 0..connections {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream
                .write_all(b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n")
                .await
                .unwrap();
            assert_ne!(stream.read(&mut [0; 16 * 1024]).await.unwrap(), 0);
            open.push(stream);
        }
        // It has been idle the longest, so it would have been closed.
        let oldest = &mut open[0];
        oldest
            .write_all(b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        assert_ne!(oldest.read(&mut [0; 16]).await.unwrap(), 0, "{address}");
    }
}

/// OPS-6
#[tokio::test]
async fn an_internal_address_in_use_fails_the_start_with_a_remedy() {
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = Options {
        internal_listen: Some(occupied.local_addr().unwrap()),
        ..Options::default()
    };
    let panicked = tokio::spawn(async { Service::start_with(options).await.internal_address() }).await;
    let message = panicked.unwrap_err().into_panic().downcast::<String>().unwrap();
    assert!(message.contains("failed to listen on 127.0.0.1:"), "{message}");
    assert!(
        message.contains("--internal-listen") && message.contains("`off`"),
        "{message}"
    );
}

/// OPS-7, KEY-8
#[tokio::test]
async fn a_replica_without_contact_to_the_database_is_live_but_not_ready() {
    let service = Service::start().await;
    service.cut_off_from_database().await;
    service
        .within(Duration::from_secs(15), async || {
            failing(&service).await.contains(&"directory".to_owned())
        })
        .await;
    service
        .get(&ALPHA, ORGANIZATIONS)
        .await
        .assert_rejected(503, "service_unavailable");
    assert_eq!(service.internal("/live").await.0, 200);
    let page = Page::of(&service).await;
    assert_eq!(page.value("partner_api_ready", &[]), 0.0);
    assert_eq!(page.value("partner_api_ready_check", &[("check", "directory")]), 0.0);
    assert!(page.value("partner_api_directory_age_seconds", &[]) > 5.0);
}

/// OPS-7
#[tokio::test(flavor = "multi_thread")]
async fn failing_admission_makes_a_replica_unready_until_it_recovers() {
    let service = Service::start().await;
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE rate_windows IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    service
        .get(&ALPHA, ORGANIZATIONS)
        .await
        .assert_rejected(503, "service_unavailable");
    // Keys can still be compared; only admission fails.
    assert_eq!(failing(&service).await, ["admission"]);
    let page = Page::of(&service).await;
    assert_eq!(
        page.value("partner_api_admission_batches_total", &[("outcome", "failed")]),
        1.0
    );
    holder.batch_execute("ROLLBACK").await.unwrap();
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    assert_eq!(failing(&service).await, [""; 0]);
}

/// OPS-7
#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_replica_is_not_ready_while_it_finishes_requests() {
    let service = Service::start().await;
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE organizations IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let (address, database) = (service.internal_address(), service.database());
    let client = service.client(&ALPHA);
    let under_way = tokio::spawn(async move { client.list_organizations().send().await });
    let watching = cluster::connect(&database).await;
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while watching.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    let stopping = tokio::spawn(service.stop());
    let report = loop {
        let (status, text) = internal(address, "/ready").await;
        if status == 503 {
            break text;
        }
        assert!(!stopping.is_finished(), "{text}");
    };
    assert!(report.contains("shutting down"), "{report}");
    assert_eq!(internal(address, "/live").await.0, 200);
    holder.batch_execute("ROLLBACK").await.unwrap();
    under_way.await.unwrap().unwrap();
    stopping.await.unwrap();
}
