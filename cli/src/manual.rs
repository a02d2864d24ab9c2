//! Completions and the manual, from the definitions of the command line.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::Failure;
use crate::cli::Cli;

pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "partner-api", &mut script);
    partner_api_operator::output::Output::raw(script).print(false)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn pages(folder: &Path) -> Result<ExitCode, Failure> {
    let failed = |error| format!("cannot write into {}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
    println!(
        "The manual is in {}: man {}/partner-api.1",
        folder.display(),
        folder.display()
    );
    Ok(ExitCode::SUCCESS)
}
