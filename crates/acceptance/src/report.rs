//! Reports of the scenarios' outcomes.

use chrono::{DateTime, SecondsFormat, Utc};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::scenarios::{Outcome, Outcomes, Target};

/// The outcomes of a run with its service, key and time, which a partner hands in before the go-live. It contains no secret.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The service's URL.
    base_url: String,
    /// The key's public ID.
    key_id: String,
    at: DateTime<Utc>,
    outcomes: Outcomes,
}

const STYLE: &str = "\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8888; padding: .4rem .6rem; text-align: left; vertical-align: top; }
dt { font-weight: bold; } dd { margin: 0 0 .4rem; }
code { font-size: .85em; overflow-wrap: anywhere; }
.passed { color: #1a7f37; } .failed { color: #cf222e; font-weight: bold; }
@media (prefers-color-scheme: dark) { .passed { color: #4ac26b; } .failed { color: #ff7b72; } }";

impl Certificate {
    /// Creates the certificate of a run against `target` that ended at `at`.
    pub fn new(target: &Target, at: DateTime<Utc>, outcomes: Outcomes) -> Self {
        Self {
            base_url: target.base_url.clone(),
            key_id: target.key_id.to_string(),
            at,
            outcomes,
        }
    }

    /// Returns the outcomes.
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Renders a self-contained HTML page.
    pub fn html(&self) -> String {
        let passed = self.outcomes.0.iter().filter(|outcome| outcome.passed).count();
        let all_passed = self.outcomes.passed();
        page(
            "Acceptance scenarios",
            &html! {
                    p class=(class(all_passed)) { (passed) " of " (self.outcomes.0.len()) " passed" }
                    dl {
                        dt { "Service" } dd { code { (self.base_url) } }
                        dt { "Key" } dd { code { (self.key_id) } }
                        dt { "Time" } dd { (self.at.to_rfc3339_opts(SecondsFormat::Secs, true)) }
                    }
                    table {
                        thead { tr { th { "#" } th { "Scenario" } th { "Expected" } th { "Got" } th { "Request ID" } } }
                        tbody { @for outcome in &self.outcomes.0 { (row(outcome)) } }
                    }
            },
        )
    }

    /// Renders a JUnit report.
    ///
    /// # Errors
    /// The report could not be serialized as XML.
    pub fn junit(&self) -> Result<String, quick_junit::SerializeError> {
        let mut suite = TestSuite::new("acceptance scenarios");
        suite.set_timestamp(self.at);
        suite.add_property(("base_url", self.base_url.as_str()));
        suite.add_property(("key_id", self.key_id.as_str()));
        for outcome in &self.outcomes.0 {
            let status = if outcome.passed {
                TestCaseStatus::success()
            } else {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(format!("expected {}, got {}", outcome.expected, outcome.got));
                status
            };
            let mut case = TestCase::new(format!("{} {}", outcome.number, outcome.scenario), status);
            case.set_classname("acceptance").set_time(outcome.took);
            case.set_system_out(format!("{} (request ID {})", outcome.got, outcome.request_id));
            suite.add_test_case(case);
        }
        let mut report = Report::new("partner certify");
        report.set_timestamp(self.at);
        report.add_test_suite(suite);
        report.to_string()
    }
}

/// Returns a self-contained HTML page with this title. The classes `passed` and `failed` give a text the color of its result.
pub fn page(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                (body)
            }
        }
    }
    .into_string()
}

fn class(passed: bool) -> &'static str {
    if passed { "passed" } else { "failed" }
}

fn row(outcome: &Outcome) -> Markup {
    html! {
        tr {
            td { (outcome.number) }
            td { (outcome.scenario) }
            td { (outcome.expected) }
            td class=(class(outcome.passed)) { @if outcome.passed { "✓ " } @else { "✗ " } (outcome.got) }
            td { code { (outcome.request_id) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn certificate() -> Certificate {
        let target = Target {
            base_url: "http://127.0.0.1:8080".to_owned(),
            key_id: "vip_test_ABCDEFGHIJKLMNOPQRSTUV".parse().unwrap(),
            secret: "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".parse().unwrap(),
            branch_code: "ANK-01".to_owned(),
            plate: "34ABC123".to_owned(),
            timeout: Duration::from_secs(15),
        };
        let outcome = |number, passed, got: &str| Outcome {
            number,
            scenario: "wrong signature",
            expected: "401 invalid_signature",
            got: got.to_owned(),
            request_id: "r-1".to_owned(),
            passed,
            took: Duration::from_millis(12),
        };
        let outcomes = Outcomes(vec![
            outcome(1, true, "401 invalid_signature"),
            outcome(2, false, "200 <applied> & more"),
        ]);
        Certificate::new(&target, "2026-06-15T09:30:00Z".parse().unwrap(), outcomes)
    }

    #[test]
    fn both_reports_contain_and_escape_the_outcomes() {
        let html = certificate().html();
        assert!(html.contains("1 of 2 passed"), "{html}");
        assert!(html.contains("200 &lt;applied&gt; &amp; more"), "{html}");
        let junit = certificate().junit().unwrap();
        assert!(
            junit.contains(r#"tests="2""#) && junit.contains(r#"failures="1""#),
            "{junit}"
        );
        assert!(junit.contains("200 &lt;applied&gt; &amp; more"), "{junit}");
    }

    #[test]
    fn no_report_contains_the_secret() {
        let certificate = certificate();
        let all = format!(
            "{certificate:?} {} {}",
            certificate.html(),
            certificate.junit().unwrap()
        );
        assert!(!all.contains("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"));
    }
}
