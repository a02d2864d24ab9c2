//! What is not kept any more goes at once, instead of when a replica comes to it.

use chrono::Utc;
use clap::Args;
use partner_api::admission::nonces;
use partner_api::request_log;
use serde::Serialize;

use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::{Changed, Session};

/// Help of the command.
pub const EXAMPLES: &str = "\
Replicas do this by themselves every few minutes. Measurements, their raw packages, reports and the audit log are never purged.

Examples:
  partner-api purge --dry-run                 what would go
  partner-api purge                           days of the request log beyond what the configuration keeps, and spent nonces
  partner-api purge --request-log-days 30     keep 30 days of the request log this once";

/// The options of `purge`.
#[derive(Args, Debug)]
pub struct PurgeArgs {
    /// Days of the request log that stay [default: the service's request_log_days]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    request_log_days: Option<u32>,
    /// Say what would go, and leave it
    #[arg(long)]
    dry_run: bool,
    /// Where, and how to print it.
    #[command(flatten)]
    pub connect: Connect,
}

/// What went, or would go.
#[derive(Debug, Serialize)]
struct Purged {
    at: chrono::DateTime<Utc>,
    partitions: Vec<String>,
}

impl PurgeArgs {
    pub(crate) async fn run(&self, session: &Session) -> Result<Output, Failure> {
        let days = self.request_log_days.unwrap_or(session.config.request_log_days);
        let tables = [nonces::PARTITIONS, request_log::partitions(days)];
        let mut partitions = Vec::new();
        for table in &tables {
            partitions.extend(table.survey(&session.read().await?).await?.expired);
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
                &[("nothing", "is older than what is kept".to_owned())],
            ));
        }
        if self.dry_run {
            return Ok(Output::facts(&purged, &[("would drop", shown)]));
        }
        for table in &tables {
            session.look_after(table).await?;
        }
        // Whoever holds the lock may be a replica that is at it: what is left then is told.
        let mut left = 0;
        for table in &tables {
            left += table.survey(&session.read().await?).await?.expired.len();
        }
        if left > 0 {
            return Err(Failure::Refused(format!(
                "{left} of {count} partitions are still there: a replica is looking after them, or a long transaction reads \
                 them; try again in a minute"
            )));
        }
        session
            .change("purge", async |_| {
                Ok(Changed::of("partitions", "all", format!("Dropped: {shown}."), purged)
                    .undo("not possible: it was older than what is kept"))
            })
            .await
    }
}
