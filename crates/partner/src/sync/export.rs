//! Exports the copy to NDJSON or CSV. The file is replaced only when it is complete.

use std::path::Path;

use rusqlite::types::Value as Cell;

use super::store::{COLUMNS, Store, cells};
use crate::failure::Failure;
use crate::file::NewFile;

/// Writes each report as a line of JSON, as the service returned it.
pub(super) fn ndjson(store: &Store, path: &Path) -> Result<(), Failure> {
    let mut file = NewFile::replacing(path)?;
    store.each(|json| {
        file.write(json.as_bytes())?;
        file.write(b"\n")
    })?;
    file.replace()
}

/// Writes a header row and a row for each report, in UTF-8 with a byte-order mark.
pub(super) fn csv(store: &Store, path: &Path, separator: u8) -> Result<(), Failure> {
    let mut file = NewFile::replacing(path)?;
    let failed = |error: csv::Error| Failure::Failed(format!("{}: {error}", path.display()));
    let line = |cells: Vec<String>| -> Result<Vec<u8>, Failure> {
        let mut writer = csv::WriterBuilder::new().delimiter(separator).from_writer(Vec::new());
        writer.write_record(cells).map_err(failed)?;
        writer
            .into_inner()
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
    };
    // Excel takes a file without this mark for the system's code page.
    file.write(b"\xef\xbb\xbf")?;
    file.write(&line(COLUMNS.map(|(name, _)| name.to_owned()).to_vec())?)?;
    store.each(|json| {
        let report =
            serde_json::from_str(json).map_err(|error| Failure::Failed(format!("failed to read the copy: {error}")))?;
        let cells = cells(&report).into_iter().map(|cell| match cell {
            Cell::Text(text) => text,
            Cell::Integer(number) => number.to_string(),
            _ => String::new(),
        });
        file.write(&line(cells.collect())?)
    })?;
    file.replace()
}
