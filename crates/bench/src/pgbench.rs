//! Runs statements without the service, with PostgreSQL's own load generator pgbench.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use embedded_postgres::standard_folders;
use tokio::process::Command;

use crate::error::BenchError;

/// pgbench's threads.
const THREADS: u32 = 2;

/// The settings of each session, equal to the service's (`partner_api_store::pool`).
const SESSION: &str = "-c synchronous_commit=on -c plan_cache_mode=force_generic_plan";

/// A script, which is prepared once in each session and then executed repeatedly.
pub struct Script {
    /// Its text.
    pub text: String,
    /// Names and values of variables.
    pub variables: Vec<(&'static str, String)>,
    /// The number of concurrent sessions.
    pub clients: usize,
}

/// The installed pgbench.
pub struct Pgbench {
    program: PathBuf,
}

impl Pgbench {
    /// Finds pgbench beside the server's programs or on the PATH.
    ///
    /// # Errors
    /// If it is not installed.
    pub fn find() -> Result<Self, BenchError> {
        standard_folders()
            .into_iter()
            .map(|folder| folder.join("pgbench"))
            .find(|program| program.is_file())
            .map(|program| Self { program })
            .ok_or_else(|| {
                BenchError::Unexpected("pgbench is not installed: it comes with postgresql (Debian)".to_owned())
            })
    }

    /// Runs the script, and returns its runs per second. The variable `base` is the first number of a range that the script can
    /// use for IDs: a million for each client.
    ///
    /// # Errors
    /// If a statement failed.
    pub async fn run(&self, script: &Script, folder: &Path, url: &str, time: Duration) -> Result<f64, BenchError> {
        let file = folder.join("script.sql");
        tokio::fs::write(&file, &script.text)
            .await
            .map_err(BenchError::io("write pgbench's script"))?;
        let mut command = Command::new(&self.program);
        command
            .args(["--no-vacuum", "--protocol=prepared"])
            .arg(format!("--client={}", script.clients))
            .arg(format!("--jobs={THREADS}"))
            .arg(format!("--time={}", time.as_secs().max(1)))
            .arg("--file")
            .arg(&file);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        command.arg(format!("--define=base={}", now.as_millis() * 1_000_000));
        for (name, value) in &script.variables {
            command.arg(format!("--define={name}={value}"));
        }
        let output = command
            .arg(url)
            .env("PGOPTIONS", SESSION)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(BenchError::io(format!("run {}", self.program.display())))?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let value = |name: &str| {
            let rest = stdout.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_whitespace().next()?.parse::<f64>().ok()
        };
        let failed = value("number of failed transactions: ").unwrap_or_default();
        match value("tps = ") {
            Some(rate) if output.status.success() && failed == 0.0 => Ok(rate),
            _ => Err(BenchError::Unexpected(format!(
                "pgbench failed:\n{}\n{}",
                stdout,
                String::from_utf8_lossy(&output.stderr)
            ))),
        }
    }
}
