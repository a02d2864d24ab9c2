//! The copy as a file for other programs, whole or as it was before.

use std::path::Path;

use rusqlite::types::Value as Cell;

use super::store::{COLUMNS, Store, cells};
use crate::failure::Failure;
use crate::file::NewFile;

/// A line of JSON for each report, as the service gives it.
pub(super) fn ndjson(store: &Store, path: &Path) -> Result<(), Failure> {
    let mut file = NewFile::replacing(path)?;
    store.each(|json| {
        file.write(json.as_bytes())?;
        file.write(b"\n")
    })?;
    file.replace()
}

/// A line for each report, and the names of the columns before them.
pub(super) fn csv(store: &Store, path: &Path) -> Result<(), Failure> {
    let mut file = NewFile::replacing(path)?;
    let written = |error: csv::Error| Failure::Failed(format!("{}: {error}", path.display()));
    let line = |cells: Vec<String>| -> Result<Vec<u8>, Failure> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(cells).map_err(written)?;
        writer
            .into_inner()
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
    };
    file.write(&line(COLUMNS.map(|(name, _)| name.to_owned()).to_vec())?)?;
    store.each(|json| {
        let report = serde_json::from_str(json).map_err(|error| Failure::Failed(format!("the copy: {error}")))?;
        let cells = cells(&report).into_iter().map(|cell| match cell {
            Cell::Text(text) => text,
            Cell::Integer(number) => number.to_string(),
            _ => String::new(),
        });
        file.write(&line(cells.collect())?)
    })?;
    file.replace()
}
