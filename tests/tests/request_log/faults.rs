//! A log that is broken, held or full costs no request anything, and what is missing is counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use partner_api::request_log::{Filter, Stats, drops};
use partner_api_tests::{ALPHA, Service, cluster};

use super::log::Log;

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// On a busy machine: a request that waited for the log would wait for as long as the test holds it.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Statements of the log's writer that somebody else's lock keeps.
const INSERTS_THAT_WAIT: &str = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                                 AND query LIKE 'INSERT INTO request_log%'";

/// A session that holds the log against everybody until it ends.
async fn held(service: &Service) -> tokio_postgres::Client {
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE request_log IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    holder
}

/// So many requests, each answered at once.
async fn unhindered(service: &Service, requests: usize) {
    for _ in 0..requests {
        let since = Instant::now();
        service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
        assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
    }
}

/// SVC-5
#[tokio::test]
async fn a_broken_log_hinders_no_request_and_what_is_missing_is_told_when_it_is_mended() {
    let service = Service::start().await;
    let log = Log::of(&service);
    unhindered(&service, 1).await;
    log.when(async || (service.stats().written == 1).then_some(())).await;
    service
        .db
        .batch_execute("ALTER TABLE request_log RENAME TO gone")
        .await
        .unwrap();
    unhindered(&service, 20).await;
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
    // The next one is kept. The drops are told without it, too, as long as the table for them is there.
    let answer = service.get(&ALPHA, ORGANIZATIONS).await;
    log.entry(&answer).await;
    assert_eq!(service.count("request_log").await, 2);
    let told = log
        .when(async || {
            let told = drops(&log.client().await, chrono::DateTime::UNIX_EPOCH).await.unwrap();
            (!told.is_empty()).then_some(told)
        })
        .await;
    let sum: i64 = told.iter().map(|drops| drops.dropped).sum();
    // What was dropped while the first of them was told is told some seconds later.
    assert!((1..=20).contains(&sum), "{told:?}");
    assert!(told.iter().all(|drops| drops.why == "not_written"), "{told:?}");
    service
        .within(Duration::from_secs(15), async || {
            service
                .count("(SELECT sum(dropped) AS all FROM request_log_drops) AS told WHERE told.all = 20")
                .await
                == 1
        })
        .await;
}

/// SVC-5
#[tokio::test]
async fn a_log_that_is_held_hinders_no_request_and_loses_nothing() {
    let service = Service::start().await;
    let log = Log::of(&service);
    unhindered(&service, 1).await;
    log.when(async || (service.stats().written == 1).then_some(())).await;
    let holder = held(&service).await;
    unhindered(&service, 20).await;
    // The writer has met the lock, and was refused, again and again.
    for _ in 0..3 {
        service
            .within_five_seconds(async || service.count(INSERTS_THAT_WAIT).await == 1)
            .await;
        service
            .within_five_seconds(async || service.count(INSERTS_THAT_WAIT).await == 0)
            .await;
    }
    unhindered(&service, 5).await;
    holder.batch_execute("COMMIT").await.unwrap();
    log.when(async || (service.stats().written == 26).then_some(())).await;
    assert_eq!(service.count("request_log").await, 26);
    assert_eq!(service.stats().dropped_full + service.stats().dropped_unwritten, 0);
}

/// SVC-5
#[tokio::test]
async fn a_log_without_a_database_hinders_no_request_that_needs_none() {
    let service = Service::start().await;
    service.cut_off_from_database().await;
    for _ in 0..5 {
        let since = Instant::now();
        service.get(&ALPHA, "/api/v1/partner/health").await.assert_status(200);
        assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
    }
    assert_eq!(service.stats().written, 0);
    assert_eq!(service.stats().queued, 5, "they wait for the database");
}

/// SVC-5
#[tokio::test]
async fn what_waits_is_written_when_the_service_stops() {
    let service = Service::start().await;
    let replica = service.replica().await;
    for _ in 0..10 {
        replica.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    }
    let holder = held(&service).await;
    replica.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    let is_released = AtomicBool::new(false);
    let stopping = async {
        replica.stop().await;
        assert!(is_released.load(Ordering::Acquire), "it waits for its log");
    };
    let releasing = async {
        service
            .within_five_seconds(async || service.count(INSERTS_THAT_WAIT).await == 1)
            .await;
        is_released.store(true, Ordering::Release);
        holder.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(stopping, releasing);
    assert_eq!(service.count("request_log").await, 11);
}

/// SVC-5
#[tokio::test]
async fn a_row_fails_for_want_of_no_partition() {
    let service = Service::start().await;
    let log = Log::of(&service);
    unhindered(&service, 1).await;
    log.when(async || (service.stats().written == 1).then_some(())).await;
    // As a database whose clock has stepped, or that nobody has looked after for days.
    let gone = "DO $$ DECLARE partition regclass; BEGIN
                    FOR partition IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'request_log'::regclass
                    LOOP EXECUTE format('DROP TABLE %s', partition); END LOOP;
                END $$";
    service.db.batch_execute(gone).await.unwrap();
    let answer = service.get(&ALPHA, ORGANIZATIONS).await;
    log.entry(&answer).await;
    assert_eq!(log.list(&Filter::default()).await.len(), 1);
    assert_eq!(service.stats().dropped_unwritten, 0);
}
