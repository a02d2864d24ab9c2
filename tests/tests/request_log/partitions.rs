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

/// Today's number, by the database's clock.
async fn today(service: &Service) -> i64 {
    let today = "SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint";
    service.db.query_one(today, &[]).await.unwrap().get(0)
}

/// Makes the partition of a day that has passed, with a row of its noon.
async fn make(service: &Service, log: &Partitioned, day: i64) {
    let (name, from, to) = ((log.digits.0)(day), (log.begins)(day), (log.begins)(day + 1));
    let make = format!(
        "CREATE TABLE request_log_{name} PARTITION OF request_log FOR VALUES FROM ({from}) TO ({to});
         INSERT INTO request_log (arrived_at, request_id, duration_us, received_bytes, status, address, method, route)
         VALUES ({from} + interval '12 hours', gen_random_uuid(), 1, 0, 200, '192.0.2.1', 'GET', '/*')"
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

/// SVC-8
#[tokio::test]
async fn days_are_made_ahead_and_dropped_after_ninety() {
    let service = Service::start().await;
    let (log, pool) = (partitions(90), maintenance(&service));
    log.prepare(&pool).await.unwrap();
    let now = today(&service).await;
    for old in [now - 400, now - 92, now - 91, now - 90, now - 1] {
        make(&service, &log, old).await;
    }
    log.look_after(&pool).await.unwrap();
    // Once in a blue moon the next day has begun meanwhile.
    if today(&service).await == now {
        assert_eq!(days(&service, &log).await, [now - 90, now - 1, now, now + 1, now + 2]);
        assert_eq!(service.count("request_log WHERE address = '192.0.2.1'").await, 2);
    }
    let shorter = partitions(1);
    shorter.look_after(&pool).await.unwrap();
    assert!(days(&service, &log).await.iter().all(|day| *day >= now - 1));
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
}

/// SVC-8
#[tokio::test]
async fn of_several_replicas_one_drops_and_the_others_leave_it_to_that_one() {
    let service = Service::start().await;
    let (log, pool) = (partitions(90), maintenance(&service));
    log.prepare(&pool).await.unwrap();
    let old = today(&service).await - 200;
    make(&service, &log, old).await;
    let other = cluster::connect(&service.database()).await;
    let lock = "SELECT pg_advisory_lock($1)";
    other.execute(lock, &[&log.lock]).await.unwrap();
    log.look_after(&pool).await.unwrap();
    assert!(days(&service, &log).await.contains(&old), "another replica is at it");
    other
        .execute("SELECT pg_advisory_unlock($1)", &[&log.lock])
        .await
        .unwrap();
    let (first, second) = tokio::join!(log.look_after(&pool), log.look_after(&pool));
    first.unwrap();
    second.unwrap();
    assert!(!days(&service, &log).await.contains(&old));
}

/// SVC-8
#[tokio::test]
async fn a_service_drops_what_is_too_old_when_it_starts() {
    let service = Service::start().await;
    let log = partitions(90);
    log.prepare(&maintenance(&service)).await.unwrap();
    let old = today(&service).await - 91;
    make(&service, &log, old).await;
    let told_then = "INSERT INTO request_log_drops (reported_at, dropped_count, reason) VALUES (now() - interval '92 days', 1, 'queue_full')";
    service.db.batch_execute(told_then).await.unwrap();
    let _replica = service.replica().await;
    service
        .eventually(async || {
            !days(&service, &log).await.contains(&old) && service.count("request_log_drops").await == 0
        })
        .await;
}
