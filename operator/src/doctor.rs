//! Checks all that the service needs, and says what to do.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use partner_api::admission::nonces;
use partner_api::config::Config;
use partner_api::db::connection::Connection;
use partner_api::db::migrate;
use partner_api::replicas;
use partner_api::request_log;
use partner_api::secrets::purpose;
use partner_api::startup::CommandDatabase;
use partner_api::tls;
use serde::Serialize;

use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::{Output, Row};

partner_api::statement! {
    CLOCK = "SELECT clock_timestamp() AS now";
    SETTINGS = "SELECT current_setting('server_version') AS version, current_setting('fsync')::boolean AS fsync, \
                  current_setting('full_page_writes')::boolean AS full_page_writes, \
                  pg_is_in_recovery() AS is_standby";
    SEALED = "SELECT key_id, secret_nonce, secret_ciphertext FROM api_keys \
              WHERE environment = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) ORDER BY key_id";
    /// Keys whose partner is without one soon.
    ENDING = "SELECT k.key_id, p.name, k.expires_at FROM api_keys k JOIN partners p ON p.id = k.partner_id \
              WHERE p.is_enabled AND k.revoked_at IS NULL AND k.expires_at BETWEEN now() AND now() + interval '7 days' \
                AND NOT EXISTS (SELECT FROM api_keys o WHERE o.partner_id = k.partner_id AND o.environment = k.environment \
                  AND o.revoked_at IS NULL AND (o.expires_at IS NULL OR o.expires_at > k.expires_at)) \
              ORDER BY k.expires_at";
    WAITING = "SELECT count(*) AS waiting, min(received_at) AS since FROM measurements WHERE status = 'PENDING'";
}

/// Help of the command.
pub const EXAMPLES: &str = "\
Exit code 1 if a check failed; a warning alone is 0. Nothing is changed, but for an object that is written into the storage
and deleted again.

Examples:
  partner-api doctor --config /etc/partner-api.toml
  partner-api doctor --json";

/// How far this machine's clock may be from the database's: timestamps of requests are 300 s wide, and rate windows, leases and
/// nonces go by the database.
const CLOCK_WARNS: TimeDelta = TimeDelta::seconds(2);
const CLOCK_FAILS: TimeDelta = TimeDelta::seconds(60);

/// How long before its end a certificate should have been renewed: that of 90 days is, 30 days before.
const CERTIFICATE_WARNS: TimeDelta = TimeDelta::days(14);

/// How long one look at the database may take.
const BOUND: Duration = Duration::from_secs(10);

/// The options of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Where, and how to print it.
    #[command(flatten)]
    connect: Connect,
}

/// How a check ended.
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
    /// What to do; empty where nothing is.
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

/// Checks, as they are made.
#[derive(Debug, Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn ok(&mut self, check: &'static str, found: impl Into<String>) {
        self.note(check, Verdict::Ok, found, "");
    }

    fn warning(&mut self, check: &'static str, found: impl Into<String>, next: impl Into<String>) {
        self.note(check, Verdict::Warning, found, next);
    }

    fn failed(&mut self, check: &'static str, found: impl Into<String>, next: impl Into<String>) {
        self.note(check, Verdict::Failed, found, next);
    }

    fn note(&mut self, check: &'static str, verdict: Verdict, found: impl Into<String>, next: impl Into<String>) {
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
        checks.ok("configuration", format!("environment {}", config.environment));
        master_key(&config, &mut checks);
        certificate(&config, &mut checks);
        storage(&config, &mut checks).await;
        match CommandDatabase::open_as_it_is(&config).await {
            Ok(database) => {
                let looked = look(&config, &database, &mut checks).await;
                database.close().await;
                if let Err(error) = looked {
                    checks.failed(
                        "database",
                        error.to_string(),
                        "see that it runs, and that this role may read its tables",
                    );
                }
            }
            Err(error) => checks.failed("database", error.to_string(), "see that it runs and takes connections"),
        }
        let failed = checks.0.iter().filter(|check| check.verdict == Verdict::Failed).count();
        Output::rows(&checks.0, "")
            .print(self.connect.json)
            .map_err(Failure::Output)?;
        match failed {
            0 => Ok(()),
            1 => Err(Failure::Unhealthy("a check failed".to_owned())),
            several => Err(Failure::Unhealthy(format!("{several} checks failed"))),
        }
    }
}

