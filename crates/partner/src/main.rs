//! `partner`: a command-line client of the partner API.

use std::process::ExitCode;

use clap::Parser as _;
use partner_api_tool::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let as_json = cli.connect.json;
    match cli.run().await {
        Ok(code) => code,
        Err(failure) if as_json => {
            eprintln!("{:#}", failure.json());
            ExitCode::from(failure.exit_code())
        }
        Err(failure) => {
            eprintln!("error: {failure}{}", failure.details());
            ExitCode::from(failure.exit_code())
        }
    }
}
