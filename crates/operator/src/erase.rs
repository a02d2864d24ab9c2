//! `erase`: erases personal data on request or by age: vehicles, reports, and what belongs to them.
//!
//! The functions of the schema do the work, with the rights of its owner (`migrations/V0001__baseline.sql`): operators have no
//! right to delete these rows. The service then deletes the files. `docs/operating.md` has what is kept for how long.

use chrono::{DateTime, Months, Utc};
use clap::{Args, Subcommand};
use partner_api_store::connection::Connection;
use serde::Serialize;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::output::{Output, to_json};
use crate::progress::Progress;
use crate::session::{Changed, Session};
use crate::when;

/// The number of reports that one transaction erases.
const REPORTS_AT_A_TIME: i64 = 500;
/// The number of measurements that one transaction erases.
const MEASUREMENTS_AT_A_TIME: i32 = 5_000;

/// Session settings. The whole transaction waits for a report that an inspector or a measurement is changing.
const SETTINGS: &str = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'";

/// How to undo an erasure.
const UNDO: &str = "cannot be undone: only a backup still has the data";

partner_api_store::statement! {
    VEHICLE = "SELECT id FROM vehicles WHERE id = $1 OR vin = $2 OR plate = $3 LIMIT 10";
    REPORT = "SELECT id FROM inspections WHERE id = $1 OR report_number = $2";
    REPORTS_OF_VEHICLE = "SELECT id FROM inspections WHERE vehicle_id = $1 ORDER BY id";
    /// What `ERASE_REPORTS` or, with a vehicle, `ERASE_VEHICLE` would erase.
    PREVIEW = "\
WITH plates AS MATERIALIZED (
    SELECT plate FROM vehicles WHERE id = $2::uuid UNION SELECT plate FROM inspections WHERE vehicle_id = $2::uuid
), vehicle AS MATERIALIZED (
    SELECT $2 AS id WHERE $2 IS NOT NULL UNION SELECT vehicle_id FROM inspections WHERE id = ANY ($1::uuid[])
), kept AS MATERIALIZED (
    SELECT DISTINCT i.vehicle_id FROM inspections i JOIN vehicle v ON v.id = i.vehicle_id WHERE i.id <> ALL ($1)
)
SELECT (SELECT count(*) FROM inspections WHERE id = ANY ($1::uuid[])) AS erased_reports,
       (SELECT count(*) FROM vehicle) - (SELECT count(*) FROM kept) AS erased_vehicles,
       (SELECT count(*) FROM measurements WHERE inspection_id = ANY ($1))
       + (SELECT count(*) FROM plates CROSS JOIN branches b
          JOIN measurements m ON m.branch_id = b.id AND m.organization_id = b.organization_id AND m.plate = plates.plate
            AND m.status = 'PENDING')
       + (SELECT count(*) FROM plates CROSS JOIN branches b
          JOIN measurements m ON m.branch_id = b.id AND m.organization_id = b.organization_id AND m.plate = plates.plate
            AND m.status = 'DISCARDED') AS erased_measurements,
       (SELECT count(*) FROM (
            SELECT object_key FROM photos WHERE inspection_id = ANY ($1)
            UNION SELECT thumb_object_key FROM photos WHERE inspection_id = ANY ($1) AND thumb_object_key IS NOT NULL
            UNION SELECT object_key FROM published_pdfs WHERE inspection_id = ANY ($1)
            UNION SELECT pdf_object_key FROM inspections WHERE id = ANY ($1) AND pdf_object_key IS NOT NULL) f
       ) AS orphaned_files";
    ERASE_REPORTS = "SELECT * FROM erase_reports($1)";
    ERASE_VEHICLE = "SELECT * FROM erase_vehicle($1)";
    OLD_REPORTS = "SELECT count(*) AS reports FROM inspections WHERE created_at < $1";
    /// The next old reports in the order of their IDs. All steps together read the table once.
    NEXT_OLD_REPORTS = "SELECT id FROM inspections WHERE id > $1 AND created_at < $2 ORDER BY id LIMIT $3";
    UNUSED_MEASUREMENTS = "SELECT count(*) AS measurements FROM measurements \
                           WHERE status IN ('PENDING', 'DISCARDED') AND plate <> '' AND received_at < $1";
    ERASE_UNUSED_MEASUREMENTS = "SELECT erase_unused_measurements($1, $2) AS measurements";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
