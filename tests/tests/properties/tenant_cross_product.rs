//! Separation of tenants, by partner × organization × branch × operation: data without a grant looks like unknown data.
//!
//! The expected visibility is computed here from the rows of the database, independently of the service.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use http::StatusCode;
use partner_api_tests::fixture::inspections::UNKNOWN;
use partner_api_tests::fixture::{branches, organizations, partners};
use partner_api_tests::operations::readable_parts;
use partner_api_tests::{ALPHA, BETA, DELTA, GAMMA, Service, TestKey, TestResponse};
use serde_json::{Value, json};

const ROOT: &str = "/api/v1/partner";
const PARTNERS: [TestKey; 4] = [ALPHA, BETA, GAMMA, DELTA];
const STATUSES: [&str; 3] = ["published", "archived", "cancelled"];

struct Branch {
    id: String,
    organization: String,
    code: String,
    is_active: bool,
}

struct Inspection {
    id: String,
    organization: String,
    branch: String,
    status: String,
    has_slug: bool,
    created_at: DateTime<Utc>,
}

/// The existing rows, and the grants.
struct Rows {
    organizations: Vec<String>,
    branches: Vec<Branch>,
    inspections: Vec<Inspection>,
    /// Partner, organization, and whether all of its branches are granted.
    grants: Vec<(String, String, bool)>,
    /// Partner and branch.
    branch_grants: BTreeSet<(String, String)>,
}

impl Rows {
    async fn read(service: &Service) -> Self {
        let query = async |sql: &str| service.db.query(sql, &[]).await.unwrap();
        let branch = |row: &tokio_postgres::Row| Branch {
            id: row.get(0),
            organization: row.get(1),
            code: row.get(2),
            is_active: row.get(3),
        };
        let inspection = |row: &tokio_postgres::Row| Inspection {
            id: row.get(0),
            organization: row.get(1),
            branch: row.get(2),
            status: row.get::<_, String>(3).to_lowercase(),
            has_slug: row.get(4),
            created_at: row.get(5),
        };
        Self {
            organizations: query("SELECT id::text FROM organizations")
                .await
                .iter()
                .map(|row| row.get(0))
                .collect(),
            branches: query("SELECT id::text, organization_id::text, code, is_active FROM branches")
                .await
                .iter()
                .map(branch)
                .collect(),
            inspections: query(
                "SELECT id::text, organization_id::text, branch_id::text, status, \
                 public_slug IS NOT NULL, created_at FROM inspections",
            )
            .await
            .iter()
            .map(inspection)
            .collect(),
            grants: query("SELECT partner_id::text, organization_id::text, all_branches FROM grants")
                .await
                .iter()
                .map(|row| (row.get(0), row.get(1), row.get(2)))
                .collect(),
            branch_grants: query("SELECT partner_id::text, branch_id::text FROM grant_branches")
                .await
                .iter()
                .map(|row| (row.get(0), row.get(1)))
                .collect(),
        }
    }

    fn is_granted(&self, key: &TestKey, organization: &str) -> bool {
        self.grants
            .iter()
            .any(|grant| grant.0 == key.partner && grant.1 == organization)
    }

    fn is_open(&self, key: &TestKey, organization: &str, branch: &str) -> bool {
        self.grants.iter().any(|(partner, granted, all)| {
            partner == key.partner
                && granted == organization
                && (*all || self.branch_grants.contains(&(partner.clone(), branch.to_owned())))
        })
    }

    fn open_branches<'a>(&'a self, key: &TestKey) -> Vec<&'a Branch> {
        let open = |branch: &&Branch| self.is_open(key, &branch.organization, &branch.id);
        self.branches.iter().filter(open).collect()
    }

    /// The reports that a partner may see in any status, newest first.
    fn open_inspections<'a>(&'a self, key: &TestKey) -> Vec<&'a Inspection> {
        let mut open: Vec<_> = self
            .inspections
            .iter()
            .filter(|report| {
                STATUSES.contains(&report.status.as_str()) && self.is_open(key, &report.organization, &report.branch)
            })
            .collect();
        open.sort_by(|left, right| (right.created_at, &right.id).cmp(&(left.created_at, &left.id)));
        open
    }
}

/// A response without the parts that differ between any two: the request ID, the remaining limit and the date.
fn comparable(response: &TestResponse) -> (StatusCode, BTreeMap<String, String>, String) {
    let headers = response
        .headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "x-request-id" | "ratelimit" | "date"))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    let id = response.header("x-request-id").unwrap();
    let body = String::from_utf8(response.body.to_vec()).unwrap();
    (response.status, headers, body.replace(id, "[request id]"))
}

