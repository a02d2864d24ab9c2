//! The request log.

use std::io::Write as _;
use std::ops::RangeInclusive;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, Subcommand};
use partner_api::request_log::{self, Cursor, Entry, Filter};
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use serde::Serialize;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::names;
use crate::output::{Output, Row};
use crate::session::Session;
use crate::when;

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
Partners can quote the request ID of a response (X-Request-Id). `show` prints why the request was rejected, in more detail than \
the partner received. Paths, queries, bodies, signatures and secrets are not logged.

Examples:
  partner-api request show 3f1c7a52-…
  partner-api request list --partner 'Acme Devices' --status 4xx --since 7days
  partner-api request list --code invalid_signature --limit 20
  partner-api request tail --partner 'Acme Devices'      until Ctrl-C";

/// The poll interval of `tail`.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Commands on the request log.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show one request with all its details
    Show(ShowArgs),
    /// List requests, newest first
    List(ListArgs),
    /// Print requests as they arrive, two seconds delayed; --json prints one document per line
    Tail(FilterArgs),
}

/// A request.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The ID from the X-Request-Id header of the response
    id: Uuid,
}

/// The options of `request list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// The filters.
    #[command(flatten)]
    filter: FilterArgs,
    /// Only within this time before now or before --until
    #[arg(long, value_name = "TIME", value_parser = when::span, default_value = "24h")]
    since: Duration,
    /// Only before this time, with its offset
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    until: Option<DateTime<Utc>>,
    /// Maximum number of results
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

/// Filters of requests.
#[derive(Args, Debug)]
pub struct FilterArgs {
    /// Only with keys of this partner, by name or ID
    #[arg(long, value_name = "PARTNER")]
    partner: Option<String>,
    /// Only with this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Only with this status: 401, 4xx or 400-499
    #[arg(long, value_name = "STATUS", value_parser = statuses)]
    status: Option<RangeInclusive<u16>>,
    /// Only with this error code
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// Only with this reason
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// Only of this operation, such as list_inspections
    #[arg(long, value_name = "OPERATION")]
    operation: Option<String>,
}

/// An entry as one line.
#[derive(Serialize)]
#[serde(transparent)]
struct Line(Entry);

impl Row for Line {
    const COLUMNS: &'static [&'static str] = &[
        "AT",
        "STATUS",
        "CODE",
        "REASON",
        "PARTNER",
        "OPERATION",
        "TOOK",
        "ADDRESS",
        "REQUEST ID",
    ];

    fn cells(&self) -> Vec<String> {
        let Line(entry) = self;
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            when::at(entry.at),
            entry.status.to_string(),
            or_none(&entry.code),
            or_none(&entry.reason),
            or_none(&entry.partner),
            entry
                .operation
                .clone()
                .unwrap_or_else(|| format!("{} {}", entry.method, entry.route)),
            format!("{} ms", milliseconds(entry.took_us)),
            entry.address.to_string(),
            entry.request_id.to_string(),
        ]
    }
}

impl Command {
    pub(crate) async fn run(self, session: &Session, json: bool) -> Result<Output, Failure> {
        match self {
            Self::Show(args) => show(session, args.id).await,
            Self::List(args) => list(session, &args).await,
            Self::Tail(args) => tail(session, &args, json).await,
        }
    }
}

async fn show(session: &Session, id: Uuid) -> Result<Output, Failure> {
    let connection = session.read().await?;
    let Some(entry) = request_log::find(&connection, id).await? else {
        return Err(Failure::NotFound {
            kind: Kind::Request,
            name: id.to_string(),
            suggestions: Vec::new(),
        });
    };
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let reason = match (&entry.reason, entry.reason_about) {
        (Some(reason), Some(about)) => format!("{reason}: {about}"),
        (Some(reason), None) => reason.clone(),
        (None, _) => "-".to_owned(),
    };
    let facts = [
        ("request ID", entry.request_id.to_string()),
        ("arrived", entry.at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)),
        ("request", format!("{} {}", entry.method, entry.route)),
        ("operation", or_none(&entry.operation)),
        ("status", entry.status.to_string()),
        ("code", or_none(&entry.code)),
        ("reason", reason),
        ("partner", or_none(&entry.partner)),
        ("key", or_none(&entry.key_id)),
        ("address", entry.address.to_string()),
        ("user agent", or_none(&entry.user_agent)),
        ("took", format!("{} ms", milliseconds(entry.took_us))),
        ("received", format!("{} bytes", entry.received_bytes)),
        (
            "sent",
            entry
                .sent_bytes
                .map_or_else(|| "-".to_owned(), |bytes| format!("{bytes} bytes")),
        ),
    ];
    Ok(Output::facts(&entry, &facts))
}