A report is erased with its forms, history, photos and PDFs, with the packages of its measurements, and with its vehicle if no \
other report has it. The service deletes the files within a minute. Partners keep what they have downloaded, and backups what \
they contain: docs/operating.md explains both. `purge` erases what is past the configured retention.

Examples:
  partner-api erase vehicle WVWZZZ1KZ6W000433 --dry-run    print what would be erased
  partner-api erase vehicle WVWZZZ1KZ6W000433
  partner-api erase report K-2026-001433
  partner-api erase reports --years 10                     all that were opened more than 10 years ago";

/// Commands that erase.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Erase a vehicle, all its reports, and the measurements of its plates
    Vehicle(VehicleArgs),
    /// Erase a report and its measurements
    Report(ReportArgs),
    /// Erase all reports older than a number of years
    Reports(ReportsArgs),
}

/// The arguments of `erase vehicle`.
#[derive(Args, Debug)]
pub struct VehicleArgs {
    /// The vehicle, by VIN, plate or ID
    vehicle: String,
    /// Print what would be erased, and erase nothing
    #[arg(long)]
    dry_run: bool,
}

/// The arguments of `erase report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The report, by number or ID
    report: String,
    /// Print what would be erased, and erase nothing
    #[arg(long)]
    dry_run: bool,
}

/// The arguments of `erase reports`.
#[derive(Args, Debug)]
pub struct ReportsArgs {
    /// Years since a report was opened
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100))]
    years: u32,
    /// Print how many would be erased, and erase nothing
    #[arg(long)]
    dry_run: bool,
}

/// The data that an erasure removes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Erased {
    /// Reports with everything that belongs to them.
    reports: i64,
    vehicles: i64,
    /// Measurements whose package was removed.
    measurements: i64,
    /// Stored objects that the service deletes.
    files: i64,
    /// The IDs of the reports. After a backup is restored, they tell what to erase again.
    report_ids: Vec<Uuid>,
}

impl Erased {
    fn of(row: &Row, report_ids: Vec<Uuid>) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            reports: row.try_get("erased_reports")?,
            vehicles: row.try_get("erased_vehicles")?,
            measurements: row.try_get("erased_measurements")?,
            files: row.try_get("orphaned_files")?,
            report_ids,
        })
    }

    fn text(&self) -> String {
        format!(
            "{}, {}, {} and {}",
            counted(self.reports, "report"),
            counted(self.vehicles, "vehicle"),
            counted(self.measurements, "measurement"),
            counted(self.files, "file")
        )
    }

    /// Returns the change for the audit log, without personal data.
    fn change(self, kind: &'static str, id: impl ToString) -> Changed<Self> {
        let what = format!("Erased {}.", self.text());
        Changed::of(kind, id, what, self).undo(UNDO)
    }
}

/// The result of an erasure by age.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct ErasedByAge {
    pub reports: i64,
    pub vehicles: i64,
    pub measurements: i64,
    pub files: i64,
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Vehicle(args) => vehicle(session, &args).await,
            Self::Report(args) => report(session, &args).await,
            Self::Reports(args) => reports(session, &args).await,
        }
    }
}

async fn vehicle(session: &Session, args: &VehicleArgs) -> Result<Output, Failure> {
    let connection = session.read().await?;
    let id = vehicle_id(&connection, &args.vehicle).await?;
    let reports = ids(&connection.query(REPORTS_OF_VEHICLE, &[&id]).await?)?;
    if args.dry_run {
        return preview(&connection, reports, Some(id)).await;
    }
    drop(connection);
    let mut client = open(session).await?;
    let erased = session
        .change_part(&mut client, "erase vehicle", async |transaction| {
            let row = transaction.query_one(ERASE_VEHICLE.sql(), &[&id]).await?;
            Ok(Erased::of(&row, reports)?.change("vehicle", id))
        })
        .await?;
    Ok(done(&erased.text(), &erased))
}

