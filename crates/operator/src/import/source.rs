//! Import files: their kind and format, and the thread that reads and checks them.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tokio::sync::{mpsc, oneshot};

use super::cell::Cell;
use super::check::Checker;
use super::kinds::{KINDS, Kind};
use super::lines::{MAX_RECORD_BYTES, Read, RecordEnd, Records};
use super::record::{Cells, Format, Members, cells_of_members, header};
use super::references::References;
use super::report::{LineError, Report};
use super::value::{CellError, Value, suggestion};
use crate::failure::Failure;

/// The maximum number of rows that the reader is ahead.
const BATCH: usize = 512;
const BATCHES: usize = 8;

/// A file to import.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// `None` for standard input.
    path: Option<PathBuf>,
    /// The name in messages.
    pub name: String,
    pub kind: &'static Kind,
    pub format: Format,
    /// The length, if known.
    pub bytes: Option<u64>,
}

impl Source {
    /// Standard input.
    pub(crate) fn standard_input(kind: Option<&'static Kind>, format: Option<Format>) -> Result<Self, Failure> {
        let (Some(kind), Some(format)) = (kind, format) else {
            return Err(Failure::Usage("-: standard input needs --kind and --format".to_owned()));
        };
        Ok(Self {
            path: None,
            name: "-".to_owned(),
            kind,
            format,
            bytes: None,
        })
    }

    /// Opens a file. Kind and format come from its name unless they are given.
    pub(crate) fn file(path: &Path, kind: Option<&'static Kind>, format: Option<Format>) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kind = kind.or_else(|| kind_of(&file)).ok_or_else(|| {
            let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
            let stem = file.split('.').next().unwrap_or_default();
            Failure::Usage(format!(
                "{name}: the file name does not start with a kind; give --kind, one of {}{}",
                names.join(", "),
                suggestion(stem, &names)
            ))
        })?;
        let format = format.or_else(|| format_of(&file)).ok_or_else(|| {
            Failure::Usage(format!(
                "{name}: the file name ends in neither .ndjson nor .csv; give --format"
            ))
        })?;
        let about = std::fs::metadata(path).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
        Ok(Self {
            path: Some(path.to_owned()),
            name,
            kind,
            format,
            bytes: about.is_file().then_some(about.len()),
        })
    }

    /// Lists the files of a folder by kind, in import order, and the names of all other files.
    pub(crate) fn folder(path: &Path, kinds: &[&'static Kind]) -> Result<(Vec<Self>, Vec<String>), Failure> {
        let failed = |error| Failure::Usage(format!("{}: {error}", path.display()));
        let (mut sources, mut left) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_file = entry.path().is_file();
            match (kind_of(&name), format_of(&name)) {
                (Some(kind), Some(_)) if is_file => {
                    if kinds.is_empty() || kinds.iter().any(|wanted| wanted.name == kind.name) {
                        sources.push(Self::file(&entry.path(), None, None)?);
                    }
                }
                _ => left.push(name),
            }
        }
        let place = |kind: &Kind| KINDS.iter().position(|other| other.name == kind.name);
        sources.sort_by(|left, right| {
            place(left.kind)
                .cmp(&place(right.kind))
                .then_with(|| left.name.cmp(&right.name))
        });
        left.sort();
        if sources.is_empty() {
            return Err(Failure::Usage(format!(
                "{}: no file to import; files are named like organizations.ndjson or inspections-2026.csv",
                path.display()
            )));
        }
        Ok((sources, left))
    }

    /// Computes the SHA-256 of the file; `None` for standard input.
    pub(crate) fn digest(&self) -> Result<Option<[u8; 32]>, Failure> {
        let Some(path) = &self.path else { return Ok(None) };
        let failed = |error| Failure::Usage(format!("{}: {error}", self.name));
        let mut records = Records::of(
            BufReader::with_capacity(1 << 18, File::open(path).map_err(failed)?),
            RecordEnd::Line,
        );
        while records.next().map_err(failed)? != Read::End {}
        Ok(Some(records.digest()))
    }
}

/// Returns the kind that a file name starts with: `inspections.csv`, `inspections-2026.csv`.
fn kind_of(name: &str) -> Option<&'static Kind> {
    let end = name
        .find(|character: char| !character.is_ascii_lowercase())
        .unwrap_or(name.len());
    Kind::of(&name[..end])
}

fn format_of(name: &str) -> Option<Format> {
    match name.rsplit_once('.')?.1 {
        "ndjson" | "jsonl" => Some(Format::Ndjson),
        "csv" => Some(Format::Csv),
        _ => None,
    }
}

/// A batch of rows with their line numbers, and the position in the file.
pub(crate) struct Batch {
    pub rows: Vec<(i64, Vec<Value>)>,
    pub bytes: u64,
}

/// The result of reading a file.
#[derive(Debug)]
pub(crate) struct Checked {
    pub report: Report,
    /// The number of records.
    pub lines: u64,
    /// The number of the last line.
    pub last: i64,
    pub bytes: u64,
    pub digest: [u8; 32],
}

