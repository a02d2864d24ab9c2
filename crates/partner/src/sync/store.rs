//! The SQLite database of the copy. Reports and the checkpoint change in the same transaction.

use std::path::Path;
use std::time::Duration;

use partner_api_client::types::InspectionListItem;
use partner_api_client::{Batch, Checkpoint};
use partner_api_terminal::when;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params_from_iter};
use serde_json::Value;

use crate::failure::Failure;

/// Identifies databases of this program ("part").
const APPLICATION_ID: i32 = 0x7061_7274;
/// Timeout for the lock of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const IDENTITY: &str =
    "SELECT (SELECT count(*) FROM sqlite_schema), (SELECT application_id FROM pragma_application_id)";

/// A column for each scalar member of a report and of its `vehicle`.
pub(super) const COLUMNS: [(&str, &str); 21] = [
    ("id", "TEXT PRIMARY KEY"),
    ("report_number", "TEXT NOT NULL"),
    ("organization_id", "TEXT NOT NULL"),
    ("branch_id", "TEXT NOT NULL"),
    ("status", "TEXT NOT NULL"),
    ("package_name", "TEXT NOT NULL"),
    ("overall_score", "INTEGER NOT NULL"),
    ("final_price_try", "TEXT NOT NULL"),
    ("published_at", "TEXT NOT NULL"),
    ("created_at", "TEXT NOT NULL"),
    ("updated_at", "TEXT NOT NULL"),
    ("plate_masked", "TEXT NOT NULL"),
    ("vin_masked", "TEXT NOT NULL"),
    ("brand", "TEXT NOT NULL"),
    ("model", "TEXT NOT NULL"),
    ("year", "INTEGER NOT NULL"),
    ("type", "TEXT NOT NULL"),
    ("fuel_type", "TEXT NOT NULL"),
    ("transmission", "TEXT NOT NULL"),
    ("color", "TEXT NOT NULL"),
    ("mileage_km", "INTEGER NOT NULL"),
];

/// One row with the service, the partner, and the checkpoint.
const CREATE_SYNC: &str = "CREATE TABLE sync (one INTEGER PRIMARY KEY CHECK (one = 1), \
     base_url TEXT NOT NULL, partner TEXT NOT NULL, checkpoint TEXT NOT NULL) STRICT";
const INSERT_SYNC: &str = "INSERT INTO sync VALUES (1, ?1, ?2, ?3)";
const SOURCE: &str = "SELECT base_url, partner FROM sync";
const CHECKPOINT: &str = "SELECT checkpoint FROM sync";
const UPDATE_CHECKPOINT: &str = "UPDATE sync SET checkpoint = ?1";
const KNOWN: &str = "SELECT json FROM reports WHERE id = ?1";
const COUNT: &str = "SELECT count(*) FROM reports";
const ALL: &str = "SELECT json FROM reports ORDER BY created_at, id";

/// The copy.
pub(super) struct Store {
    pub(super) connection: Connection,
}

/// The numbers of new and changed reports in a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stored {
    pub(super) new: usize,
    pub(super) changed: usize,
}

