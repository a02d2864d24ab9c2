//! `partner sync`: keeps a local copy of all reports up to date.

mod export;
mod parts;
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
use crate::inspections::files::download_policy;
use crate::profile::Connect;
use parts::Part;
use store::Store;

/// The end of the help text.
pub const EXAMPLES: &str = "\
The first run fetches all reports, including cancelled ones. Each later run fetches the reports that changed since the last one. The \
copy contains each report once, in its latest known state. An interrupted run resumes where it stopped. An NDJSON or CSV file is \
rewritten when a run completes; until then the data is in a database beside it (FILE.sync). A CSV file keeps texts that begin with \
=, +, - or @, which a spreadsheet executes as formulas: import its columns as text.

With --with, a run then fetches the named parts of each new or changed report: details, forms and the list of photos into the table \
`parts` of the SQLite file, and the photos and PDFs into the folder FILE.files/REPORT. A photo's file is named by its ID, and is removed \
when the photo is hidden or deleted. Each part is a request, so the first run can \
take hours: it prints the time first, and an interrupted run resumes with the parts that are missing.

Examples:
  partner sync reports.sqlite
  partner sync reports.sqlite --with detail,forms,photos,pdf
  partner sync reports.ndjson --reserve 30     leave 30 requests per minute
  partner sync reports.csv --full              fetch everything again
  partner sync reports.csv --separator semicolon    for a Turkish Excel";

/// The arguments of `sync`.
#[derive(Args, Debug)]
pub struct SyncArgs {
    /// The file of the copy: .sqlite or .db, .ndjson or .jsonl, .csv
    pub file: PathBuf,
    /// The file format [default: from the file's extension]
    #[arg(long)]
    pub format: Option<Format>,
    /// The separator of a CSV file; Excel splits at semicolons where the decimal separator is a comma
    #[arg(long, value_enum, default_value_t = Separator::Comma)]
    pub separator: Separator,
    /// Fetch everything again
    #[arg(long)]
    pub full: bool,
    /// How far a run reaches back before the start of the previous run
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = when::span)]
    pub overlap: Duration,
    /// Also fetch these parts of each report; the copy must be a SQLite file
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub with: Vec<Part>,
    /// Requests per minute that are left to other programs with the same key
    #[arg(long, value_name = "NUMBER", default_value_t = 6)]
    pub reserve: u32,
}

/// The file format of the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A SQLite database with a table `reports`
    Sqlite,
    /// One line of JSON per report
    Ndjson,
    /// One row per report, for spreadsheets
    Csv,
}

/// The separator of a CSV file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Separator {
    /// ,
    Comma,
    /// ;
    Semicolon,
    /// A tab
    Tab,
}

impl Separator {
    fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
        }
    }
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
            "the format of {path} is unknown; pass --format sqlite, ndjson or csv"
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
        return Err(store::not_a_copy(path));
    }
    if format != Format::Sqlite && !args.with.is_empty() {
        let path = path.display();
        return Err(Failure::Usage(format!(
            "{path} cannot contain the parts of reports; pass a SQLite file with --with"
        )));
    }
    let client = connect.client()?;
    let health = client.get_health().send().response().await?;
    let (partner, quota) = (health.partner.to_string(), health.quota());
    let mut store = Store::open(&database, client.baseurl(), &partner)?;
    let checkpoint = match (args.full, store.checkpoint()?) {
        (true, checkpoint) => checkpoint.restart(),
        (false, checkpoint) => checkpoint,
    };
    let options = SyncOptions {
        overlap: args.overlap,
        reserve: args.reserve,
    };
    let progress = Progress::endless("reports".to_owned());
    let mut batches = std::pin::pin!(partner_api_client::sync(&client, checkpoint, options));
    let (mut fetched, mut new, mut changed, mut complete) = (0, 0, 0, None);
    while let Some(batch) = batches.try_next().await? {
        let stored = store.apply(&batch)?;
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
        Format::Csv => export::csv(&store, path, args.separator.byte())?,
    }
    let fetched_parts = match args.with.is_empty() {
        true => None,
        false => {
            let client = connect.account()?.client_with(download_policy())?;
            let folder = path.with_extension("files");
            Some(parts::fetch(&client, &store, &args.with, &folder, quota, args.reserve).await?)
        }
    };
    let total = store.count()?;
    let at = complete.map(when::at).unwrap_or_default();
    let path = path.display().to_string();
    let mut text = format!("{path}: {total} reports, {new} new, {changed} changed; complete as of {at}");
    let mut json = json!({
        "file": path, "reports": total, "fetched": fetched, "new": new, "changed": changed, "complete": at
    });
    if let Some(parts) = fetched_parts {
        text = format!("{text}\n{}", parts.summary());
        json["parts"] = parts.json();
    }
    Ok(Output::message(&text, &json))
}
