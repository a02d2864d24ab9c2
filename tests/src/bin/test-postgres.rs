//! Starts a private PostgreSQL cluster with the tests' template database, and runs a command with its address in the
//! environment. Then it stops the cluster and exits with the code of the command.
//!
//! ```text
//! test-postgres -- cargo nextest run
//! test-postgres --whole-suite -- cargo nextest run
//! ```
//!
//! With `--whole-suite` the command must run every test. If it succeeds, a snapshot that no test asserted, or that was asserted
//! twice, is an error.

use std::error::Error;
use std::process::ExitCode;

use partner_api_tests::cluster::{Cluster, URL_VARIABLE, citus};
use partner_api_tests::{coverage, snapshot_log};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    let whole_suite = arguments.next_if(|argument| argument == "--whole-suite").is_some();
    let _ = arguments.next_if(|argument| argument == "--");
    let Some(program) = arguments.next() else {
        eprintln!("usage: test-postgres [--whole-suite] -- COMMAND [ARGUMENT...]");
        return Ok(ExitCode::from(2));
    };
    let cluster = match Cluster::start().await {
        Ok(cluster) => cluster,
        Err(error) => {
            eprintln!("{error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let log = tempfile::tempdir()?;
    // A signal to the process group reaches the command, too. This program ends after it.
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut command = Command::new(&program);
    command
        .args(arguments)
        .env(URL_VARIABLE, cluster.url())
        .env(citus::WORKERS_VARIABLE, cluster.worker_urls())
        // Stores and clusters that tests create are in memory, too, if enough is free.
        .env("TMPDIR", cluster.temporary())
        .kill_on_drop(true);
    if whole_suite {
        command.env(snapshot_log::VARIABLE, log.path());
    }
    let mut child = command.spawn();
    let status = match &mut child {
        Err(error) => {
            eprintln!("{}: {error}", program.to_string_lossy());
            None
        }
        Ok(child) => loop {
            tokio::select! {
                status = child.wait() => break Some(status?),
                _ = interrupt.recv() => {}
                _ = terminate.recv() => child.start_kill()?,
            }
        },
    };
    cluster.stop().await;
    if whole_suite && status.is_some_and(|status| status.success()) {
        let findings = snapshot_log::findings(&snapshot_log::read(log.path())?, &coverage::files());
        for finding in &findings {
            eprintln!("{finding}");
        }
        if !findings.is_empty() {
            return Ok(ExitCode::FAILURE);
        }
    }
    // Without an exit code, a signal ended it.
    let code = status
        .and_then(|status| status.code())
        .and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
