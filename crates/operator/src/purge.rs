//! `purge`: deletes data past its retention period. Replicas drop partitions as well; all other data are deleted only here.

use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use partner_api::admission::nonces;
use partner_api::request_log;
use serde::Serialize;
use tokio_postgres::{Client, Row};

use crate::connect::Connect;
use crate::erase::{self, ErasedByAge, counted};
use crate::failure::Failure;
use crate::output::{Output, to_json};
use crate::progress::Progress;
use crate::session::{Changed, Session};
use crate::when;

/// The examples in the help of the command.
pub const EXAMPLES: &str = "\
Replicas delete expired days of the request log and expired nonces every few minutes. Reports, measurements, and the entries of \
the audit log and of the list of imports are deleted only by this command, and only if the configuration limits their retention \
(report_years, unused_measurement_days, audit_years): run it daily.

Examples:
  partner-api purge --dry-run                 print what would be deleted
  partner-api purge                           delete everything past its retention period
  partner-api purge --request-log-days 30     keep only 30 days of the request log, this time";

/// The number of rows that one transaction deletes from the audit log, and from the list of imports.
const AUDIT_ENTRIES_AT_A_TIME: i32 = 10_000;

partner_api_store::statement! {
    /// Counts the rows that repeated calls of `PURGE_AUDIT_LOG` delete.
    OLD_AUDIT_ENTRIES = "SELECT (SELECT count(*) FROM audit_log WHERE occurred_at < $1) AS purged_entries, \
                         (SELECT count(*) FROM imports WHERE imported_at < $1) AS purged_imports";
    PURGE_AUDIT_LOG = "SELECT * FROM purge_audit_log($1, $2)";
}

/// How to undo a purge.
const UNDO: &str = "cannot be undone: the data was past its retention period";

/// The options of `purge`.
#[derive(Args, Debug)]
pub struct PurgeArgs {
    /// Days of the request log to keep [default: the service's request_log_days]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    request_log_days: Option<u32>,
    /// Print what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// The database and the output format.
    #[command(flatten)]
    pub connect: Connect,
}

/// The data that was or would be deleted.
#[derive(Debug, Serialize)]
struct Purged {
    at: DateTime<Utc>,
    partitions: Vec<String>,
    reports: i64,
    measurements: i64,
    #[serde(flatten)]
    audit: AuditPurged,
}

/// The entries that were or would be deleted from the audit log and from the list of imports.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct AuditPurged {
    audit_entries: i64,
    imports: i64,
}

impl AuditPurged {
    fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            audit_entries: row.try_get("purged_entries")?,
            imports: row.try_get("purged_imports")?,
        })
    }

    fn is_empty(self) -> bool {
        self.audit_entries == 0 && self.imports == 0
    }

    fn text(self) -> String {
        let entries = match self.audit_entries {
            1 => "1 entry".to_owned(),
            count => format!("{count} entries"),
        };
        format!("{entries} of the audit log and {} of the list of imports", self.imports)
    }

    /// Says what was deleted before a failure.
    fn stopped(self, error: &Failure) -> Failure {
        Failure::Stopped(format!(
            "{error}; deleted before this: {}. The same command deletes the rest",
            self.text()
        ))
    }
}

impl Purged {
    fn is_empty(&self) -> bool {
        self.partitions.is_empty() && self.reports == 0 && self.measurements == 0 && self.audit.is_empty()
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        if !self.partitions.is_empty() {
            facts.push(("would drop", self.partitions.join(", ")));
        }
        for (count, noun) in [(self.reports, "report"), (self.measurements, "unused measurement")] {
            if count > 0 {
                facts.push(("would erase", counted(count, noun)));
            }
        }
        if !self.audit.is_empty() {
            facts.push(("would delete", self.audit.text()));
        }
        facts
    }
}

