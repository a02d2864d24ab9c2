//! `partner certify`: runs the acceptance scenarios and writes the report that a partner hands in before the go-live.

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
use crate::profile::Connect;

/// The end of the help text.
pub const EXAMPLES: &str = "\
The key must have the scope test-line:write. The first scenario needs the plate and the branch code of an open report: sandbox.json \
contains one, and for other services the operator can name one. The scenarios record measurements.

Examples:
  partner certify --sandbox .sandbox/sandbox.json
  partner certify --profile test --branch ANK-01 --plate '34 ABC 123' \\
      --html acceptance.html --junit acceptance.xml";

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
}

pub(crate) async fn run(connect: &Connect, args: &CertifyArgs) -> Result<ExitCode, Failure> {
    let account = connect.account()?;
    if account.key_id.environment() == Environment::Live && !args.live {
        return Err(Failure::Rejected(
            "this is a live key, and the scenarios would write measurements to a customer's report; use a test key, or pass --live"
                .to_owned(),
        ));
    }
    let open = account.open_report;
    let (Some(branch_code), Some(plate)) = (
        args.branch
            .clone()
            .or(open.as_ref().map(|open| open.branch_code.clone())),
        args.plate.clone().or(open.as_ref().map(|open| open.plate.clone())),
    ) else {
        return Err(Failure::Usage(
            "an open report is required: pass --branch CODE and --plate PLATE (ask the operator, or see sandbox.json)"
                .to_owned(),
        ));
    };
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

fn create_report(path: Option<&Path>) -> Result<Option<NewFile>, Failure> {
    path.map(NewFile::begin).transpose()
}
