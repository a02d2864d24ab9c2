//! Example requests for the sandbox, each with the partner that signs it and the expected response.

use chrono::{DateTime, Duration, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::catalog::places::{BETA_CODES, NOT_GRANTED_CODE};
use crate::data::{Dataset, Inspection, Opened};

/// The number of open reports that are listed besides the newest one.
const OPEN_REPORTS: usize = 6;

/// The plate and branch code with which a measurement reaches an open report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenReport {
    /// Normalized plate.
    pub plate: String,
    /// Code of its branch.
    pub branch_code: String,
}

/// An example request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fixture {
    /// Its name, such as `skipped_implausible`.
    pub name: String,
    /// The partner whose key signs it.
    pub partner: String,
    /// A description.
    pub about: String,
    /// The method.
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// Headers, without those of the signature.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte; none for a GET.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// How often it is sent. The expectations concern the last response.
    #[serde(default = "once")]
    pub times: u32,
    /// The expected status.
    pub status: u16,
    /// A part of the expected body: an object contains these members, and an array begins with these items. Null if only the status
    /// is expected.
    pub holds: Value,
}

fn once() -> u32 {
    1
}

const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";
const INSPECTIONS: &str = "/api/v1/partner/inspections";

impl Fixture {
    fn get(name: &str, partner: &str, about: &str, target: String, status: u16, holds: Value) -> Self {
        Fixture {
            name: name.to_owned(),
            partner: partner.to_owned(),
            about: about.to_owned(),
            method: "GET".to_owned(),
            target,
            headers: Vec::new(),
            body: None,
            times: 1,
            status,
            holds,
        }
    }

    fn post(name: &str, partner: &str, about: &str, body: String, status: u16, holds: Value) -> Self {
        Fixture {
            method: "POST".to_owned(),
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body: Some(body),
            ..Self::get(name, partner, about, MEASUREMENTS.to_owned(), status, holds)
        }
    }
}

/// Returns open reports that measurements can reach. The newest is first; no plate occurs twice in a branch.
#[must_use]
pub fn open_reports(data: &Dataset) -> Vec<OpenReport> {
    let open_report = |inspection: &Inspection| {
        let branch = &data.branches[inspection.branch];
        OpenReport {
            plate: data.vehicles[inspection.vehicle].plate.clone(),
            branch_code: branch.code.to_owned(),
        }
    };
    let is_open = |inspection: &&Inspection| {
        let is_recent = matches!(inspection.opened, Opened::Before(age) if age < Duration::hours(20));
        is_recent && matches!(inspection.status, "DRAFT" | "REVISION_REQUESTED")
    };
    let newest = open_report(&data.inspections[data.examples.open_report]);
    let all: Vec<OpenReport> = data.inspections.iter().filter(is_open).map(open_report).collect();
    let is_unique = |report: &&OpenReport| {
        let is_reachable = report.branch_code != data.examples.ambiguous_branch_code;
        is_reachable && **report != newest && all.iter().filter(|other| other == report).count() == 1
    };
    let others = all.iter().filter(is_unique).take(OPEN_REPORTS).cloned();
    std::iter::once(newest.clone()).chain(others).collect()
}