fn master_key(config: &Config, checks: &mut Checks) {
    match config.master_key() {
        Ok(key) => checks.ok("master key", key.checks().join(" and the other ")),
        Err(error) => checks.failed(
            "master key",
            error.to_string(),
            "give serve and this command the same one",
        ),
    }
}

fn certificate(config: &Config, checks: &mut Checks) {
    const CHECK: &str = "certificate";
    let Some(files) = &config.tls else {
        checks.ok(CHECK, "none: HTTP without TLS");
        return;
    };
    let validity = match tls::inspect(files) {
        Ok(validity) => validity,
        Err(error) => {
            let next = "replicas that serve go on with the one before; none starts with these files";
            checks.failed(CHECK, error.to_string(), next);
            return;
        }
    };
    let found = format!("its key fits, and it ends at {}", crate::when::at(validity.ends));
    let next = "renew it: replicas take the new files up within seconds";
    match validity.check() {
        Err(error) => checks.failed(CHECK, error.to_string(), next),
        Ok(()) if validity.ends - Utc::now() < CERTIFICATE_WARNS => checks.warning(CHECK, found, next),
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
        storage.delete(&probe).await?;
        Ok::<_, partner_api::storage::StorageError>(began.elapsed())
    };
    match tokio::time::timeout(BOUND, tried).await {
        Ok(Ok(took)) => checks.ok(
            CHECK,
            format!("an object was written and deleted in {} ms", took.as_millis()),
        ),
        Ok(Err(error)) => checks.failed(
            CHECK,
            error.to_string(),
            "see the --storage-dir or --s3 options, and their rights",
        ),
        Err(_) => checks.failed(
            CHECK,
            "it did not answer within 10 s",
            "see that it runs, and that no firewall is between",
        ),
    }
}

async fn look(config: &Config, database: &CommandDatabase, checks: &mut Checks) -> Result<(), Failure> {
    let connection = Connection::take(&database.pool, BOUND).await?;
    settings(&connection, checks).await?;
    clock(&connection, checks).await?;
    match migrate::status(&database.target).await.and_then(migrate::current) {
        Ok(()) => checks.ok("migrations", "all are applied"),
        Err(error) => {
            checks.failed("migrations", error.to_string(), "partner-api migrate");
            // The tables that the rest looks at may not be there.
            return Ok(());
        }
    }
    replicas(config, &connection, checks).await?;
    secrets(config, &connection, checks).await?;
    ending(&connection, checks).await?;
    partitions(config, &connection, checks).await?;
    waiting(&connection, checks).await
}

async fn settings(connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    let row = connection.query_one(SETTINGS, &[]).await?;
    let version: String = row.try_get("version")?;
    if row.try_get("is_standby")? {
        checks.failed(
            "database",
            format!("PostgreSQL {version}, a standby"),
            "name the primary",
        );
    } else if !row.try_get::<_, bool>("fsync")? || !row.try_get::<_, bool>("full_page_writes")? {
        let next = "set fsync and full_page_writes to on: what was answered would not survive a crash";
        checks.failed("database", format!("PostgreSQL {version}, which does not flush"), next);
    } else {
        checks.ok("database", format!("PostgreSQL {version}"));
    }
    Ok(())
}

async fn clock(connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    let before = Utc::now();
    let row = connection.query_one(CLOCK, &[]).await?;
    let after = Utc::now();
    let theirs: DateTime<Utc> = row.try_get("now")?;
    let ahead = theirs - (before + (after - before) / 2);
    let found = format!(
        "the database's is {} ms ahead of this machine's",
        ahead.num_milliseconds()
    );
    let next = "synchronise both (chrony, systemd-timesyncd)";
    match ahead.abs() {
        much if much >= CLOCK_FAILS => checks.failed("clock", found, next),
        some if some >= CLOCK_WARNS => checks.warning("clock", found, next),
        _ => checks.ok("clock", found),
    }
    Ok(())
}

