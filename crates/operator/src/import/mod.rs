//! Imports organizations, branches, templates, thresholds, ranges, vehicles, reports, forms and photos from files.
//!
//! **A line is one complete object**: an NDJSON object, or a line of CSV under a header. A missing field, null and empty text are
//! equivalent. Parts of an object (the points of a template, the answers of a form) are a list within its line; a cell of CSV
//! holds the same JSON. The fields are defined once, in [`kinds`]; checks, copies, comparisons, exports and documentation derive
//! from them.
//!
//! **A file is checked as a whole before any row is written** (IMP-1). A thread reads the file and checks each line. Valid
//! lines are copied into a temporary table. One statement then resolves their references and finds existing rows. Lines that
//! equal existing rows are skipped; lines that differ are errors unless `--update` is given (IMP-3). All errors are reported
//! together.
//!
//! **The file is then committed in parts** of 50,000 lines, each with its row of the audit log. A single transaction would hold
//! back vacuum, and a failure would lose all of its work. An interrupted import is run again: lines that were imported before are
//! skipped because they are unchanged (IMP-4), so no position needs to be stored. If a part fails although the check passed, the
//! data was changed concurrently; the message says which lines were imported. Two parts are imported in parallel if all rows are
//! new ([`parallel`]).
//!
//! A completely imported file is recorded in `imports` with its SHA-256 and skipped afterwards. Importing a folder again
//! continues with the remaining files (IMP-5). Only one import runs at a time (IMP-6), because two could both consider a row new.

mod cell;
mod check;
mod cross_field;
mod kind_sql;
mod kinds;
mod lines;
mod load;
mod parallel;
mod record;
mod references;
mod report;
mod source;
mod sql;
mod stage;
mod value;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use clap::Args;
use partner_api::startup::StopSignals;
use serde::Serialize;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::{Output, Row};
use crate::session::Session;
use crate::when;

pub(crate) use kinds::{ANSWER_FIELDS, Field, KINDS, Kind, POINT_FIELDS, Presence};
use kinds::{PHOTO_KIND_FIELDS, STATUS_FIELDS};
use load::Loaded;
pub use record::Format;
use references::References;
use source::Source;
pub(crate) use value::Type;

/// The lock that an import holds for its session.
const LOCK: i64 = 0x696d_706f_7274;

partner_api_store::statement! {
    TAKE_LOCK = "SELECT pg_advisory_lock($1)";
}

/// Settings of an import's session: longer lock timeouts than for requests, and memory for its temporary tables.
const SETTINGS: &str = "SET lock_timeout = '30s'; SET statement_timeout = '30min'; \
    SET idle_in_transaction_session_timeout = '60s'; SET temp_buffers = '64MB'; SET work_mem = '128MB'; SET jit = off";
/// Ends the session of a killed program even during a statement. PostgreSQL 13 does not have this setting.
const CHECK_CONNECTION: &str = "SET client_connection_check_interval = '2s'";

/// The examples in the help of the command.
pub const EXAMPLES: &str = "\
A file has data of one kind, which its name starts with: organizations.ndjson, inspections-2026.csv. The files of a folder are \
imported in the order of their references. If a line of a file is not valid, nothing is imported from it, and all its errors \
are reported. Lines that equal existing data are skipped, so an interrupted import can simply be run again.

Examples:
  partner-api import data/                          every file of a folder
  partner-api import inspections.csv --dry-run      check without importing
  partner-api import vehicles.ndjson --update       overwrite existing data that differs
  zcat old.csv.gz | partner-api import - --kind inspections --format csv
  partner-api import --fields                       list the fields of each kind";

/// The arguments of `import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Files, folders, or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "fields")]
    paths: Vec<PathBuf>,
    /// Kind of the data, if the file names do not say
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<KindName>,
    /// Format of the files, if their names do not say
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Overwrite existing data that differs, which is an error otherwise
    #[arg(long)]
    update: bool,
    /// Check the files and print what would be imported, without importing
    #[arg(long)]
    dry_run: bool,
    /// Also check files that were imported before
    #[arg(long)]
    again: bool,
    /// Maximum number of errors to print per file
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    max_errors: u16,
    /// Number of lines to commit at a time
    #[arg(long, value_name = "LINES", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..))]
    part: u32,
    /// Print the fields of each kind, as in docs/importing.md
    #[arg(long, exclusive = true)]
    fields: bool,
    /// The database and the output format.
    #[command(flatten)]
    pub(crate) connect: Connect,
}

