//! The commands that read the append-only audit log: who changed what, when, and from where (OPS-1).

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::output::{Output, Row};
use crate::session::Session;
use crate::when;

partner_api_store::statement! {
    LIST = "SELECT occurred_at, actor, database_role, host, host(address) AS address, command, kind, subject, action, undo, before, after \
            FROM audit_log \
            WHERE ($1::text IS NULL OR kind = $1) AND ($2::text IS NULL OR subject = $2) \
              AND ($3::timestamptz IS NULL OR occurred_at >= $3) \
            ORDER BY id DESC LIMIT $4";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
Examples:
  partner-api audit list                               the latest changes
  partner-api audit list --kind key --since 7days      changes to keys in the last week
  partner-api audit list --subject vip_live_ABC… --json";

/// Commands on the audit log.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List changes, newest first
    List(ListArgs),
}

/// The options of `audit list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only changes to this kind of object: partner, key, grant, allowlist, organization, branch, inspector, threshold, range,
    /// template, secrets, import
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only changes to the object with this ID
    #[arg(long, value_name = "ID")]
    subject: Option<String>,
    /// Only changes within this time, such as 7days
    #[arg(long, value_name = "TIME", value_parser = when::span)]
    since: Option<std::time::Duration>,
    /// Maximum number of results
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    limit: u16,
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::List(args) => list(session, &args).await,
        }
    }
}

/// A recorded change.
#[derive(Debug, Serialize)]
struct Entry {
    at: DateTime<Utc>,
    actor: String,
    database_role: String,
    host: String,
    address: Option<String>,
    command: String,
    kind: String,
    subject: String,
    what: String,
    undo: Option<String>,
    before: Option<Value>,
    after: Option<Value>,
}

impl Row for Entry {
    const COLUMNS: &'static [&'static str] = &["TIME", "ACTOR", "FROM", "COMMAND", "CHANGE"];

    fn cells(&self) -> Vec<String> {
        let from = match &self.address {
            Some(address) => format!("{} ({address})", self.host),
            None => self.host.clone(),
        };
        vec![
            when::at(self.at),
            self.actor.clone(),
            from,
            self.command.clone(),
            self.what.clone(),
        ]
    }
}

async fn list(session: &Session, args: &ListArgs) -> Result<Output, Failure> {
    let since = args
        .since
        .map(|span| Utc::now() - chrono::Duration::from_std(span).unwrap_or(chrono::Duration::MAX));
    let rows = session
        .read()
        .await?
        .query(LIST, &[&args.kind, &args.subject, &since, &i64::from(args.limit)])
        .await?;
    let entries = rows
        .iter()
        .map(|row| {
            Ok(Entry {
                at: row.try_get("occurred_at")?,
                actor: row.try_get("actor")?,
                database_role: row.try_get("database_role")?,
                host: row.try_get("host")?,
                address: row.try_get("address")?,
                command: row.try_get("command")?,
                kind: row.try_get("kind")?,
                subject: row.try_get("subject")?,
                what: row.try_get("action")?,
                undo: row.try_get("undo")?,
                before: row.try_get("before")?,
                after: row.try_get("after")?,
            })
        })
        .collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
    Ok(Output::rows(&entries, "There are no changes."))
}
