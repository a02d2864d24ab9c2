//! Scenarios 7 to 10: what becomes of a measurement that waits, at an inspector's desk (MEA-13, INS-5, INS-6, REP-8).
//!
//! Beside the six that partners run, these need an inspector, and leave a report behind: cancelled, so that partners' lists stay as
//! they are.

use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use partner_api_acceptance::{Outcome, Target};
use partner_api_client::types::{Measurement, MeasurementRequest};
use partner_api_client::{Call as _, Client, connect};
use partner_api_inspector_client::{self as inspectors, Client as Desk, types};
use rand::Rng as _;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::inspectors::Inspector;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long a published report may be without its PDF.
const DRAWN_WITHIN: Duration = Duration::from_secs(180);
/// How often it is asked for meanwhile.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

const VALUES: [(&str, &str); 4] = [
    ("BRAKE_FRONT_LEFT", "2.85"),
    ("BRAKE_FRONT_RIGHT", "2.91"),
    ("SLIP_FRONT", "-3.2"),
    ("DYNO_MEASURED_HP", "118.4"),
];

/// Runs the scenarios one after another, with a partner's key and an inspector's token, at the page's address.
///
/// # Errors
/// When they cannot be run at all; what is not as expected, or not answered, is an [`Outcome`].
pub async fn run(target: &Target, inspectors_url: &str, inspector: &Inspector) -> Result<Vec<Outcome>, Failure> {
    let partner = connect(&target.base_url, target.key_id.as_str(), target.secret.expose())?;
    let desk = inspectors::connect(inspectors_url.trim_end_matches("/inspector/"))?;
    let session = inspectors::sign_in(&desk, &inspector.token).await?;
    let branch = session
        .branches
        .into_iter()
        .next()
        .ok_or("the inspector has no branch")?;
    let mut place = Place {
        partner,
        desk,
        branch,
        plate: unknown_plate(),
        report: Uuid::nil(),
        waiting: Vec::new(),
    };
    let mut outcomes = Vec::new();
    outcomes.push(
        outcome(
            7,
            "two measurements for a plate without a report, which is opened then",
            "both wait in the report, newest first, with their would-be statuses",
            place.wait(),
        )
        .await,
    );
    outcomes.push(
        outcome(
            8,
            "one of them applied with one click",
            "its values and statuses in the report; a replay says applied",
            place.apply(),
        )
        .await,
    );
    outcomes.push(
        outcome(
            9,
            "the other one ignored",
            "nothing waits; a replay says discarded",
            place.ignore(),
        )
        .await,
    );
    outcomes.push(
        outcome(
            10,
            "the report published",
            "partners read it, and its PDF byte for byte as published",
            place.publish(),
        )
        .await,
    );
    Ok(outcomes)
}

/// What was got, and the id of the request that says so; or what was there instead.
type Got = Result<(String, String), Failure>;

async fn outcome(
    number: u8,
    scenario: &'static str,
    expected: &'static str,
    run: impl Future<Output = Got>,
) -> Outcome {
    let began = Instant::now();
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
        took: began.elapsed(),
    }
}

/// A partner's device and an inspector's desk at one branch.
struct Place {
    partner: Client,
    desk: Desk,
    branch: types::Branch,
    plate: String,
    report: Uuid,
    /// The external ids and the ids of the two measurements, the older first.
    waiting: Vec<(String, Uuid)>,
}

impl Place {
    async fn wait(&mut self) -> Got {
        for _ in 0..2 {
            let external_id = format!("scenario-{}", Uuid::new_v4());
            let sent = self.send(&external_id).await?;
            is("the measurement's status", &sent.status, "pending")?;
            self.waiting.push((external_id, sent.measurement_id));
        }
        let opened = self.desk.open_report().body(self.opening()?).send().await?;
        let request_id = request_id(opened.headers());
        let report = opened.into_inner().data;
        self.report = report.id;
        let newest_first: Vec<Uuid> = self.waiting.iter().rev().map(|(_, id)| *id).collect();
        let waiting: Vec<Uuid> = report.waiting.iter().map(|waiting| waiting.id).collect();
        if waiting != newest_first {
            return Err(format!("{} of the 2 measurements wait in the report", waiting.len()).into());
        }
        let judged = report.waiting[0].values.iter().filter(|value| value.would_be.is_some());
        let judged = judged.count();
        if judged == 0 {
            return Err("no value of theirs would get a status".into());
        }
        Ok((format!("2 wait, {judged} values with a would-be status"), request_id))
    }

