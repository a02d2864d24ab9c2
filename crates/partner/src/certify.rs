//! `partner certify`: the acceptance scenarios, and what is handed over for the go-live.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use partner_api_acceptance::{Certificate, ScenarioError, Target};
use partner_api_signing::Environment;
use partner_api_terminal::output::Output;

use crate::failure::Failure;
use crate::file::NewFile;
use crate::profile::Connect;

/// What the help says at its end.
pub const EXAMPLES: &str = "\
The key needs the scope test-line:write, and the first scenario an open report: its plate, and the code of its branch. A sandbox's
file names one; elsewhere the operator does. Measurements are recorded by it.

Examples:
  partner --sandbox .sandbox/sandbox.json certify
  partner --profile test certify --branch ANK-01 --plate '34 ABC 123' --html acceptance.html --junit acceptance.xml";

/// The arguments of `certify`.
#[derive(Args, Debug)]
pub struct CertifyArgs {
    /// Code of a branch where a report is open
    #[arg(long, value_name = "CODE", requires = "plate")]
    pub branch: Option<String>,
    /// The plate of that report
    #[arg(long, requires = "branch")]
    pub plate: Option<String>,
    /// Write the report as a page, too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the report as JUnit's XML, too
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Record measurements with a live key: they are written into a customer's report
    #[arg(long)]
    pub live: bool,
}

pub(crate) async fn run(connect: &Connect, args: &CertifyArgs) -> Result<ExitCode, Failure> {
    let account = connect.account()?;
    if account.key_id.environment() == Environment::Live && !args.live {
        return Err(Failure::Refused(
            "this is a live key, and the scenarios record measurements in a customer's report: use a test key, or say --live"
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
            "name an open report: --branch CODE --plate PLATE (the operator, or a sandbox's file, knows one)"
                .to_owned(),
        ));
    };
    // Before the scenarios: what is there already is not found out at their end.
    let files = [begun(args.html.as_deref())?, begun(args.junit.as_deref())?];
    let target = Target {
        base_url: account.base_url,
        key_id: account.key_id,
        secret: account.secret,
        branch_code,
        plate,
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
        .map_err(|error| Failure::Failed(format!("the report cannot be written: {error}")))?;
    for (file, text) in files.into_iter().zip([certificate.html(), junit]) {
        if let Some(mut file) = file {
            file.write(text.as_bytes())?;
            file.finish()?;
        }
    }
    let outcomes = certificate.outcomes();
    Output::said(&outcomes.to_string(), outcomes).print(connect.json)?;
    Ok(if outcomes.passed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn begun(path: Option<&Path>) -> Result<Option<NewFile>, Failure> {
    path.map(NewFile::begin).transpose()
}