/// A kind, by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindName(pub(crate) &'static Kind);

/// Reads the name of a kind.
pub(crate) fn kind(text: &str) -> Result<KindName, String> {
    let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
    Kind::of(text).map(KindName).ok_or_else(|| {
        format!(
            "expected one of {}{}",
            names.join(", "),
            value::suggestion(text, &names)
        )
    })
}

/// The result of an import of a file.
#[derive(Debug, Serialize)]
struct Imported {
    file: String,
    kind: &'static str,
    lines: u64,
    inserted: u64,
    updated: u64,
    unchanged: u64,
    /// A remark, if any.
    state: String,
}

impl Row for Imported {
    const COLUMNS: &'static [&'static str] = &["FILE", "KIND", "LINES", "NEW", "CHANGED", "UNCHANGED", ""];

    fn cells(&self) -> Vec<String> {
        vec![
            self.file.clone(),
            self.kind.to_owned(),
            self.lines.to_string(),
            self.inserted.to_string(),
            self.updated.to_string(),
            self.unchanged.to_string(),
            self.state.clone(),
        ]
    }
}

/// Runs the command.
///
/// # Errors
/// If a line is not valid, or the import is interrupted.
pub async fn run(args: &ImportArgs) -> Result<(), Failure> {
    if args.fields {
        return Output::raw(fields().into_bytes()).print(false).map_err(Failure::Output);
    }
    let sources = sources(args)?;
    crate::with(&args.connect, async |session| import(session, args, &sources).await).await
}

/// Returns the files in the order of their references.
fn sources(args: &ImportArgs) -> Result<Vec<Source>, Failure> {
    let kind = args.kind.map(|name| name.0);
    let mut sources = Vec::new();
    for path in &args.paths {
        if path == Path::new("-") {
            sources.push(Source::standard_input(kind, args.format)?);
        } else if path.is_dir() {
            let kinds: Vec<_> = kind.into_iter().collect();
            let (files, left) = Source::folder(path, &kinds)?;
            if !left.is_empty() {
                eprintln!(
                    "{}: skipped, because the names do not start with a kind: {}",
                    path.display(),
                    left.join(", ")
                );
            }
            sources.extend(files);
        } else {
            sources.push(Source::file(path, kind, args.format)?);
        }
    }
    if sources.iter().filter(|source| source.name == "-").count() > 1 {
        return Err(Failure::Usage("-: standard input can be given only once".to_owned()));
    }
    let place = |source: &Source| KINDS.iter().position(|kind| kind.name == source.kind.name);
    sources.sort_by_key(place);
    Ok(sources)
}

async fn import(session: &Session, args: &ImportArgs, sources: &[Source]) -> Result<Output, Failure> {
    let mut stop = StopSignals::listen()?;
    let mut done = Vec::new();
    for source in sources {
        let loaded = RefCell::new(Loaded::default());
        // One session per file, because its temporary tables disappear with it.
        let outcome = tokio::select! {
            outcome = import_one(session, args, source, &loaded) => outcome,
            () = stop.received() => Err(Failure::Stopped("stopped".to_owned())),
        };
        match outcome {
            Ok(imported) => done.push(imported),
            Err(failure) => return Err(ended(failure, source, &loaded.borrow(), &done)),
        }
    }
    Ok(output(&done))
}

fn output(done: &[Imported]) -> Output {
    Output::rows(done, "There was nothing to import.")
}

/// Describes what was imported before the failure.
fn ended(failure: Failure, source: &Source, loaded: &Loaded, done: &[Imported]) -> Failure {
    let name = &source.name;
    let (has_invalid_lines, cause) = (matches!(failure, Failure::InvalidLines(_)), failure.to_string());
    let mut message = if let Some(lines) = loaded.lines() {
        let more = if loaded.is_open() {
            ", and possibly one more part"
        } else {
            ""
        };
        format!(
            "{name}: {cause}; {lines} were imported{more} ({} new, {} changed). Run the same command again to import the rest",
            loaded.inserted, loaded.updated
        )
    } else if loaded.is_open() {
        format!(
            "{name}: {cause}; its first lines may have been imported. Run the same command again to import the rest"
        )
    } else if has_invalid_lines {
        cause
    } else if done.is_empty() && !matches!(failure, Failure::Stopped(_)) {
        return failure;
    } else {
        format!("{name}: {cause}; nothing was imported from this file")
    };
    for file in done {
        message.push_str(&format!(
            "\n{} was imported: {} lines, {} new, {} changed, {} unchanged",
            file.file, file.lines, file.inserted, file.updated, file.unchanged
        ));
    }
    if has_invalid_lines {
        Failure::InvalidLines(message)
    } else {
        Failure::Stopped(message)
    }
}

