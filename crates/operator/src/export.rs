//! Exports data to files that [`import`](crate::import) reads. Importing a file into its source database changes nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;

use chrono::{DateTime, Utc};
use clap::Args;
use futures::TryStreamExt as _;
use partner_api::startup::StopSignals;
use serde::Serialize;
use tokio_postgres::{IsolationLevel, Transaction};
use uuid::Uuid;

use crate::connect::Connect;
use crate::failure::Failure;
use crate::import::{Format, KINDS, Kind, KindName, Type, kind};
use crate::names;
use crate::output::{Output, Row};
use crate::progress::Progress;
use crate::session::Session;
use crate::when;

/// The examples in the help of the command.
pub const EXAMPLES: &str = "\
All files come from one snapshot of the database. Incomplete files never have their final name. Files contain personal data \
and are readable only by their owner. CSV files keep texts that begin with =, +, - or @, which a spreadsheet executes as formulas: \
import their columns as text.

Examples:
  partner-api export backup/                                       one file per kind
  partner-api export izmir/ --organization izmir-vehicle --format csv
  partner-api export new/ --kind inspections --since 2026-11-01T00:00:00+03:00
  partner-api export - --kind vehicles > vehicles.ndjson";

/// The buffer size of writes, in bytes.
const BUFFER: usize = 1 << 18;

/// Session settings. The timeouts keep a stopped reader from holding back vacuum indefinitely.
const SETTINGS: &str = "SET statement_timeout = '6h'; SET idle_in_transaction_session_timeout = '60s'; SET jit = off; \
    SET work_mem = '64MB'";

/// The arguments of `export`.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// The folder, created if missing; - for standard output, with one --kind
    #[arg(value_name = "FOLDER")]
    target: PathBuf,
    /// Only this kind; repeatable
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Vec<KindName>,
    /// The format of the files
    #[arg(long, value_enum, default_value_t = Format::Ndjson)]
    format: Format,
    /// Only data of this organization, by slug, name or ID
    #[arg(long, value_name = "ORGANIZATION")]
    organization: Option<String>,
    /// Only reports opened since this time, with their forms and photos
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    since: Option<DateTime<Utc>>,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// The database and the output format.
    #[command(flatten)]
    connect: Connect,
}

/// A written file.
#[derive(Debug, Serialize)]
struct Exported {
    file: String,
    kind: &'static str,
    lines: u64,
}

impl Row for Exported {
    const COLUMNS: &'static [&'static str] = &["FILE", "KIND", "LINES"];

    fn cells(&self) -> Vec<String> {
        vec![self.file.clone(), self.kind.to_owned(), self.lines.to_string()]
    }
}

/// Runs the command.
///
/// # Errors
/// If a file already exists or cannot be written.
pub async fn run(args: &ExportArgs) -> Result<(), Failure> {
    let is_standard_output = args.target == Path::new("-");
    if is_standard_output && args.kind.len() != 1 {
        return Err(Failure::Usage(
            "-: standard output takes one kind; give --kind once".to_owned(),
        ));
    }
    if is_standard_output && args.connect.json {
        return Err(Failure::Usage(
            "--json: cannot be used while the data goes to standard output".to_owned(),
        ));
    }
    if !is_standard_output && args.target.exists() && !args.target.is_dir() {
        return Err(Failure::Usage(format!(
            "{} is a file; give a folder",
            args.target.display()
        )));
    }
    if !args.force
        && let Some(file) = files(args).into_iter().map(|(_, file)| file).find(|file| file.exists())
    {
        return Err(Failure::Rejected(format!(
            "{} already exists; nothing was written. Use --force to overwrite it",
            file.display()
        )));
    }
    crate::with(&args.connect, async |session| {
        export(session, args, is_standard_output).await
    })
    .await
}

/// Returns the selected kinds, each with its file.
fn files(args: &ExportArgs) -> Vec<(&'static Kind, PathBuf)> {
    let is_wanted = |of: &Kind| args.kind.is_empty() || args.kind.iter().any(|wanted| wanted.0.name == of.name);
    let file = |kind: &Kind| args.target.join(format!("{}.{}", kind.name, args.format.extension()));
    KINDS
        .iter()
        .filter(|kind| is_wanted(kind))
        .map(|kind| (kind, file(kind)))
        .collect()
}

