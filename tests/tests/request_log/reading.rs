//! Reading the request log: by key, partner, outcome and time, and following it.

use chrono::{DateTime, TimeDelta, Utc};
use partner_api::request_log::{Cursor, Entry, Filter, follow};
use partner_api_store::statement::STATEMENTS;
use partner_api_tests::fixture::{ALPHA_ROTATED, BETA, partners};
use partner_api_tests::{ALPHA, Request, Service};
use uuid::Uuid;

use partner_api_tests::request_log::{Log, id};

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

fn ids(entries: &[Entry]) -> Vec<Uuid> {
    entries.iter().map(|entry| entry.request_id).collect()
}

#[tokio::test]
async fn each_filter_selects_its_requests_newest_first() {
    let service = Service::start().await;
    let log = Log::of(&service);
    let mut sent = Vec::new();
    for request in [
        Request::get(HEALTH).signed_by(&ALPHA),
        Request::get(ORGANIZATIONS).signed_by(&ALPHA_ROTATED),
        Request::get(HEALTH).signed_by(&BETA),
        Request::get(HEALTH)
            .signed_by(&ALPHA)
            .with("x-partner-signature", "none"),
        Request::get(HEALTH),
    ] {
        let response = service.send(request).await;
        log.entry(&response).await;
        sent.push(id(&response));
    }
    let [first, second, third, forged, unsigned] = sent.try_into().unwrap();
    let all = Filter::default;
    let partner = Some(partners::ALPHA.parse().unwrap());
    let key = |key: &str| Some(key.to_owned());
    let third_at = log.list(&all()).await[2].at;
    for (filter, expected) in [
        (all(), vec![unsigned, forged, third, second, first]),
        (Filter { limit: 2, ..all() }, vec![unsigned, forged]),
        (
            Filter {
                partner_id: partner,
                ..all()
            },
            vec![forged, second, first],
        ),
        (
            Filter {
                partner_id: partner,
                limit: 1,
                ..all()
            },
            vec![forged],
        ),
        (
            Filter {
                partner_id: partner,
                key_id: key(BETA.id),
                ..all()
            },
            vec![],
        ),
        (
            Filter {
                key_id: key(ALPHA.id),
                ..all()
            },
            vec![forged, first],
        ),
        (
            Filter {
                key_id: key(ALPHA.id),
                partner_id: partner,
                limit: 1,
                ..all()
            },
            vec![forged],
        ),
        (
            Filter {
                status: Some(400..=499),
                ..all()
            },
            vec![unsigned, forged],
        ),
        (
            Filter {
                status: Some(200..=200),
                key_id: key(ALPHA.id),
                ..all()
            },
            vec![first],
        ),
        (
            Filter {
                code: key("invalid_signature"),
                ..all()
            },
            vec![forged],
        ),
        (
            Filter {
                reason: key("key_id_missing"),
                ..all()
            },
            vec![unsigned],
        ),
        (
            Filter {
                operation: key("list_organizations"),
                partner_id: partner,
                ..all()
            },
            vec![second],
        ),
        (
            Filter {
                since: Some(third_at),
                ..all()
            },
            vec![unsigned, forged, third],
        ),
        (
            Filter {
                until: Some(third_at),
                ..all()
            },
            vec![second, first],
        ),
        (
            Filter {
                until: Some(third_at),
                partner_id: partner,
                ..all()
            },
            vec![second, first],
        ),
    ] {
        assert_eq!(ids(&log.list(&filter).await), expected, "{filter:?}");
    }
    assert_eq!(
        partner_api::request_log::find(&log.client().await, Uuid::nil())
            .await
            .unwrap(),
        None
    );
}

/// Inserts a row with a time this many seconds ago.
async fn insert_row(service: &Service, seconds_ago: f64, key_id: &str) -> Uuid {
    let request_id = Uuid::now_v7();
    let insert =
        "INSERT INTO request_log (arrived_at, request_id, duration_us, received_bytes, status, address, method, route, key_id)
                  VALUES (now() - $1::float8 * interval '1 second', $2, 1, 0, 200, '192.0.2.1', 'GET', '/*', $3)";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&seconds_ago, &request_id, &key_id];
    service.db.execute(insert, &values).await.unwrap();
    request_id
}

