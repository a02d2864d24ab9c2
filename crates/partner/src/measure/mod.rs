//! `partner measure`: submits one package, the records of an export, or each file that appears in a folder.

mod file_time;
mod map;
mod package;
mod spool;
mod watch;

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use partner_api_client::{Response, submit_raw, types};
use partner_api_terminal::names::quoted;
use partner_api_terminal::output::Output;
use partner_api_terminal::when;
use uuid::Uuid;

use crate::failure::Failure;
use crate::profile::Connect;
use package::{Package, PackageFields, Point};

/// The end of the help text.
pub const EXAMPLES: &str = "\
A package without an external_id gets one before it is sent, so that it can be retried safely. To ask later what became of a \
measurement, send the same package again: nothing is recorded twice, and the response has its current status.

With --watch, each file that is complete and has not changed for a moment is moved to FOLDER/sending. It is sent until the service \
responds, even after restarts of this program or of the service. Then it is moved to FOLDER/sent or FOLDER/rejected, with the response \
beside it. No file is deleted, and none is recorded twice. Files are sent in the order in which they were written, and a package without \
measured_at gets the time of its file. Write a file elsewhere and then rename it into the folder, so that it is complete when it appears.

With --watch and --map, CSV, TXT and XML exports in the folder are sent too. Each record becomes a file of its own in FOLDER/sending, such as export 000002.json, and the export is moved to FOLDER/sent. If one of its records is invalid, nothing of it is sent, and it is moved to FOLDER/rejected. A record without a time gets the time of its export.

Examples:
  partner measure --branch ANK-01 --plate '34 ABC 123' \\
      --point BRAKE_FRONT_LEFT=2.85 --point SLIP_FRONT=-1.4
  partner measure package.json
  generate | partner measure -
  partner measure --map mapping.toml export.csv --dry-run
  partner measure --watch /var/spool/test-line
  partner measure --watch exports --map mapping.toml";

/// The arguments of `measure`.
#[derive(Args, Debug)]
pub struct MeasureArgs {
    /// A JSON file with the package, or - for standard input; with --map a CSV or XML export
    #[arg(value_name = "FILE", conflicts_with_all = ["watch", "branch", "plate", "point", "measured_at", "external_id", "device"])]
    pub file: Option<PathBuf>,
    /// The branch code
    #[arg(long, value_name = "CODE", requires_all = ["plate", "point"])]
    pub branch: Option<String>,
    /// The vehicle's plate
    #[arg(long, requires = "branch")]
    pub plate: Option<String>,
    /// A measured value with a decimal point; can be repeated
    #[arg(long, value_name = "CODE=VALUE", value_parser = Point::read, requires = "branch")]
    pub point: Vec<Point>,
    /// The time of the measurement, with a UTC offset [default: the time of arrival; with --watch the file's time]
    #[arg(long, value_name = "TIME", value_parser = when::moment, requires = "branch")]
    pub measured_at: Option<DateTime<Utc>>,
    /// Your ID of the measurement [default: a generated unique ID]
    #[arg(long, value_name = "ID", requires = "branch")]
    pub external_id: Option<String>,
    /// The device's serial number
    #[arg(long, value_name = "SERIAL", requires = "branch")]
    pub device: Option<String>,
    /// A mapping with which FILE or the files in the folder, CSV or XML exports, become packages
    #[arg(long, value_name = "MAPPING", conflicts_with = "branch")]
    pub map: Option<PathBuf>,
    /// With --map: print the packages of FILE and send nothing
    #[arg(long, requires_all = ["map", "file"])]
    pub dry_run: bool,
    /// Submit each JSON file that appears in this folder, with --map also exports, until the program is stopped
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["branch", "plate", "point", "measured_at", "external_id", "device"])]
    pub watch: Option<PathBuf>,
    /// With --watch: how long a file must be unchanged before it is sent
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = when::span, requires = "watch")]
    pub settle: Duration,
    /// With --watch: how often to check the folder
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = when::span, requires = "watch")]
    pub every: Duration,
    /// With --watch: stop when every file in the folder has been processed
    #[arg(long, requires = "watch")]
    pub once: bool,
}

pub(crate) async fn run(connect: &Connect, args: &MeasureArgs) -> Result<ExitCode, Failure> {
    if let Some(folder) = &args.watch {
        let options = watch::Options {
            settle: args.settle,
            every: args.every,
            once: args.once,
            mapping: args.map.clone(),
        };
        return watch::run(connect, folder, options).await;
    }
    if let (Some(mapping), Some(export)) = (&args.map, &args.file) {
        map::run(connect, mapping, export, args.dry_run).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let client = connect.client()?;
    let package = package(args)?;
    if let Some(id) = &package.added_id {
        eprintln!(
            "external_id: {id} (to retry, use the same id: --external-id {}, or in the file)",
            quoted(id)
        );
    }
    let answer = submit_raw(&client, package.body).await?;
    if answer.is_payload_mismatch() {
        return Err(Failure::Rejected(format!(
            "this external_id was already used for another package; of this one only the bytes were recorded (measurement {}, \
             request id {}). Submit it with a new external_id",
            answer.data.measurement_id,
            answer.request_id().unwrap_or("-")
        )));
    }
    output(&answer).print(connect.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the package with an `external_id`.
fn package(args: &MeasureArgs) -> Result<Package, Failure> {
    if let (Some(branch_code), Some(plate)) = (&args.branch, &args.plate) {
        let fields = PackageFields {
            branch_code,
            plate,
            measured_at: args.measured_at,
            external_id: args.external_id.as_deref(),
            device_serial: args.device.as_deref(),
            measurements: &args.point,
        };
        let text = fields.to_json()?;
        return Package::of(&text, Uuid::now_v7(), None).map_err(|error| Failure::Usage(error.to_string()));
    }
    let bytes = match &args.file {
        None => {
            return Err(Failure::Usage(
                "a package is required: pass FILE, - for standard input, --branch with --plate and --point, or --watch FOLDER".to_owned(),
            ));
        }
        Some(path) if path.as_os_str() == "-" => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            bytes
        }
        Some(path) => std::fs::read(path).map_err(Failure::of(path))?,
    };
    Package::of(&bytes, Uuid::now_v7(), None).map_err(|error| Failure::Usage(error.to_string()))
}

fn output(answer: &Response<types::MeasurementResponse>) -> Output {
    let data = &answer.data;
    let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let facts = [
        ("status", data.status.to_string()),
        ("measurement", data.measurement_id.to_string()),
        ("plate", data.plate.clone()),
        (
            "report",
            data.inspection_id.map_or_else(|| "-".to_owned(), |id| id.to_string()),
        ),
        ("applied", or_none(data.applied_points.join(", "))),
        ("skipped", or_none(skipped(data))),
        (
            "recorded",
            if data.idempotent_replay {
                "earlier; this was an idempotent replay"
            } else {
                "now"
            }
            .to_owned(),
        ),
        ("request ID", answer.request_id().unwrap_or("-").to_owned()),
    ];
    Output::facts(&**answer, &facts)
}

/// Lists the skipped points as `SLIP_FRONT (no_status)`, separated by commas, with the service's hints.
fn skipped(data: &types::Measurement) -> String {
    let points = data.skipped_points.iter().map(|point| {
        let hint = point.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
        format!("{} ({}{hint})", point.code, point.reason)
    });
    points.collect::<Vec<_>>().join(", ")
}
