//! Writes `snapshots/COVERAGE.md`, and prints the table and its problems.

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use partner_api_tests::coverage::{Coverage, folder};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let coverage = Coverage::read();
    let table = coverage.table();
    fs::write(folder().join("COVERAGE.md"), &table)?;
    print!("{table}");
    let findings = coverage.findings();
    for finding in &findings {
        eprintln!("{finding}");
    }
    Ok(if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
