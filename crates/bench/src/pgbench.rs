//! Statements alone, without the service: pgbench, PostgreSQL's own load generator.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use embedded_postgres::standard_folders;
use tokio::process::Command;

use crate::error::BenchError;

/// pgbench's threads.
const THREADS: u32 = 2;

/// What every session is set to, as the service's are (`partner_api_store::pool`).
const SESSION: &str = "-c synchronous_commit=on -c plan_cache_mode=force_generic_plan";

/// A script, prepared once in each session and then executed again and again.
pub struct Script {
    /// Its text.
    pub text: String,
    /// Variables, name and value.
    pub variables: Vec<(&'static str, String)>,
    /// Sessions at once.
    pub clients: usize,
}

/// The pgbench of this machine.
pub struct Pgbench {
    program: PathBuf,
}

impl Pgbench {
    /// Finds it beside the server's programs or on the PATH.
    ///
    /// # Errors
    /// It is not there.
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

    /// How often a second the script ran. Its variable `base` is a number from which a million runs each are free for ids.
    ///
    /// # Errors
    /// A statement failed; the message says which.
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
        let said = String::from_utf8_lossy(&output.stdout);
        let value = |name: &str| {
            let rest = said.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_whitespace().next()?.parse::<f64>().ok()
        };
        let failed = value("number of failed transactions: ").unwrap_or_default();
        match value("tps = ") {
            Some(rate) if output.status.success() && failed == 0.0 => Ok(rate),
            _ => Err(BenchError::Unexpected(format!(
                "pgbench failed:\n{}\n{}",
                said,
                String::from_utf8_lossy(&output.stderr)
            ))),
        }
    }
}
