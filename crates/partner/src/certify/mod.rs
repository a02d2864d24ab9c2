//! `partner certify`: runs the acceptance scenarios, or grades a program, and writes the report that a partner hands in before
//! the go-live.

mod grade;
mod listen;
mod report;
mod script;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use partner_api_acceptance::{Certificate, ScenarioError, Target};
use partner_api_signing::Environment;
use partner_api_terminal::output::Output;
use partner_api_terminal::when;

use crate::failure::Failure;
use crate::file::NewFile;
use crate::profile::{Account, Connect};
use listen::ListenArgs;

/// The end of the help text.
pub const EXAMPLES: &str = "\
The key must have the scope test-line:write. The first scenario needs the plate and the branch code of an open report: sandbox.json \
contains one, and for other services the operator can name one. The scenarios record measurements.

The scenarios test the service and the key. --listen tests your program: it forwards its requests to a sandbox, forces failures, and \
checks each retry. With a COMMAND, the program is run for each step with PARTNER_BASE_URL, PARTNER_KEY_ID and PARTNER_SECRET in its \
environment. Without one, run the program yourself as each step says. The operator verifies the report with `partner-api key verify`.

Examples:
  partner certify --sandbox .sandbox/sandbox.json
  partner certify --profile test --branch ANK-01 --plate '34 ABC 123' \\
      --html acceptance.html --junit acceptance.xml
  partner certify --sandbox .sandbox/sandbox.json --listen \\
      --html certificate.html --report certificate.json -- python3 partner.py";

/// The arguments of `certify`.
#[derive(Args, Debug)]
pub struct CertifyArgs {
    /// Code of a branch that has an open report
    #[arg(long, value_name = "CODE", requires = "plate")]
    pub branch: Option<String>,
    /// Plate of that report
    #[arg(long, requires = "branch")]
    pub plate: Option<String>,
    /// Also write the results as an HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// The maximum time of each request, including its retries
    #[arg(long, value_name = "SPAN", default_value = "15s", value_parser = when::span)]
    pub timeout: Duration,
    /// Allow a live key; its measurements are written to a customer's report
    #[arg(long)]
    pub live: bool,
    /// The options of --listen.
    #[command(flatten)]
    pub listen: ListenArgs,
}

pub(crate) async fn run(connect: &Connect, args: &CertifyArgs) -> Result<ExitCode, Failure> {
    let account = connect.account()?;
    if args.listen.listen {
        return listen::run(connect, args, account).await;
    }
    if account.key_id.environment() == Environment::Live && !args.live {
        return Err(Failure::Rejected(
            "this is a live key, and the scenarios would write measurements to a customer's report; use a test key, or pass --live"
                .to_owned(),
        ));
    }
    let (branch_code, plate) = open_report(args, &account)?;
    // Created before the scenarios run, so that an existing file is reported before measurements are recorded.
    let files = [
        create_report(args.html.as_deref())?,
        create_report(args.junit.as_deref())?,
    ];
    let target = Target {
        base_url: account.base_url,
        key_id: account.key_id,
        secret: account.secret,
        branch_code,
        plate,
        timeout: args.timeout,
    };
    let outcomes = partner_api_acceptance::run(&target)
        .await
        .map_err(|error| match error {
            ScenarioError::Connect(error) => Failure::Connect(error),
            other => Failure::Failed(other.to_string()),
        })?;
    let certificate = Certificate::new(&target, chrono::Utc::now(), outcomes);
    let junit = certificate
        .junit()
        .map_err(|error| Failure::Failed(format!("failed to write the report: {error}")))?;
    for (file, text) in files.into_iter().zip([certificate.html(), junit]) {
        if let Some(mut file) = file {
            file.write(text.as_bytes())?;
            file.finish()?;
        }
    }
    let outcomes = certificate.outcomes();
    Output::message(&outcomes.to_string(), outcomes).print(connect.json)?;
    Ok(if outcomes.passed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the branch code and the plate of an open report.
fn open_report(args: &CertifyArgs, account: &Account) -> Result<(String, String), Failure> {
    let open = account.open_report.as_ref();
    let branch_code = args.branch.clone().or(open.map(|open| open.branch_code.clone()));
    let plate = args.plate.clone().or(open.map(|open| open.plate.clone()));
    branch_code.zip(plate).ok_or_else(|| {
        Failure::Usage(
            "an open report is required: pass --branch CODE and --plate PLATE (ask the operator, or see sandbox.json)"
                .to_owned(),
        )
    })
}

fn create_report(path: Option<&Path>) -> Result<Option<NewFile>, Failure> {
    path.map(NewFile::begin).transpose()
}
