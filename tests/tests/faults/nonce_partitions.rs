//! The partitions of the table of nonces are created and dropped while it is used.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::Pool;
use partner_api::admission::nonces::{BUCKET, PARTITIONS};
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_tests::{ALPHA, Request, Service, cluster};

use partner_api_tests::measurements::{MEASUREMENTS, package};

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

/// The bucket of now, by the database's clock.
async fn bucket(service: &Service) -> i64 {
    let now = format!(
        "SELECT floor(extract(epoch FROM clock_timestamp()) / {})::bigint",
        BUCKET.as_secs()
    );
    service.db.query_one(&now, &[]).await.unwrap().get(0)
}

/// Makes the partition of a bucket that has passed, as it was when it was now.
async fn make_partition(service: &Service, bucket: i64) {
    let make = format!(
        "CREATE TABLE used_nonces_{bucket} PARTITION OF used_nonces FOR VALUES FROM ({bucket}) TO ({})",
        bucket + 1
    );
    service.db.batch_execute(&make).await.unwrap();
}

/// The buckets that have a partition, and the tables of nonces that are none.
async fn partitions(service: &Service) -> (Vec<i64>, Vec<String>) {
    let tables =
        "SELECT relname, relispartition FROM pg_class WHERE relkind = 'r' AND relname ~ '^used_nonces_' ORDER BY 1";
    let (mut attached, mut loose) = (Vec::new(), Vec::new());
    for row in service.db.query(tables, &[]).await.unwrap() {
        let name: String = row.get(0);
        match row.get(1) {
            true => attached.push(name.trim_start_matches("used_nonces_").parse().unwrap()),
            false => loose.push(name),
        }
    }
    (attached, loose)
}

#[tokio::test]
async fn partitions_are_made_for_an_hour_ahead_and_dropped_when_nobody_needs_them() {
    let service = Service::start().await;
    let now = bucket(&service).await;
    let ahead: Vec<i64> = (now..=now + 6).collect();
    // What the template was made with may be older.
    for gone in [now + 3, now + 6] {
        service
            .db
            .batch_execute(&format!("DROP TABLE used_nonces_{gone}"))
            .await
            .unwrap();
    }
    for old in [now - 200, now - 2] {
        make_partition(&service, old).await;
        let used = format!("INSERT INTO used_nonces VALUES ({old}, gen_random_uuid())");
        service.db.execute(&used, &[]).await.unwrap();
    }
    for _ in 0..2 {
        PARTITIONS.look_after(&maintenance(&service)).await.unwrap();
        let (attached, loose) = partitions(&service).await;
        assert!(
            ahead.iter().all(|bucket| attached.contains(bucket)),
            "{attached:?}, now {now}"
        );
        assert!(
            attached.iter().all(|bucket| *bucket >= now - 1),
            "{attached:?}, now {now}"
        );
        assert_eq!(loose, Vec::<String>::new());
    }
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
}

