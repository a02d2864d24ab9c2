//! Paging against the real database with generated reports, filters and concurrent inserts.

mod case;

use std::num::NonZeroU32;

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use partner_api_client::inspections;
use partner_api_tests::{ALPHA, Service, TestKey, TestResponse};
use proptest::test_runner::{Config, TestRunner};
use uuid::Uuid;

use case::{Case, FILTER_STATUSES, Filters, PARTNERS, Report};

const LIST: &str = "/api/v1/partner/inspections";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

async fn insert(service: &Service, reports: &[Report]) {
    let sql = "INSERT INTO inspections (id, report_number, organization_id, branch_id, vehicle_id, status, plate, \
               package_name, package_base_price, base_price, final_price, payment_type, snapshot_vin, snapshot_mileage_km, \
               created_at, published_at) \
               SELECT id, 'PAGING-' || id, organization::uuid, branch::uuid, '01974d1d-0000-7d00-8000-000000000301', status, \
               '34PAG01', 'Tam', 1, 1, 1, 'CASH', 'PAGING', 1, created_at, published_at \
               FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[]) \
               AS r (id, organization, branch, status, created_at, published_at)";
    let ids: Vec<_> = reports.iter().map(|report| report.id).collect();
    let organizations: Vec<_> = reports.iter().map(|report| &report.organization).collect();
    let branches: Vec<_> = reports.iter().map(|report| &report.branch).collect();
    let statuses: Vec<_> = reports.iter().map(|report| &report.status).collect();
    let created: Vec<_> = reports.iter().map(|report| report.created_at).collect();
    let published: Vec<_> = reports.iter().map(|report| report.published_at).collect();
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&ids, &organizations, &branches, &statuses, &created, &published];
    service.db.execute(sql, &parameters).await.unwrap();
}

async fn all_reports(service: &Service) -> Vec<Report> {
    let sql = "SELECT id, branch_id::text, organization_id::text, status, created_at, published_at FROM inspections";
    let rows = service.db.query(sql, &[]).await.unwrap();
    rows.iter()
        .map(|row| Report {
            id: row.get(0),
            branch: row.get(1),
            organization: row.get(2),
            status: row.get(3),
            created_at: row.get(4),
            published_at: row.get(5),
        })
        .collect()
}

type Position = (DateTime<Utc>, Uuid);

/// The complete list, whose order the pages must follow.
fn ordered(reports: &[Report], case: &Case) -> Vec<Position> {
    let open = PARTNERS[case.partner].1;
    let mut list: Vec<Position> = reports
        .iter()
        .filter(|report| open.contains(&report.branch.as_str()) && case.filters.admit(report))
        .map(|report| (report.created_at, report.id))
        .collect();
    list.sort_by(|left, right| right.cmp(left));
    list
}

fn positions(response: &TestResponse) -> Vec<Position> {
    let times = response
        .data("created_at")
        .into_iter()
        .map(|time| time.parse().unwrap());
    let ids = response.data("id").into_iter().map(|id| id.parse().unwrap());
    times.zip(ids).collect()
}

async fn run(service: &Service, case: &Case) {
    let clear = "DELETE FROM inspections WHERE report_number LIKE 'PAGING-%'";
    service.db.execute(clear, &[]).await.unwrap();
    insert(service, &case.reports).await;
    let mut reports = all_reports(service).await;
    let at_the_start = ordered(&reports, case);
    let key = &PARTNERS[case.partner].0;
    let query = case.filters.query();
    let target = |limit: u32, cursor: &str| format!("{LIST}?limit={limit}{query}&cursor={cursor}");

    let (mut listed, mut cursors): (Vec<Position>, Vec<String>) = (Vec::new(), Vec::new());
    for (page, limit) in case.limits.iter().cycle().enumerate() {
        let response = match cursors.last() {
            None => service.get(key, &format!("{LIST}?limit={limit}{query}")).await,
            Some(cursor) => service.get(key, &target(*limit, cursor)).await,
        };
        let rest: Vec<Position> = ordered(&reports, case)
            .into_iter()
            .filter(|place| listed.last().is_none_or(|last| place < last))
            .collect();
        let limit = usize::try_from(*limit).unwrap();
        let got = positions(response.assert_status(200));
        assert_eq!(got, rest[..rest.len().min(limit)], "page {page}");
        let page_info = &response.json()["page"];
        assert_eq!(page_info["has_more"], rest.len() > limit, "page {page}: {page_info}");
        assert_eq!(
            page_info["next_cursor"].is_string(),
            rest.len() > limit,
            "page {page}: {page_info}"
        );
        listed.extend(got);
        let Some(cursor) = page_info["next_cursor"].as_str() else {
            break;
        };
        cursors.push(cursor.to_owned());
        if let Some(new) = case.concurrent.get(page) {
            insert(service, new).await;
            reports.extend(new.iter().cloned());
        }
    }
    // The same property without the model of a page: all reports in order, without duplicates or gaps.
    assert!(listed.windows(2).all(|pair| pair[0] > pair[1]), "{listed:?}");
    let remaining: Vec<_> = listed
        .into_iter()
        .filter(|place| at_the_start.contains(place))
        .collect();
    assert_eq!(remaining, at_the_start);

    assert_eq!(streamed(service, case).await, ordered(&reports, case));
    if let Some(cursor) = cursors.last() {
        misused_cursors_are_rejected(service, case, cursor).await;
    }
}

