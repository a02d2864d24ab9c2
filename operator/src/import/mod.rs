//! Files of organisations, branches, templates, thresholds, ranges, vehicles, reports, forms and photos, brought in.
//!
//! **A line is one thing, whole.** In both formats: an NDJSON object, or a line of CSV with the names above. What is not there,
//! null, and the empty text are one and the same. What a thing consists of (a template's points, a form's answers) stands in
//! its line as a list; a cell of CSV holds the same JSON. The fields are defined once, in [`kinds`], and are checked, copied,
//! compared, exported and documented by that.
//!
//! **First all of it is checked, then it becomes rows** (IMP-1). A thread reads the file and checks each line; what is right is
//! copied behind it into a temporary table, and from there one statement finds what each line refers to, and what stands of it
//! already. A line that equals what stands is left alone, one that differs is refused unless `--update` is given (IMP-3). If
//! anything is wrong, all of it is told at once, and there is nothing to undo: nothing was written.
//!
//! **Then parts of the file are committed**, each with its row of the audit log, 50,000 lines at a time. One transaction for all
//! would keep every row that anybody changes meanwhile from being cleaned up, and an import that dies after an hour would be an
//! hour lost. It need not be: run again, what is in is found to be the same, and only the rest is brought in (IMP-4). No place
//! in the file has to be remembered for that, and so none can be wrong. What a part refuses, though the check did not, was
//! changed by somebody else in between; the message says which lines of the file are in. Where nothing but new rows come, two
//! parts are brought in at once ([`lanes`]).
//!
//! A file that was brought in whole is noted with its SHA-256 in `imports`, and not looked at again: so does a folder go on
//! with the files that are not in yet (IMP-5). One import works at a time (IMP-6), as two could each find that a thing is new.

mod cell;
mod check;
mod fragments;
mod kinds;
mod known;
mod lanes;
mod lines;
mod load;
mod record;
mod report;
mod source;
mod sql;
mod stage;
mod value;
mod whole;

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
use known::Known;
use load::Loaded;
pub use record::Format;
use source::Source;
pub(crate) use value::Type;

/// The lock that an import holds for its session.
const LOCK: i64 = 0x696d_706f_7274;

partner_api::statement! {
    TAKE_LOCK = "SELECT pg_advisory_lock($1)";
}

/// What a session that imports is like: it waits for locks longer than a request does, but not for ever, and its temporary
/// tables stay in memory as far as that is modest.
const SETTINGS: &str = "SET lock_timeout = '30s'; SET statement_timeout = '30min'; \
    SET idle_in_transaction_session_timeout = '60s'; SET temp_buffers = '64MB'; SET work_mem = '128MB'; SET jit = off";
/// So that the session of a program that was killed ends within a statement, too. PostgreSQL 13 has no such setting.
const NOTICE_DEATH: &str = "SET client_connection_check_interval = '2s'";

/// Help of the command.
pub const EXAMPLES: &str = "\
A file has things of one kind, which its name begins with: organizations.ndjson, inspections-2026.csv. A folder's files are
brought in in the order in which one kind refers to another. A file with a bad line is not brought in at all; all its bad
lines are told. A line that stands already is left alone, so that an import that was stopped is simply run again.

Examples:
  partner-api import data/                          every file of a folder
  partner-api import inspections.csv --dry-run      look, and change nothing
  partner-api import vehicles.ndjson --update       change what stands where it differs
  zcat old.csv.gz | partner-api import - --kind inspections --format csv
  partner-api import --fields                       what a line of each kind holds";

/// The arguments of `import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Files, folders, or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "fields")]
    paths: Vec<PathBuf>,
    /// What the files hold, where their names do not tell
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<KindName>,
    /// Their format, where their names do not tell
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Change what stands already and differs; without it, such a line is a bad one
    #[arg(long)]
    update: bool,
    /// Check the files and say what would be done; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Look also at files that were imported before
    #[arg(long)]
    again: bool,
    /// How many bad lines of a file are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    max_errors: u16,
    /// How many lines are committed at a time
    #[arg(long, value_name = "LINES", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..))]
    part: u32,
    /// Print the fields of each kind, as in docs/importing.md
    #[arg(long, exclusive = true)]
    fields: bool,
    /// Where the database is, and how to print.
    #[command(flatten)]
    pub(crate) connect: Connect,
}

/// A kind, by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindName(pub(crate) &'static Kind);

/// Reads the name of a kind.
pub(crate) fn kind(text: &str) -> Result<KindName, String> {
    let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
    Kind::of(text)
        .map(KindName)
        .ok_or_else(|| format!("expected one of {}{}", names.join(", "), value::meant(text, &names)))
}

/// What came of a file.
#[derive(Debug, Serialize)]
struct Imported {
    file: String,
    kind: &'static str,
    lines: u64,
    inserted: u64,
    updated: u64,
    unchanged: u64,
    /// What is to be said of it.
    state: String,
}

impl Row for Imported {
    const COLUMNS: &'static [&'static str] = &["FILE", "KIND", "LINES", "NEW", "CHANGED", "SAME", ""];

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

