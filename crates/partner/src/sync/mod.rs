//! `partner sync`: a copy of all reports on this machine, kept up to date.

mod export;
mod store;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use futures::TryStreamExt as _;
use partner_api_client::{Call as _, ClientInfo as _, SyncOptions};
use partner_api_terminal::output::Output;
use partner_api_terminal::progress::Progress;
use partner_api_terminal::when;
use serde_json::json;

use crate::failure::Failure;
use crate::profile::Connect;
use store::Store;

/// What the help says at its end.
pub const EXAMPLES: &str = "\
The first run fetches everything, cancelled reports too. Each later one fetches what was published, archived, cancelled or otherwise
changed since. A report is there once, as it was seen last. An interrupted run goes on where it was when it is started again.
A file of NDJSON or CSV is written anew when a run is complete; what is known meanwhile is in a database beside it (FILE.sync).

Examples:
  partner sync reports.sqlite
  partner sync reports.ndjson --reserve 30      30 requests a minute are left to others
  partner sync reports.csv --full               everything again";

/// The arguments of `sync`.
#[derive(Args, Debug)]
pub struct SyncArgs {
    /// The copy: .sqlite or .db, .ndjson or .jsonl, .csv
    pub file: PathBuf,
    /// What it is [default: by its name]
    #[arg(long)]
    pub format: Option<Format>,
    /// Fetch everything again
    #[arg(long)]
    pub full: bool,
    /// By how much a run reaches back before the beginning of the one before
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = when::span)]
    pub overlap: Duration,
    /// Requests of each minute's quota that are left to whatever else uses the key
    #[arg(long, value_name = "NUMBER", default_value_t = 6)]
    pub reserve: u32,
}

/// What the copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A database with a table `reports`
    Sqlite,
    /// A line of JSON for each report
    Ndjson,
    /// A line for each report, for spreadsheets
    Csv,
}

impl Format {
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "sqlite" | "sqlite3" | "db" => Some(Self::Sqlite),
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

pub(crate) async fn run(connect: &Connect, args: &SyncArgs) -> Result<Output, Failure> {
    let path = args.file.as_path();
    let Some(format) = args.format.or_else(|| Format::of(path)) else {
        let path = path.display();
        return Err(Failure::Usage(format!(
            "what is {path} to be? say --format sqlite, ndjson or csv"
        )));
    };
    let database = match format {
        Format::Sqlite => path.to_owned(),
        Format::Ndjson | Format::Csv => {
            let mut beside = path.as_os_str().to_owned();
            beside.push(".sync");
            PathBuf::from(beside)
        }
    };
    if format != Format::Sqlite && path.exists() && !database.exists() {
        let path = path.display();
        return Err(Failure::Refused(format!(
            "{path} is there already, and is no copy that sync made"
        )));
    }
    let client = connect.client()?;
    let partner = client.get_health().send().answer().await?.partner.to_string();
    let mut store = Store::open(&database, client.baseurl(), &partner)?;
    let checkpoint = match (args.full, store.checkpoint()?) {
        (true, known) => known.anew(),
        (false, known) => known,
    };
    let options = SyncOptions {
        overlap: args.overlap,
        reserve: args.reserve,
    };
    let progress = Progress::endless("reports".to_owned());
    let mut batches = std::pin::pin!(partner_api_client::sync(&client, checkpoint, options));
    let (mut fetched, mut new, mut changed, mut complete) = (0, 0, 0, None);
    while let Some(batch) = batches.try_next().await? {
        let stored = store.take(&batch)?;
        fetched += batch.reports.len();
        new += stored.new;
        changed += stored.changed;
        complete = batch.checkpoint.complete();
        progress.at(fetched as u64);
    }
    drop(progress);
    match format {
        Format::Sqlite => {}
        Format::Ndjson => export::ndjson(&store, path)?,
        Format::Csv => export::csv(&store, path)?,
    }
    let total = store.count()?;
    let at = complete.map(when::at).unwrap_or_default();
    let path = path.display().to_string();
    Ok(Output::said(
        &format!("{path}: {total} reports, {new} new, {changed} changed; complete as of {at}"),
        &json!({
            "file": path, "reports": total, "fetched": fetched, "new": new, "changed": changed, "complete": at
        }),
    ))
}
