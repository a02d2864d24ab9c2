//! The six acceptance scenarios (SVC-7), run against a service with the sandbox's data, through the
//! generated client as a device maker would.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use comfy_table::{Table, presets};
use partner_api_client::types::{Measurement, MeasurementRequest, MeasurementResponse, MeasurementStatus};
use partner_api_client::{Client, DecimalNumber, Error, ResponseValue, connect, describe, types};
use partner_api_signing::{Headers, KeyId, Secret, SigningError, UnsignedRequest, nonce_from};
use rand::Rng as _;
use rust_decimal::Decimal;
use thiserror::Error;
use uuid::Uuid;

use super::manifest::{Manifest, Partner};

const PATH: &str = "/api/v1/partner/test-line/measurements";

/// Why the scenarios cannot be run at all.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// `sandbox.json` names no such partner.
    #[error("sandbox.json has no partner {0}")]
    NoPartner(&'static str),
    /// No client can be made of what `sandbox.json` says.
    #[error(transparent)]
    Connect(#[from] partner_api_client::ConnectError),
    /// A key id in `sandbox.json` is none.
    #[error(transparent)]
    KeyId(#[from] partner_api_signing::InvalidKeyId),
    /// A secret in `sandbox.json` is none.
    #[error(transparent)]
    Secret(#[from] partner_api_signing::InvalidSecret),
    /// The request with the wrong signature cannot be signed.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Http(#[from] reqwest::Error),
}

/// How a scenario went.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

/// How all scenarios went. `Display` is the table: number, scenario, expected, got, request id.
#[derive(Clone, Debug, PartialEq, Eq)]
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
pub async fn run(manifest: &Manifest) -> Result<Outcomes, ScenarioError> {
    let alpha = manifest.partner("alpha").ok_or(ScenarioError::NoPartner("alpha"))?;
    let client = connect(&manifest.base_url, &alpha.key_id, &alpha.secret)?;
    let open = &manifest.examples.open_report;
    let external_id = format!("scenario-{}", Uuid::new_v4());

    let first = submit(&client, package(&open.branch_code, &open.plate, &external_id)).await;
    let again = submit(&client, package(&open.branch_code, &open.plate, &external_id)).await;
    let first_id = first.measurement().map(|measurement| measurement.measurement_id);
    let stranger = submit(&client, package(&open.branch_code, &unknown_plate(), &fresh_id())).await;
    let nowhere = submit(&client, package("XXX-NO-SUCH-BRANCH", &open.plate, &fresh_id())).await;
    let forged = forged_request(manifest, alpha).await?;
    let no_plate = submit(&client, package(&open.branch_code, "ABCDEF", &fresh_id())).await;

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
    let package = match package {
        Ok(package) => package,
        Err(error) => {
            let content = Content::Broken(format!("the client refused the package: {error}"));
            return Answer {
                status: 0,
                request_id: String::new(),
                content,
            };
        }
    };
    match client.submit_measurement().body(package).send().await {
        Ok(answer) => accepted(answer),
        Err(Error::ErrorResponse(answer)) => Answer {
            status: answer.status().as_u16(),
            request_id: answer.error.request_id.clone(),
            content: Content::Refused(answer.into_inner().error.code),
        },
        Err(error) => {
            let content = Content::Broken(describe(&error).to_string());
            Answer {
                status: 0,
                request_id: String::new(),
                content,
            }
        }
    }
}

fn accepted(answer: ResponseValue<MeasurementResponse>) -> Answer {
    let request_id = answer
        .headers()
        .get("x-request-id")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    Answer {
        status: answer.status().as_u16(),
        request_id: request_id.to_owned(),
        content: Content::Measurement(Box::new(answer.into_inner().data)),
    }
}

/// A measurement with one character of its signature changed. The client cannot be made to send such a thing.
async fn forged_request(manifest: &Manifest, partner: &Partner) -> Result<Answer, ScenarioError> {
    let key_id: KeyId = partner.key_id.parse()?;
    let secret: Secret = partner.secret.parse()?;
    let body = format!(
        r#"{{"branch_code":"{}","plate":"{}","measurements":{{"BRAKE_FRONT_LEFT":2.85}}}}"#,
        manifest.examples.open_report.branch_code, manifest.examples.open_report.plate
    );
    let request = UnsignedRequest {
        method: "POST",
        path: PATH,
        raw_query: b"",
        body: body.as_bytes(),
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs());
    let mut headers = Headers::sign(&key_id, &secret, request, now, &nonce_from(&rand::random()))?;
    let flipped = if headers.signature.ends_with('0') { '1' } else { '0' };
    headers.signature.pop();
    headers.signature.push(flipped);
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let mut request = http
        .post(format!("{}{PATH}", manifest.base_url))
        .header("content-type", "application/json");
    for (name, value) in headers.iter() {
        request = request.header(name, value);
    }
    Ok(match read_error(request.body(body)).await {
        Ok(answer) => answer,
        Err(error) => {
            let content = Content::Broken(format!("no answer: {error}"));
            Answer {
                status: 0,
                request_id: String::new(),
                content,
            }
        }
    })
}

async fn read_error(request: reqwest::RequestBuilder) -> Result<Answer, reqwest::Error> {
    let answer = request.send().await?;
    let status = answer.status().as_u16();
    let content: types::Error = answer.json().await?;
    Ok(Answer {
        status,
        request_id: content.error.request_id,
        content: Content::Refused(content.error.code),
    })
}
