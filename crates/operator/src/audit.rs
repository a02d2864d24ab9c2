//! The append-only audit log: who changed what, when, and from where (OPS-1).

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use nix::unistd::{Uid, User, gethostname};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::output::{Output, Row};
use crate::session::{Change, Changed, Session};
use crate::when;

partner_api_store::statement! {
    /// The database adds its role and the client's address.
    RECORD = "INSERT INTO audit_log (actor, host, command, kind, subject, action, undo, before, after) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
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

/// The operating system's account and the machine that run a command.
#[derive(Debug)]
pub struct Actor {
    name: String,
    host: String,
}

impl Actor {
    /// The account of this process; under sudo, the original account.
    pub fn of_this_process() -> Self {
        let account = || {
            let id = Uid::current();
            match User::from_uid(id) {
                Ok(Some(user)) => user.name,
                _ => format!("uid {id}"),
            }
        };
        let before_sudo = std::env::var("SUDO_USER").ok().filter(|name| !name.is_empty());
        let host = gethostname().map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned());
        Self {
            name: before_sudo.map_or_else(account, |name| format!("{name} (as {})", account())),
            host,
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

/// Records a change made by a dedicated session, within its transaction.
pub(crate) async fn record_part(
    transaction: &tokio_postgres::Transaction<'_>,
    actor: &Actor,
    command: &str,
    subject: &str,
    what: &str,
    after: &Value,
) -> Result<(), tokio_postgres::Error> {
    let undo = "cannot be undone with a command: correct the file and import it again with --update";
    let before = None::<Value>;
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 9] = [
        &actor.name,
        &actor.host,
        &command,
        &command,
        &subject,
        &what,
        &undo,
        &before,
        &after,
    ];
    transaction.execute(RECORD.sql(), &parameters).await?;
    Ok(())
}

/// Records a change within its transaction.
pub(crate) async fn record<T>(
    change: &Change<'_>,
    actor: &Actor,
    command: &str,
    changed: &Changed<T>,
) -> Result<(), Failure> {
    change
        .execute(
            RECORD,
            &[
                &actor.name,
                &actor.host,
                &command,
                &changed.kind,
                &changed.id,
                &changed.what,
                &changed.undo,
                &changed.before,
                &changed.after,
            ],
        )
        .await?;
    Ok(())
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
