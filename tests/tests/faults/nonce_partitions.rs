//! The partitions of the nonce table are created and dropped while it is in use.

use std::sync::atomic::{AtomicBool, Ordering};

use deadpool_postgres::Pool;
use partner_api::admission::nonces::{BUCKET, PARTITIONS};
use partner_api::request_log::Reason;
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_tests::{ALPHA, Request, Service, cluster};

use partner_api_tests::log::logging;
use partner_api_tests::measurements::{MEASUREMENTS, package};
use partner_api_tests::request_log::Log;

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

fn maintenance(service: &Service) -> Pool {
    pool(
        service.database(),
        &PoolSettings {
            size: 2,
            ..PoolSettings::default()
        },
    )
    .unwrap()
}

/// The current bucket by the database's clock.
async fn bucket(service: &Service) -> i64 {
    let now = format!(
        "SELECT floor(extract(epoch FROM clock_timestamp()) / {})::bigint",
        BUCKET.as_secs()
    );
    service.db.query_one(&now, &[]).await.unwrap().get(0)
}

/// Makes the partition of a bucket that has passed, as it was when it was now.
async fn create_partition(service: &Service, bucket: i64) {
    let make = format!(
        "CREATE TABLE used_nonces_{bucket} PARTITION OF used_nonces FOR VALUES FROM ({bucket}) TO ({});
         ALTER TABLE used_nonces_{bucket} OWNER TO {}",
        bucket + 1,
        cluster::OWNER
    );
    service.db.batch_execute(&make).await.unwrap();
}

/// The buckets that have a partition, and the nonce tables that are not attached.
async fn partitions(service: &Service) -> (Vec<i64>, Vec<String>) {
    let tables =
        "SELECT relname, relispartition FROM pg_class WHERE relkind = 'r' AND relname ~ '^used_nonces_' ORDER BY 1";
    let (mut attached, mut detached) = (Vec::new(), Vec::new());
    for row in service.db.query(tables, &[]).await.unwrap() {
        let name: String = row.get(0);
        match row.get(1) {
            true => attached.push(name.trim_start_matches("used_nonces_").parse().unwrap()),
            false => detached.push(name),
        }
    }
    (attached, detached)
}

/// Runs the maintenance until it has dropped a partition. On a busy machine, other transactions may last long enough to prevent it.
async fn dropped(service: &Service, bucket: i64) {
    let pool = maintenance(service);
    service
        .eventually(async || {
            PARTITIONS.maintain(&pool).await.unwrap();
            !partitions(service).await.0.contains(&bucket)
        })
        .await;
}

#[tokio::test]
async fn nonce_partitions_are_created_an_hour_ahead_and_dropped_when_unused() {
    let service = Service::start().await;
    let now = bucket(&service).await;
    let ahead: Vec<i64> = (now..=now + 6).collect();
    // The partitions of the template may be older.
    for gone in [now + 3, now + 6] {
        service
            .db
            .batch_execute(&format!("DROP TABLE used_nonces_{gone}"))
            .await
            .unwrap();
    }
    for old in [now - 200, now - 2] {
        create_partition(&service, old).await;
        let used = format!("INSERT INTO used_nonces VALUES ({old}, gen_random_uuid())");
        service.db.execute(&used, &[]).await.unwrap();
    }
    dropped(&service, now - 2).await;
    for _ in 0..2 {
        PARTITIONS.maintain(&maintenance(&service)).await.unwrap();
        let (attached, detached) = partitions(&service).await;
        assert!(
            ahead.iter().all(|bucket| attached.contains(bucket)),
            "{attached:?}, now {now}"
        );
        assert!(
            attached.iter().all(|bucket| *bucket >= now - 1),
            "{attached:?}, now {now}"
        );
        assert_eq!(detached, Vec::<String>::new());
    }
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
}

/// While another replica is creating the current partitions, a starting replica waits, and says so.
#[tokio::test]
async fn a_replica_serves_nothing_before_the_nonce_partitions_exist() {
    let service = Service::start().await;
    for table in partitions(&service).await.0 {
        let drop = format!("DROP TABLE used_nonces_{table}");
        service.db.batch_execute(&drop).await.unwrap();
    }
    let other = cluster::connect(&service.database()).await;
    let lock = "SELECT pg_advisory_lock($1)";
    other.execute(lock, &[&PARTITIONS.lock]).await.unwrap();
    let now = bucket(&service).await;
    let is_made = AtomicBool::new(false);
    let (log, _logging) = logging("partner_api_store=warn");
    let other_replica = async {
        // By then the starting replica has found the lock taken and retries.
        service
            .eventually(async || {
                let looks = "SELECT count(*) > 0 FROM pg_stat_activity
                             WHERE datname = current_database() AND application_name = 'starting'
                               AND query ~ 'AS is_attached' AND state = 'idle'";
                service.db.query_one(looks, &[]).await.unwrap().get(0)
            })
            .await;
        service
            .eventually(async || log.text().contains("waiting for the partitions"))
            .await;
        for bucket in now..=now + 2 {
            create_partition(&service, bucket).await;
        }
        is_made.store(true, Ordering::Release);
    };
    let mut config = service.database();
    config.application_name("starting");
    let its_pool = pool(config, &PoolSettings::default()).unwrap();
    let starting = async {
        PARTITIONS.prepare(&its_pool).await.unwrap();
        assert!(is_made.load(Ordering::Acquire));
    };
    tokio::join!(starting, other_replica);
}