/// Reads and checks a file in a dedicated thread, because reading standard input may block forever.
pub(crate) fn check(
    source: &Source,
    references: Arc<References>,
    max_errors: usize,
) -> (
    mpsc::Receiver<Batch>,
    oneshot::Receiver<Result<Checked, std::io::Error>>,
) {
    let (batches, to_copy) = mpsc::channel(BATCHES);
    let (end, ended) = oneshot::channel();
    let source = source.clone();
    thread::spawn(move || {
        let checked = match &source.path {
            Some(path) => File::open(path).and_then(|file| read(file, &source, &references, max_errors, &batches)),
            None => read(std::io::stdin(), &source, &references, max_errors, &batches),
        };
        drop(batches);
        // The import was stopped, so the receiver was dropped.
        let _ = end.send(checked);
    });
    (to_copy, ended)
}

fn read(
    input: impl std::io::Read,
    source: &Source,
    references: &References,
    max_errors: usize,
    batches: &mpsc::Sender<Batch>,
) -> Result<Checked, std::io::Error> {
    let ends = match source.format {
        Format::Ndjson => RecordEnd::Line,
        Format::Csv => RecordEnd::QuotedLine,
    };
    let mut records = Records::of(BufReader::with_capacity(1 << 18, input), ends);
    let fields = source.kind.fields;
    let mut report = Report::with_limit(max_errors);
    let mut checker = Checker::new(source.kind, references);
    let mut csv = Cells::new();
    let mut columns: Option<Vec<usize>> = None;
    let (mut lines, mut last) = (0, 0);
    let mut rows = Vec::with_capacity(BATCH);
    loop {
        let read = records.next()?;
        let line = match read {
            Read::End => break,
            Read::Record(line) => line,
            Read::TooLong(line) => {
                let expected = format!("at most {MAX_RECORD_BYTES} bytes in a line");
                report.add(LineError::of(line, "the line", CellError::expected(expected)));
                if source.format == Format::Csv {
                    // The start of the next record is unknown.
                    report.is_cut = true;
                    break;
                }
                continue;
            }
            Read::Open(line) => {
                let expected = "a closing quote for the one opened here";
                report.add(LineError::of(line, "the line", CellError::expected(expected)));
                break;
            }
        };
        let record = records.record();
        if line == 1
            && let Some(error) = not_text(record)
        {
            report.add(LineError::of(1, "the file", error));
            report.is_cut = true;
            break;
        }
        if record.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let mut cells = Vec::with_capacity(fields.len());
        let mut is_good = true;
        let members;
        match source.format {
            Format::Ndjson => {
                let Ok(text) = std::str::from_utf8(record) else {
                    lines += 1;
                    report.add(LineError::of(line, "the line", CellError::expected("text in UTF-8")));
                    continue;
                };
                match Members::of(text) {
                    Ok(found) => members = found,
                    Err(error) => {
                        lines += 1;
                        report.add(LineError::of(line, "the line", error));
                        continue;
                    }
                }
                cells_of_members(&members, fields, &mut cells, |name, error| {
                    is_good = false;
                    report.add(LineError::of(line, name, error));
                });
            }
            Format::Csv => {
                let count = match csv.part(record) {
                    Ok(count) => count,
                    Err(error) => {
                        lines += 1;
                        report.add(LineError::of(line, "the line", error));
                        continue;
                    }
                };
                let Some(columns) = &columns else {
                    match header(&csv, line, fields) {
                        Ok(found) => columns = Some(found),
                        Err(errors) => {
                            errors.into_iter().for_each(|error| report.add(error));
                            report.is_cut = true;
                            break;
                        }
                    }
                    continue;
                };
                if count != columns.len() {
                    lines += 1;
                    let expected = format!("{} cells, like the first line; found {count}", columns.len());
                    report.add(LineError::of(line, "the line", CellError::expected(expected)));
                    continue;
                }
                cells.resize(fields.len(), Cell::Nothing);
                for (index, field) in columns.iter().enumerate() {
                    match std::str::from_utf8(csv.cell(index)) {
                        Ok("") => {}
                        Ok(text) => cells[*field] = Cell::Csv(text),
                        Err(_) => {
                            is_good = false;
                            report.add(LineError::of(
                                line,
                                fields[*field].name,
                                CellError::expected("text in UTF-8"),
                            ));
                        }
                    }
                }
            }
        }
        lines += 1;
        last = i64::try_from(line).unwrap_or(i64::MAX);
        if let Some(row) = checker.line(line, &cells, &mut report)
            && is_good
        {
            rows.push((last, row));
        }
        if rows.len() == BATCH {
            let rows = std::mem::replace(&mut rows, Vec::with_capacity(BATCH));
            let bytes = records.bytes();
            if batches.blocking_send(Batch { rows, bytes }).is_err() {
                break;
            }
        }
    }
    if source.format == Format::Csv && columns.is_none() && report.is_empty() {
        let expected = "a first line with the field names; the file is empty";
        report.add(LineError::of(1, "the names", CellError::expected(expected)));
    }
    let bytes = records.bytes();
    let _ = batches.blocking_send(Batch { rows, bytes });
    Ok(Checked {
        report,
        lines,
        last,
        bytes,
        digest: records.digest(),
    })
}

/// Recognizes files that are not UTF-8 text by their first bytes.
fn not_text(record: &[u8]) -> Option<CellError> {
    let found = match record {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "UTF-16",
        [0x1F, 0x8B, ..] => "a gzip file",
        [b'P', b'K', 3, 4, ..] => "a ZIP archive, such as a spreadsheet",
        [0x28, 0xB5, 0x2F, 0xFD, ..] => "a zstd file",
        _ => return None,
    };
    Some(CellError {
        found: Some(found.to_owned()),
        expected: "text in UTF-8".into(),
    })
}
