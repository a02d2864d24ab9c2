//! `doctor`: checks everything that the service depends on and suggests remedies.

mod access;
mod database;
mod durability;

pub(crate) use database::secrets;

use std::time::{Duration, Instant};

use bounded_listener::tls;
use chrono::{TimeDelta, Utc};
use clap::Args;
use partner_api::config::Config;
use partner_api::startup::CommandDatabase;
use partner_api::storage::StorageError;
use partner_api_store::secrets::{is_open_to_others, purpose};
use serde::Serialize;
use tokio_postgres::error::SqlState;

use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::{Output, Row};

/// The examples in the help of the command.
pub const EXAMPLES: &str = "\
Exits with 1 if a check fails, and with 2 if the configuration is not usable; warnings alone exit with 0. The only change is an object that is written to \
the storage, read back, and deleted again.

Examples:
  partner-api doctor --config /etc/partner-api.toml
  partner-api doctor --json";

/// The clock skew between this machine and the database: request timestamps are valid for 300 s, while rate limits, leases
/// and nonces use the database's clock.
const CLOCK_WARNING_SKEW: TimeDelta = TimeDelta::seconds(2);
const CLOCK_FAILURE_SKEW: TimeDelta = TimeDelta::seconds(60);

/// The remaining validity below which a certificate should have been renewed.
const CERTIFICATE_WARNING_PERIOD: TimeDelta = TimeDelta::days(14);

/// The timeout of the database's checks.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(10);

/// The options of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// The database and the output format.
    #[command(flatten)]
    connect: Connect,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warning,
    Failed,
}

/// One check.
#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    verdict: Verdict,
    found: String,
    /// The remedy; empty if none is needed.
    next: String,
}

impl Row for Check {
    const COLUMNS: &'static [&'static str] = &["CHECK", "VERDICT", "FOUND", "WHAT TO DO"];

    fn cells(&self) -> Vec<String> {
        let verdict = match self.verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Failed => "FAILED",
        };
        vec![
            self.check.to_owned(),
            verdict.to_owned(),
            self.found.clone(),
            self.next.clone(),
        ]
    }
}

/// The checks so far.
#[derive(Debug, Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn ok(&mut self, check: &'static str, found: impl Into<String>) {
        self.add(check, Verdict::Ok, found, "");
    }

    fn warning(&mut self, check: &'static str, found: impl Into<String>, next: impl Into<String>) {
        self.add(check, Verdict::Warning, found, next);
    }

    fn failed(&mut self, check: &'static str, found: impl Into<String>, next: impl Into<String>) {
        self.add(check, Verdict::Failed, found, next);
    }

    fn add(&mut self, check: &'static str, verdict: Verdict, found: impl Into<String>, next: impl Into<String>) {
        self.0.push(Check {
            check,
            verdict,
            found: found.into(),
            next: next.into(),
        });
    }
}

impl DoctorArgs {
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        let config = self.connect.configuration()?;
        let mut checks = Checks::default();
        checks.ok("configuration", format!("environment {}", config.options.environment));
        master_key(&config, &mut checks);
        certificate(&config, &mut checks);
        storage(&config, &mut checks).await;
        durability::space(&config, &mut checks);
        let mut misconfigured = false;
        match CommandDatabase::open_unchecked(&config).await {
            Ok(database) => {
                let outcome = database::run(&config, &database, &mut checks).await;
                database.close().await;
                if let Err(error) = outcome {
                    let next = match &error {
                        Failure::Db(error) if error.rejection() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                            "as a superuser: partner-api migrate --roles; then connect as a member of one of the roles"
                        }
                        _ => "check that it runs and accepts connections",
                    };
                    checks.failed("database", error.to_string(), next);
                }
            }
            Err(error) => {
                misconfigured = error.is_configuration();
                let next = match misconfigured {
                    true => "correct database_url in the configuration",
                    false => "check that it runs and accepts connections",
                };
                checks.failed("database", error.to_string(), next);
            }
        }
        let misconfigured = misconfigured.then(|| "correct the configuration; see the failed checks".to_owned());
        let failed = checks.0.iter().filter(|check| check.verdict == Verdict::Failed).count();
        Output::rows(&checks.0, "")
            .print(self.connect.json)
            .map_err(Failure::Output)?;
        if let Some(message) = misconfigured {
            return Err(Failure::Usage(message));
        }
        match failed {
            0 => Ok(()),
            1 => Err(Failure::Unhealthy("a check failed".to_owned())),
            several => Err(Failure::Unhealthy(format!("{several} checks failed"))),
        }
    }
}

fn master_key(config: &Config, checks: &mut Checks) {
    match config.master_key() {
        Ok(key) => checks.ok("master key", key.fingerprints().join(" and the other ")),
        Err(error) => checks.failed(
            "master key",
            error.to_string(),
            "use the same master key for serve and this command",
        ),
    }
}

fn certificate(config: &Config, checks: &mut Checks) {
    const CHECK: &str = "certificate";
    let Some(files) = &config.tls else {
        checks.ok(CHECK, "none, HTTP without TLS");
        return;
    };
    let validity = match tls::inspect(files, is_open_to_others) {
        Ok(validity) => validity,
        Err(error) => {
            let next = "running replicas keep the previous certificate; new ones cannot start with these files";
            checks.failed(CHECK, error.to_string(), next);
            return;
        }
    };
    let found = format!("matches its key and expires at {}", crate::when::at(validity.ends));
    let next = "renew it; replicas reload the files within seconds";
    match validity.check() {
        Err(error) => checks.failed(CHECK, error.to_string(), next),
        Ok(()) if validity.ends - Utc::now() < CERTIFICATE_WARNING_PERIOD => checks.warning(CHECK, found, next),
        Ok(()) => checks.ok(CHECK, found),
    }
}

async fn storage(config: &Config, checks: &mut Checks) {
    const CHECK: &str = "storage";
    let Ok(key) = config.master_key() else { return };
    let probe = format!("doctor/{}.pdf", uuid::Uuid::now_v7());
    let bytes = b"written by partner-api doctor".as_slice();
    let tried = async {
        let storage = config.open_storage("http://127.0.0.1", key.derive(purpose::LINKS))?;
        let began = Instant::now();
        storage.put(&probe, bytes.into(), "application/pdf").await?;
        let read = storage.read(&probe).await;
        storage.delete(&probe).await?;
        Ok::<_, StorageError>((read? == bytes, began.elapsed()))
    };
    match tokio::time::timeout(DATABASE_TIMEOUT, tried).await {
        Ok(Ok((true, took))) => checks.ok(
            CHECK,
            format!("wrote, read and deleted an object in {} ms", took.as_millis()),
        ),
        Ok(Ok((false, _))) => checks.failed(
            CHECK,
            "an object has other content than was written",
            "check the disk, or the object storage and what is between it and this machine",
        ),
        Ok(Err(error)) => checks.failed(
            CHECK,
            error.to_string(),
            "check the --storage-dir or --s3 options and their permissions",
        ),
        Err(_) => checks.failed(
            CHECK,
            "no response within 10 s",
            "check that it runs and that no firewall blocks it",
        ),
    }
}