async fn export(session: &Session, args: &ExportArgs, is_standard_output: bool) -> Result<Output, Failure> {
    let organization = match &args.organization {
        Some(text) => Some(names::organization(&session.read().await?, text).await?.id),
        None => None,
    };
    let mut client = session.dedicated("partner-api export").await?;
    client.batch_execute(SETTINGS).await?;
    let transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    if is_standard_output {
        // Signals end the process: there is nothing to clean up, and the reader may never continue.
        for (kind, _) in files(args) {
            match write(&transaction, kind, args, organization, io::stdout()).await {
                // A reader that closes the pipe, such as `head`, is not an error.
                Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => break,
                written => written?,
            };
        }
        return Ok(Output::raw(Vec::new()));
    }
    let mut stop = StopSignals::listen()?;
    let work = async {
        fs::create_dir_all(&args.target).map_err(|error| unwritable(&args.target, &error))?;
        let mut done = Vec::new();
        for (kind, file) in files(args) {
            let partial = Partial::new(&file)?;
            let lines = write(&transaction, kind, args, organization, &partial.file).await?;
            partial.finish(&file)?;
            done.push(Exported {
                file: file.display().to_string(),
                kind: kind.name,
                lines,
            });
        }
        Ok(Output::rows(&done, "There was nothing to export."))
    };
    tokio::select! {
        outcome = work => outcome,
        () = stop.received() => Err(Failure::Stopped("stopped; incomplete files were removed".to_owned())),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("{}: {error}", path.display()))
}

/// A file under a temporary name, removed on drop unless it is finished.
struct Partial {
    file: File,
    path: PathBuf,
    is_finished: bool,
}

impl Partial {
    fn new(target: &Path) -> Result<Self, Failure> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{name}.{}", Uuid::now_v7().simple()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| unwritable(&path, &error))?;
        Ok(Self {
            file,
            path,
            is_finished: false,
        })
    }

    fn finish(mut self, target: &Path) -> Result<(), Failure> {
        self.file
            .sync_all()
            .and_then(|()| fs::rename(&self.path, target))
            .map_err(|error| unwritable(target, &error))?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes all rows of a kind and returns their number.
async fn write(
    transaction: &Transaction<'_>,
    kind: &'static Kind,
    args: &ExportArgs,
    organization: Option<Uuid>,
    target: impl Write,
) -> Result<u64, Failure> {
    let failed = Failure::Output;
    let progress = Progress::endless(format!("writing {}", kind.name));
    let mut out = OutputFile::new(BufWriter::with_capacity(BUFFER, target), kind, args.format);
    out.header().map_err(failed)?;
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&organization, &args.since];
    let rows = transaction.query_raw(&kind.read(), parameters).await?;
    let mut rows = pin!(rows);
    let mut lines = 0;
    while let Some(row) = rows.try_next().await? {
        let cells = (0..row.len()).map(|index| row.try_get::<_, Option<&str>>(index));
        out.line(&cells.collect::<Result<Vec<_>, _>>()?).map_err(failed)?;
        lines += 1;
        if lines % 1_000 == 0 {
            progress.at(lines);
        }
    }
    out.end().map_err(failed)?;
    Ok(lines)
}

/// A file of one kind.
struct OutputFile<W: Write> {
    out: Writer<W>,
    kind: &'static Kind,
}

enum Writer<W: Write> {
    Ndjson(W),
    Csv(Box<csv::Writer<W>>),
}

impl<W: Write> OutputFile<W> {
    fn new(target: W, kind: &'static Kind, format: Format) -> Self {
        let out = match format {
            Format::Ndjson => Writer::Ndjson(target),
            Format::Csv => Writer::Csv(Box::new(csv::Writer::from_writer(target))),
        };
        Self { out, kind }
    }

    fn header(&mut self) -> io::Result<()> {
        match &mut self.out {
            Writer::Ndjson(_) => Ok(()),
            Writer::Csv(csv) => Ok(csv.write_record(self.kind.fields.iter().map(|field| field.name))?),
        }
    }

    fn line(&mut self, cells: &[Option<&str>]) -> io::Result<()> {
        match &mut self.out {
            Writer::Csv(csv) => Ok(csv.write_record(cells.iter().map(|cell| cell.unwrap_or_default()))?),
            Writer::Ndjson(out) => {
                let mut begin = '{';
                for (field, cell) in self.kind.fields.iter().zip(cells) {
                    write!(out, "{begin}\"{}\":", field.name)?;
                    begin = ',';
                    match cell {
                        None => out.write_all(b"null")?,
                        Some(text) if is_json(field.of) => out.write_all(text.as_bytes())?,
                        Some(text) => serde_json::to_writer(&mut *out, text)?,
                    }
                }
                out.write_all(b"}\n")
            }
        }
    }

    fn end(self) -> io::Result<()> {
        match self.out {
            Writer::Ndjson(mut out) => out.flush(),
            Writer::Csv(mut csv) => csv.flush(),
        }
    }
}

/// Returns whether a value's text is already JSON.
fn is_json(of: Type) -> bool {
    matches!(
        of,
        Type::Integer { .. }
            | Type::Size
            | Type::Decimal { .. }
            | Type::Number
            | Type::Bool
            | Type::Points
            | Type::Answers
            | Type::Statuses
            | Type::PhotoKinds
    )
}
