//! The report of `partner certify --listen`, as signed JSON and as a signed HTML page.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use comfy_table::{Table, presets};
use maud::{Markup, html};
use partner_api_signing::{Secret, certificate_text, sign};
use serde::Serialize;
use serde_json::{Value, json};

use super::grade::{Attempt, Check};

/// The graded session. It contains no secret.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) service: String,
    pub(super) key_id: String,
    /// The command of the program; null if the user ran it.
    pub(super) command: Option<String>,
    pub(super) at: String,
    /// Whether the steps are the default ones.
    pub(super) has_default_script: bool,
    pub(super) passed: bool,
    pub(super) steps: Vec<StepReport>,
}

/// A step with its checks and its requests.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StepReport {
    pub(super) name: String,
    pub(super) checks: Vec<Check>,
    pub(super) requests: Vec<RequestReport>,
}

/// A request. The operator finds it by its ID in the sandbox's request log.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RequestReport {
    request_id: Option<String>,
    /// Milliseconds since the first request of the step.
    after_ms: u64,
    /// The response that the script requested.
    requested: Option<String>,
    outcome: String,
}

impl StepReport {
    pub(super) fn new(name: String, checks: Vec<Check>, attempts: &[Attempt]) -> Self {
        let first = attempts.first().map(|attempt| attempt.arrived).unwrap_or_default();
        let request = |attempt: &Attempt| RequestReport {
            request_id: attempt
                .response
                .as_ref()
                .and_then(|response| response.request_id.clone()),
            after_ms: u64::try_from(attempt.arrived.saturating_sub(first).as_millis()).unwrap_or(u64::MAX),
            requested: attempt.preference.clone(),
            outcome: attempt.outcome(),
        };
        Self {
            name,
            checks,
            requests: attempts.iter().map(request).collect(),
        }
    }

    pub(super) fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

impl Report {
    pub(super) fn at(time: DateTime<Utc>) -> String {
        time.to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    /// Returns the report with its signature, which covers the compact text of `certificate`.
    pub(super) fn json(&self, secret: &Secret) -> Value {
        let certificate = json!(self);
        let signature = sign(secret, &certificate_text(&certificate.to_string()));
        json!({ "certificate": certificate, "signature": signature })
    }

    /// Renders a self-contained page. The signature covers all text before the comment at its end.
    pub(super) fn html(&self, secret: &Secret) -> String {
        let page = partner_api_acceptance::page("Certificate of a partner's program", &self.body());
        let signature = sign(secret, &certificate_text(&page));
        format!("{page}\n<!-- {} {signature} -->\n", self.key_id)
    }

    fn body(&self) -> Markup {
        let passed = self.steps.iter().filter(|step| step.passed()).count();
        html! {
            p class=(class(self.passed)) { (passed) " of " (self.steps.len()) " steps passed" }
            dl {
                dt { "Sandbox" } dd { code { (self.service) } }
                dt { "Key" } dd { code { (self.key_id) } }
                dt { "Program" } dd { @match &self.command { Some(command) => code { (command) }, None => "run by the user" } }
                dt { "Steps" } dd { @if self.has_default_script { "the default script" } @else { "another script" } }
                dt { "Time" } dd { (self.at) }
            }
            @for step in &self.steps {
                h2 { (step.name) }
                table {
                    thead { tr { th { "Check" } th { "Found" } } }
                    tbody {
                        @for check in &step.checks {
                            tr {
                                td class=(class(check.passed)) { @if check.passed { "✓ " } @else { "✗ " } (check.check) }
                                td { (check.found) }
                            }
                        }
                    }
                }
                table {
                    thead { tr { th { "Request ID" } th { "After" } th { "Requested response" } th { "Response" } } }
                    tbody {
                        @for request in &step.requests {
                            tr {
                                td { code { (request.request_id.as_deref().unwrap_or("-")) } }
                                td { (request.after_ms) " ms" }
                                td { (request.requested.as_deref().unwrap_or("-")) }
                                td { (request.outcome) }
                            }
                        }
                    }
                }
            }
            p { "To verify the signature at the end of this file: " code { "partner-api key verify FILE" } }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED);
        table.set_header(["Step", "Check", "Found"]);
        for step in &self.steps {
            for check in &step.checks {
                let mark = if check.passed { "✓" } else { "✗" };
                table.add_row([&step.name, &format!("{mark} {}", check.check), &check.found]);
            }
        }
        write!(f, "{table}")
    }
}

fn class(passed: bool) -> &'static str {
    if passed { "passed" } else { "failed" }
}
