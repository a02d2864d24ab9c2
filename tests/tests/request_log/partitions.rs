//! The request log's partitions: one for each day, created ahead and dropped after the retention period.

use deadpool_postgres::Pool;
use partner_api::request_log::partitions;
use partner_api_store::partitions::Partitioned;
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_tests::{ALPHA, Service, cluster};

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

fn maintenance(service: &Service) -> Pool {
    let settings = PoolSettings {
        size: 2,
        ..PoolSettings::default()
    };
    pool(service.database(), &settings).unwrap()
}

/// The number of the current day by the database's clock.
async fn today(service: &Service) -> i64 {
    let today = "SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint";
    service.db.query_one(today, &[]).await.unwrap().get(0)
}

/// Creates the partition of a past day, with a row of its noon.
async fn create_partition(service: &Service, log: &Partitioned, day: i64) {
    let name = (log.digits.0)(day);
    let midnight = |day: i64| format!("(timestamp '1970-01-01' + interval '{day} days') AT TIME ZONE 'UTC'");
    let (from, to) = (midnight(day), midnight(day + 1));
    let make = format!(
        "CREATE TABLE request_log_{name} PARTITION OF request_log FOR VALUES FROM ({from}) TO ({to});
         ALTER TABLE request_log_{name} OWNER TO {};
         INSERT INTO request_log (arrived_at, request_id, duration_us, received_bytes, status, address, method, route)
         VALUES ({from} + interval '12 hours', gen_random_uuid(), 1, 0, 200, '192.0.2.1', 'GET', '/*')",
        cluster::OWNER
    );
    service.db.batch_execute(&make).await.unwrap();
}

/// The days that have a partition.
async fn days(service: &Service, log: &Partitioned) -> Vec<i64> {
    let names =
        "SELECT substr(relname, 13) FROM pg_class WHERE relkind = 'r' AND relname ~ '^request_log_[0-9]+$' ORDER BY 1";
    let rows = service.db.query(names, &[]).await.unwrap();
    rows.iter().map(|row| (log.digits.1)(row.get(0)).unwrap()).collect()
}

/// Runs the maintenance until it has dropped a day. On a busy machine, other transactions may last long enough to prevent it.
async fn dropped(service: &Service, log: &Partitioned, day: i64) {
    let pool = maintenance(service);
    service
        .eventually(async || {
            log.maintain(&pool).await.unwrap();
            !days(service, log).await.contains(&day)
        })
        .await;
}

/// SVC-8
#[tokio::test]
async fn days_are_created_ahead_and_dropped_after_ninety_days() {
    let service = Service::start().await;
    let (log, pool) = (partitions(90), maintenance(&service));
    log.prepare(&pool).await.unwrap();
    let now = today(&service).await;
    for old in [now - 400, now - 92, now - 91, now - 90, now - 1] {
        create_partition(&service, &log, old).await;
    }
    dropped(&service, &log, now - 91).await;
    // In rare cases the next day has begun in the meantime.
    if today(&service).await == now {
        assert_eq!(days(&service, &log).await, [now - 90, now - 1, now, now + 1, now + 2]);
        assert_eq!(service.count("request_log WHERE address = '192.0.2.1'").await, 2);
    }
    let shorter = partitions(1);
    dropped(&service, &shorter, now - 90).await;
    assert!(days(&service, &log).await.iter().all(|day| *day >= now - 1));
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
}

/// SVC-8
#[tokio::test]
async fn only_one_of_several_replicas_drops_partitions() {
    let service = Service::start().await;
    let (log, pool) = (partitions(90), maintenance(&service));
    log.prepare(&pool).await.unwrap();
    let old = today(&service).await - 200;
    create_partition(&service, &log, old).await;
    let other = cluster::connect(&service.database()).await;
    let lock = "SELECT pg_advisory_lock($1)";
    other.execute(lock, &[&log.lock]).await.unwrap();
    log.maintain(&pool).await.unwrap();
    assert!(
        days(&service, &log).await.contains(&old),
        "another replica holds the lock"
    );
    other
        .execute("SELECT pg_advisory_unlock($1)", &[&log.lock])
        .await
        .unwrap();
    let (first, second) = tokio::join!(log.maintain(&pool), log.maintain(&pool));
    first.unwrap();
    second.unwrap();
    dropped(&service, &log, old).await;
}

/// SVC-8
#[tokio::test]
async fn a_service_drops_old_partitions_when_it_starts() {
    let service = Service::start().await;
    let log = partitions(90);
    log.prepare(&maintenance(&service)).await.unwrap();
    let old = today(&service).await - 91;
    create_partition(&service, &log, old).await;
    let old_drops = "INSERT INTO request_log_drops (reported_at, dropped_count, reason) VALUES (now() - interval '92 days', 1, 'queue_full')";
    service.db.batch_execute(old_drops).await.unwrap();
    let _replica = service.replica().await;
    service
        .eventually(async || {
            !days(&service, &log).await.contains(&old) && service.count("request_log_drops").await == 0
        })
        .await;
}
