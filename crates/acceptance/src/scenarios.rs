//! The scenarios, one after another.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use comfy_table::{Table, presets};
use partner_api_client::types::{Measurement, MeasurementRequest, MeasurementResponse, MeasurementStatus};
use partner_api_client::{Answer as Answered, Call as _, Client, DecimalNumber, Problem, connect, types};
use partner_api_signing::{Headers, KeyId, Secret, SigningError, UnsignedRequest, nonce_from};
use rand::Rng as _;
use rust_decimal::Decimal;
use serde::Serialize;
use thiserror::Error;
use uuid::Uuid;

const PATH: &str = "/api/v1/partner/test-line/measurements";

/// A service, a key with the scope `test-line:write`, and what a measurement names to reach an open report there.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where the service is, without `/api/v1/partner`.
    pub base_url: String,
    /// The key's public id.
    pub key_id: KeyId,
    /// The key's secret.
    pub secret: Secret,
    /// Code of a branch where a report is open.
    pub branch_code: String,
    /// The plate of that report.
    pub plate: String,
}

/// Why the scenarios cannot be run at all.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// No client can be made for the target.
    #[error(transparent)]
    Connect(#[from] partner_api_client::ConnectError),
    /// The request with the wrong signature cannot be signed.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Http(#[from] reqwest::Error),
}

/// How a scenario went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The scenario's number in SVC-7.
    pub number: u8,
    /// What is sent.
    pub scenario: &'static str,
    /// What SVC-7 expects.
    pub expected: &'static str,
    /// What was answered.
    pub got: String,
    /// The answer's `X-Request-Id`; empty when there was no answer.
    pub request_id: String,
    /// Whether the answer is the expected one.
    pub passed: bool,
    /// From the request to the answer, retries included.
    #[serde(skip)]
    pub took: Duration,
}

/// How all scenarios went. `Display` is the table: number, scenario, expected, got, request id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Outcomes(pub Vec<Outcome>);

impl Outcomes {
    /// Whether every scenario was answered as expected.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.0.iter().all(|outcome| outcome.passed)
    }
}

impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED);
        table.set_header(["#", "Scenario", "Expected", "Got", "Request id"]);
        for outcome in &self.0 {
            let got = format!("{} {}", if outcome.passed { "✓" } else { "✗" }, outcome.got);
            let number = outcome.number.to_string();
            table.add_row([&number, outcome.scenario, outcome.expected, &got, &outcome.request_id]);
        }
        write!(f, "{table}")
    }
}

/// Runs the scenarios one after another. They can be run any number of times on the same data.
///
/// # Errors
/// [`ScenarioError`] when they cannot be run; an answer that is not the expected one, or none, is an [`Outcome`].
pub async fn run(target: &Target) -> Result<Outcomes, ScenarioError> {
    let client = connect(&target.base_url, target.key_id.as_str(), target.secret.expose())?;
    let (branch, plate) = (target.branch_code.as_str(), target.plate.as_str());
    let external_id = fresh_id();

    let first = submit(&client, package(branch, plate, &external_id)).await;
    let again = submit(&client, package(branch, plate, &external_id)).await;
    let first_id = first.measurement().map(|measurement| measurement.measurement_id);
    let stranger = submit(&client, package(branch, &unknown_plate(), &fresh_id())).await;
    let nowhere = submit(&client, package("XXX-NO-SUCH-BRANCH", plate, &fresh_id())).await;
    let forged = forged_request(target).await?;
    let no_plate = submit(&client, package(branch, "ABCDEF", &fresh_id())).await;

    Ok(Outcomes(vec![
        first.outcome(
            1,
            "measurement for a plate with an open report",
            "201 applied, applied_points filled",
            |m| m.status == MeasurementStatus::Applied && !m.applied_points.is_empty() && !m.idempotent_replay,
        ),
        again.outcome(
            2,
            "the same external_id again",
            "200 idempotent_replay, no new record",
            |m| m.idempotent_replay && Some(m.measurement_id) == first_id,
        ),
        stranger.outcome(3, "measurement for a plate without a report", "201 pending", |m| {
            m.status == MeasurementStatus::Pending && m.inspection_id.is_none() && !m.idempotent_replay
        }),
        nowhere.refusal(4, "unknown branch code", "404 not_found"),
        forged.refusal(5, "wrong signature", "401 invalid_signature"),
        no_plate.refusal(6, "plate of letters only", "400 invalid_request"),
    ]))
}

/// An answer, or what was there instead.
struct Answer {
    status: u16,
    request_id: String,
    content: Content,
    took: Duration,
}

enum Content {
    Measurement(Box<Measurement>),
    /// An error's code.
    Refused(String),
    /// No answer that the document declares.
    Broken(String),
}

impl Answer {
    fn measurement(&self) -> Option<&Measurement> {
        match &self.content {
            Content::Measurement(measurement) => Some(measurement),
            Content::Refused(_) | Content::Broken(_) => None,
        }
    }

    fn got(&self) -> String {
        match &self.content {
            Content::Measurement(measurement) => {
                let replay = if measurement.idempotent_replay {
                    ", idempotent_replay"
                } else {
                    ""
                };
                let points = match measurement.applied_points.len() {
                    0 => String::new(),
                    count => format!(", {count} applied_points"),
                };
                format!("{} {}{replay}{points}", self.status, measurement.status)
            }
            Content::Refused(code) => format!("{} {code}", self.status),
            Content::Broken(what) => what.clone(),
        }
    }