/// Returns the example requests of a sandbox that starts at `now`, in the order in which they must be sent to get the expected
/// responses.
#[must_use]
pub fn fixtures(data: &Dataset, now: DateTime<Utc>) -> Vec<Fixture> {
    let report = &data.inspections[data.examples.open_report];
    let plate = &data.vehicles[report.vehicle].plate;
    let code = data.branches[report.branch].code;
    let package = |branch_code: &str, plate: &str, measurements: Value| {
        json!({ "branch_code": branch_code, "plate": plate, "measurements": measurements }).to_string()
    };
    let measured = |at: &str| {
        json!({ "branch_code": code, "plate": plate, "measured_at": at, "measurements": { "BRAKE_FRONT_LEFT": 2.5 } })
            .to_string()
    };
    let skipped = |code: &str, reason: &str| json!({ "data": { "status": "applied", "skipped_points": [{ "code": code, "reason": reason }] } });
    let rejected = |code: &str| json!({ "error": { "code": code } });
    let id = |inspection: usize| data.inspections[inspection].id;
    let mut fixtures = vec![
        Fixture::post(
            "applied",
            "alpha",
            "The values are written to the open report for this plate.",
            package(
                code,
                plate,
                json!({ "BRAKE_FRONT_LEFT": 2.85, "BRAKE_FRONT_RIGHT": 2.79 }),
            ),
            201,
            json!({ "data": { "status": "applied" } }),
        ),
        Fixture::post(
            "pending",
            "alpha",
            "No report is open for this plate, so the measurement is pending.",
            package(code, "34 YOK 404", json!({ "BRAKE_FRONT_LEFT": 2.85 })),
            201,
            json!({ "data": { "status": "pending", "applied_points": [] } }),
        ),
        Fixture::post(
            "skipped_unknown_point",
            "alpha",
            "The report's template does not contain this point.",
            package(code, plate, json!({ "WHEEL_ALIGNMENT": 1 })),
            201,
            skipped("WHEEL_ALIGNMENT", "unknown_point"),
        ),
        Fixture::post(
            "skipped_no_status",
            "alpha",
            "The organization has no threshold for this point.",
            package(code, plate, json!({ "SUSP_REAR_RIGHT": 71 })),
            201,
            skipped("SUSP_REAR_RIGHT", "no_status"),
        ),
        Fixture::post(
            "skipped_implausible",
            "alpha",
            "2850 kN is physically impossible; the value was sent in newtons.",
            package(code, plate, json!({ "BRAKE_REAR_LEFT": 2850 })),
            201,
            skipped("BRAKE_REAR_LEFT", "implausible"),
        ),
        Fixture::post(
            "skipped_superseded",
            "alpha",
            "The report has a value that was measured later: the one that `applied` sent. A day after the sandbox was started, this \
             time is too early, and the reason is `stale`.",
            measured(&(now - Duration::hours(1)).to_rfc3339_opts(SecondsFormat::Secs, true)),
            201,
            skipped("BRAKE_FRONT_LEFT", "superseded"),
        ),
        Fixture::post(
            "skipped_stale",
            "alpha",
            "The device's clock has lost the date: the value was measured more than 24 hours before the report was created.",
            measured("1970-01-01T02:00:09+02:00"),
            201,
            skipped("BRAKE_FRONT_LEFT", "stale"),
        ),
    ];
    let discarded = data
        .measurements
        .iter()
        .find(|measurement| measurement.status == "DISCARDED");
    if let Some(measurement) = discarded {
        fixtures.push(Fixture::post(
            "discarded",
            "alpha",
            "A replay of a measurement that an inspector discarded. The response contains its current state.",
            String::from_utf8_lossy(&measurement.raw).into_owned(),
            200,
            json!({ "data": { "status": "discarded", "idempotent_replay": true } }),
        ));
    }
    fixtures.extend([
        Fixture::post(
            "several_faults",
            "alpha",
            "All validation errors of a body are reported together.",
            json!({ "branchCode": code, "plate": "34 123", "measurements": { "BRAKE_FRONT_LEFT": "2,85" } })
                .to_string(),
            400,
            rejected("invalid_request"),
        ),
        Fixture::post(
            "inactive_branch",
            "alpha",
            "The branch is inactive.",
            package(
                data.examples.inactive_branch_code,
                plate,
                json!({ "BRAKE_FRONT_LEFT": 2.85 }),
            ),
            404,
            rejected("not_found"),
        ),
        Fixture::post(
            "ambiguous_branch",
            "alpha",
            "Two branches that this partner can access have this code.",
            package(
                data.examples.ambiguous_branch_code,
                plate,
                json!({ "BRAKE_FRONT_LEFT": 2.85 }),
            ),
            400,
            rejected("invalid_request"),
        ),
        Fixture::post(
            "not_granted_branch",
            "delta",
            "The branch exists, but this partner cannot access it. The response is the same as for an unknown branch.",
            package(NOT_GRANTED_CODE, plate, json!({ "BRAKE_FRONT_LEFT": 2.85 })),
            404,
            rejected("not_found"),
        ),
        Fixture::post(
            "scope_required",
            "beta",
            "This partner's key does not have the scope to submit measurements.",
            package(BETA_CODES[0], plate, json!({ "BRAKE_FRONT_LEFT": 2.85 })),
            403,
            rejected("scope_required"),
        ),
        Fixture::get(
            "no_grants",
            "gamma",
            "This partner has no grants, so lists are empty.",
            INSPECTIONS.to_owned(),
            200,
            json!({ "data": [], "page": { "has_more": false } }),
        ),
        Fixture::get(
            "published",
            "alpha",
            "A report with all forms and some hidden photos.",
            format!("{INSPECTIONS}/{}", id(data.examples.published)),
            200,
            json!({ "status": "published" }),
        ),
        Fixture::get(
            "archived_without_pdf",
            "alpha",
            "An archived report exists, but has no PDF.",
            format!("{INSPECTIONS}/{}/pdf", id(data.examples.archived)),
            404,
            rejected("not_found"),
        ),
        Fixture::get(
            "cancelled",
            "alpha",
            "Cancelled reports are listed only with `status=cancelled`.",
            format!("{INSPECTIONS}?status=cancelled&limit=1"),
            200,
            json!({ "data": [{ "status": "cancelled" }] }),
        ),
        Fixture {
            headers: vec![("Prefer".to_owned(), "code=503, error=service_unavailable".to_owned())],
            ..Fixture::get(
                "ordered_answer",
                "alpha",
                "The header Prefer makes the sandbox return any documented response.",
                INSPECTIONS.to_owned(),
                503,
                rejected("service_unavailable"),
            )
        },
        Fixture {
            times: 61,
            ..Fixture::get(
                "rate_limited",
                "delta",
                "This partner has the default rate limit of 60 requests per minute; the 61st request is rejected.",
                "/api/v1/partner/health".to_owned(),
                429,
                rejected("rate_limited"),
            )
        },
    ]);
    fixtures
}

/// Returns whether `whole` contains `part`: an object contains its members, an array begins with its items, and an array is empty if
/// the part is empty.
#[must_use]
pub fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (_, Value::Null) => true,
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(name, part)| whole.get(name).is_some_and(|whole| holds(whole, part))),
        (Value::Array(whole), Value::Array(part)) => {
            part.is_empty() == whole.is_empty()
                && part.len() <= whole.len()
                && whole.iter().zip(part).all(|(whole, part)| holds(whole, part))
        }
        (whole, part) => whole == part,
    }
}
