//! Applying measurements to reports: new ones on arrival, and pending ones when an inspector applies them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use partner_api_domain::newer::ValueTimes;
use partner_api_domain::plausible::DocumentedRanges;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::record::{PackageColumns, Target};
use super::report::{Locked, Report, Statements, organization_of_all};
use super::{Applied, Package, Point, answers, array_text, unexpected};
use crate::DbError;
use crate::connection::Connection;
use crate::statement;
use crate::transaction::Transaction;

statement! {
    /// Records packages as applied to reports (`$1`, one for each package), which the transaction has locked. `$13` is the
    /// organization of all reports, or null if they have several.
    ///
    /// Rows are inserted in the order of (partner, external ID), as in all such inserts. If an `external_id` is already used, the
    /// statement fails, the transaction has no effect, and each package is processed again.
    pub RECORD_APPLIED = "\
INSERT INTO measurements (id, partner_id, key_id, organization_id, branch_id, plate, external_id, device_serial,
                          measured_at, raw, raw_sha256, status, inspection_id, settled_at, point_codes, point_texts,
                          point_outcomes)
SELECT s.id, s.partner_id, s.key_id, i.organization_id, i.branch_id, i.plate, s.external_id, s.device_serial,
       coalesce(s.measured_at, now()), s.raw, s.raw_sha256, 'APPLIED', i.id, now(), s.point_codes::text[],
       s.point_texts::text[], s.point_outcomes::text[]
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::bytea[],
            $9::bytea[], $10::text[], $11::text[], $12::text[])
     AS s (inspection_id, id, partner_id, key_id, external_id, device_serial, measured_at, raw, raw_sha256, point_codes,
           point_texts, point_outcomes)
JOIN inspections i ON i.id = s.inspection_id
WHERE $13::uuid IS NULL OR i.organization_id = $13
ORDER BY s.partner_id, s.external_id COLLATE \"C\"";
}

statement! {
    /// Locks a pending measurement (`$1`) of the organization `$2` and reads its points.
    pub LOCK_PENDING = "\
SELECT m.branch_id, m.plate, m.measured_at, m.received_at, m.point_codes AS codes, m.point_texts::numeric[] AS values,
       m.point_texts AS texts
FROM measurements m
WHERE m.id = $1 AND m.organization_id = $2 AND m.status = 'PENDING'
FOR NO KEY UPDATE OF m";
}

statement! {
    /// Marks a pending measurement (`$1`) of the organization `$7` as applied to a report (`$2`) by an inspector (`$3`). Stores the
    /// outcomes of its points: codes (`$4`), texts (`$5`) and outcomes (`$6`).
    pub SETTLE = "\
UPDATE measurements
SET status = 'APPLIED', inspection_id = $2, settled_at = now(), settled_by = $3, point_codes = $4, point_texts = $5,
    point_outcomes = $6
WHERE id = $1 AND organization_id = $7 AND status = 'PENDING'";
}

/// Packages for one report.
pub struct ReportPackages<'p> {
    /// The report.
    pub target: &'p Target,
    /// The packages, in order.
    pub packages: Vec<&'p Package>,
}

/// The outcome for the packages of a report.
#[derive(Debug)]
pub enum ReportOutcome {
    /// The packages are recorded and applied; an outcome for each, in order.
    Applied(Vec<Applied>),
    /// Another transaction has locked the report; it is unchanged.
    Locked,
    /// The report is no longer open for the packages; it is unchanged.
    NotOpen,
    /// The report contains data that cannot be read; it is unchanged.
    Unreadable(DbError),
}

/// How report locks are acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Locks any number of reports, and skips those that are locked by others. Waits for other locks for at most 10 ms,
    /// because all of the reports stay locked meanwhile.
    SkipLocked,
    /// Waits for the lock of a single report for at most 100 ms. The caller then retries later, so that it holds no
    /// connection meanwhile.
    Wait,
}

impl Lock {
    fn timeout(self) -> Duration {
        match self {
            Lock::SkipLocked => Duration::from_millis(10),
            Lock::Wait => Duration::from_millis(100),
        }
    }
}

/// Records packages and applies them to their reports, in one transaction and two round trips. Returns an outcome for each
/// report, in order.
///
/// The reports are locked before anything is written. No two packages may have the same external ID.
///
/// # Errors
/// If the database reports an error, nothing was recorded: `lock_not_available` if a lock was held for longer than [`Lock`]
/// allows, `unique_violation` if an external ID is already recorded. After an error of the connection, the outcome is unknown.
pub async fn record_applied(
    client: &Connection,
    lock: Lock,
    reports: &[ReportPackages<'_>],
    documented: DocumentedRanges,
) -> Result<Vec<ReportOutcome>, DbError> {
    let transaction = client.transaction().lock_timeout(lock.timeout());
    let statements = Statements::prepare(&transaction, documented).await?;
    let answers = answers::Statements::prepare(&transaction).await?;
    let record = transaction.prepare(RECORD_APPLIED).await?;
    let locked = match locked(&statements, &transaction, lock, reports).await {
        Ok(locked) => locked,
        Err(error) => {
            transaction.rollback().await?;
            return Err(error);
        }
    };
    let mut recording = Recording::default();
    let outcomes: Vec<ReportOutcome> = reports
        .iter()
        .zip(locked)
        .map(|(packages, locked)| match locked {
            Locked::Acquired(report) => ReportOutcome::Applied(recording.add(report, packages)),
            Locked::ByOther => ReportOutcome::Locked,
            Locked::NotOpen => ReportOutcome::NotOpen,
            Locked::Unreadable(error) => ReportOutcome::Unreadable(error),
        })
        .collect();
    if recording.packages.is_empty() {
        transaction.rollback().await?;
        return Ok(outcomes);
    }
    let columns = PackageColumns::of(&recording.packages);
    let organization_id = organization_of_all(&recording.reports);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 13] = [
        &recording.inspection_ids,
        &columns.ids,
        &columns.partner_ids,
        &columns.key_ids,
        &columns.external_ids,
        &columns.device_serials,
        &columns.measured_at,
        &columns.raws,
        &columns.raw_sha256s,
        &recording.codes,
        &recording.texts,
        &recording.outcomes,
        &organization_id,
    ];
    // Pipelined: the statements are sent together and executed in this order.
    let (recorded, written, committed) = futures::join!(
        transaction.execute(&record, &parameters),
        answers.write(&transaction, &recording.reports),
        transaction.commit(),
    );
    let recorded = recorded?;
    written?;
    committed?;
    if recorded != recording.packages.len() as u64 {
        return Err(unexpected(format!(
            "{recorded} records of {}",
            recording.packages.len()
        )));
    }
    Ok(outcomes)
}

