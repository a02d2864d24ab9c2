//! The alert rules and the dashboard of `deploy/observability`, compared with the metrics of a running service.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use partner_api_tests::{ALPHA, Options, Request, Service};
use promql_parser::label::{MatchOp, Matcher};
use promql_parser::parser::{self, Expr, LabelModifier, VectorSelector};
use serde_json::Value;

use partner_api_tests::certificate::{Certificate, CertificateFiles};
use partner_api_tests::measurements::package;
use partner_api_tests::metrics::{Page, Sample};

/// Labels that Prometheus itself adds to every sample.
const TARGET_LABELS: [&str; 2] = ["instance", "job"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../deploy/observability")
}

pub(super) fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

/// The rules of all groups.
pub(super) fn rules() -> Vec<Value> {
    let file: Value = serde_yaml::from_str(&read("alerts.yml")).unwrap();
    let groups = file["groups"].as_array().unwrap();
    groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap().clone())
        .collect()
}

/// The prefixes of the metrics of exporters, which the service does not have.
const EXPORTERS: [&str; 5] = ["pg_", "patroni_", "etcd_", "pgbackrest_", "node_"];

/// Whether an expression reads only metrics of exporters.
fn is_of_exporters(expression: &str) -> bool {
    let (mut selectors, mut grouped) = (Vec::new(), BTreeSet::new());
    walk(&parser::parse(expression).unwrap(), &mut selectors, &mut grouped);
    let names = selectors
        .iter()
        .map(|selector| selector.name.as_deref().unwrap_or_default());
    names.clone().count() > 0
        && names
            .clone()
            .all(|name| EXPORTERS.iter().any(|prefix| name.starts_with(prefix)))
}

