//! Scenarios 7 to 10: an inspector processes pending measurements (MEA-13, INS-5, INS-6, REP-8).
//!
//! Unlike the six acceptance scenarios of partners, these need an inspector. They leave a cancelled report behind, which does not
//! appear in partners' default lists.

use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use partner_api_acceptance::{Outcome, Target};
use partner_api_client::types::{Measurement, MeasurementRequest};
use partner_api_client::{Call as _, Client, connect};
use partner_api_inspector_client::{self as inspectors, Client as InspectorClient, types};
use rand::Rng as _;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::inspectors::Inspector;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Timeout for the PDF of a published report.
const PDF_TIMEOUT: Duration = Duration::from_secs(180);
/// How often the PDF is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

const VALUES: [(&str, &str); 4] = [
    ("BRAKE_FRONT_LEFT", "2.85"),
    ("BRAKE_FRONT_RIGHT", "2.91"),
    ("SLIP_FRONT", "-3.2"),
    ("DYNO_MEASURED_HP", "118.4"),
];

/// Runs the scenarios in order, with a partner's key, an inspector's token and the URL of the inspectors' page.
///
/// # Errors
/// The scenarios could not be started. An unexpected or missing response is a failed [`Outcome`].
pub async fn run(target: &Target, inspectors_url: &str, inspector: &Inspector) -> Result<Vec<Outcome>, Failure> {
    let partner = connect(&target.base_url, target.key_id.as_str(), target.secret.expose())?;
    let inspector_client = inspectors::connect(inspectors_url.trim_end_matches("/inspector/"))?;
    let session = inspectors::sign_in(&inspector_client, &inspector.token).await?;
    let branch = session
        .branches
        .into_iter()
        .next()
        .ok_or("the inspector has no branch")?;
    let mut run = Run {
        partner,
        inspector: inspector_client,
        branch,
        plate: unknown_plate(),
        report: Uuid::nil(),
        waiting: Vec::new(),
    };
    let mut outcomes = Vec::new();
    outcomes.push(
        outcome(
            7,
            "two measurements for a plate without a report; then a report is opened",
            "the report offers both, newest first, with a preview of their statuses",
            run.submit_and_open(),
        )
        .await,
    );
    outcomes.push(
        outcome(
            8,
            "an inspector applies one of them",
            "its values and statuses are in the report; a replay returns applied",
            run.apply(),
        )
        .await,
    );
    outcomes.push(
        outcome(
            9,
            "an inspector discards the other one",
            "no measurement is pending; a replay returns discarded",
            run.discard(),
        )
        .await,
    );
    outcomes.push(
        outcome(
            10,
            "an inspector publishes the report",
            "partners can read it, and its PDF is identical to the published one",
            run.publish(),
        )
        .await,
    );
    Ok(outcomes)
}

/// A description of the result and the ID of the request that shows it, or the reason why the scenario failed.
type ScenarioResult = Result<(String, String), Failure>;

async fn outcome(
    number: u8,
    scenario: &'static str,
    expected: &'static str,
    run: impl Future<Output = ScenarioResult>,
) -> Outcome {
    let started = Instant::now();
    let got = run.await;
    let passed = got.is_ok();
    let (got, request_id) = got.unwrap_or_else(|failure| (failure.to_string(), String::new()));
    Outcome {
        number,
        scenario,
        expected,
        got,
        request_id,
        passed,
        took: started.elapsed(),
    }
}

/// The state of a run: a partner and an inspector at one branch.
struct Run {
    partner: Client,
    inspector: InspectorClient,
    branch: types::Branch,
    plate: String,
    report: Uuid,
    /// The external IDs and the IDs of the pending measurements, oldest first.
    waiting: Vec<(String, Uuid)>,
}

impl Run {
    async fn submit_and_open(&mut self) -> ScenarioResult {
        for _ in 0..2 {
            let external_id = format!("scenario-{}", Uuid::new_v4());
            let sent = self.send(&external_id).await?;
            expect_eq("the measurement's status", &sent.status, "pending")?;
            self.waiting.push((external_id, sent.measurement_id));
        }
        let opened = self.inspector.open_report().body(self.new_report()?).send().await?;
        let request_id = request_id(opened.headers());
        let report = opened.into_inner().data;
        self.report = report.id;
        let newest_first: Vec<Uuid> = self.waiting.iter().rev().map(|(_, id)| *id).collect();
        let waiting: Vec<Uuid> = report.waiting.iter().map(|waiting| waiting.id).collect();
        if waiting != newest_first {
            return Err(format!("the report offers {} of the 2 measurements", waiting.len()).into());
        }
        let with_status = report.waiting[0].values.iter().filter(|value| value.would_be.is_some());
        let with_status = with_status.count();
        if with_status == 0 {
            return Err("none of their values would get a status".into());
        }
        Ok((
            format!("2 are offered, {with_status} values with a preview of the status"),
            request_id,
        ))
    }

    async fn apply(&mut self) -> ScenarioResult {
        let (external_id, id) = self.waiting.pop().ok_or("there is no measurement to apply")?;
        let call = self.inspector.apply_measurement().id(self.report).measurement_id(id);
        let applied = call.send().await?;
        let request_id = request_id(applied.headers());
        let report = applied.into_inner().data;
        let points = report
            .forms
            .iter()
            .filter(|form| form.is_test_line)
            .flat_map(|form| &form.points);
        let written = points
            .filter(|point| point.written_by.as_deref() == Some("device ACCEPTANCE"))
            .count();
        if written == 0 {
            return Err("the report contains none of the values".into());
        }
        let replay = self.send(&external_id).await?;
        expect_eq("the replay's status", &replay.status, "applied")?;
        if replay.inspection_id != Some(self.report) {
            return Err("the replay returns another report".into());
        }
        Ok((format!("applied, {written} values in the report"), request_id))
    }

