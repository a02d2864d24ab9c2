//! The list of reports for every variant of its query, compared page by page with a sorted model.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use partner_api_domain::grants::Grants;
use partner_api_store::inspections::{ListFilter, Status, list};
use partner_api_store::standby::Reader;
use uuid::Uuid;

use crate::setup::{Report, Setup, at};

const STATUSES: [&str; 7] = [
    "PUBLISHED",
    "ARCHIVED",
    "CANCELLED",
    "DRAFT",
    "IN_REVIEW",
    "REVISION_REQUESTED",
    "CANCEL_REQUESTED",
];

/// Reads all pages of a list, one after the other.
async fn read_pages(db: &Reader, grants: &Grants, filter: &ListFilter, limit: i64) -> Vec<Uuid> {
    let mut after = None;
    let mut ids = Vec::new();
    loop {
        let page = list(db, grants, filter, after, limit).await.unwrap();
        ids.extend(page.items.iter().map(|item| item.id));
        match page.next {
            Some(next) => {
                assert_eq!(page.items.len() as i64, limit);
                after = Some(next);
            }
            None => return ids,
        }
    }
}

/// The expected list, computed from the rules.
fn expected(data: &Data, grants: &Grants, filter: &ListFilter) -> Vec<Uuid> {
    let of_changes = filter.updated_from.is_some() || filter.updated_to.is_some();
    let mut found: Vec<&(Report, Uuid)> = data
        .reports
        .iter()
        .filter(|(report, id)| {
            let published = at(report.created + report.lag);
            let created = at(report.created);
            let updated = match report.organization == data.changed.0 {
                true => report.updated_at().max(data.changed.1),
                false => report.updated_at(),
            };
            let visible = match filter.status {
                None if of_changes => ["PUBLISHED", "ARCHIVED", "CANCELLED"].contains(&report.status),
                None => ["PUBLISHED", "ARCHIVED"].contains(&report.status),
                Some(Status::Published) => report.status == "PUBLISHED",
                Some(Status::Archived) => report.status == "ARCHIVED",
                Some(Status::Cancelled) => report.status == "CANCELLED",
            };
            visible
                && (grants.whole().contains(&report.organization) || grants.branches().contains(&report.branch))
                && filter.branch_id.is_none_or(|branch| branch == report.branch)
                && filter.published_from.is_none_or(|from| published >= from)
                && filter.published_to.is_none_or(|to| published <= to)
                && filter.created_from.is_none_or(|from| created >= from)
                && filter.created_to.is_none_or(|to| created <= to)
                && filter.updated_from.is_none_or(|from| updated >= from)
                && filter.updated_to.is_none_or(|to| updated <= to)
                && filter.report_number.as_ref().is_none_or(|number| *number == id.to_string())
                // The vehicle of all reports, which only one organization shows.
                && filter.vin.as_ref().is_none_or(|vin| vin == VIN && report.organization == data.organizations[2])
        })
        .collect();
    match of_changes {
        true => found.sort_by_key(|(report, id)| (report.updated_at(), *id)),
        false => found.sort_by_key(|(report, id)| Reverse((report.created, *id))),
    }
    found.into_iter().map(|(_, id)| *id).collect()
}

/// The vehicle of all reports.
const VIN: &str = "WVWZZZ1JZ3W386752";

struct Data {
    db: Reader,
    // Dropped after its connection.
    setup: Setup,
    /// Each organization, and the last change of data that all of its reports show.
    changed: (Uuid, DateTime<Utc>),
    organizations: Vec<Uuid>,
    branches: Vec<Vec<Uuid>>,
    reports: Vec<(Report, Uuid)>,
}

/// Three organizations with six branches each, some without reports for a long time, and many equal times.
async fn create_data() -> Data {
    let setup = Setup::new().await;
    let (mut organizations, mut branches, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    for organization in 0..3 {
        let mode = ["NONE", "MASKED", "FULL"][organization];
        let id = setup.organization(&format!("o{organization}"), mode).await;
        organizations.push(id);
        let mut own = Vec::new();
        for branch in 0..6 {
            own.push(
                setup
                    .branch(id, &format!("B{organization}{branch}"), "Ankara", true)
                    .await
                    .id,
            );
        }
        branches.push(own);
    }
    // A linear congruential sequence, so that every run has the same data.
    let mut state: u64 = 42;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below) as usize
    };
    for _ in 0..700 {
        let (organization, branch) = (draw(3), draw(6));
        let created = if branch < 2 { draw(10) } else { 20 + draw(60) };
        reports.push(Report {
            organization: organizations[organization],
            branch: branches[organization][branch],
            status: STATUSES[if draw(3) > 0 { draw(2) } else { draw(7) }],
            created: created as i64,
            lag: draw(30) as i64,
            unchanged_for: draw(40) as i64,
        });
    }
    let ids = setup.reports(&reports).await;
    let changed = (organizations[1], at(90));
    let sql = "UPDATE organizations SET reports_changed_at = $2 WHERE id = $1";
    setup
        .client()
        .await
        .execute(sql, &[&changed.0, &changed.1])
        .await
        .unwrap();
    setup.client().await.batch_execute("ANALYZE").await.unwrap();
    Data {
        db: setup.reader().await,
        setup,
        changed,
        organizations,
        branches,
        reports: reports.into_iter().zip(ids).collect(),
    }
}