impl Store {
    /// Opens or creates the copy of this service's reports for this partner.
    ///
    /// # Errors
    /// The file is not a copy, or is a copy for another service or partner.
    pub(super) fn open(path: &Path, base_url: &str, partner: &str) -> Result<Self, Failure> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate);
        let transaction = transaction.map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => not_a_copy(path),
            _ => error.into(),
        })?;
        let (tables, id): (i64, i32) = transaction.query_row(IDENTITY, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        match (tables, id) {
            (0, _) => create(&transaction, base_url, partner)?,
            (_, APPLICATION_ID) => {
                let (copy_url, copy_partner): (String, String) =
                    transaction.query_row(SOURCE, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
                if copy_url != base_url || copy_partner != partner {
                    return Err(Failure::Rejected(format!(
                        "{} is a copy for partner {copy_partner} from {copy_url}, not for {partner} from {base_url}; use \
                         another file",
                        path.display()
                    )));
                }
            }
            _ => return Err(not_a_copy(path)),
        }
        transaction.commit()?;
        Ok(Self { connection })
    }

    /// Returns the checkpoint of the last batch.
    pub(super) fn checkpoint(&self) -> Result<Checkpoint, Failure> {
        let text: String = self.connection.query_row(CHECKPOINT, [], |row| row.get(0))?;
        serde_json::from_str(&text)
            .map_err(|error| Failure::Failed(format!("failed to read the copy's checkpoint: {error}")))
    }

    /// Stores a batch and its checkpoint in one transaction.
    pub(super) fn apply(&mut self, batch: &Batch) -> Result<Stored, Failure> {
        let transaction = self
            .connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut stored = Stored::default();
        for report in &batch.reports {
            upsert(&transaction, report, &mut stored)?;
        }
        transaction.execute(UPDATE_CHECKPOINT, [to_json(&batch.checkpoint)?.to_string()])?;
        transaction.commit()?;
        Ok(stored)
    }

    /// Returns the number of reports.
    pub(super) fn count(&self) -> Result<i64, Failure> {
        Ok(self.connection.query_row(COUNT, [], |row| row.get(0))?)
    }

    /// Calls `visit` with each report as JSON, in the order of creation.
    pub(super) fn each(&self, mut visit: impl FnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut statement = self.connection.prepare(ALL)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            visit(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?;
        }
        Ok(())
    }
}

fn create(transaction: &Transaction<'_>, base_url: &str, partner: &str) -> Result<(), Failure> {
    let columns: Vec<_> = COLUMNS.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.execute(CREATE_SYNC, [])?;
    transaction.execute(
        INSERT_SYNC,
        [base_url, partner, &to_json(&Checkpoint::default())?.to_string()],
    )?;
    // `seen_at` is the local time at which this state was first seen, `json` the report as the service returned it.
    let reports = format!(
        "CREATE TABLE reports ({}, seen_at TEXT NOT NULL, json TEXT NOT NULL) STRICT",
        columns.join(", ")
    );
    transaction.execute(&reports, [])?;
    Ok(())
}

fn upsert(transaction: &Transaction<'_>, report: &InspectionListItem, stored: &mut Stored) -> Result<(), Failure> {
    let value = to_json(report)?;
    let json = value.to_string();
    let known: Option<String> = transaction
        .prepare_cached(KNOWN)?
        .query_row([report.id.to_string()], |row| row.get(0))
        .optional()?;
    match known {
        Some(known) if known == json => return Ok(()),
        Some(_) => stored.changed += 1,
        None => stored.new += 1,
    }
    let names: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let places = vec!["?"; COLUMNS.len() + 2].join(", ");
    let statement = format!(
        "INSERT OR REPLACE INTO reports ({}, seen_at, json) VALUES ({places})",
        names.join(", ")
    );
    let now = when::at(chrono::Utc::now());
    let cells = cells(&value).into_iter().chain([now.into(), json.into()]);
    transaction
        .prepare_cached(&statement)?
        .execute(params_from_iter(cells))?;
    Ok(())
}

/// Returns the values of [`COLUMNS`].
pub(super) fn cells(report: &Value) -> Vec<rusqlite::types::Value> {
    use rusqlite::types::Value as Cell;
    let cell = |(name, _): &(&str, &str)| match report.get(name).or_else(|| report["vehicle"].get(name)) {
        Some(Value::String(text)) => Cell::Text(text.clone()),
        Some(Value::Number(number)) => number.as_i64().map_or(Cell::Null, Cell::Integer),
        _ => Cell::Null,
    };
    COLUMNS.iter().map(cell).collect()
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|error| Failure::Failed(format!("failed to serialize a report: {error}")))
}

pub(super) fn not_a_copy(path: &Path) -> Failure {
    Failure::Rejected(format!(
        "{} exists and is not a copy made by partner sync",
        path.display()
    ))
}
