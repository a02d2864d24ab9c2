//! `partner measure --map`: packages from the CSV or XML export of a test line.

mod mapping;
mod records;

use std::path::Path;

use partner_api_client::{Client, submit_raw};
use partner_api_terminal::output::{Output, Row};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::package::{Package, PackageFields};
use super::skipped;
use crate::failure::Failure;
use crate::profile::Connect;
use mapping::Mapping;
use records::Record;

/// A record of the export and its package.
struct Mapped {
    /// The place of the record in the file, such as `line 2`.
    place: String,
    package: Package,
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
    let packages = packages(mapping, export)?;
    if is_dry_run {
        for mapped in packages {
            println!("{}", String::from_utf8_lossy(&mapped.package.body));
        }
        return Ok(());
    }
    let client = connect.client()?;
    let mut sent = Vec::new();
    for mapped in packages {
        sent.push(submit(&client, mapped).await?);
    }
    Output::rows(&sent, "The file has no records.").print(connect.json)?;
    Ok(())
}

async fn submit(client: &Client, mapped: Mapped) -> Result<Sent, Failure> {
    let Mapped { place, package } = mapped;
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

/// Returns the package of each record.
///
/// # Errors
/// All invalid records, so that nothing is sent if one is invalid.
fn packages(mapping: &Path, export: &Path) -> Result<Vec<Mapped>, Failure> {
    let text = crate::text::read(mapping).map_err(Failure::of(mapping))?;
    let mapping = Mapping::parse(&text).map_err(|error| Failure::Usage(format!("{}: {error}", mapping.display())))?;
    let bytes = std::fs::read(export).map_err(Failure::of(export))?;
    let invalid = |error: String| Failure::Usage(format!("{}: {error}", export.display()));
    let records = records::read(&bytes, export, &mapping).map_err(invalid)?;
    let (mut packages, mut errors) = (Vec::new(), Vec::new());
    for record in records {
        match package(&mapping, &record) {
            Ok(package) => packages.push(Mapped {
                place: record.place,
                package,
            }),
            Err(error) => errors.push(format!("{}: {error}", record.place)),
        }
    }
    match errors.is_empty() {
        true => Ok(packages),
        false => Err(invalid(format!("nothing was sent\n    {}", errors.join("\n    ")))),
    }
}

fn package(mapping: &Mapping, record: &Record) -> Result<Package, String> {
    let points = mapping.points(record)?;
    let branch_code = mapping.branch_code.of(record);
    let plate = mapping.plate.of(record);
    let optional = |field: &Option<mapping::Field>| {
        let text = field.as_ref().map(|field| field.of(record));
        text.filter(|text| !text.is_empty())
    };
    let (external_id, device_serial) = (optional(&mapping.external_id), optional(&mapping.device_serial));
    let fields = PackageFields {
        branch_code: &branch_code,
        plate: &plate,
        measured_at: mapping.measured_at(record)?,
        external_id: external_id.as_deref(),
        device_serial: device_serial.as_deref(),
        measurements: &points,
    };
    let text = fields.to_json().map_err(|failure| failure.to_string())?;
    Package::of(&text, uuid_of(&text), None).map_err(|error| error.to_string())
}

/// Returns a UUID that depends only on the package, so that a record is recorded once even if its file is submitted again.
fn uuid_of(package: &[u8]) -> Uuid {
    let digest = Sha256::digest(package);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