    /// The outcome of a scenario that expects a measurement; `expected` begins with the status.
    fn outcome(
        &self,
        number: u8,
        scenario: &'static str,
        expected: &'static str,
        is_expected: impl FnOnce(&Measurement) -> bool,
    ) -> Outcome {
        let has_status = expected.starts_with(&self.status.to_string());
        let passed = has_status && self.measurement().is_some_and(is_expected);
        Outcome {
            number,
            scenario,
            expected,
            got: self.got(),
            request_id: self.request_id.clone(),
            passed,
            took: self.took,
        }
    }

    /// The outcome of a scenario that expects an error: its status and code.
    fn refusal(&self, number: u8, scenario: &'static str, expected: &'static str) -> Outcome {
        let got = self.got();
        let passed = got == expected && !self.request_id.is_empty();
        Outcome {
            number,
            scenario,
            expected,
            got,
            request_id: self.request_id.clone(),
            passed,
            took: self.took,
        }
    }
}

fn fresh_id() -> String {
    format!("scenario-{}", Uuid::new_v4())
}

/// A plate no vehicle has: the registry gives out none with these letters.
fn unknown_plate() -> String {
    format!("34 WQX {:03}", rand::rng().random_range(10..1_000))
}

type Package = Result<MeasurementRequest, types::error::ConversionError>;

/// What a test line sends of a car in fair order.
fn package(branch_code: &str, plate: &str, external_id: &str) -> Package {
    let values = [
        ("DYNO_MEASURED_HP", Decimal::new(1184, 1)),
        ("SUSP_FRONT_LEFT", Decimal::new(710, 1)),
        ("SUSP_FRONT_RIGHT", Decimal::new(695, 1)),
        ("BRAKE_FRONT_LEFT", Decimal::new(285, 2)),
        ("BRAKE_FRONT_RIGHT", Decimal::new(291, 2)),
        ("BRAKE_REAR_LEFT", Decimal::new(174, 2)),
        ("BRAKE_REAR_RIGHT", Decimal::new(169, 2)),
        ("HANDBRAKE_LEFT", Decimal::new(112, 2)),
        ("HANDBRAKE_RIGHT", Decimal::new(78, 2)),
        ("SLIP_FRONT", Decimal::new(-32, 1)),
    ];
    let values: std::collections::HashMap<String, DecimalNumber> = values
        .into_iter()
        .map(|(code, value)| (code.to_owned(), value.into()))
        .collect();
    MeasurementRequest::builder()
        .branch_code(branch_code)
        .plate(plate)
        .external_id(Some(external_id.parse()?))
        .device_serial(Some("ACCEPTANCE".parse()?))
        .measurements(values)
        .try_into()
}

async fn submit(client: &Client, package: Package) -> Answer {
    let began = Instant::now();
    let sent = match package {
        Ok(package) => client.submit_measurement().body(package).send().answer().await,
        Err(error) => Err(Problem::Unsendable(error.to_string())),
    };
    match sent {
        Ok(answer) => accepted(answer, began.elapsed()),
        Err(problem) => Answer {
            status: problem.status().map_or(0, |status| status.as_u16()),
            request_id: problem.request_id().unwrap_or_default().to_owned(),
            content: match problem.code() {
                Some(code) => Content::Refused(code.to_string()),
                None => Content::Broken(problem.to_string()),
            },
            took: began.elapsed(),
        },
    }
}

fn accepted(answer: Answered<MeasurementResponse>, took: Duration) -> Answer {
    Answer {
        status: answer.status().as_u16(),
        request_id: answer.request_id().unwrap_or_default().to_owned(),
        content: Content::Measurement(Box::new(answer.into_inner().data)),
        took,
    }
}

/// A measurement with one character of its signature changed. The client cannot be made to send such a thing.
async fn forged_request(target: &Target) -> Result<Answer, ScenarioError> {
    let body = serde_json::json!({
        "branch_code": target.branch_code, "plate": target.plate, "measurements": { "BRAKE_FRONT_LEFT": 2.85 }
    })
    .to_string();
    let url = format!("{}{PATH}", target.base_url.trim_end_matches('/'));
    let request = UnsignedRequest {
        method: "POST",
        path: PATH,
        raw_query: b"",
        body: body.as_bytes(),
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs());
    let mut headers = Headers::sign(
        &target.key_id,
        &target.secret,
        request,
        now,
        &nonce_from(&rand::random()),
    )?;
    let flipped = if headers.signature.ends_with('0') { '1' } else { '0' };
    headers.signature.pop();
    headers.signature.push(flipped);
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let mut request = http.post(url).header("content-type", "application/json");
    for (name, value) in headers.iter() {
        request = request.header(name, value);
    }
    let began = Instant::now();
    let (status, request_id, content) = match read_error(request.body(body)).await {
        Ok((status, error)) => (status, error.request_id, Content::Refused(error.code)),
        Err(error) => (0, String::new(), Content::Broken(format!("no answer: {error}"))),
    };
    Ok(Answer {
        status,
        request_id,
        content,
        took: began.elapsed(),
    })
}

async fn read_error(request: reqwest::RequestBuilder) -> Result<(u16, types::ErrorDetail), reqwest::Error> {
    let answer = request.send().await?;
    let status = answer.status().as_u16();
    let content: types::Error = answer.json().await?;
    Ok((status, content.error))
}