/// Grants organizations in full, and branches, each with its organization.
fn granted(data: &Data, whole: Vec<Uuid>, branches: Vec<Uuid>) -> Grants {
    let mut restricted: BTreeMap<Uuid, Vec<Uuid>> = BTreeMap::new();
    for branch in branches {
        let place = data.branches.iter().position(|own| own.contains(&branch));
        let organization = place.map_or(Uuid::nil(), |place| data.organizations[place]);
        restricted.entry(organization).or_default().push(branch);
    }
    Grants::new(whole, restricted)
}

fn all_grants(data: &Data) -> Vec<Grants> {
    let whole = |organizations: &[usize]| organizations.iter().map(|place| data.organizations[*place]).collect();
    // Adds organizations without reports, up to `count`.
    let unknown = |mut organizations: Vec<Uuid>, count: u128| {
        organizations.extend((organizations.len() as u128..count).map(Uuid::from_u128));
        organizations
    };
    vec![
        Grants::default(),
        granted(data, whole(&[0]), vec![]),
        granted(data, whole(&[0, 1, 2]), vec![]),
        granted(data, vec![], data.branches[1][..2].to_vec()),
        granted(data, vec![], data.branches.concat()),
        granted(data, whole(&[0]), data.branches[1][1..4].to_vec()),
        granted(data, whole(&[2]), data.branches[..2].concat()),
        granted(
            data,
            vec![],
            data.branches.iter().flat_map(|own| own[1..4].to_vec()).collect(),
        ),
        granted(
            data,
            whole(&[2]),
            [&data.branches[0][..], &data.branches[1][4..]].concat(),
        ),
        granted(data, vec![Uuid::from_u128(7)], vec![Uuid::from_u128(8)]),
        granted(data, unknown(whole(&[0, 1, 2]), 7), vec![]),
        granted(data, unknown(whole(&[1, 2]), 13), vec![]),
        granted(data, unknown(whole(&[0, 2]), 17), vec![]),
        granted(data, vec![], vec![data.branches[1][3]]),
        granted(
            data,
            vec![],
            [&data.branches[0][1..4], &data.branches[2][3..5]].concat(),
        ),
        // So many that a range of publication times is read by organization.
        granted(
            data,
            whole(&[2]),
            data.branches[0][1..4]
                .iter()
                .copied()
                .chain((10..500).map(Uuid::from_u128))
                .collect(),
        ),
    ]
}

fn filters(data: &Data) -> Vec<ListFilter> {
    let all = ListFilter::default;
    let mut filters = vec![
        all(),
        ListFilter {
            created_from: Some(at(30)),
            ..all()
        },
        ListFilter {
            created_to: Some(at(50)),
            ..all()
        },
        ListFilter {
            created_from: Some(at(25)),
            created_to: Some(at(25)),
            ..all()
        },
        ListFilter {
            published_from: Some(at(60)),
            ..all()
        },
        ListFilter {
            published_to: Some(at(40)),
            ..all()
        },
        ListFilter {
            published_from: Some(at(40)),
            published_to: Some(at(60)),
            created_to: Some(at(45)),
            ..all()
        },
        ListFilter {
            published_from: Some(at(10_000)),
            ..all()
        },
        ListFilter {
            branch_id: Some(data.branches[0][3]),
            ..all()
        },
        ListFilter {
            branch_id: Some(data.branches[1][1]),
            published_from: Some(at(5)),
            ..all()
        },
        ListFilter {
            branch_id: Some(Uuid::from_u128(9)),
            ..all()
        },
    ];
    let between = |from, to| ListFilter {
        updated_from: Some(at(from)),
        updated_to: to,
        ..all()
    };
    filters.extend([
        between(0, None),
        between(75, None),
        between(80, Some(at(100))),
        between(90, Some(at(90))),
        between(91, None),
        ListFilter {
            updated_to: Some(at(89)),
            ..all()
        },
        ListFilter {
            branch_id: Some(data.branches[1][4]),
            ..between(85, None)
        },
        ListFilter {
            branch_id: Some(Uuid::from_u128(9)),
            ..between(0, None)
        },
        ListFilter {
            status: Some(Status::Cancelled),
            created_from: Some(at(30)),
            published_to: Some(at(80)),
            ..between(60, None)
        },
        ListFilter {
            report_number: Some(data.reports[7].1.to_string()),
            ..all()
        },
        ListFilter {
            report_number: Some(data.reports[8].1.to_string()),
            vin: Some(VIN.to_owned()),
            ..between(0, None)
        },
        ListFilter {
            vin: Some(VIN.to_owned()),
            ..all()
        },
        ListFilter {
            vin: Some(VIN.to_owned()),
            branch_id: Some(data.branches[2][3]),
            created_to: Some(at(60)),
            ..all()
        },
        ListFilter {
            vin: Some(VIN.to_owned()),
            ..between(70, None)
        },
        ListFilter {
            vin: Some("WVWZZZ1JZ3W38675".to_owned()),
            ..all()
        },
    ]);
    for status in [Status::Published, Status::Archived, Status::Cancelled] {
        filters.push(ListFilter {
            status: Some(status),
            ..all()
        });
        filters.push(ListFilter {
            status: Some(status),
            published_from: Some(at(50)),
            ..all()
        });
        filters.push(ListFilter {
            status: Some(status),
            branch_id: Some(data.branches[0][3]),
            ..all()
        });
    }
    filters
}