async fn report(session: &Session, args: &ReportArgs) -> Result<Output, Failure> {
    let connection = session.read().await?;
    let id = Uuid::parse_str(&args.report).ok();
    let found = ids(&connection.query(REPORT, &[&id, &args.report]).await?)?;
    let Some(&report) = found.first() else {
        return Err(not_found(Kind::Report, &args.report));
    };
    if args.dry_run {
        return preview(&connection, found, None).await;
    }
    drop(connection);
    let mut client = open(session).await?;
    let erased = session
        .change_part(&mut client, "erase report", async |transaction| {
            let row = transaction.query_one(ERASE_REPORTS.sql(), &[&found]).await?;
            Ok(Erased::of(&row, found)?.change("report", report))
        })
        .await?;
    Ok(done(&erased.text(), &erased))
}

async fn reports(session: &Session, args: &ReportsArgs) -> Result<Output, Failure> {
    let before = years_ago(args.years);
    let mut client = open(session).await?;
    let count = old_reports(&client, before).await?;
    let opened = format!("opened before {}", when::at(before));
    if args.dry_run || count == 0 {
        let facts = [("would erase", format!("{} {opened}", counted(count, "report")))];
        return Ok(Output::facts(&serde_json::json!({ "reports": count }), &facts));
    }
    let erased = erase_old_reports(session, &mut client, "erase reports", before, count).await?;
    Ok(done(&erased.text(), &erased))
}

/// Returns the number of reports that were opened before a time.
pub(crate) async fn old_reports(client: &Client, before: DateTime<Utc>) -> Result<i64, Failure> {
    Ok(client
        .query_one(OLD_REPORTS.sql(), &[&before])
        .await?
        .try_get("reports")?)
}

/// Returns the number of measurements in no report that arrived before a time.
pub(crate) async fn unused_measurements(client: &Client, before: DateTime<Utc>) -> Result<i64, Failure> {
    let row = client.query_one(UNUSED_MEASUREMENTS.sql(), &[&before]).await?;
    Ok(row.try_get("measurements")?)
}

/// Erases the reports that were opened before a time, of which there are about `count`.
pub(crate) async fn erase_old_reports(
    session: &Session,
    client: &mut Client,
    command: &'static str,
    before: DateTime<Utc>,
    count: i64,
) -> Result<ErasedByAge, Failure> {
    let progress = Progress::of_lines("Erasing reports".to_owned(), count.unsigned_abs());
    let mut total = ErasedByAge::default();
    let mut after = Uuid::nil();
    loop {
        let found = client
            .query(NEXT_OLD_REPORTS.sql(), &[&after, &before, &REPORTS_AT_A_TIME])
            .await
            .map_err(|error| total.stopped(error.into()))?;
        let found = ids(&found)?;
        let Some(last) = found.last() else { break };
        after = *last;
        let part = session.change_part(client, command, async |transaction| {
            let row = transaction.query_one(ERASE_REPORTS.sql(), &[&found]).await?;
            Ok(Erased::of(&row, found)?.change("reports", format!("opened before {}", when::at(before))))
        });
        let part = part.await.map_err(|error| total.stopped(error))?;
        total.reports += part.reports;
        total.vehicles += part.vehicles;
        total.measurements += part.measurements;
        total.files += part.files;
        progress.at(total.reports.unsigned_abs());
    }
    Ok(total)
}