#[track_caller]
fn assert_alike(response: &TestResponse, unknown: &TestResponse, who: &TestKey) {
    assert_eq!(
        comparable(response),
        comparable(unknown),
        "{}: {} {:?} reveals more than {}",
        who.id,
        response.target,
        response.sent,
        unknown.target
    );
}

/// A service with unreachable rate limits, where all partners may write, after `changes` have been made.
async fn service_after(changes: &str) -> Service {
    let first = Service::start().await;
    let all_may_write = "UPDATE api_keys SET rate_limit = 1000000, scopes = '{test-line:write}'";
    first.db.batch_execute(all_may_write).await.unwrap();
    first.db.batch_execute(changes).await.unwrap();
    // A replica that loads these changes when it starts.
    first.replica().await
}

async fn single_reports_are_open_as_granted(service: &Service) {
    let rows = Rows::read(service).await;
    for key in &PARTNERS {
        let open: BTreeSet<_> = rows.open_inspections(key).iter().map(|report| &report.id).collect();
        for part in readable_parts("inspections") {
            let path = |id: &str| format!("{ROOT}/inspections/{id}{part}");
            let unknown = service.get(key, &path(UNKNOWN)).await;
            unknown.assert_rejected(404, "not_found");
            assert_alike(&service.get(key, &path("no-id")).await, &unknown, key);
            for report in &rows.inspections {
                let response = service.get(key, &path(&report.id)).await;
                let exists =
                    open.contains(&report.id) && (part != "/pdf" || report.status == "published" && report.has_slug);
                if exists && part == "/pdf" && response.status == 503 {
                    // It exists but is not rendered yet.
                    response.assert_rejected(503, "service_unavailable");
                } else if exists {
                    response.assert_status(200);
                } else if open.contains(&report.id) {
                    // The partner may know that the report exists.
                    let message = response.assert_rejected(404, "not_found").message();
                    assert!(message.starts_with("this report has no PDF"), "{message}");
                } else {
                    assert_alike(&response, &unknown, key);
                }
            }
        }
    }
}

async fn lists_of_reports_hold_what_is_granted(service: &Service) {
    let rows = Rows::read(service).await;
    for key in &PARTNERS {
        let open = rows.open_inspections(key);
        for status in STATUSES.map(Some).into_iter().chain([None]) {
            let base = format!(
                "{ROOT}/inspections?limit=100{}",
                status.map_or_else(String::new, |status| format!("&status={status}"))
            );
            let unknown = service.get(key, &format!("{base}&organization_id={UNKNOWN}")).await;
            assert_eq!(unknown.assert_status(200).data("id"), [""; 0]);
            let organizations = rows.organizations.iter().map(Some).chain([None]);
            for organization in organizations {
                let branches = rows.branches.iter().map(|branch| Some(&branch.id)).chain([None]);
                for branch in branches {
                    let filter =
                        |name, value: Option<&String>| value.map_or_else(String::new, |id| format!("&{name}={id}"));
                    let target = base.clone() + &filter("organization_id", organization) + &filter("branch_id", branch);
                    let expected: Vec<_> = open
                        .iter()
                        .filter(|report| match status {
                            Some(status) => report.status == status,
                            None => report.status != "cancelled",
                        })
                        .filter(|report| organization.is_none_or(|id| *id == report.organization))
                        .filter(|report| branch.is_none_or(|id| *id == report.branch))
                        .map(|report| report.id.clone())
                        .collect();
                    let response = service.get(key, &target).await;
                    let got = response.assert_status(200).data("id");
                    assert_eq!(got, expected, "{}: {target}", key.id);
                    if expected.is_empty() {
                        assert_alike(&response, &unknown, key);
                    }
                }
            }
        }
    }
}

