//! `partner measure --map`: packages from the CSV or XML export of a test line.

mod mapping;
mod records;

use std::path::Path;

use chrono::{DateTime, Utc};
use partner_api_client::{Client, submit_raw};
use partner_api_terminal::output::{Output, Row};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::file_time::uuid_with;
use super::package::{Package, PackageFields};
use super::skipped;
use crate::failure::Failure;
use crate::profile::Connect;
pub(super) use mapping::Mapping;
use records::Record;

/// A record of the export and its package.
pub(super) struct Converted {
    /// The place of the record in the file, such as `line 2`.
    pub(super) place: String,
    /// The package, perhaps without an `external_id`.
    pub(super) package: Vec<u8>,
    measured_at: Option<DateTime<Utc>>,
}

impl Converted {
    /// Returns a UUID that depends only on the package and on `time`, which is used if the record has no time. So a record is recorded
    /// once even if its file is submitted again.
    pub(super) fn uuid(&self, time: Option<DateTime<Utc>>) -> Uuid {
        let digest: [u8; 32] = Sha256::digest(&self.package).into();
        uuid_with(self.measured_at.or(time), &digest)
    }
}

/// The outcome of a record.
#[derive(Serialize)]
struct Sent {
    record: String,
    external_id: Option<String>,
    status: String,
    is_replay: bool,
    skipped: String,
}

impl Row for Sent {
    const COLUMNS: &'static [&'static str] = &["RECORD", "STATUS", "SKIPPED", "EXTERNAL ID"];

    fn cells(&self) -> Vec<String> {
        let replay = if self.is_replay { ", recorded before" } else { "" };
        vec![
            self.record.clone(),
            format!("{}{replay}", self.status),
            self.skipped.clone(),
            self.external_id.clone().unwrap_or_default(),
        ]
    }
}

/// Converts all records of an export, and submits them unless this is a dry run.
pub(super) async fn run(connect: &Connect, mapping: &Path, export: &Path, is_dry_run: bool) -> Result<(), Failure> {
    let mapping = load(mapping)?;
    let bytes = std::fs::read(export).map_err(Failure::of(export))?;
    let invalid = |error: String| Failure::Usage(format!("{}: {error}", export.display()));
    let mut packages = Vec::new();
    for record in convert(&mapping, &bytes, export).map_err(invalid)? {
        let package =
            Package::of(&record.package, record.uuid(None), None).map_err(|error| invalid(error.to_string()))?;
        packages.push((record.place, package));
    }
    if is_dry_run {
        for (_, package) in packages {
            println!("{}", String::from_utf8_lossy(&package.body));
        }
        return Ok(());
    }
    let client = connect.client()?;
    let mut sent = Vec::new();
    for (place, package) in packages {
        sent.push(submit(&client, place, package).await?);
    }
    Output::rows(&sent, "The file has no records.").print(connect.json)?;
    Ok(())
}

async fn submit(client: &Client, place: String, package: Package) -> Result<Sent, Failure> {
    let external_id = package.added_id.clone();
    let answer = submit_raw(client, package.body).await.inspect_err(|_| {
        eprintln!(
            "{place} was not recorded; the records before it were. After a correction, submit the whole file again"
        );
    })?;
    if answer.is_payload_mismatch() {
        return Err(Failure::Rejected(format!(
            "{place}: its external_id was already used for another package (measurement {}); use a new one",
            answer.data.measurement_id
        )));
    }
    Ok(Sent {
        record: place,
        external_id,
        status: answer.data.status.to_string(),
        is_replay: answer.data.idempotent_replay,
        skipped: skipped(&answer.data),
    })
}

/// Reads a mapping file.
pub(super) fn load(path: &Path) -> Result<Mapping, Failure> {
    let text = crate::text::read(path).map_err(Failure::of(path))?;
    Mapping::parse(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Converts the records of an export. The path determines its format.
///
/// # Errors
/// All invalid records, so that nothing is sent if one is invalid.
pub(super) fn convert(mapping: &Mapping, export: &[u8], path: &Path) -> Result<Vec<Converted>, String> {
    let (mut converted, mut errors) = (Vec::new(), Vec::new());
    for record in records::read(export, path, mapping)? {
        match package(mapping, &record) {
            Ok((package, measured_at)) => converted.push(Converted {
                place: record.place,
                package,
                measured_at,
            }),
            Err(error) => errors.push(format!("{}: {error}", record.place)),
        }
    }
    match errors.is_empty() {
        true => Ok(converted),
        false => Err(format!("nothing was sent\n    {}", errors.join("\n    "))),
    }
}

/// Returns the package of a record, and the time of the record.
fn package(mapping: &Mapping, record: &Record) -> Result<(Vec<u8>, Option<DateTime<Utc>>), String> {
    let points = mapping.points(record)?;
    let branch_code = mapping.branch_code.of(record);
    let plate = mapping.plate.of(record);
    let optional = |field: &Option<mapping::Field>| {
        let text = field.as_ref().map(|field| field.of(record));
        text.filter(|text| !text.is_empty())
    };
    let (external_id, device_serial) = (optional(&mapping.external_id), optional(&mapping.device_serial));
    let measured_at = mapping.measured_at(record)?;
    let fields = PackageFields {
        branch_code: &branch_code,
        plate: &plate,
        measured_at,
        external_id: external_id.as_deref(),
        device_serial: device_serial.as_deref(),
        measurements: &points,
    };
    let text = fields.to_json().map_err(|failure| failure.to_string())?;
    Ok((text, measured_at))
}