async fn list(session: &Session, args: &ListArgs) -> Result<Output, Failure> {
    let connection = session.read().await?;
    let since = TimeDelta::from_std(args.since)
        .ok()
        .and_then(|span| args.until.unwrap_or_else(Utc::now).checked_sub_signed(span));
    let filter = Filter {
        since,
        until: args.until,
        limit: args.limit,
        ..args.filter.filter(&connection).await?
    };
    let lines: Vec<_> = request_log::list(&connection, &filter)
        .await
        .map_err(search_failure)?
        .into_iter()
        .map(Line)
        .collect();
    Ok(Output::rows(
        &lines,
        "No requests match. Search a longer time with --since; the default is 24h.",
    ))
}

/// Explains a search that took too long.
fn search_failure(error: DbError) -> Failure {
    if matches!(error, DbError::TimedOut) || error.rejection() == Some(&SqlState::QUERY_CANCELED) {
        Failure::SearchTimedOut
    } else {
        error.into()
    }
}

async fn tail(session: &Session, args: &FilterArgs, json: bool) -> Result<Output, Failure> {
    let filter = Filter {
        limit: 1_000,
        ..args.filter(&session.read().await?).await?
    };
    let mut place = Cursor::before(Utc::now() - request_log::FOLLOW_DELAY);
    loop {
        let entries = request_log::follow(&session.read().await?, &filter, place).await?;
        if let Some(last) = entries.last() {
            place = Cursor::after(last);
        }
        let mut out = std::io::stdout().lock();
        for entry in entries {
            let line = match json {
                true => crate::output::to_json(&entry).to_string(),
                false => Line(entry).cells().join("  "),
            };
            match writeln!(out, "{line}").and_then(|()| out.flush()) {
                Ok(()) => {}
                // The reader has closed the pipe.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Output::raw(Vec::new())),
                Err(error) => return Err(Failure::Output(error)),
            }
        }
        drop(out);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

impl FilterArgs {
    async fn filter(&self, connection: &Connection) -> Result<Filter, Failure> {
        let partner_id = match &self.partner {
            Some(text) => Some(names::partner(connection, text).await?.id),
            None => None,
        };
        let key_id = match &self.key {
            Some(text) => Some(names::key(connection, text).await?.id),
            None => None,
        };
        Ok(Filter {
            partner_id,
            key_id,
            status: self.status.clone(),
            code: self.code.clone(),
            reason: self.reason.clone(),
            operation: self.operation.clone(),
            ..Filter::default()
        })
    }
}

fn milliseconds(microseconds: i64) -> String {
    format!("{}.{}", microseconds / 1_000, microseconds % 1_000 / 100)
}

fn statuses(text: &str) -> Result<RangeInclusive<u16>, String> {
    let expected = || "expected a status like 401, a class like 4xx, or a range like 400-499".to_owned();
    let status = |text: &str| {
        let status: u16 = text.parse().map_err(|_| expected())?;
        if (100..600).contains(&status) {
            Ok(status)
        } else {
            Err(expected())
        }
    };
    if let Some(class) = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX")) {
        let first = status(&format!("{class}00"))?;
        return Ok(first..=first + 99);
    }
    match text.split_once('-') {
        Some((first, last)) => {
            let range = status(first)?..=status(last)?;
            if range.is_empty() { Err(expected()) } else { Ok(range) }
        }
        None => status(text).map(|status| status..=status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_takes_too_long_is_explained() {
        assert_eq!(
            search_failure(DbError::TimedOut).to_string(),
            "the search took too long; use a shorter --since, or name a --partner or a --key"
        );
    }

    #[test]
    fn a_status_filter_is_a_status_a_class_or_a_range() {
        for (text, range) in [
            ("401", Some(401..=401)),
            ("4xx", Some(400..=499)),
            ("5XX", Some(500..=599)),
            ("400-404", Some(400..=404)),
            ("404-400", None),
            ("xx", None),
            ("12", None),
            ("4xxx", None),
        ] {
            assert_eq!(statuses(text).ok(), range, "{text}");
        }
    }
}
