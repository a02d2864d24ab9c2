//! A request log that cannot be written delays no request, and dropped entries are counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use partner_api::request_log::{Filter, Stats, drops};
use partner_api_tests::{ALPHA, Service, cluster};

use partner_api_tests::request_log::Log;

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// Enough for a busy machine. A request that waited for the log would wait until the test releases it.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Statements of the log's writer that wait for a lock.
const INSERTS_THAT_WAIT: &str = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                                 AND query LIKE 'INSERT INTO request_log%'";

/// Locks the log for everybody until the session ends.
async fn lock_log(service: &Service) -> tokio_postgres::Client {
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE request_log IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    holder
}

/// Sends this many requests; none is delayed.
async fn assert_undelayed(service: &Service, requests: usize) {
    for _ in 0..requests {
        let since = Instant::now();
        service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
        assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
    }
}

/// SVC-5
#[tokio::test]
async fn a_broken_request_log_delays_no_request_and_reports_its_drops_when_it_recovers() {
    let service = Service::start().await;
    let log = Log::of(&service);
    assert_undelayed(&service, 1).await;
    log.when(async || (service.stats().written == 1).then_some(())).await;
    service
        .db
        .batch_execute("ALTER TABLE request_log RENAME TO gone")
        .await
        .unwrap();
    assert_undelayed(&service, 20).await;
    let dropped = Stats {
        written: 1,
        dropped_unwritten: 20,
        ..Stats::default()
    };
    log.when(async || (service.stats() == dropped).then_some(())).await;
    service
        .db
        .batch_execute("ALTER TABLE gone RENAME TO request_log")
        .await
        .unwrap();
    // The next entry is written. The drops would be reported without it, too.
    let response = service.get(&ALPHA, ORGANIZATIONS).await;
    log.entry(&response).await;
    assert_eq!(service.count("request_log").await, 2);
    let reported = log
        .when(async || {
            let reported = drops(&log.client().await, chrono::DateTime::UNIX_EPOCH).await.unwrap();
            (!reported.is_empty()).then_some(reported)
        })
        .await;
    let sum: i64 = reported.iter().map(|drops| drops.dropped).sum();
    // Entries that were dropped during this report are reported some seconds later.
    assert!((1..=20).contains(&sum), "{reported:?}");
    assert!(reported.iter().all(|drops| drops.why == "not_written"), "{reported:?}");
    service
        .within(Duration::from_secs(15), async || {
            service
                .count("(SELECT sum(dropped_count) AS all FROM request_log_drops) AS drops WHERE drops.all = 20")
                .await
                == 1
        })
        .await;
}

/// SVC-5
#[tokio::test]
async fn a_locked_request_log_delays_no_request_and_loses_no_entry() {
    let service = Service::start().await;
    let log = Log::of(&service);
    assert_undelayed(&service, 1).await;
    log.when(async || (service.stats().written == 1).then_some(())).await;
    let holder = lock_log(&service).await;
    assert_undelayed(&service, 20).await;
    // The writer has timed out waiting for the lock three times.
    for _ in 0..3 {
        service
            .eventually(async || service.count(INSERTS_THAT_WAIT).await == 1)
            .await;
        service
            .eventually(async || service.count(INSERTS_THAT_WAIT).await == 0)
            .await;
    }
    assert_undelayed(&service, 5).await;
    holder.batch_execute("COMMIT").await.unwrap();
    log.when(async || (service.stats().written == 26).then_some(())).await;
    assert_eq!(service.count("request_log").await, 26);
    assert_eq!(service.stats().dropped_full + service.stats().dropped_unwritten, 0);
}

/// SVC-5
#[tokio::test]
async fn without_a_database_the_request_log_delays_no_request() {
    let service = Service::start().await;
    service.cut_off_from_database().await;
    for _ in 0..5 {
        let since = Instant::now();
        service.get(&ALPHA, "/api/v1/partner/health").await.assert_status(200);
        assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
    }
    assert_eq!(service.stats().written, 0);
    assert_eq!(service.stats().queued, 5, "entries wait for the database");
}

/// SVC-5
#[tokio::test]
async fn queued_entries_are_written_when_the_service_stops() {
    let service = Service::start().await;
    let replica = service.replica().await;
    for _ in 0..10 {
        replica.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    }
    let holder = lock_log(&service).await;
    replica.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    let is_released = AtomicBool::new(false);
    let stopping = async {
        replica.stop().await;
        assert!(
            is_released.load(Ordering::Acquire),
            "the stop must wait for the request log"
        );
    };
    let releasing = async {
        service
            .eventually(async || service.count(INSERTS_THAT_WAIT).await == 1)
            .await;
        is_released.store(true, Ordering::Release);
        holder.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(stopping, releasing);
    assert_eq!(service.count("request_log").await, 11);
}

/// SVC-5
#[tokio::test]
async fn an_entry_is_written_even_if_every_partition_is_missing() {
    let service = Service::start().await;
    let log = Log::of(&service);
    assert_undelayed(&service, 1).await;
    log.when(async || (service.stats().written == 1).then_some(())).await;
    // This happens if the database's clock was changed, or without maintenance for days.
    let gone = "DO $$ DECLARE partition regclass; BEGIN
                    FOR partition IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'request_log'::regclass
                    LOOP EXECUTE format('DROP TABLE %s', partition); END LOOP;
                END $$";
    service.db.batch_execute(gone).await.unwrap();
    let response = service.get(&ALPHA, ORGANIZATIONS).await;
    log.entry(&response).await;
    assert_eq!(log.list(&Filter::default()).await.len(), 1);
    assert_eq!(service.stats().dropped_unwritten, 0);
}