async fn organizations_and_branches_are_those_granted(service: &Service) {
    let rows = Rows::read(service).await;
    for key in &PARTNERS {
        let open = rows.open_branches(key);
        let listed = service.get(key, &format!("{ROOT}/organizations")).await.json();
        let listed: BTreeMap<String, Value> = listed["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (item["id"].as_str().unwrap().to_owned(), item["branch_count"].clone()))
            .collect();
        let granted = rows.organizations.iter().filter(|id| rows.is_granted(key, id));
        let count = |id: &str| open.iter().filter(|branch| branch.organization == id).count();
        let expected: BTreeMap<String, Value> = granted.map(|id| (id.clone(), json!(count(id)))).collect();
        assert_eq!(listed, expected, "{}", key.id);

        for query in ["", "?active=true", "?active=false", "?city=Ankara"] {
            let path = |id: &str| format!("{ROOT}/organizations/{id}/branches{query}");
            let unknown = service.get(key, &path(UNKNOWN)).await;
            unknown.assert_rejected(404, "not_found");
            assert_alike(&service.get(key, &path("no-id")).await, &unknown, key);
            for organization in &rows.organizations {
                let response = service.get(key, &path(organization)).await;
                if !rows.is_granted(key, organization) {
                    assert_alike(&response, &unknown, key);
                    continue;
                }
                let in_ankara = [branches::KAP_01, branches::ANK_01];
                let expected: BTreeSet<_> = open
                    .iter()
                    .filter(|branch| branch.organization == *organization)
                    .filter(|branch| branch.is_active != query.ends_with("false"))
                    .filter(|branch| !query.ends_with("Ankara") || in_ankara.contains(&branch.id.as_str()))
                    .map(|branch| branch.id.clone())
                    .collect();
                let got = response.assert_status(200).data("id");
                assert_eq!(
                    (got.len(), BTreeSet::from_iter(got)),
                    (expected.len(), expected),
                    "{}: {}",
                    key.id,
                    response.target
                );
            }
        }
    }
}

async fn measurements_are_taken_where_granted(service: &Service) {
    let rows = Rows::read(service).await;
    let package = |code: &str| {
        json!({ "branch_code": code, "plate": "34 ABC 123", "measurements": { "BRAKE_FRONT_LEFT": 2.85 } }).to_string()
    };
    let codes: BTreeSet<_> = rows.branches.iter().map(|branch| branch.code.as_str()).collect();
    let mut accepted = BTreeSet::new();
    for key in &PARTNERS {
        let unknown = service.measure(key, package("NOWHERE-9")).await;
        unknown.assert_rejected(404, "not_found");
        for code in &codes {
            let response = service.measure(key, package(code)).await;
            let open = rows.open_branches(key);
            let matching: Vec<_> = open
                .iter()
                .filter(|branch| branch.code == *code && branch.is_active)
                .collect();
            match matching[..] {
                [] => assert_alike(&response, &unknown, key),
                [branch] => {
                    response.assert_status(201);
                    accepted.insert((key.partner.to_owned(), branch.id.clone()));
                }
                _ => {
                    response.assert_rejected(400, "invalid_request");
                }
            }
        }
    }
    let recorded = "SELECT partner_id::text, branch_id::text FROM measurements";
    let rows = service.db.query(recorded, &[]).await.unwrap();
    assert_eq!(rows.len(), accepted.len(), "one record for each accepted package");
    let recorded: BTreeSet<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(recorded, accepted);
}

async fn check_everything(changes: &str) {
    let service = service_after(changes).await;
    single_reports_are_open_as_granted(&service).await;
    lists_of_reports_hold_what_is_granted(&service).await;
    organizations_and_branches_are_those_granted(&service).await;
    measurements_are_taken_where_granted(&service).await;
}

/// REP-1, REP-2, ERR-6
#[tokio::test]
async fn data_without_a_grant_looks_like_unknown_data() {
    check_everything("").await;
}

/// The same with other kinds of grants: some branches of two organizations, some of one and all of another, a single branch,
/// or no branch of an organization.
#[tokio::test]
async fn data_without_a_grant_looks_like_unknown_data_under_other_grants() {
    let (alpha, beta, gamma, delta) = (partners::ALPHA, partners::BETA, partners::GAMMA, partners::DELTA);
    let (none, masked, full) = (organizations::NONE, organizations::MASKED, organizations::FULL);
    let (ank, izmir) = (branches::ANK_01, branches::IZMIR_01);
    let ortak = "(SELECT id FROM branches WHERE code = 'ORTAK' AND organization_id = ";
    check_everything(&format!(
        "BEGIN;
         DELETE FROM grant_branches;
         DELETE FROM grants;
         INSERT INTO grants VALUES ('{alpha}', '{masked}', false), ('{alpha}', '{full}', true),
             ('{beta}', '{masked}', false), ('{beta}', '{full}', false), ('{gamma}', '{none}', false),
             ('{delta}', '{masked}', false);
         INSERT INTO grant_branches VALUES ('{alpha}', '{masked}', '{izmir}'),
             ('{beta}', '{masked}', {ortak}'{masked}')), ('{beta}', '{full}', {ortak}'{full}')),
             ('{beta}', '{masked}', '{ank}'), ('{delta}', '{masked}', '{ank}');
         COMMIT"
    ))
    .await;
}