/// REP-3
#[tokio::test]
async fn every_combination_of_grants_filters_and_page_size_lists_its_reports_in_order() {
    let data = create_data().await;
    for grants in all_grants(&data) {
        for filter in filters(&data) {
            let expected = expected(&data, &grants, &filter);
            // The smaller the page, the more grants are read by organization first; the larger, the more are read in two steps.
            for limit in [3, 9, 40, 100] {
                let found = read_pages(&data.db, &grants, &filter, limit).await;
                assert_eq!(found, expected, "{grants:?} {filter:?} {limit}");
            }
        }
    }
}

/// The same when PostgreSQL plans the statements without their values, as it may after five executions.
#[tokio::test]
async fn generic_plans_list_the_same() {
    let mut data = create_data().await;
    data.setup
        .set_for_later_sessions("plan_cache_mode", "force_generic_plan")
        .await;
    data.db = data.setup.reader().await;
    for grants in all_grants(&data) {
        for filter in filters(&data) {
            let found = read_pages(&data.db, &grants, &filter, 25).await;
            assert_eq!(found, expected(&data, &grants, &filter), "{grants:?} {filter:?}");
        }
    }
}

/// A range of up to 2,000 reports is read at once and a larger one is not; both are listed to the last report.
#[tokio::test]
async fn a_range_of_2000_reports_and_one_of_2001_are_listed_whole() {
    let setup = Setup::new().await;
    let organization = setup.organization("o", "NONE").await;
    let branch = setup.branch(organization, "B", "Ankara", true).await.id;
    let mut branches = vec![branch];
    for number in 0..12 {
        branches.push(
            setup
                .branch(organization, &format!("B{number}"), "Ankara", true)
                .await
                .id,
        );
    }
    // The later a report was created, the earlier it was published. If the range is cut off, reports of the first page are missing.
    let mut reports: Vec<Report> = (0..2_001)
        .map(|number| Report {
            organization,
            branch,
            status: "PUBLISHED",
            created: number,
            lag: 4_000 - 2 * number,
            unchanged_for: 0,
        })
        .collect();
    // The other branches have the newest reports, but none in the range.
    reports.extend(branches[1..].iter().map(|branch| Report {
        organization,
        branch: *branch,
        status: "PUBLISHED",
        created: 5_000,
        lag: -4_000,
        unchanged_for: 0,
    }));
    let ids = setup.reports(&reports).await;
    let data = Data {
        db: setup.reader().await,
        setup,
        changed: (Uuid::nil(), at(0)),
        organizations: vec![organization],
        branches: vec![branches.clone()],
        reports: reports.into_iter().zip(ids).collect(),
    };
    let whole = Grants::new([organization], []);
    // With pages of 30, this grant uses the query for many branches.
    let many = granted(&data, vec![], branches);
    for (from, count) in [(2_001, 2_000), (2_000, 2_001)] {
        for (grants, branch_id, limit) in [(&whole, None, 100), (&whole, Some(branch), 100), (&many, None, 30)] {
            let filter = ListFilter {
                branch_id,
                published_from: Some(at(from)),
                ..ListFilter::default()
            };
            let listed = read_pages(&data.db, grants, &filter, limit).await;
            assert_eq!(listed.len(), count);
            assert!(
                listed == expected(&data, grants, &filter),
                "others, or in another order"
            );
        }
    }
}
