//! Liveness and readiness.

use std::net::TcpListener;
use std::time::Duration;

use partner_api_tests::service::internal;
use partner_api_tests::{ALPHA, Options, Request, Service, cluster};
use serde_json::Value;

use partner_api_tests::metrics::Page;

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// The checks of `/ready` that do not pass.
async fn failing(service: &Service) -> Vec<String> {
    let (status, text) = service.internal("/ready").await;
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["ready"], status == 200, "{status} {text}");
    let checks = told["checks"].as_object().unwrap();
    assert_eq!(checks.len(), 4, "{text}");
    let failing = checks.iter().filter(|(_, check)| check["passes"] == false);
    let failing: Vec<String> = failing.map(|(name, _)| name.clone()).collect();
    assert_eq!(failing.is_empty(), status == 200, "{text}");
    failing
}

/// OPS-6
#[tokio::test]
async fn the_internal_listener_answers_three_paths_and_partners_get_none_of_them() {
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
    for path in ["/", "/metrics/", "/Ready", ORGANIZATIONS] {
        assert_eq!(service.internal(path).await.0, 404, "{path}");
    }
    for path in ["/live", "/ready", "/metrics"] {
        service.send(Request::get(path)).await.assert_status(404);
    }
    let none = service
        .replica_with(Options {
            internal_listen: None,
            ..Options::default()
        })
        .await;
    none.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
}

/// OPS-6
#[tokio::test]
async fn an_internal_address_that_is_taken_is_refused_at_the_start_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = Options {
        internal_listen: Some(taken.local_addr().unwrap()),
        ..Options::default()
    };
    let panicked = tokio::spawn(async { Service::start_with(options).await.internal_address() }).await;
    let said = panicked.unwrap_err().into_panic().downcast::<String>().unwrap();
    assert!(said.contains("cannot listen on 127.0.0.1:"), "{said}");
    assert!(said.contains("--internal-listen") && said.contains("`off`"), "{said}");
}

/// OPS-7, KEY-8
#[tokio::test]
async fn a_replica_that_has_not_heard_from_the_database_says_so_and_still_lives() {
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
        .assert_refused(503, "service_unavailable");
    assert_eq!(service.internal("/live").await.0, 200);
    let page = Page::of(&service).await;
    assert_eq!(page.value("partner_api_ready", &[]), 0.0);
    assert_eq!(page.value("partner_api_ready_check", &[("check", "directory")]), 0.0);
    assert!(page.value("partner_api_directory_age_seconds", &[]) > 5.0);
}

/// OPS-7
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_admits_nobody_is_told_until_it_does_again() {
    let service = Service::start().await;
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE rate_windows IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    service
        .get(&ALPHA, ORGANIZATIONS)
        .await
        .assert_refused(503, "service_unavailable");
    // Keys can still be compared: nothing but admission fails.
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
async fn a_stop_is_told_as_soon_as_it_begins_and_while_requests_are_finished() {
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
    let told = loop {
        let (status, text) = internal(address, "/ready").await;
        if status == 503 {
            break text;
        }
        assert!(!stopping.is_finished(), "{text}");
    };
    assert!(told.contains("shutting down"), "{told}");
    assert_eq!(internal(address, "/live").await.0, 200);
    holder.batch_execute("ROLLBACK").await.unwrap();
    under_way.await.unwrap().unwrap();
    stopping.await.unwrap();
}