    async fn discard(&mut self) -> ScenarioResult {
        let (external_id, id) = self.waiting.pop().ok_or("there is no measurement to discard")?;
        let discarded = self.inspector.discard_measurement().measurement_id(id).send().await?;
        let request_id = request_id(discarded.headers());
        let report = self.get_report().await?;
        if !report.waiting.is_empty() {
            return Err(format!("{} are still pending", report.waiting.len()).into());
        }
        let replay = self.send(&external_id).await?;
        expect_eq("the replay's status", &replay.status, "discarded")?;
        Ok(("discarded".to_owned(), request_id))
    }

    async fn publish(&mut self) -> ScenarioResult {
        self.answer_required_points().await?;
        let report = self.move_to("PUBLISHED", None).await?;
        let shown = self
            .partner
            .get_inspection()
            .id(report.id.to_string())
            .send()
            .response()
            .await?;
        expect_eq("the status that partners see", &shown.status, "published")?;
        let started = Instant::now();
        let published = loop {
            match self.get_report().await?.pdf_sha256 {
                Some(digest) => break digest.to_string(),
                None if started.elapsed() > PDF_TIMEOUT => {
                    return Err(format!("there is no PDF after {} s", PDF_TIMEOUT.as_secs()).into());
                }
                None => tokio::time::sleep(POLL_INTERVAL).await,
            }
        };
        let pdf = self
            .partner
            .get_inspection_pdf()
            .id(self.report.to_string())
            .send()
            .response()
            .await?;
        let request_id = pdf.request_id().unwrap_or_default().to_owned();
        let bytes: Vec<bytes::Bytes> = pdf.into_inner().into_inner().try_collect().await?;
        let bytes = bytes.concat();
        let served = data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes));
        if served != published {
            return Err("the served PDF differs from the published one".into());
        }
        self.move_to("CANCEL_REQUESTED", Some("acceptance scenario")).await?;
        self.move_to("CANCELLED", None).await?;
        Ok((
            format!("published, {} bytes, SHA-256 {}…", bytes.len(), &published[..12]),
            request_id,
        ))
    }

    /// Answers the points without which the report is not published.
    async fn answer_required_points(&self) -> Result<(), Failure> {
        for form in self.get_report().await?.forms {
            let is_lacking = |point: &&types::Point| point.is_required && point.status_code.is_none();
            let answers: Vec<_> = form
                .points
                .iter()
                .filter(is_lacking)
                .map(|point| serde_json::json!({ "point_code": point.code, "status_code": "ORIGINAL" }))
                .collect();
            if answers.is_empty() {
                continue;
            }
            let body: types::FillForm = serde_json::from_value(serde_json::json!({ "answers": answers }))?;
            let call = self.inspector.fill_form().id(self.report);
            call.template_code(form.template_code).body(body).send().await?;
        }
        Ok(())
    }

    /// Submits the package with this external ID.
    async fn send(&self, external_id: &str) -> Result<Measurement, Failure> {
        let mut measurements = std::collections::HashMap::new();
        for (code, value) in VALUES {
            measurements.insert(code.to_owned(), value.parse()?);
        }
        let package: MeasurementRequest = MeasurementRequest::builder()
            .branch_code(self.branch.code.as_str())
            .plate(self.plate.as_str())
            .external_id(Some(external_id.parse()?))
            .device_serial(Some("ACCEPTANCE".parse()?))
            .measurements(measurements)
            .try_into()?;
        let answer = self
            .partner
            .submit_measurement()
            .body(package)
            .send()
            .response()
            .await?;
        Ok(answer.into_inner().data)
    }

    async fn get_report(&self) -> Result<types::ReportData, Failure> {
        Ok(self
            .inspector
            .get_report()
            .id(self.report)
            .send()
            .await?
            .into_inner()
            .data)
    }

    fn new_report(&self) -> Result<types::OpenReport, Failure> {
        Ok(serde_json::from_value(serde_json::json!({
            "branch_id": self.branch.id, "plate": self.plate, "package_name": "Full + Test Hattı", "base_price": "6900.00",
            "mileage_km": 84_210,
            "vehicle": {
                "vin": "WVWZZZAUZLW012345", "brand": "Volkswagen", "model": "Golf 1.5 TSI", "year": 2020,
                "type": "HATCHBACK", "fuel_type": "GASOLINE", "transmission": "AUTOMATIC", "color": "Beyaz",
                "factory_power_hp": "150.00"
            }
        }))?)
    }

    async fn move_to(&self, status: &str, reason: Option<&str>) -> Result<types::ReportData, Failure> {
        let report = self.get_report().await?;
        let mut body = serde_json::json!({ "version": report.version, "to": status });
        if let Some(reason) = reason {
            body["reason"] = reason.into();
        }
        let body: types::MoveReport = serde_json::from_value(body)?;
        let moved = self.inspector.move_report().id(self.report).body(body).send().await?;
        Ok(moved.into_inner().data)
    }
}

/// Returns a plate that no vehicle has, because the registry does not use these letters.
fn unknown_plate() -> String {
    format!("34 QWX {:04}", rand::rng().random_range(10..10_000))
}

fn expect_eq(what: &str, got: &impl ToString, expected: &str) -> Result<(), Failure> {
    match got.to_string() {
        got if got == expected => Ok(()),
        got => Err(format!("{what} is {got}").into()),
    }
}

fn request_id(headers: &reqwest::header::HeaderMap) -> String {
    let id = headers.get("x-request-id").and_then(|id| id.to_str().ok());
    id.unwrap_or_default().to_owned()
}