    async fn apply(&mut self) -> Got {
        let (external_id, id) = self.waiting.pop().ok_or("there is no measurement to apply")?;
        let call = self.desk.apply_measurement().id(self.report).measurement_id(id);
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
            return Err("no value is in the report".into());
        }
        let replay = self.send(&external_id).await?;
        is("the replay's status", &replay.status, "applied")?;
        if replay.inspection_id != Some(self.report) {
            return Err("the replay names another report".into());
        }
        Ok((format!("applied, {written} values in the report"), request_id))
    }

    async fn ignore(&mut self) -> Got {
        let (external_id, id) = self.waiting.pop().ok_or("there is no measurement to ignore")?;
        let ignored = self.desk.discard_measurement().measurement_id(id).send().await?;
        let request_id = request_id(ignored.headers());
        let report = self.desk.get_report().id(self.report).send().await?.into_inner().data;
        if !report.waiting.is_empty() {
            return Err(format!("{} still wait", report.waiting.len()).into());
        }
        let replay = self.send(&external_id).await?;
        is("the replay's status", &replay.status, "discarded")?;
        Ok(("discarded".to_owned(), request_id))
    }

    async fn publish(&mut self) -> Got {
        let report = self.move_to("PUBLISHED", None).await?;
        let seen = self
            .partner
            .get_inspection()
            .id(report.id.to_string())
            .send()
            .answer()
            .await?;
        is("the status that partners see", &seen.status, "published")?;
        let began = Instant::now();
        let published = loop {
            let report = self.desk.get_report().id(self.report).send().await?.into_inner().data;
            match report.pdf_sha256 {
                Some(digest) => break digest.to_string(),
                None if began.elapsed() > DRAWN_WITHIN => {
                    return Err(format!("there is no PDF after {} s", DRAWN_WITHIN.as_secs()).into());
                }
                None => tokio::time::sleep(AGAIN_AFTER).await,
            }
        };
        let pdf = self
            .partner
            .get_inspection_pdf()
            .id(self.report.to_string())
            .send()
            .answer()
            .await?;
        let request_id = pdf.request_id().unwrap_or_default().to_owned();
        let bytes: Vec<bytes::Bytes> = pdf.into_inner().into_inner().try_collect().await?;
        let bytes = bytes.concat();
        let served = data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes));
        if served != published {
            return Err("the PDF that is served is not the one that was published".into());
        }
        self.move_to("CANCEL_REQUESTED", Some("acceptance scenario")).await?;
        self.move_to("CANCELLED", None).await?;
        Ok((
            format!("published, {} bytes, SHA-256 {}…", bytes.len(), &published[..12]),
            request_id,
        ))
    }

    /// Sends the package with this external id, for the first time or again.
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
        let answer = self.partner.submit_measurement().body(package).send().answer().await?;
        Ok(answer.into_inner().data)
    }

    fn opening(&self) -> Result<types::OpenReport, Failure> {
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
        let report = self.desk.get_report().id(self.report).send().await?.into_inner().data;
        let mut body = serde_json::json!({ "version": report.version, "to": status });
        if let Some(reason) = reason {
            body["reason"] = reason.into();
        }
        let body: types::MoveReport = serde_json::from_value(body)?;
        let moved = self.desk.move_report().id(self.report).body(body).send().await?;
        Ok(moved.into_inner().data)
    }
}

/// A plate no vehicle has: the registry gives out none with these letters.
fn unknown_plate() -> String {
    format!("34 QWX {:04}", rand::rng().random_range(10..10_000))
}

fn is(what: &str, got: &impl ToString, expected: &str) -> Result<(), Failure> {
    match got.to_string() {
        got if got == expected => Ok(()),
        got => Err(format!("{what} is {got}").into()),
    }
}

fn request_id(headers: &reqwest::header::HeaderMap) -> String {
    let id = headers.get("x-request-id").and_then(|id| id.to_str().ok());
    id.unwrap_or_default().to_owned()
}
