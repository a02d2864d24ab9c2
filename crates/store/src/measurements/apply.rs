//! Measurements into a report: new ones as they arrive, and a waiting one by an inspector's click.

use std::time::Duration;

use chrono::{DateTime, Utc};
use partner_api_domain::newer::Moment;
use partner_api_domain::plausible::Documented;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::record::{PackageColumns, Target};
use super::report::{Locked, Report, Statements};
use super::{Applied, Package, Point, array_text, unexpected};
use crate::DbError;
use crate::connection::Connection;
use crate::statement;
use crate::transaction::Transaction;

statement! {
    /// Records packages as applied to reports (`$1`, one for each package), which the transaction has locked.
    ///
    /// Rows are written in the order of (partner, external id), as everywhere. Where the `external_id` of one is taken, this
    /// fails: nothing of the transaction stands then, and each of them is looked at again.
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
ORDER BY s.partner_id, s.external_id COLLATE \"C\"";
}

statement! {
    /// Locks a waiting measurement (`$1`) and reads its points.
    pub LOCK_WAITING = "\
SELECT m.branch_id, m.plate, m.measured_at, m.received_at, m.point_codes AS codes, m.point_texts::numeric[] AS values,
       m.point_texts AS texts
FROM measurements m
WHERE m.id = $1 AND m.status = 'PENDING'
FOR NO KEY UPDATE OF m";
}

statement! {
    /// Settles a waiting measurement (`$1`) as applied to a report (`$2`) by an inspector (`$3`), and what became of its points
    /// (`$4` codes, `$5` texts, `$6` outcomes).
    pub SETTLE = "\
UPDATE measurements
SET status = 'APPLIED', inspection_id = $2, settled_at = now(), settled_by = $3, point_codes = $4, point_texts = $5,
    point_outcomes = $6
WHERE id = $1 AND status = 'PENDING'";
}

/// Packages for one report.
pub struct ReportPackages<'p> {
    /// The report.
    pub target: &'p Target,
    /// The packages, in their order.
    pub packages: Vec<&'p Package>,
}

/// What became of the packages for a report.
#[derive(Debug)]
pub enum ReportOutcome {
    /// Its packages are recorded and applied; what became of each, in their order.
    Applied(Vec<Applied>),
    /// Somebody else has the report; nothing has changed of it.
    Locked,
    /// The report is no longer open for them; nothing has changed of it.
    NotOpen,
    /// The report holds what cannot be read; nothing has changed of it.
    Unreadable(DbError),
}

/// How a report's lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Whichever are free, of any number of reports: none is waited for, and nothing else that is locked for more than 10 ms,
    /// for all of them stay locked meanwhile.
    Free,
    /// That of a single report, in its turn, for at most 100 ms: who asks again later holds no connection meanwhile.
    InTurn,
}

impl Lock {
    fn timeout(self) -> Duration {
        match self {
            Lock::Free => Duration::from_millis(10),
            Lock::InTurn => Duration::from_millis(100),
        }
    }
}

/// Records packages and applies them to their reports, in one transaction of its own and two round trips; what became of
/// each report's, in their order.
///
/// The reports are locked before anything is written. No two of the packages have one external id.
///
/// # Errors
/// What the database says. Of what it answers nothing was recorded: `lock_not_available` where something is locked for longer
/// than [`Lock`] says, `unique_violation` where an external id is recording. An error of the connection says nothing about the outcome.
pub async fn record_applied(
    client: &Connection,
    lock: Lock,
    reports: &[ReportPackages<'_>],
    documented: Documented,
) -> Result<Vec<ReportOutcome>, DbError> {
    let transaction = client.transaction().lock_timeout(lock.timeout());
    let statements = Statements::prepare(&transaction, documented).await?;
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
            Locked::Here(report) => ReportOutcome::Applied(recording.take(report, packages)),
            Locked::Elsewhere => ReportOutcome::Locked,
            Locked::NotOpen => ReportOutcome::NotOpen,
            Locked::Unreadable(error) => ReportOutcome::Unreadable(error),
        })
        .collect();
    if recording.packages.is_empty() {
        transaction.rollback().await?;
        return Ok(outcomes);
    }
    let columns = PackageColumns::of(&recording.packages);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 12] = [
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
    ];
    // Sent together, and worked off in this order.
    let (recorded, written, committed) = futures::join!(
        transaction.execute(&record, &parameters),
        statements.write_answers(&transaction, &recording.reports),
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
        (Lock::InTurn, [one]) => Ok(vec![match statements.lock(transaction, one.target, false).await? {
            Some(report) => Locked::Here(report),
            None => Locked::NotOpen,
        }]),
        _ => {
            let targets: Vec<&Target> = reports.iter().map(|report| report.target).collect();
            statements.lock_free(transaction, &targets).await
        }
    }
}

/// What is to be recorded: the reports that were locked, and the packages that they took, each with its report and what
/// is kept of its points.
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
    fn take(&mut self, mut report: Report, arrived: &ReportPackages<'p>) -> Vec<Applied> {
        let applied = arrived.packages.iter().map(|package| {
            let moment = Moment {
                measured_at: package.measured_at.unwrap_or(report.now),
                received_at: report.now,
            };
            let decided = report.test_line.take(package.id, moment, &package.points);
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

/// Applies a waiting measurement to a report, as an inspector does with one click (MEA-13).
///
/// The report must be in its writing phase, at the measurement's branch and for its plate; how old it is does not matter
/// here. `by` says who applies it. `None`: the measurement does not wait (any more), or the report is none for it; nothing
/// has changed then.
///
/// # Errors
/// What the database says; the transaction must not be committed then.
pub async fn apply(
    transaction: &Transaction<'_>,
    measurement_id: Uuid,
    inspection_id: Uuid,
    by: &str,
    documented: Documented,
) -> Result<Option<Applied>, DbError> {
    let lock_waiting = transaction.prepare(LOCK_WAITING).await?;
    let Some(waiting) = transaction.query_opt(&lock_waiting, &[&measurement_id]).await? else {
        return Ok(None);
    };
    let target = Target {
        inspection_id,
        branch_id: waiting.try_get("branch_id")?,
        plate: waiting.try_get("plate")?,
    };
    let moment = Moment {
        measured_at: waiting.try_get::<_, DateTime<Utc>>("measured_at")?,
        received_at: waiting.try_get("received_at")?,
    };
    let codes: Vec<String> = waiting.try_get("codes")?;
    let values: Vec<Decimal> = waiting.try_get("values")?;
    let texts: Vec<String> = waiting.try_get("texts")?;
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
    let decided = report.test_line.take(measurement_id, moment, &points);
    settle(transaction, measurement_id, inspection_id, by, &decided.points).await?;
    statements
        .write_answers(transaction, std::slice::from_ref(&report))
        .await?;
    Ok(Some(decided.applied))
}

async fn settle(
    transaction: &Transaction<'_>,
    measurement_id: Uuid,
    inspection_id: Uuid,
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
            &[&measurement_id, &inspection_id, &by, &codes, &texts, &outcomes],
        )
        .await?;
    match settled {
        1 => Ok(()),
        _ => Err(unexpected(format!("{measurement_id} no longer waits"))),
    }
}
