//! What there is to try in the sandbox: requests, each with whose key signs it and what is answered.

use chrono::Duration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::catalogue::places::{BETA_CODES, NOT_GRANTED_CODE};
use crate::data::{Dataset, Inspection, Opened};
use crate::manifest::OpenReport;

/// How many open reports are listed, beside the one that is youngest.
const OPEN_REPORTS: usize = 6;

/// A request to try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fixture {
    /// What it shows, as a word: `skipped_implausible`.
    pub name: String,
    /// The partner whose key signs it.
    pub partner: String,
    /// What it shows, as a sentence.
    pub about: String,
    /// The method.
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// Headers beside those of the signature.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte; none for a GET.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// How often it is sent: the last answer is meant.
    #[serde(default = "once")]
    pub times: u32,
    /// The status that is answered.
    pub status: u16,
    /// What the answer's body holds among other things: an object in it has these members, an array these items first. Null
    /// where the status says all.
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

/// Open reports that measurements reach: the youngest first, then others, each with a plate that no other open report of its
/// branch has.
#[must_use]
pub fn open_reports(data: &Dataset) -> Vec<OpenReport> {
    let place = |inspection: &Inspection| {
        let branch = &data.branches[inspection.branch];
        OpenReport {
            plate: data.vehicles[inspection.vehicle].plate.clone(),
            branch_code: branch.code.to_owned(),
        }
    };
    let is_open = |inspection: &&Inspection| {
        let is_young = matches!(inspection.opened, Opened::Before(age) if age < Duration::hours(20));
        is_young && matches!(inspection.status, "DRAFT" | "REVISION_REQUESTED")
    };
    let youngest = place(&data.inspections[data.examples.open_report]);
    let all: Vec<OpenReport> = data.inspections.iter().filter(is_open).map(place).collect();
    let is_alone = |report: &&OpenReport| {
        let is_reachable = report.branch_code != data.examples.ambiguous_branch_code;
        is_reachable && **report != youngest && all.iter().filter(|other| other == report).count() == 1
    };
    let others = all.iter().filter(is_alone).take(OPEN_REPORTS).cloned();
    std::iter::once(youngest.clone()).chain(others).collect()
}

/// What there is to try, in an order in which each shows what it says.
#[must_use]
pub fn fixtures(data: &Dataset) -> Vec<Fixture> {
    let report = &data.inspections[data.examples.open_report];
    let plate = &data.vehicles[report.vehicle].plate;
    let code = data.branches[report.branch].code;
    let package = |branch_code: &str, plate: &str, measurements: Value| {
        json!({ "branch_code": branch_code, "plate": plate, "measurements": measurements }).to_string()
    };
    let skipped = |code: &str, reason: &str| json!({ "data": { "status": "applied", "skipped_points": [{ "code": code, "reason": reason }] } });
    let refused = |code: &str| json!({ "error": { "code": code } });
    let id = |inspection: usize| data.inspections[inspection].id;
    let mut fixtures = vec![
        Fixture::post(
            "applied",
            "alpha",
            "The values are written into the open report of this plate.",
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
            "No report is open for this plate: the package waits.",
            package(code, "34 YOK 404", json!({ "BRAKE_FRONT_LEFT": 2.85 })),
            201,
            json!({ "data": { "status": "pending", "applied_points": [] } }),
        ),
        Fixture::post(
            "skipped_unknown_point",
            "alpha",
            "The report's template has no such point.",
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
            "2850 kN cannot be: these are newtons.",
            package(code, plate, json!({ "BRAKE_REAR_LEFT": 2850 })),
            201,
            skipped("BRAKE_REAR_LEFT", "implausible"),
        ),
        Fixture::post(
            "skipped_superseded",
            "alpha",
            "The report has a value that was measured later: the one of `applied`, sent before.",
            json!({
                "branch_code": code, "plate": plate, "measured_at": "2026-01-05T09:30:00+03:00",
                "measurements": { "BRAKE_FRONT_LEFT": 2.5 }
            })
            .to_string(),
            201,
            skipped("BRAKE_FRONT_LEFT", "superseded"),
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
            "A package that an inspector decided to ignore, sent again: a replay tells its state.",
            String::from_utf8_lossy(&measurement.raw).into_owned(),
            200,
            json!({ "data": { "status": "discarded", "idempotent_replay": true } }),
        ));
    }
    fixtures.extend([
        Fixture::post(
            "several_faults",
            "alpha",
            "Everything that is wrong with a body is told at once.",
            json!({ "branchCode": code, "plate": "34 123", "measurements": { "BRAKE_FRONT_LEFT": "2,85" } })
                .to_string(),
            400,
            refused("invalid_request"),
        ),
        Fixture::post(
            "inactive_branch",
            "alpha",
            "The branch is closed.",
            package(
                data.examples.inactive_branch_code,
                plate,
                json!({ "BRAKE_FRONT_LEFT": 2.85 }),
            ),
            404,
            refused("not_found"),
        ),
        Fixture::post(
            "ambiguous_branch",
            "alpha",
            "Two branches open to this partner have the code.",
            package(
                data.examples.ambiguous_branch_code,
                plate,
                json!({ "BRAKE_FRONT_LEFT": 2.85 }),
            ),
            400,
            refused("invalid_request"),
        ),
        Fixture::post(
            "not_granted_branch",
            "delta",
            "The branch exists, and is not open to this partner: the answer is that of a branch that does not exist.",
            package(NOT_GRANTED_CODE, plate, json!({ "BRAKE_FRONT_LEFT": 2.85 })),
            404,
            refused("not_found"),
        ),
        Fixture::post(
            "scope_required",
            "beta",
            "This partner's key may only read.",
            package(BETA_CODES[0], plate, json!({ "BRAKE_FRONT_LEFT": 2.85 })),
            403,
            refused("scope_required"),
        ),
        Fixture::get(
            "no_grants",
            "gamma",
            "This partner has been granted nothing: lists are empty.",
            INSPECTIONS.to_owned(),
            200,
            json!({ "data": [], "page": { "has_more": false } }),
        ),
        Fixture::get(
            "published",
            "alpha",
            "A report with all forms, and hidden photos among its photos.",
            format!("{INSPECTIONS}/{}", id(data.examples.published)),
            200,
            json!({ "status": "published" }),
        ),
        Fixture::get(
            "archived_without_pdf",
            "alpha",
            "An archived report is there, and has no PDF.",
            format!("{INSPECTIONS}/{}/pdf", id(data.examples.archived)),
            404,
            refused("not_found"),
        ),
        Fixture::get(
            "cancelled",
            "alpha",
            "Cancelled reports are listed only when they are asked for.",
            format!("{INSPECTIONS}?status=cancelled&limit=1"),
            200,
            json!({ "data": [{ "status": "cancelled" }] }),
        ),
        Fixture {
            headers: vec![("Prefer".to_owned(), "code=503, error=service_unavailable".to_owned())],
            ..Fixture::get(
                "ordered_answer",
                "alpha",
                "Any answer that the document declares, ordered with the header Prefer.",
                INSPECTIONS.to_owned(),
                503,
                refused("service_unavailable"),
            )
        },
        Fixture {
            times: 61,
            ..Fixture::get(
                "rate_limited",
                "delta",
                "This partner has the limit of every partner, 60 requests a minute: the 61st is one too many.",
                "/api/v1/partner/health".to_owned(),
                429,
                refused("rate_limited"),
            )
        },
    ]);
    fixtures
}

/// Whether `whole` holds `part`: an object has its members, an array begins with its items, and an empty one is empty.
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
