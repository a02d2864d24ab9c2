//! The scenarios and their outcomes.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use comfy_table::{Table, presets};
use partner_api_client::types::{Measurement, MeasurementRequest, MeasurementResponse, MeasurementStatus};
use partner_api_client::{self as api, Call as _, Client, Connector, DecimalNumber, Problem, RetryPolicy, types};
use partner_api_signing::{Headers, KeyId, Secret, SigningError, UnsignedRequest, nonce_from};
use rand::Rng as _;
use rust_decimal::Decimal;
use serde::Serialize;
use thiserror::Error;
use uuid::Uuid;

const PATH: &str = "/api/v1/partner/test-line/measurements";

/// A service, a key with the scope `test-line:write`, and the branch code and plate of an open report.
#[derive(Clone, Debug)]
pub struct Target {
    /// The service's URL, without `/api/v1/partner`.
    pub base_url: String,
    /// The key's public ID.
    pub key_id: KeyId,
    /// The key's secret.
    pub secret: Secret,
    /// Code of a branch that has an open report.
    pub branch_code: String,
    /// The plate of that report.
    pub plate: String,
    /// The maximum time of each request, including its retries.
    pub timeout: Duration,
}

/// The reason why the scenarios could not run.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// The client could not be created.
    #[error(transparent)]
    Connect(#[from] partner_api_client::ConnectError),
    /// The request with the wrong signature could not be signed.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// The HTTP client could not be created.
    #[error("failed to create the HTTP client: {0}")]
    Http(#[from] reqwest::Error),
}

/// The outcome of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The scenario's number in SVC-7.
    pub number: u8,
    /// A description of the request.
    pub scenario: &'static str,
    /// The response that SVC-7 expects.
    pub expected: &'static str,
    /// The actual response.
    pub got: String,
    /// The response's `X-Request-Id`; empty without a response.
    pub request_id: String,
    /// Whether the response is the expected one.
    pub passed: bool,
    /// The time from the request to the response, including retries.
    #[serde(skip)]
    pub took: Duration,
}

/// The outcomes of all scenarios. `Display` prints a table: number, scenario, expected, got, request ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Outcomes(pub Vec<Outcome>);

impl Outcomes {
    /// Returns whether all scenarios passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.0.iter().all(|outcome| outcome.passed)
    }
}

impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED);
        table.set_header(["#", "Scenario", "Expected", "Got", "Request ID"]);
        for outcome in &self.0 {
            let got = format!("{} {}", if outcome.passed { "✓" } else { "✗" }, outcome.got);
            let number = outcome.number.to_string();
            table.add_row([&number, outcome.scenario, outcome.expected, &got, &outcome.request_id]);
        }
        write!(f, "{table}")
    }
}

/// Runs the scenarios in order. They can be repeated on the same data.
///
/// # Errors
/// The scenarios could not run. An unexpected or missing response is a failed [`Outcome`].
pub async fn run(target: &Target) -> Result<Outcomes, ScenarioError> {
    let client = Connector::new(&target.base_url, target.key_id.as_str(), target.secret.expose())?
        .retry(RetryPolicy {
            total: target.timeout,
            attempt: Some(target.timeout),
            ..RetryPolicy::default()
        })
        .connect()?;
    let (branch, plate) = (target.branch_code.as_str(), target.plate.as_str());
    let external_id = new_id();

    let first = submit(&client, package(branch, plate, &external_id)).await;
    let again = submit(&client, package(branch, plate, &external_id)).await;
    let first_id = first.measurement().map(|measurement| measurement.measurement_id);
    let unknown_vehicle = submit(&client, package(branch, &unknown_plate(), &new_id())).await;
    let unknown_branch = submit(&client, package("XXX-NO-SUCH-BRANCH", plate, &new_id())).await;
    let forged = forged_request(target).await?;
    let no_plate = submit(&client, package(branch, "ABCDEF", &new_id())).await;

    Ok(Outcomes(vec![
        first.outcome(
            1,
            "measurement for a plate with an open report",
            "201 applied, applied_points filled",
            |m| match m {
                _ if m.status != MeasurementStatus::Applied => Some("must be applied"),
                _ if m.applied_points.is_empty() => Some("without applied_points"),
                _ if m.idempotent_replay => Some("must not be a replay"),
                _ => None,
            },
        ),
        again.outcome(
            2,
            "the same external_id again",
            "200 idempotent_replay, no new record",
            |m| match m {
                _ if !m.idempotent_replay => Some("without idempotent_replay"),
                _ if Some(m.measurement_id) != first_id => Some("with the ID of another measurement"),
                _ => None,
            },
        ),
        unknown_vehicle.outcome(
            3,
            "measurement for a plate without a report",
            "201 pending",
            |m| match m {
                _ if m.status != MeasurementStatus::Pending => Some("must be pending"),
                _ if m.inspection_id.is_some() => Some("must not have an inspection_id"),
                _ if m.idempotent_replay => Some("must not be a replay"),
                _ => None,
            },
        ),
        unknown_branch.rejection(4, "unknown branch code", "404 not_found"),
        forged.rejection(5, "wrong signature", "401 invalid_signature"),
        no_plate.rejection(6, "plate of letters only", "400 invalid_request"),
    ]))
}