/// The items of the client's stream of all pages.
async fn streamed(service: &Service, case: &Case) -> Vec<Position> {
    let client = service.client(&PARTNERS[case.partner].0);
    let mut list = client
        .list_inspections()
        .limit(NonZeroU32::new(case.limits[0]).unwrap());
    let Filters {
        organization,
        branch,
        status,
        created,
        published,
    } = &case.filters;
    if let Some(id) = organization {
        list = list.organization_id(*id);
    }
    if let Some(id) = branch {
        list = list.branch_id(*id);
    }
    if let Some(status) = status {
        list = list.status(FILTER_STATUSES[*status].1);
    }
    if let Some(time) = created[0] {
        list = list.created_from(time);
    }
    if let Some(time) = created[1] {
        list = list.created_to(time);
    }
    if let Some(time) = published[0] {
        list = list.published_from(time);
    }
    if let Some(time) = published[1] {
        list = list.published_to(time);
    }
    inspections(list)
        .map_ok(|report| (report.created_at, report.id.to_string().parse().unwrap()))
        .try_collect()
        .await
        .unwrap()
}

async fn misused_cursors_are_rejected(service: &Service, case: &Case, cursor: &str) {
    let key = &PARTNERS[case.partner].0;
    let query = case.filters.query();
    let rejected = async |key: &TestKey, query: &str, cursor: &str| {
        let response = service.get(key, &format!("{LIST}?cursor={cursor}{query}")).await;
        response.assert_rejected(400, "invalid_request");
    };
    for (other, _) in PARTNERS.iter().filter(|(other, _)| other.partner != key.partner) {
        rejected(other, &query, cursor).await;
    }
    if case.other != case.filters {
        rejected(key, &case.other.query(), cursor).await;
    }
    let (index, by) = &case.altered;
    rejected(key, &query, &altered(cursor, index.index(cursor.len()), *by)).await;
}

/// The cursor with one character replaced by another of its alphabet.
fn altered(cursor: &str, at: usize, by: usize) -> String {
    let mut bytes = cursor.as_bytes().to_vec();
    let index = ALPHABET.iter().position(|letter| *letter == bytes[at]).unwrap();
    bytes[at] = ALPHABET[(index + by) % ALPHABET.len()];
    String::from_utf8(bytes).unwrap()
}

/// REP-3, REP-4
#[test]
fn pages_form_the_ordered_list_despite_concurrent_inserts() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let service = runtime.block_on(Service::start());
    let config = Config {
        cases: 128,
        max_shrink_iters: 128,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&case::case(), |case| {
        runtime.block_on(run(&service, &case));
        Ok(())
    });
    // The service must be dropped within its runtime.
    runtime.block_on(async { drop(service) });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// REP-4
#[tokio::test]
async fn no_altered_cursor_is_accepted() {
    let service = Service::start().await;
    let page = service.get(&ALPHA, &format!("{LIST}?limit=2")).await.json();
    let cursor = page["page"]["next_cursor"].as_str().unwrap();
    service
        .get(&ALPHA, &format!("{LIST}?cursor={cursor}"))
        .await
        .assert_status(200);
    let last = cursor.len() - 1;
    let mut forged = vec![
        cursor[..last].to_owned(),
        cursor[1..].to_owned(),
        format!("{cursor}="),
        format!("{cursor}A"),
        format!("{cursor}%20"),
        String::new(),
    ];
    // Flip each bit. For the last character, whose low bits are unused, try every other value.
    for at in 0..cursor.len() {
        let index = ALPHABET
            .iter()
            .position(|letter| *letter == cursor.as_bytes()[at])
            .unwrap();
        forged.extend((0..6).map(|bit| altered(cursor, at, ((index ^ (1 << bit)) + 64 - index) % 64)));
    }
    forged.extend((1..64).map(|by| altered(cursor, last, by)));
    for cursor in forged {
        service
            .get(&ALPHA, &format!("{LIST}?cursor={cursor}"))
            .await
            .assert_rejected(400, "invalid_request");
    }
}