impl PurgeArgs {
    pub(crate) async fn run(&self, session: &Session) -> Result<Output, Failure> {
        let options = &session.config.options;
        let days = self.request_log_days.unwrap_or(options.request_log_days);
        let tables = [nonces::PARTITIONS, request_log::partitions(days)];
        let mut partitions = Vec::new();
        for table in &tables {
            partitions.extend(table.state(&session.read().await?).await?.expired);
        }
        let mut client = erase::open(session).await?;
        let reports_before = options.report_years.map(erase::years_ago);
        let measurements_before = options
            .unused_measurement_days
            .map(|days| Utc::now() - TimeDelta::days(days.into()));
        let audit_before = options.audit_years.map(erase::years_ago);
        let mut purged = Purged {
            at: Utc::now(),
            partitions,
            reports: match reports_before {
                Some(before) => erase::old_reports(&client, before).await?,
                None => 0,
            },
            measurements: match measurements_before {
                Some(before) => erase::unused_measurements(&client, before).await?,
                None => 0,
            },
            audit: match audit_before {
                Some(before) => AuditPurged::of(&client.query_one(OLD_AUDIT_ENTRIES.sql(), &[&before]).await?)?,
                None => AuditPurged::default(),
            },
        };
        if purged.is_empty() {
            return Ok(Output::facts(
                &purged,
                &[("nothing", "is past its retention period".to_owned())],
            ));
        }
        if self.dry_run {
            return Ok(Output::facts(&purged, &purged.facts()));
        }
        let mut what = Vec::new();
        if !purged.partitions.is_empty() {
            for table in &tables {
                session.maintain(table).await?;
            }
            // A replica may hold the lock because it is dropping partitions; report what is left.
            let mut left = 0;
            for table in &tables {
                left += table.state(&session.read().await?).await?.expired.len();
            }
            if left > 0 {
                return Err(Failure::Rejected(format!(
                    "{left} of {} partitions are still there because a replica is dropping them or a long transaction reads \
                     them; try again in a minute",
                    purged.partitions.len()
                )));
            }
            let dropped = format!("Dropped {}.", purged.partitions.join(", "));
            what.push(dropped.clone());
            session
                .change("purge", async |_| {
                    Ok(Changed::of("partitions", "all", dropped, &purged.partitions).undo(UNDO))
                })
                .await?;
        }
        let mut erased = ErasedByAge::default();
        if let Some(before) = reports_before {
            erased = erase::erase_old_reports(session, &mut client, "purge", before, purged.reports).await?;
            purged.reports = erased.reports;
        }
        if let Some(before) = measurements_before {
            let unused =
                erase::erase_unused_measurements(session, &mut client, "purge", before, purged.measurements).await?;
            purged.measurements = unused.measurements;
            erased.measurements += unused.measurements;
        }
        if erased.reports + erased.measurements > 0 {
            what.push(format!("Erased {}.", erased.text()));
        }
        if let Some(before) = audit_before {
            purged.audit = purge_audit_log(session, &mut client, before, purged.audit).await?;
            if !purged.audit.is_empty() {
                what.push(format!("Deleted {}.", purged.audit.text()));
            }
        }
        Ok(Output::changed(
            true,
            &what.join(" "),
            Some(UNDO),
            &[],
            to_json(&purged),
        ))
    }
}

/// Deletes the entries before a time, of which there are about as many as `expected`. Each step is recorded as a new entry.
async fn purge_audit_log(
    session: &Session,
    client: &mut Client,
    before: DateTime<Utc>,
    expected: AuditPurged,
) -> Result<AuditPurged, Failure> {
    let progress = Progress::of_lines(
        "Deleting entries".to_owned(),
        (expected.audit_entries + expected.imports).unsigned_abs(),
    );
    let mut total = AuditPurged::default();
    loop {
        let part = session
            .change_part(client, "purge", async |transaction| {
                let row = transaction
                    .query_one(PURGE_AUDIT_LOG.sql(), &[&before, &AUDIT_ENTRIES_AT_A_TIME])
                    .await?;
                let part = AuditPurged::of(&row)?;
                let id = format!("before {}", when::at(before));
                let what = format!("Deleted {}.", part.text());
                Ok(match part.is_empty() {
                    true => Changed::unchanged("audit log", id, what, part),
                    false => Changed::of("audit log", id, what, part).undo(UNDO),
                })
            })
            .await
            .map_err(|error| total.stopped(&error))?;
        if part.is_empty() {
            return Ok(total);
        }
        total.audit_entries += part.audit_entries;
        total.imports += part.imports;
        progress.at((total.audit_entries + total.imports).unsigned_abs());
    }
}