/// Does what the arguments say.
///
/// # Errors
/// Lines that cannot be taken, or what came in between.
pub async fn run(args: &ImportArgs) -> Result<(), Failure> {
    if args.fields {
        return Output::raw(fields().into_bytes()).print(false).map_err(Failure::Output);
    }
    let sources = sources(args)?;
    crate::with(&args.connect, async |session| import(session, args, &sources).await).await
}

/// The files, each kind behind those that it refers to.
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
                    "{}: left alone, for no kind begins their names: {}",
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
        return Err(Failure::Usage("-: standard input can be read once".to_owned()));
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
        // A session for each file: what is left of one that was stopped goes with it.
        let outcome = tokio::select! {
            outcome = one(session, args, source, &loaded) => outcome,
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

/// Says what stands of the files when it ended in their midst.
fn ended(failure: Failure, source: &Source, loaded: &Loaded, done: &[Imported]) -> Failure {
    let name = &source.name;
    let (is_bad, cause) = (matches!(failure, Failure::BadLines(_)), failure.to_string());
    let mut told = if let Some(lines) = loaded.lines() {
        let more = if loaded.is_open() {
            ", and perhaps another part"
        } else {
            ""
        };
        format!(
            "{name}: {cause}; {lines} are in{more} ({} new, {} changed): run the same command again, and it goes on with the others",
            loaded.inserted, loaded.updated
        )
    } else if loaded.is_open() {
        format!(
            "{name}: {cause}; perhaps its first lines are in: run the same command again, and it goes on with what is not"
        )
    } else if is_bad {
        cause
    } else if done.is_empty() && !matches!(failure, Failure::Stopped(_)) {
        return failure;
    } else {
        format!("{name}: {cause}; nothing of this file was kept")
    };
    for file in done {
        told.push_str(&format!(
            "\n{} is in: {} lines, {} new, {} changed, {} the same",
            file.file, file.lines, file.inserted, file.updated, file.unchanged
        ));
    }
    if is_bad {
        Failure::BadLines(told)
    } else {
        Failure::Stopped(told)
    }
}

/// Imports one file.
async fn one(
    session: &Session,
    args: &ImportArgs,
    source: &Source,
    loaded: &RefCell<Loaded>,
) -> Result<Imported, Failure> {
    let mut client = session.dedicated("partner-api import").await?;
    client.batch_execute(SETTINGS).await?;
    notice_death(&client).await;
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
        let state = format!("imported already, {}; --again looks at it again", when::at(at));
        return Ok(imported(0, &Loaded::default(), 0, state));
    }
    let known = Known::load(&client).await?;
    let mut checked = stage::copy(&client, source, known, usize::from(args.max_errors)).await?;
    let plan = stage::plan(&client, source, &mut checked.report, args.update).await?;
    if !checked.report.is_empty() {
        return Err(Failure::BadLines(checked.report.told(&source.name)));
    }
    if args.dry_run {
        return Ok(imported(
            checked.lines,
            &Loaded::planned(plan),
            plan.same,
            "not done: --dry-run".to_owned(),
        ));
    }
    load::load(session, &mut client, source, &checked, plan, args.part, loaded).await?;
    Ok(imported(checked.lines, &loaded.borrow(), plan.same, String::new()))
}

async fn notice_death(client: &Client) {
    // Older ones refuse it, and are none the worse.
    let _ = client.batch_execute(NOTICE_DEATH).await;
}

/// Waits for an import that works, for as long as a session waits for any lock.
async fn lock(client: &Client) -> Result<(), Failure> {
    let locked = async {
        client.execute(TAKE_LOCK.sql(), &[&LOCK]).await?;
        lanes::wait_for_others(client).await
    };
    match locked.await {
        Ok(()) => Ok(()),
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Err(Failure::Refused(
            "another import is at work in this database, and has been for 30 s: try again when it has ended".to_owned(),
        )),
        Err(error) => Err(error.into()),
    }
}

/// The fields of all kinds, as tables of a document.
fn fields() -> String {
    let mut text = String::new();
    for kind in KINDS {
        text.push_str(&format!("### {}\n\n{}\n\n", kind.name, kind.about));
        text.push_str(&table(kind.fields));
        for field in kind.fields {
            let (what, parts) = match field.of {
                Type::Points => ("a point", POINT_FIELDS),
                Type::Answers => ("an answer", ANSWER_FIELDS),
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
    let mut text = "| field | holds | without it | |\n|---|---|---|---|\n".to_owned();
    for field in fields {
        let without = match field.is {
            Presence::Required => "needed".to_owned(),
            Presence::Optional => "none".to_owned(),
            Presence::Filled | Presence::New => "given".to_owned(),
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
    fn the_page_on_importing_has_the_fields_as_they_are_checked() {
        let page = include_str!("../../../docs/importing.md");
        let (_, rest) = page.split_once("<!-- partner-api import --fields -->\n\n").unwrap();
        let (tables, _) = rest.split_once("\n<!-- end of fields -->").unwrap();
        assert_eq!(
            tables,
            fields(),
            "docs/importing.md is to have what `partner-api import --fields` prints"
        );
    }
}