async fn locked(
    statements: &Statements,
    transaction: &Transaction<'_>,
    lock: Lock,
    reports: &[ReportPackages<'_>],
) -> Result<Vec<Locked>, DbError> {
    match (lock, reports) {
        (Lock::Wait, [one]) => Ok(vec![match statements.lock(transaction, one.target, false).await? {
            Some(report) => Locked::Acquired(report),
            None => Locked::NotOpen,
        }]),
        _ => {
            let targets: Vec<&Target> = reports.iter().map(|report| report.target).collect();
            statements.lock_skipping(transaction, &targets).await
        }
    }
}

/// The data to be recorded: the locked reports, and their packages with the report and the outcomes of the points.
#[derive(Default)]
struct Recording<'p> {
    reports: Vec<Report>,
    packages: Vec<&'p Package>,
    inspection_ids: Vec<Uuid>,
    codes: Vec<String>,
    texts: Vec<String>,
    outcomes: Vec<String>,
}

impl<'p> Recording<'p> {
    fn add(&mut self, mut report: Report, arrived: &ReportPackages<'p>) -> Vec<Applied> {
        let applied = arrived.packages.iter().map(|package| {
            let times = ValueTimes {
                measured_at: package.measured_at.unwrap_or(report.now),
                received_at: report.now,
            };
            let decided = report.test_line.apply(package.id, times, &package.points);
            let points = &decided.points;
            self.packages.push(package);
            self.inspection_ids.push(arrived.target.inspection_id);
            self.codes
                .push(array_text(points.iter().map(|(code, ..)| code.as_str())));
            self.texts
                .push(array_text(points.iter().map(|(_, text, _)| text.as_str())));
            self.outcomes
                .push(array_text(points.iter().map(|(.., outcome)| *outcome)));
            decided.applied
        });
        let applied = applied.collect();
        self.reports.push(report);
        applied
    }
}

/// Applies a pending measurement of the organization to a report on behalf of the inspector `by` (MEA-13).
///
/// The report must be open, at the measurement's branch, and for its plate; its age does not matter. Returns `None` and
/// changes nothing if the measurement is not pending or the report does not match.
///
/// # Errors
/// If the database reports an error. The transaction must then not be committed.
pub async fn apply(
    transaction: &Transaction<'_>,
    organization_id: Uuid,
    measurement_id: Uuid,
    inspection_id: Uuid,
    by: &str,
    documented: DocumentedRanges,
) -> Result<Option<Applied>, DbError> {
    let lock_pending = transaction.prepare(LOCK_PENDING).await?;
    let pending = transaction
        .query_opt(&lock_pending, &[&measurement_id, &organization_id])
        .await?;
    let Some(pending) = pending else {
        return Ok(None);
    };
    let target = Target {
        inspection_id,
        organization_id,
        branch_id: pending.try_get("branch_id")?,
        plate: pending.try_get("plate")?,
    };
    let times = ValueTimes {
        measured_at: pending.try_get::<_, DateTime<Utc>>("measured_at")?,
        received_at: pending.try_get("received_at")?,
    };
    let codes: Vec<String> = pending.try_get("codes")?;
    let values: Vec<Decimal> = pending.try_get("values")?;
    let texts: Vec<String> = pending.try_get("texts")?;
    let points: Vec<Point> = codes
        .into_iter()
        .zip(values)
        .zip(texts)
        .map(|((code, value), text)| Point { code, value, text })
        .collect();
    let statements = Statements::prepare(transaction, documented).await?;
    let Some(mut report) = statements.lock(transaction, &target, true).await? else {
        return Ok(None);
    };
    let decided = report.test_line.apply(measurement_id, times, &points);
    settle(transaction, &target, measurement_id, by, &decided.points).await?;
    let answers = answers::Statements::prepare(transaction).await?;
    answers.write(transaction, std::slice::from_ref(&report)).await?;
    Ok(Some(decided.applied))
}

async fn settle(
    transaction: &Transaction<'_>,
    report: &Target,
    measurement_id: Uuid,
    by: &str,
    points: &[(String, String, &'static str)],
) -> Result<(), DbError> {
    let codes: Vec<&str> = points.iter().map(|(code, ..)| code.as_str()).collect();
    let texts: Vec<&str> = points.iter().map(|(_, text, _)| text.as_str()).collect();
    let outcomes: Vec<&str> = points.iter().map(|(.., outcome)| *outcome).collect();
    let settle = transaction.prepare(SETTLE).await?;
    let settled = transaction
        .execute(
            &settle,
            &[
                &measurement_id,
                &report.inspection_id,
                &by,
                &codes,
                &texts,
                &outcomes,
                &report.organization_id,
            ],
        )
        .await?;
    match settled {
        1 => Ok(()),
        _ => Err(unexpected(format!("{measurement_id} is no longer pending"))),
    }
}
