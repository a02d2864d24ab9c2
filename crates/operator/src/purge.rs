//! `purge`: deletes data past its retention period. Replicas drop partitions as well; reports and measurements are erased only
//! here.

use chrono::{TimeDelta, Utc};
use clap::Args;
use partner_api::admission::nonces;
use partner_api::request_log;
use serde::Serialize;

use crate::connect::Connect;
use crate::erase::{self, ErasedByAge, counted};
use crate::failure::Failure;
use crate::output::{Output, to_json};
use crate::session::{Changed, Session};

/// The examples in the help of the command.
pub const EXAMPLES: &str = "\
Replicas delete expired days of the request log and expired nonces every few minutes. Reports and measurements are erased only \
by this command, and only if the configuration limits their retention (report_years, unused_measurement_days): run it daily. The \
audit log is never purged.

Examples:
  partner-api purge --dry-run                 print what would be deleted
  partner-api purge                           delete everything past its retention period
  partner-api purge --request-log-days 30     keep only 30 days of the request log, this time";

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
    at: chrono::DateTime<Utc>,
    partitions: Vec<String>,
    reports: i64,
    measurements: i64,
}

impl Purged {
    fn is_empty(&self) -> bool {
        self.partitions.is_empty() && self.reports == 0 && self.measurements == 0
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
        Ok(Output::changed(
            true,
            &what.join(" "),
            Some(UNDO),
            &[],
            to_json(&purged),
        ))
    }
}