/// Every `expr` in a document, however deep.
fn expressions(document: &Value, found: &mut Vec<String>) {
    match document {
        Value::Object(members) => {
            for (name, value) in members {
                match value.as_str() {
                    // Grafana replaces the variable with a duration.
                    Some(text) if name == "expr" => found.push(text.replace("$__rate_interval", "1m")),
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

/// The selectors of an expression, and the labels that it groups by.
fn walk(expression: &Expr, selectors: &mut Vec<VectorSelector>, labels: &mut BTreeSet<String>) {
    match expression {
        Expr::Aggregate(aggregate) => {
            if let Some(LabelModifier::Include(by)) = &aggregate.modifier {
                labels.extend(by.labels.iter().cloned());
            }
            walk(&aggregate.expr, selectors, labels);
        }
        Expr::Binary(binary) => {
            walk(&binary.lhs, selectors, labels);
            walk(&binary.rhs, selectors, labels);
        }
        Expr::Unary(unary) => walk(&unary.expr, selectors, labels),
        Expr::Paren(inner) => walk(&inner.expr, selectors, labels),
        Expr::Subquery(inner) => walk(&inner.expr, selectors, labels),
        Expr::Call(call) => call
            .args
            .args
            .iter()
            .for_each(|argument| walk(argument, selectors, labels)),
        Expr::VectorSelector(selector) => selectors.push(selector.clone()),
        Expr::MatrixSelector(matrix) => selectors.push(matrix.vs.clone()),
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) => {}
        Expr::Extension(_) => panic!("extensions are not expected"),
    }
}

/// The metrics and labels of an expression that the page does not have.
fn missing(expression: &str, page: &Page) -> Vec<String> {
    let parsed = parser::parse(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let (mut selectors, mut grouped) = (Vec::new(), BTreeSet::new());
    walk(&parsed, &mut selectors, &mut grouped);
    assert!(!selectors.is_empty(), "{expression}");
    let mut missing = Vec::new();
    let mut known: BTreeSet<&str> = TARGET_LABELS.into();
    for selector in &selectors {
        let name = selector.name.as_deref().unwrap_or_default();
        // Prometheus itself produces this metric.
        if name == "up" {
            continue;
        }
        let samples: Vec<&Sample> = page.0.iter().filter(|sample| sample.name == name).collect();
        if samples.is_empty() {
            missing.push(format!("the metric {name}"));
        }
        known.extend(
            samples
                .iter()
                .flat_map(|sample| sample.labels.keys().map(String::as_str)),
        );
        for Matcher { op, name: label, value } in &selector.matchers.matchers {
            let fits = |sample: &&Sample| {
                let found = sample.labels.get(label);
                found.is_some_and(|found| *op != MatchOp::Equal || found == value)
            };
            if !TARGET_LABELS.contains(&label.as_str()) && !samples.iter().any(fits) {
                missing.push(format!("{label}={value:?} of {name}"));
            }
        }
    }
    missing.extend(grouped.iter().filter(|label| !known.contains(label.as_str())).cloned());
    missing
}

/// OPS-6
#[tokio::test]
async fn every_metric_and_label_of_the_alerts_and_the_dashboard_exists() {
    let service = Service::start().await;
    service.get(&ALPHA, "/api/v1/partner/health").await.assert_status(200);
    service
        .get(&ALPHA, "/api/v1/partner/organizations")
        .await
        .assert_status(200);
    service
        .measure(&ALPHA, package("M-1", "06 NEW 001"))
        .await
        .assert_status(201);
    service.send(Request::get("/nothing-here")).await.assert_status(404);
    service
        .eventually(async || Page::of(&service).await.count("partner_api_partitions_ahead", &[]) > 0.0)
        .await;
    let mut page = Page::of(&service).await;
    let files = CertificateFiles::with(&Certificate::generate());
    let with_tls = Options {
        tls: Some(files.paths.clone()),
        ..Options::default()
    };
    page.0.extend(Page::of(&service.replica_with(with_tls).await).await.0);

    let mut named = Vec::new();
    expressions(&serde_yaml::from_str(&read("alerts.yml")).unwrap(), &mut named);
    let alerts = named.len();
    expressions(&serde_json::from_str(&read("dashboard.json")).unwrap(), &mut named);
    assert!(alerts > 10 && named.len() > alerts + 10, "{alerts} of {}", named.len());
    let (others, own): (Vec<_>, Vec<_>) = named.iter().partition(|expression| is_of_exporters(expression));
    assert!(others.len() > 15 && own.len() > 50, "{} {}", others.len(), own.len());
    for expression in own {
        assert_eq!(missing(expression, &page), [""; 0], "{expression}");
    }

    // Wrong names are detected.
    for (wrong, expected) in [
        (
            "rate(partner_api_request_total[5m])",
            "the metric partner_api_request_total",
        ),
        (
            "partner_api_ready_check{check=\"clock\"} == 0",
            "check=\"clock\" of partner_api_ready_check",
        ),
        ("sum by (partner) (partner_api_requests_total)", "partner"),
    ] {
        assert_eq!(missing(wrong, &page), [expected]);
    }
}

#[test]
fn every_alert_has_a_delay_a_severity_a_description_a_remedy_a_runbook_and_a_test() {
    let tests: Value = serde_yaml::from_str(&read("alerts_test.yml")).unwrap();
    let fired = tests.to_string();
    let runbook = fs::read_to_string(folder().join("../../docs/runbook.md")).unwrap();
    let sections: BTreeSet<_> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|title| title.to_lowercase().replace(' ', "-"))
        .collect();
    let mut named = BTreeSet::new();
    for rule in rules() {
        let name = rule["alert"].as_str().unwrap();
        assert!(rule["for"].is_string(), "{name}");
        assert!(
            ["page", "ticket"].contains(&rule["labels"]["severity"].as_str().unwrap()),
            "{name}"
        );
        for annotation in ["summary", "action"] {
            let text = rule["annotations"][annotation].as_str().unwrap_or_default();
            assert!(text.len() > 20, "{annotation} of {name}");
        }
        let section = rule["annotations"]["runbook"].as_str().unwrap_or_default();
        let section = section.strip_prefix("docs/runbook.md#").unwrap_or_default();
        assert!(
            sections.contains(section),
            "{name} must name a section of docs/runbook.md, not {section:?}"
        );
        named.insert(section.to_owned());
        assert!(
            fired.contains(&format!("alertname=\\\"{name}\\\"")),
            "{name} has no unit test in alerts_test.yml"
        );
    }
    assert_eq!(named, sections, "a section of docs/runbook.md that no alert names");
}
