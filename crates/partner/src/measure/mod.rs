//! `partner measure`: one package, or each file that appears in a folder.

mod package;
mod spool;
mod watch;

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use partner_api_client::{Answer, submit_raw, types};
use partner_api_terminal::names::quoted;
use partner_api_terminal::output::Output;
use partner_api_terminal::when;
use uuid::Uuid;

use crate::failure::Failure;
use crate::profile::Connect;
use package::{Package, Point, Written};

/// What the help says at its end.
pub const EXAMPLES: &str = "\
A package without an external_id is given one before it is sent, so that it can be sent again for as long as its outcome is not
known. With --watch, a file that is complete and has not changed for a moment is moved to FOLDER/sending and sent, for as long as it
takes, over restarts of this program and of the service; then it is moved to FOLDER/sent or FOLDER/refused, with the answer beside
it. No file is ever deleted, and none is recorded twice. Best put files there by renaming: written elsewhere, whole, and moved.

Examples:
  partner measure --branch ANK-01 --plate '34 ABC 123' --point BRAKE_FRONT_LEFT=2.85 --point SLIP_FRONT=-1.4
  partner measure package.json
  generate | partner measure -
  partner measure --watch /var/spool/test-line";

/// The arguments of `measure`.
#[derive(Args, Debug)]
pub struct MeasureArgs {
    /// A package as a file of JSON, or - for standard input
    #[arg(value_name = "FILE", conflicts_with_all = ["watch", "branch", "plate", "point", "measured_at", "external_id", "device"])]
    pub file: Option<PathBuf>,
    /// Code of the branch
    #[arg(long, value_name = "CODE", requires_all = ["plate", "point"])]
    pub branch: Option<String>,
    /// The vehicle's plate
    #[arg(long, requires = "branch")]
    pub plate: Option<String>,
    /// A value, with a dot for decimals; can be given several times
    #[arg(long, value_name = "CODE=VALUE", value_parser = Point::read, requires = "branch")]
    pub point: Vec<Point>,
    /// When it was measured, with an offset [default: when it arrives]
    #[arg(long, value_name = "TIME", value_parser = when::moment, requires = "branch")]
    pub measured_at: Option<DateTime<Utc>>,
    /// Your own id of the measurement [default: one that nothing else has]
    #[arg(long, value_name = "ID", requires = "branch")]
    pub external_id: Option<String>,
    /// Serial number of the device
    #[arg(long, value_name = "SERIAL", requires = "branch")]
    pub device: Option<String>,
    /// Send each file of JSON that appears in this folder, until it is stopped
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["branch", "plate", "point", "measured_at", "external_id", "device"])]
    pub watch: Option<PathBuf>,
    /// With --watch: how long a file must not have changed
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = when::span, requires = "watch")]
    pub settle: Duration,
    /// With --watch: how often to look
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = when::span, requires = "watch")]
    pub every: Duration,
    /// With --watch: stop when all that is there has an answer
    #[arg(long, requires = "watch")]
    pub once: bool,
}

pub(crate) async fn run(connect: &Connect, args: &MeasureArgs) -> Result<ExitCode, Failure> {
    if let Some(folder) = &args.watch {
        let pace = watch::Pace {
            settle: args.settle,
            every: args.every,
            once: args.once,
        };
        return watch::run(connect, folder, pace).await;
    }
    let client = connect.client()?;
    let package = package(args)?;
    if let Some(id) = &package.added_id {
        eprintln!(
            "external_id: {id} (to send it again, give this one: --external-id {}, or in the file)",
            quoted(id)
        );
    }
    let answer = submit_raw(&client, package.body).await?;
    if answer.is_payload_mismatch() {
        return Err(Failure::Refused(format!(
            "this external_id was used for another package, which stands; nothing of this one was recorded but its bytes \
             (measurement {}, request id {}). Give it an id of its own",
            answer.data.measurement_id,
            answer.request_id().unwrap_or("-")
        )));
    }
    shown(&answer).print(connect.json)?;
    Ok(ExitCode::SUCCESS)
}

/// The package, with an `external_id`.
fn package(args: &MeasureArgs) -> Result<Package, Failure> {
    if let (Some(branch_code), Some(plate)) = (&args.branch, &args.plate) {
        let written = Written {
            branch_code,
            plate,
            measured_at: args.measured_at,
            external_id: args.external_id.as_deref(),
            device_serial: args.device.as_deref(),
            measurements: &args.point,
        };
        let text = written.to_json()?;
        return Package::of(&text, Uuid::now_v7()).map_err(|unfit| Failure::Usage(unfit.to_string()));
    }
    let bytes = match &args.file {
        None => {
            return Err(Failure::Usage(
                "what is to be sent? give a FILE, - for standard input, --branch, --plate and --point, or --watch FOLDER".to_owned(),
            ));
        }
        Some(path) if path.as_os_str() == "-" => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            bytes
        }
        Some(path) => std::fs::read(path).map_err(Failure::of(path))?,
    };
    Package::of(&bytes, Uuid::now_v7()).map_err(|unfit| Failure::Usage(unfit.to_string()))
}

fn shown(answer: &Answer<types::MeasurementResponse>) -> Output {
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
                "before; this was a replay"
            } else {
                "now"
            }
            .to_owned(),
        ),
        ("request id", answer.request_id().unwrap_or("-").to_owned()),
    ];
    Output::facts(&**answer, &facts)
}

/// `SLIP_FRONT (no_status)`, one after the other.
fn skipped(data: &types::Measurement) -> String {
    let points = data.skipped_points.iter();
    points
        .map(|point| format!("{} ({})", point.code, point.reason))
        .collect::<Vec<_>>()
        .join(", ")
}