/// A response, or the failure to get one.
struct Response {
    status: u16,
    request_id: String,
    content: Content,
    took: Duration,
}

enum Content {
    Measurement(Box<Measurement>),
    /// The code of an error.
    Error(String),
    /// There is no valid response; the text is the reason.
    Invalid(String),
}

impl Response {
    fn measurement(&self) -> Option<&Measurement> {
        match &self.content {
            Content::Measurement(measurement) => Some(measurement),
            Content::Error(_) | Content::Invalid(_) => None,
        }
    }

    fn summary(&self) -> String {
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
            Content::Error(code) => format!("{} {code}", self.status),
            Content::Invalid(reason) => reason.clone(),
        }
    }

    /// Returns the outcome of a scenario that expects a measurement. `expected` begins with the status. `mistake` returns the
    /// problem with the measurement, if any.
    fn outcome(
        &self,
        number: u8,
        scenario: &'static str,
        expected: &'static str,
        mistake: impl FnOnce(&Measurement) -> Option<&'static str>,
    ) -> Outcome {
        let has_status = expected.starts_with(&self.status.to_string());
        let mistake = match self.measurement() {
            Some(_) if self.request_id.is_empty() => Some("without X-Request-Id"),
            Some(measurement) => mistake(measurement),
            None => None,
        };
        let passed = has_status && self.measurement().is_some() && mistake.is_none();
        Outcome {
            number,
            scenario,
            expected,
            got: match mistake {
                Some(mistake) => format!("{}, {mistake}", self.summary()),
                None => self.summary(),
            },
            request_id: self.request_id.clone(),
            passed,
            took: self.took,
        }
    }

    /// Returns the outcome of a scenario that expects an error. `expected` is its status and code.
    fn rejection(&self, number: u8, scenario: &'static str, expected: &'static str) -> Outcome {
        let got = self.summary();
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

fn new_id() -> String {
    format!("scenario-{}", Uuid::new_v4())
}

/// Returns a plate that no vehicle has, because the registry does not use these letters.
fn unknown_plate() -> String {
    format!("34 WQX {:03}", rand::rng().random_range(10..1_000))
}

type Package = Result<MeasurementRequest, types::error::ConversionError>;

/// Returns the measurements of a typical car.
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

async fn submit(client: &Client, package: Package) -> Response {
    let started = Instant::now();
    let sent = match package {
        Ok(package) => client.submit_measurement().body(package).send().response().await,
        Err(error) => Err(Problem::InvalidRequest(error.to_string())),
    };
    match sent {
        Ok(response) => accepted(response, started.elapsed()),
        Err(problem) => Response {
            status: problem.status().map_or(0, |status| status.as_u16()),
            request_id: problem.request_id().unwrap_or_default().to_owned(),
            content: match problem.code() {
                Some(code) => Content::Error(code.to_string()),
                None => Content::Invalid(problem.to_string()),
            },
            took: started.elapsed(),
        },
    }
}

fn accepted(response: api::Response<MeasurementResponse>, took: Duration) -> Response {
    Response {
        status: response.status().as_u16(),
        request_id: response.request_id().unwrap_or_default().to_owned(),
        content: Content::Measurement(Box::new(response.into_inner().data)),
        took,
    }
}

/// Sends a measurement with one changed character in its signature, without the client, which cannot send one.
async fn forged_request(target: &Target) -> Result<Response, ScenarioError> {
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
        .timeout(target.timeout)
        .build()?;
    let mut request = http.post(url).header("content-type", "application/json");
    for (name, value) in headers.iter() {
        request = request.header(name, value);
    }
    let started = Instant::now();
    let (status, request_id, content) = match read_error(request.body(body)).await {
        Ok((status, error)) => (status, error.request_id, Content::Error(error.code)),
        Err(error) => (0, String::new(), Content::Invalid(format!("no response: {error}"))),
    };
    Ok(Response {
        status,
        request_id,
        content,
        took: started.elapsed(),
    })
}

async fn read_error(request: reqwest::RequestBuilder) -> Result<(u16, types::ErrorDetail), reqwest::Error> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let content: types::Error = response.json().await?;
    Ok((status, content.error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(request_id: &str, measurement_id: u128) -> Response {
        let measurement = serde_json::json!({
            "measurement_id": Uuid::from_u128(measurement_id), "status": "applied", "plate": "34ABC123", "inspection_id": null,
            "applied_points": [], "idempotent_replay": true
        });
        Response {
            status: 200,
            request_id: request_id.to_owned(),
            content: Content::Measurement(serde_json::from_value(measurement).unwrap()),
            took: Duration::ZERO,
        }
    }

    /// SVC-7
    #[test]
    fn a_failed_scenario_says_why() {
        let same = |m: &Measurement| (m.measurement_id != Uuid::from_u128(7)).then_some("with another id");
        for (request_id, measurement_id, passed, more) in [
            ("r-1", 7, true, ""),
            ("r-1", 8, false, ", with another id"),
            ("", 7, false, ", without X-Request-Id"),
        ] {
            let response = response(request_id, measurement_id);
            let got = format!("200 applied, idempotent_replay{more}");
            let outcome = response.outcome(2, "the same external_id again", "200 idempotent_replay", same);
            assert_eq!((outcome.passed, outcome.got), (passed, got));
        }
    }
}