/// A replica that starts serves nothing while another one is still making the partitions of now.
#[tokio::test]
async fn nothing_is_served_before_the_partitions_are_there_whoever_makes_them() {
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
    let other_replica = async {
        // By then the one that starts has found the lock taken, and comes again.
        service
            .eventually(async || {
                let looks = "SELECT count(*) > 0 FROM pg_stat_activity
                             WHERE datname = current_database() AND application_name = 'starting'
                               AND query ~ 'inhdetachpending' AND state = 'idle'";
                service.db.query_one(looks, &[]).await.unwrap().get(0)
            })
            .await;
        for bucket in now..=now + 2 {
            make_partition(&service, bucket).await;
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
async fn the_last_bucket_is_kept() {
    let service = Service::start().await;
    let before = bucket(&service).await - 1;
    if !partitions(&service).await.0.contains(&before) {
        make_partition(&service, before).await;
    }
    PARTITIONS.look_after(&maintenance(&service)).await.unwrap();
    if bucket(&service).await == before + 1 {
        assert!(partitions(&service).await.0.contains(&before));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_transaction_neither_stops_it_nor_is_stopped_by_it() {
    let service = Service::start().await;
    let now = bucket(&service).await;
    make_partition(&service, now - 9).await;
    service
        .db
        .batch_execute(&format!("DROP TABLE used_nonces_{}", now + 6))
        .await
        .unwrap();
    // As a write that is still at work.
    let writer = cluster::connect(&service.database()).await;
    let held_open = "00000000-0000-0000-0000-00000000000a";
    let insert = format!("BEGIN; INSERT INTO used_nonces VALUES ({now}, '{held_open}'), ({now} + 1, '{held_open}')");
    writer.batch_execute(&insert).await.unwrap();

    let pool = maintenance(&service);
    let looking = tokio::spawn({
        let pool = pool.clone();
        async move { PARTITIONS.look_after(&pool).await }
    });
    // The coming partition is there though the writer is not done, and requests pass meanwhile.
    service
        .eventually(async || partitions(&service).await.0.contains(&(now + 6)))
        .await;
    let waits = "pg_stat_activity WHERE query LIKE 'ALTER TABLE used_nonces DETACH%' AND wait_event_type = 'Lock' \
                 AND datname = current_database()";
    service.eventually(async || service.count(waits).await == 1).await;
    let requests = async {
        service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
        service
            .measure(&ALPHA, package("M-1", "35 OPN 205"))
            .await
            .assert_status(201);
        // Another replica leaves it to the one that is at it.
        PARTITIONS.look_after(&pool).await.unwrap();
        assert!(partitions(&service).await.0.contains(&(now - 9)));
        writer.batch_execute("COMMIT").await.unwrap();
    };
    // The maintenance that holds its lock gives up after 5 s: what waited for it would take that long.
    tokio::time::timeout(Duration::from_secs(4), requests)
        .await
        .expect("nothing waits for the maintenance");
    if looking.await.unwrap().is_err() {
        // On a busy machine the writer may have outlasted its patience.
        PARTITIONS.look_after(&pool).await.unwrap();
    }
    assert!(!partitions(&service).await.0.contains(&(now - 9)));
    assert_eq!(
        service
            .count(&format!("used_nonces WHERE digest = '{held_open}'"))
            .await,
        2
    );
}

#[tokio::test]
async fn what_was_cut_short_is_finished_the_next_time() {
    let service = Service::start().await;
    let now = bucket(&service).await;
    make_partition(&service, now - 9).await;
    make_partition(&service, now - 8).await;
    // Detached, but not dropped any more.
    let loose = format!("CREATE TABLE used_nonces_{} (LIKE used_nonces)", now - 7);
    service.db.batch_execute(&loose).await.unwrap();
    // A reader of everything, as a backup is, outlasts the maintenance: the first detaching is left half-done.
    let reader = cluster::connect(&service.database()).await;
    reader
        .batch_execute("BEGIN; SELECT count(*) FROM used_nonces")
        .await
        .unwrap();
    PARTITIONS.look_after(&maintenance(&service)).await.unwrap_err();
    let half_done = "pg_inherits WHERE inhparent = 'used_nonces'::regclass AND inhdetachpending";
    assert_eq!(service.count(half_done).await, 1);
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
    reader.batch_execute("COMMIT").await.unwrap();

    PARTITIONS.look_after(&maintenance(&service)).await.unwrap();
    let (attached, loose) = partitions(&service).await;
    assert!(
        attached.iter().all(|bucket| *bucket >= now - 1),
        "{attached:?}, now {now}"
    );
    assert_eq!(loose, Vec::<String>::new());
    service.get(&ALPHA, ORGANIZATIONS).await.assert_status(200);
}

#[tokio::test]
async fn a_nonce_of_one_bucket_is_refused_in_the_next_one() {
    let service = Service::start().await;
    loop {
        let now = bucket(&service).await;
        if !partitions(&service).await.0.contains(&(now - 1)) {
            make_partition(&service, now - 1).await;
        }
        // As a service leaves it that admits in the middle of the bucket before: there, and nowhere else.
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
        let answers = [service.send(read).await, service.send(write).await];
        // Once in a blue moon the next bucket began meanwhile.
        if bucket(&service).await == now {
            for answer in answers {
                answer.assert_refused(401, "replay_detected");
            }
            return;
        }
    }
}