/// Imports one file.
async fn import_one(
    session: &Session,
    args: &ImportArgs,
    source: &Source,
    loaded: &RefCell<Loaded>,
) -> Result<Imported, Failure> {
    let mut client = session.dedicated("partner-api import").await?;
    client.batch_execute(SETTINGS).await?;
    check_connection(&client).await;
    lock(&client).await?;
    let imported = |lines, loaded: &Loaded, unchanged: i64, state: String| Imported {
        file: source.name.clone(),
        kind: source.kind.name,
        lines,
        inserted: loaded.inserted,
        updated: loaded.updated,
        unchanged: u64::try_from(unchanged).unwrap_or_default(),
        state,
    };
    if !args.again
        && let Some(at) = load::done(&client, source).await?
    {
        let state = format!("already imported at {}; use --again to check it again", when::at(at));
        return Ok(imported(0, &Loaded::default(), 0, state));
    }
    let references = References::load(&client).await?;
    let mut checked = stage::copy(&client, source, references, usize::from(args.max_errors)).await?;
    let plan = stage::plan(&client, source, &mut checked.report, args.update).await?;
    if !checked.report.is_empty() {
        return Err(Failure::InvalidLines(checked.report.message(&source.name)));
    }
    if args.dry_run {
        return Ok(imported(
            checked.lines,
            &Loaded::planned(plan),
            plan.same,
            "not imported (--dry-run)".to_owned(),
        ));
    }
    load::load(session, &mut client, source, &checked, plan, args.part, loaded).await?;
    Ok(imported(checked.lines, &loaded.borrow(), plan.same, String::new()))
}

async fn check_connection(client: &Client) {
    // Older versions reject the setting; the import works without it.
    let _ = client.batch_execute(CHECK_CONNECTION).await;
}

/// Waits for a running import, up to the lock timeout.
async fn lock(client: &Client) -> Result<(), Failure> {
    let locked = async {
        client.execute(TAKE_LOCK.sql(), &[&LOCK]).await?;
        parallel::wait_for_others(client).await
    };
    match locked.await {
        Ok(()) => Ok(()),
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Err(Failure::Rejected(
            "another import is already running (waited 30 s); retry after it finishes".to_owned(),
        )),
        Err(error) => Err(error.into()),
    }
}

/// Formats the fields of all kinds as Markdown tables.
fn fields() -> String {
    let mut text = String::new();
    for kind in KINDS {
        text.push_str(&format!("### {}\n\n{}\n\n", kind.name, kind.about));
        text.push_str(&table(kind.fields));
        for field in kind.fields {
            let (what, parts) = match field.of {
                Type::Points => ("a point", POINT_FIELDS),
                Type::Answers => ("an answer", ANSWER_FIELDS),
                Type::Statuses => ("a status", STATUS_FIELDS),
                Type::PhotoKinds => ("a kind of photos", PHOTO_KIND_FIELDS),
                _ => continue,
            };
            text.push_str(&format!("\nThe fields of {what}:\n\n{}", table(parts)));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn table(fields: &[Field]) -> String {
    let mut text = "| field | value | if missing | |\n|---|---|---|---|\n".to_owned();
    for field in fields {
        let without = match field.is {
            Presence::Required => "error".to_owned(),
            Presence::Optional => "none".to_owned(),
            Presence::Filled | Presence::New => "generated".to_owned(),
            Presence::Default("") => "empty".to_owned(),
            Presence::Default(value) => format!("`{value}`"),
        };
        text.push_str(&format!(
            "| `{}` | {} | {without} | {} |\n",
            field.name,
            field.of.holds(),
            field.about
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IMP-2
    #[test]
    fn the_import_page_lists_the_fields() {
        let page = include_str!("../../../../docs/importing.md");
        let (_, rest) = page.split_once("<!-- partner-api import --fields -->\n\n").unwrap();
        let (tables, _) = rest.split_once("\n<!-- end of fields -->").unwrap();
        assert_eq!(
            tables,
            fields(),
            "docs/importing.md must have the output of `partner-api import --fields`"
        );
    }
}
