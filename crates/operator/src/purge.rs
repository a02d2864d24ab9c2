//! `purge`: deletes data past its retention period at once, instead of waiting for a replica to do it.

use chrono::Utc;
use clap::Args;
use partner_api::admission::nonces;
use partner_api::request_log;
use serde::Serialize;

use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::{Changed, Session};

/// The examples in the help of the command.
pub const EXAMPLES: &str = "\
Replicas do this themselves every few minutes. Measurements, their raw packages, reports and the audit log are never purged.

Examples:
  partner-api purge --dry-run                 print what would be deleted
  partner-api purge                           delete expired days of the request log and expired nonces
  partner-api purge --request-log-days 30     keep only 30 days of the request log, this time";

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

/// The partitions that were or would be dropped.
#[derive(Debug, Serialize)]
struct Purged {
    at: chrono::DateTime<Utc>,
    partitions: Vec<String>,
}

impl PurgeArgs {
    pub(crate) async fn run(&self, session: &Session) -> Result<Output, Failure> {
        let days = self.request_log_days.unwrap_or(session.config.options.request_log_days);
        let tables = [nonces::PARTITIONS, request_log::partitions(days)];
        let mut partitions = Vec::new();
        for table in &tables {
            partitions.extend(table.state(&session.read().await?).await?.expired);
        }
        let shown = partitions.join(", ");
        let count = partitions.len();
        let purged = Purged {
            at: Utc::now(),
            partitions,
        };
        if count == 0 {
            return Ok(Output::facts(
                &purged,
                &[("nothing", "is past its retention period".to_owned())],
            ));
        }
        if self.dry_run {
            return Ok(Output::facts(&purged, &[("would drop", shown)]));
        }
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
                "{left} of {count} partitions are still there because a replica is dropping them or a long transaction reads \
                 them; try again in a minute"
            )));
        }
        session
            .change("purge", async |_| {
                Ok(Changed::of("partitions", "all", format!("Dropped {shown}."), purged)
                    .undo("cannot be undone: the data was past its retention period"))
            })
            .await
    }
}