#[tokio::test]
async fn following_misses_no_late_entry_and_repeats_none() {
    let service = Service::start().await;
    let log = Log::of(&service);
    // Create the partition of today.
    log.entry(&service.get(&BETA, HEALTH).await).await;
    let of_alpha = Filter {
        partner_id: Some(partners::ALPHA.parse().unwrap()),
        ..Filter::default()
    };
    let begin = Cursor::before(Utc::now() - TimeDelta::minutes(1));
    let first = insert_row(&service, 20.0, ALPHA.id).await;
    insert_row(&service, 15.0, BETA.id).await;
    let second = insert_row(&service, 10.0, ALPHA_ROTATED.id).await;
    let present = insert_row(&service, 0.0, ALPHA.id).await;
    let next = async |filter: &Filter, after| follow(&log.client().await, filter, after).await.unwrap();
    let page = next(&of_alpha, begin).await;
    assert_eq!(ids(&page), [first, second], "entries of the last moments are withheld");
    let one = Filter {
        limit: 1,
        ..of_alpha.clone()
    };
    let first_page = next(&one, begin).await;
    assert_eq!(ids(&first_page), [first]);
    assert_eq!(ids(&next(&one, Cursor::after(&first_page[0])).await), [second]);
    // A row with the same time as one that was returned.
    let twin = "INSERT INTO request_log SELECT l.arrived_at, $2, l.partner_id, 1, 0, 0, 200, l.address, 'GET', '/*', NULL, NULL, NULL, \
                l.key_id FROM request_log l WHERE request_id = $1";
    service.db.execute(twin, &[&second, &Uuid::max()]).await.unwrap();
    let after = Cursor::after(page.last().unwrap());
    assert_eq!(ids(&next(&of_alpha, after).await), [Uuid::max()]);
    let until_present = log
        .when(async || {
            let page = next(&of_alpha, after).await;
            (page.len() == 2).then_some(page)
        })
        .await;
    assert_eq!(until_present[1].request_id, present);
    let at: DateTime<Utc> = until_present[1].at;
    assert!(Utc::now() - at >= TimeDelta::seconds(2));
}

/// Searches by key or by outcome use the index for it, however rare the key or the outcome is. A scan backwards in time until
/// enough requests are found would read the whole log.
#[tokio::test]
async fn a_search_for_an_unused_key_or_outcome_does_not_scan_the_log() {
    let service = Service::start().await;
    // The first entry creates the partition of today.
    let response = service.get(&ALPHA, "/api/v1/partner/health").await;
    Log::of(&service).entry(&response).await;
    let rows =
        "INSERT INTO request_log (arrived_at, request_id, duration_us, received_bytes, status, address, method, route, key_id)
                SELECT now() - n * interval '1 microsecond', gen_random_uuid(), 1, 0, 200 + n % 20, '127.0.0.1', 'GET', '/',
                    'key' || n % 5
                FROM generate_series(1, 20000) n";
    service.db.batch_execute(rows).await.unwrap();
    service
        .db
        .batch_execute("ANALYZE request_log; SET plan_cache_mode = force_generic_plan")
        .await
        .unwrap();
    let filter = "NULL, NULL, 100::smallint, 599::smallint, 'never seen', NULL, NULL, 50";
    let (by_key, by_outcome) = (
        "_key_id_request_outcome_arrived_at_idx",
        "_request_outcome_arrived_at_idx",
    );
    for (name, own, index) in [
        (
            "partner_api::request_log::find::LIST_OF_KEY",
            ", 'never seen', NULL",
            by_key,
        ),
        ("partner_api::request_log::find::LIST_OF_PARTNER", ", NULL", by_key),
        ("partner_api::request_log::find::LIST_OF_OUTCOMES", "", by_outcome),
    ] {
        let statement = STATEMENTS.iter().find(|statement| statement.name() == name).unwrap();
        let prepare = format!("PREPARE asked AS {}", statement.sql());
        service.db.batch_execute(&prepare).await.unwrap();
        let explain = format!("EXPLAIN EXECUTE asked({filter}{own})");
        let plan: Vec<String> = service
            .db
            .query(&explain, &[])
            .await
            .unwrap()
            .iter()
            .map(|row| row.get(0))
            .collect();
        let plan = plan.join("\n");
        assert!(
            plan.contains("Index Scan Backward using") && !plan.contains("Seq Scan on request_log"),
            "{plan}"
        );
        for scan in plan.lines().filter(|line| line.contains("using request_log_2")) {
            assert!(
                scan.contains(index) && scan.contains("_key_id_") == (index == by_key),
                "{plan}"
            );
        }
        service.db.batch_execute("DEALLOCATE asked").await.unwrap();
    }
}