#[tokio::test]
async fn the_previous_bucket_is_kept() {
    let service = Service::start().await;
    let before = bucket(&service).await - 1;
    if !partitions(&service).await.0.contains(&before) {
        create_partition(&service, before).await;
    }
    PARTITIONS.maintain(&maintenance(&service)).await.unwrap();
    if bucket(&service).await == before + 1 {
        assert!(partitions(&service).await.0.contains(&before));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_transaction_and_partition_maintenance_do_not_block_each_other() {
    let service = Service::start().await;
    let now = bucket(&service).await;
    create_partition(&service, now - 9).await;
    service
        .db
        .batch_execute(&format!("DROP TABLE used_nonces_{}", now + 6))
        .await
        .unwrap();
    // An unfinished write.
    let writer = cluster::connect(&service.database()).await;
    let held_open = "00000000-0000-0000-0000-00000000000a";
    let insert = format!("BEGIN; INSERT INTO used_nonces VALUES ({now}, '{held_open}'), ({now} + 1, '{held_open}')");
    writer.batch_execute(&insert).await.unwrap();

    let pool = maintenance(&service);
    // The next partition is created although the writer is not finished. The expired one stays.
    let maintaining = tokio::spawn({
        let pool = pool.clone();
        async move { PARTITIONS.maintain(&pool).await }
    });
    service
        .eventually(async || partitions(&service).await.0.contains(&(now + 6)))
        .await;
    // Requests succeed during the maintenance and after it, because it does not wait for the writer.
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    maintaining.await.unwrap().unwrap();
    assert!(partitions(&service).await.0.contains(&(now - 9)));
    let waits = "pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    assert_eq!(service.count(waits).await, 0);
    service
        .measure(&ALPHA, package("M-1", "35 OPN 205"))
        .await
        .assert_status(201);
    writer.batch_execute("COMMIT").await.unwrap();
    dropped(&service, now - 9).await;
    assert_eq!(
        service
            .count(&format!("used_nonces WHERE digest = '{held_open}'"))
            .await,
        2
    );
}

#[tokio::test]
async fn expired_partitions_are_dropped_even_if_they_are_detached() {
    let service = Service::start().await;
    let now = bucket(&service).await;
    create_partition(&service, now - 9).await;
    create_partition(&service, now - 8).await;
    // A table that was detached but not dropped.
    let detached = format!(
        "CREATE TABLE used_nonces_{0} (LIKE used_nonces); ALTER TABLE used_nonces_{0} OWNER TO {1}",
        now - 7,
        cluster::OWNER
    );
    service.db.batch_execute(&detached).await.unwrap();
    for bucket in [now - 9, now - 8] {
        dropped(&service, bucket).await;
    }
    let (attached, detached) = partitions(&service).await;
    assert!(
        attached.iter().all(|bucket| *bucket >= now - 1),
        "{attached:?}, now {now}"
    );
    assert_eq!(detached, Vec::<String>::new());
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
}

#[tokio::test]
async fn a_nonce_of_one_bucket_is_rejected_in_the_next_one() {
    let service = Service::start().await;
    loop {
        let now = bucket(&service).await;
        if !partitions(&service).await.0.contains(&(now - 1)) {
            create_partition(&service, now - 1).await;
        }
        // The nonces of requests that were admitted in the middle of the previous bucket are only in that bucket.
        let used = format!(
            "INSERT INTO used_nonces SELECT {now} - 1, substr(encode(sha256(convert_to('{}', 'UTF8') || '\\x00' || nonce::bytea), \
             'hex'), 1, 32)::uuid FROM unnest(ARRAY['in-the-bucket-before-read', 'in-the-bucket-before-write']) AS nonce \
             ON CONFLICT DO NOTHING",
            ALPHA.id
        );
        service.db.execute(&used, &[]).await.unwrap();
        let read = Request::get(ORGANIZATIONS)
            .signed_by(&ALPHA)
            .nonce("in-the-bucket-before-read");
        let write = Request::post(MEASUREMENTS, package("M-1", "35 OPN 205"))
            .signed_by(&ALPHA)
            .nonce("in-the-bucket-before-write");
        let responses = [service.send(read).await, service.send(write).await];
        // In rare cases the next bucket has begun in the meantime.
        if bucket(&service).await == now {
            for response in responses {
                response.assert_rejected(401, "replay_detected");
            }
            return;
        }
    }
}

/// SQL for the digest of a nonce of [`ALPHA`], as admission stores it.
fn digest(nonce: &str) -> String {
    format!(
        "substr(encode(sha256(convert_to('{}', 'UTF8') || '\\x00' || '{nonce}'::bytea), 'hex'), 1, 32)::uuid",
        ALPHA.id
    )
}

/// KEY-6: a step back of the clock leaves nonces in later buckets.
#[tokio::test]
async fn a_nonce_stays_used_after_the_databases_clock_stepped_back() {
    let service = Service::start().await;
    loop {
        let now = bucket(&service).await;
        for later in [1, 2] {
            let nonce = format!("used-before-the-step-{later}");
            let used = format!(
                "INSERT INTO used_nonces VALUES ({now} + {later}, {}) ON CONFLICT DO NOTHING",
                digest(&nonce)
            );
            service.db.execute(&used, &[]).await.unwrap();
        }
        let mut responses = Vec::new();
        for later in [1, 2] {
            let replay = Request::get(ORGANIZATIONS)
                .signed_by(&ALPHA)
                .nonce(&format!("used-before-the-step-{later}"));
            responses.push(service.send(replay).await);
        }
        // In rare cases the next bucket has begun in the meantime.
        if bucket(&service).await == now {
            for response in responses {
                response.assert_rejected(401, "replay_detected");
            }
            service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
            return;
        }
    }
}

/// KEY-6: the later buckets show that the clock has stepped back by two buckets.
#[tokio::test]
async fn a_nonce_used_during_a_step_back_of_the_clock_stays_used_after_its_correction() {
    let service = Service::start().await;
    loop {
        let now = bucket(&service).await;
        let before = format!("INSERT INTO used_nonces VALUES ({now} + 2, gen_random_uuid())");
        service.db.execute(&before, &[]).await.unwrap();
        let during = Request::get(ORGANIZATIONS)
            .signed_by(&ALPHA)
            .nonce("sent-during-the-small-step");
        service.send(during).await.assert_status(200);
        // In rare cases the next bucket has begun in the meantime.
        if bucket(&service).await == now {
            let digest = digest("sent-during-the-small-step");
            let rows = format!("used_nonces WHERE digest = {digest} AND bucket BETWEEN {now} AND {now} + 2");
            assert_eq!(service.count(&rows).await, 3);
            return;
        }
    }
}

/// KEY-6
#[tokio::test]
async fn nothing_is_admitted_after_a_larger_step_back_until_the_clock_is_correct() {
    let service = Service::start().await;
    let now = bucket(&service).await;
    let used = format!("INSERT INTO used_nonces VALUES ({now} + 4, gen_random_uuid())");
    service.db.execute(&used, &[]).await.unwrap();
    let request = || {
        Request::get(ORGANIZATIONS)
            .signed_by(&ALPHA)
            .nonce("sent-during-the-step")
    };
    let response = service.send(request()).await;
    response.assert_rejected(503, "service_unavailable");
    Log::of(&service)
        .assert_reason(&response, Reason::AdmissionClockBehind)
        .await;
    let recorded = format!("used_nonces WHERE digest = {}", digest("sent-during-the-step"));
    assert_eq!(service.count(&recorded).await, 0);

    let corrected = format!("DELETE FROM used_nonces WHERE bucket = {now} + 4");
    service.db.execute(&corrected, &[]).await.unwrap();
    // The request was not admitted, so its nonce may be used.
    service.send(request()).await.assert_status(200);
    service.send(request()).await.assert_rejected(401, "replay_detected");
}

/// KEY-7
#[tokio::test]
async fn the_nonce_of_a_request_that_was_not_admitted_can_be_used_again() {
    let service = Service::start().await;
    let lock = cluster::connect(&service.database()).await;
    lock.batch_execute("BEGIN; LOCK TABLE used_nonces").await.unwrap();
    let request = || {
        Request::get(ORGANIZATIONS)
            .signed_by(&ALPHA)
            .nonce("sent-during-the-lock")
    };
    service
        .send(request())
        .await
        .assert_rejected(503, "service_unavailable");
    // The attempts end at their lock timeout; one that got the lock would record the nonce.
    let waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    service.eventually(async || service.count(waiting).await == 0).await;
    lock.batch_execute("ROLLBACK").await.unwrap();
    service.send(request()).await.assert_status(200);
    service.send(request()).await.assert_rejected(401, "replay_detected");
}