/// Erases the measurements that are in no report and arrived before a time, of which there are about `count`.
pub(crate) async fn erase_unused_measurements(
    session: &Session,
    client: &mut Client,
    command: &'static str,
    before: DateTime<Utc>,
    count: i64,
) -> Result<ErasedByAge, Failure> {
    let progress = Progress::of_lines("Erasing measurements".to_owned(), count.unsigned_abs());
    let mut total = ErasedByAge::default();
    loop {
        let part = session.change_part(client, command, async |transaction| {
            let sql = ERASE_UNUSED_MEASUREMENTS.sql();
            let row = transaction.query_one(sql, &[&before, &MEASUREMENTS_AT_A_TIME]).await?;
            let part = ErasedByAge {
                measurements: row.try_get("measurements")?,
                ..ErasedByAge::default()
            };
            let id = format!("received before {}", when::at(before));
            let what = format!("Erased {}.", part.text());
            Ok(match part.measurements {
                0 => Changed::unchanged("measurements", id, what, part),
                _ => Changed::of("measurements", id, what, part).undo(UNDO),
            })
        });
        match part.await.map_err(|error| total.stopped(error))?.measurements {
            0 => return Ok(total),
            erased => total.measurements += erased,
        }
        progress.at(total.measurements.unsigned_abs());
    }
}

/// Returns the same time of day a number of years ago.
pub(crate) fn years_ago(years: u32) -> DateTime<Utc> {
    let months = Months::new(years.saturating_mul(12));
    Utc::now()
        .checked_sub_months(months)
        .unwrap_or(DateTime::<Utc>::MIN_UTC)
}

/// Returns a number with its noun.
pub(crate) fn counted(count: i64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

impl ErasedByAge {
    pub(crate) fn text(&self) -> String {
        Erased {
            reports: self.reports,
            vehicles: self.vehicles,
            measurements: self.measurements,
            files: self.files,
            report_ids: Vec::new(),
        }
        .text()
    }

    /// Says what was erased before a failure.
    fn stopped(&self, error: Failure) -> Failure {
        Failure::Stopped(format!(
            "{error}; erased before this: {}. The same command erases the rest",
            self.text()
        ))
    }
}

/// Opens a session without a limit on the time of statements.
pub(crate) async fn open(session: &Session) -> Result<Client, Failure> {
    let client = session.dedicated("partner-api erase").await?;
    client.batch_execute(SETTINGS).await?;
    Ok(client)
}

async fn preview(connection: &Connection, reports: Vec<Uuid>, vehicle: Option<Uuid>) -> Result<Output, Failure> {
    let row = connection.query_one(PREVIEW, &[&reports, &vehicle]).await?;
    let erased = Erased::of(&row, reports)?;
    Ok(Output::facts(&erased, &[("would erase", erased.text())]))
}

fn done(erased: &str, value: &impl Serialize) -> Output {
    let what = format!("Erased {erased}. The service deletes the files within a minute.");
    Output::changed(true, &what, Some(UNDO), &[], to_json(value))
}

async fn vehicle_id(connection: &Connection, text: &str) -> Result<Uuid, Failure> {
    let plate = partner_api_domain::plate::Plate::parse(text).ok();
    let plate = plate.as_ref().map(AsRef::<str>::as_ref);
    let id = Uuid::parse_str(text).ok();
    let found = connection.query(VEHICLE, &[&id, &text, &plate]).await?;
    match ids(&found)?.as_slice() {
        [id] => Ok(*id),
        [] => Err(not_found(Kind::Vehicle, text)),
        several => {
            let ids: Vec<_> = several.iter().map(Uuid::to_string).collect();
            Err(Failure::Usage(format!(
                "{} vehicles have this VIN or plate; name one by its ID: {}",
                several.len(),
                ids.join(", ")
            )))
        }
    }
}

fn ids(rows: &[Row]) -> Result<Vec<Uuid>, Failure> {
    Ok(rows.iter().map(|row| row.try_get("id")).collect::<Result<_, _>>()?)
}

fn not_found(kind: Kind, name: &str) -> Failure {
    Failure::NotFound {
        kind,
        name: name.to_owned(),
        suggestions: Vec::new(),
    }
}