async fn replicas(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "replicas";
    let replicas = replicas::list(connection).await?;
    let shown: Vec<_> = replicas
        .iter()
        .map(|replica| format!("{} on {}, {}", replica.address, replica.host, replica.version))
        .collect();
    let found = shown.join("; ");
    if replicas.is_empty() {
        checks.warning(CHECK, "none serves", "partner-api serve");
    } else if let Some(other) = replicas
        .iter()
        .find(|replica| replica.environment != config.environment.as_str())
    {
        let next = format!(
            "{} serves {}: a database has one environment",
            other.address, other.environment
        );
        checks.failed(CHECK, found, next);
    } else if replicas.iter().any(|replica| replica.version != replicas[0].version) {
        checks.warning(CHECK, found, "finish the upgrade: they have different versions");
    } else if replicas
        .iter()
        .any(|replica| replica.master_keys != replicas[0].master_keys)
    {
        checks.warning(
            CHECK,
            found,
            "give all of them the same master keys (partner-api secrets --help)",
        );
    } else {
        checks.ok(CHECK, found);
    }
    Ok(())
}

async fn secrets(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "secrets";
    let Ok(key) = config.master_key() else { return Ok(()) };
    let rows = connection.query(SEALED, &[&config.environment.as_str()]).await?;
    let mut closed = Vec::new();
    for row in &rows {
        let id: String = row.try_get("key_id")?;
        if key
            .open(&id, row.try_get("secret_nonce")?, row.try_get("secret_ciphertext")?)
            .is_err()
        {
            closed.push(id);
        }
    }
    match closed.as_slice() {
        [] => checks.ok(CHECK, format!("those of {} keys open", rows.len())),
        [first, ..] => checks.failed(
            CHECK,
            format!(
                "{} of {} do not open under this master key, such as {first}'s",
                closed.len(),
                rows.len()
            ),
            "give the master key under which they were sealed (--other-master-key-file), or make new keys",
        ),
    }
    Ok(())
}

async fn ending(connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    let rows = connection.query(ENDING, &[]).await?;
    if rows.is_empty() {
        checks.ok("keys", "no partner is without one within 7 days");
    }
    for row in rows {
        let (key, partner): (String, String) = (row.try_get("key_id")?, row.try_get("name")?);
        let at: DateTime<Utc> = row.try_get("expires_at")?;
        let found = format!("the last one of `{partner}`, {key}, ends at {}", crate::when::at(at));
        checks.warning("keys", found, format!("partner-api key rotate {key}, or let it end"));
    }
    Ok(())
}

async fn partitions(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "partitions";
    for table in [nonces::PARTITIONS, request_log::partitions(config.request_log_days)] {
        let survey = table.survey(connection).await?;
        let found = format!("{}: {} made ahead", table.table, survey.ahead.max(0));
        let makes = "start a replica: it makes them";
        match survey.ahead {
            // The present one is missing, too.
            ..0 => checks.failed(CHECK, format!("{}: none for now", table.table), makes),
            0 => checks.warning(CHECK, found, makes),
            _ => checks.ok(CHECK, found),
        }
        if !survey.expired.is_empty() {
            let found = format!("{}: {} are not needed any more", table.table, survey.expired.len());
            checks.warning(CHECK, found, "partner-api purge, if no replica comes to it");
        }
    }
    let dropped = request_log::drops(connection, Utc::now() - TimeDelta::days(1)).await?;
    match dropped.iter().map(|drops| drops.dropped).sum::<i64>() {
        0 => checks.ok("request log", "nothing was dropped in the last 24 h"),
        sum => checks.warning(
            "request log",
            format!("{sum} requests of the last 24 h are missing"),
            "see that the database keeps up (partner-api request list)",
        ),
    }
    Ok(())
}

async fn waiting(connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    let row = connection.query_one(WAITING, &[]).await?;
    let waiting: i64 = row.try_get("waiting")?;
    let since: Option<DateTime<Utc>> = row.try_get("since")?;
    let found = match since {
        None => "none waits".to_owned(),
        Some(since) => format!(
            "{waiting} wait for a report, the oldest since {}",
            crate::when::at(since)
        ),
    };
    checks.ok("measurements", found);
    Ok(())
}
