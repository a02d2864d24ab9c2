//! Locking of reports, and reading of their test-line forms.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use partner_api_domain::newer::ValueTimes;
use partner_api_domain::plausible::{DocumentedRanges, NarrowedRange};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::decide::{TestLine, TestLinePoint};
use super::{Target, unexpected};
use crate::statement;
use crate::statement::Prepared;
use crate::transaction::Transaction;
use crate::{DbError, thresholds};

statement! {
    /// Locks a report (`$1`) of the organization `$5` if it is open, at the branch `$2`, and for the plate `$3`. Unless `$4` is true, it
    /// must also have been created within the last 24 hours by the database's clock.
    ///
    /// Publishing a report updates its row. So publishing waits for this lock, or this statement waits for the publishing
    /// and then checks the row again. The lock does not prevent photos or forms from being added.
    pub LOCK = "\
SELECT now() AS now, i.created_at, v.factory_power_hp
FROM inspections i JOIN vehicles v ON v.id = i.vehicle_id
WHERE i.id = $1 AND i.organization_id = $5 AND i.branch_id = $2 AND i.plate = $3 AND i.status IN ('DRAFT', 'REVISION_REQUESTED')
  AND ($4 OR i.created_at >= now() - interval '24 hours')
FOR NO KEY UPDATE OF i";
}

// The reports of a batch usually have one organization. The statements below have it as a parameter, which is null if there are
// several. They select the same rows without it.

statement! {
    /// Locks those of several reports (`$1`; `$4` is the organization of all) that are not locked by others, on the conditions of
    /// [`LOCK`]: at the branch `$2`, for the plate `$3`, created within the last 24 hours. For the others it returns whether they meet
    /// the conditions.
    ///
    /// It never waits, so it cannot deadlock even though it holds several locks.
    pub LOCK_SKIPPING = "\
WITH target AS (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[]) WITH ORDINALITY AS t (inspection_id, branch_id, plate, place)
), locked AS MATERIALIZED (
    SELECT i.id
    FROM target t
    JOIN inspections i ON i.id = t.inspection_id AND i.branch_id = t.branch_id AND i.plate = t.plate
    WHERE ($4::uuid IS NULL OR i.organization_id = $4) AND i.status IN ('DRAFT', 'REVISION_REQUESTED')
      AND i.created_at >= now() - interval '24 hours'
    FOR NO KEY UPDATE OF i SKIP LOCKED
)
SELECT now() AS now, locked.id IS NOT NULL AS is_locked, i.created_at, v.factory_power_hp,
       i.id IS NOT NULL AS is_open
FROM target t
LEFT JOIN inspections i ON i.id = t.inspection_id AND i.branch_id = t.branch_id AND i.plate = t.plate
    AND ($4::uuid IS NULL OR i.organization_id = $4) AND i.status IN ('DRAFT', 'REVISION_REQUESTED')
    AND i.created_at >= now() - interval '24 hours'
LEFT JOIN vehicles v ON v.id = i.vehicle_id
LEFT JOIN locked ON locked.id = t.inspection_id
ORDER BY t.place";
}

statement! {
    /// The points of the test-line forms of reports (`$1`; `$2` is the organization of all), each with the organization's thresholds
    /// and ranges, the time of its current device value, and the time of reading.
    ///
    /// The time is read from the measurement of the answer and stored nowhere else, so it disappears when an inspector
    /// overwrites the value.
    pub READ = "\
SELECT i.id AS inspection_id, t.id AS template_id, f.id AS form_id, p.id AS point_id, p.code, h.point_code IS NOT NULL AS has_bounds,
       h.good_min, h.good_max, h.borderline_min, h.borderline_max, r.minimum, r.maximum, m.measured_at, m.received_at,
       clock_timestamp() AS read_at
FROM inspections i
JOIN form_templates t ON t.organization_id = i.organization_id AND t.is_test_line
JOIN form_template_points p ON p.template_id = t.id AND p.organization_id = t.organization_id
LEFT JOIN thresholds h ON h.organization_id = i.organization_id AND h.point_code = p.code
LEFT JOIN plausible_ranges r ON r.organization_id = i.organization_id AND r.point_code = p.code
LEFT JOIN inspection_forms f ON f.inspection_id = i.id AND f.template_id = t.id AND f.organization_id = i.organization_id
LEFT JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.point_id = p.id AND a.organization_id = f.organization_id
LEFT JOIN measurements m ON m.id = a.measurement_id AND m.organization_id = a.organization_id
WHERE i.id = ANY ($1::uuid[]) AND ($2::uuid IS NULL OR i.organization_id = $2)";
}

/// The statements that lock and read reports. They are prepared together, so that they can be pipelined.
pub(super) struct Statements {
    documented: DocumentedRanges,
    lock: Prepared,
    lock_skipping: Prepared,
    read: Prepared,
}

impl Statements {
    pub async fn prepare(transaction: &Transaction<'_>, documented: DocumentedRanges) -> Result<Self, DbError> {
        Ok(Statements {
            documented,
            lock: transaction.prepare(LOCK).await?,
            lock_skipping: transaction.prepare(LOCK_SKIPPING).await?,
            read: transaction.prepare(READ).await?,
        })
    }

    /// Locks and reads a report in one round trip. Returns `None` if it is not an open report for the target.
    pub async fn lock(
        &self,
        transaction: &Transaction<'_>,
        target: &Target,
        of_any_age: bool,
    ) -> Result<Option<Report>, DbError> {
        let ids = vec![target.inspection_id];
        let parameters: [&(dyn ToSql + Sync); 5] = [
            &target.inspection_id,
            &target.branch_id,
            &target.plate,
            &of_any_age,
            &target.organization_id,
        ];
        let read_parameters: [&(dyn ToSql + Sync); 2] = [&ids, &target.organization_id];
        let (locked, read) = futures::join!(
            transaction.query_opt(&self.lock, &parameters),
            transaction.query(&self.read, &read_parameters),
        );
        let Some(locked) = locked? else { return Ok(None) };
        self.report(target, &locked, &read?).map(Some)
    }

    /// Locks and reads the reports that are not locked by others, in one round trip. Returns a result for each report, in order.
    pub async fn lock_skipping(
        &self,
        transaction: &Transaction<'_>,
        targets: &[&Target],
    ) -> Result<Vec<Locked>, DbError> {
        let ids: Vec<Uuid> = targets.iter().map(|target| target.inspection_id).collect();
        let branches: Vec<Uuid> = targets.iter().map(|target| target.branch_id).collect();
        let plates: Vec<&str> = targets.iter().map(|target| target.plate.as_str()).collect();
        let organization_id = same(targets.iter().map(|target| target.organization_id));
        let parameters: [&(dyn ToSql + Sync); 4] = [&ids, &branches, &plates, &organization_id];
        let read_parameters: [&(dyn ToSql + Sync); 2] = [&ids, &organization_id];
        let (locked, read) = futures::join!(
            transaction.query(&self.lock_skipping, &parameters),
            transaction.query(&self.read, &read_parameters),
        );
        let locked = locked?;
        if locked.len() != targets.len() {
            return Err(unexpected(format!("{} reports of {}", locked.len(), targets.len())));
        }
        let mut read_of: HashMap<Uuid, Vec<Row>> = HashMap::new();
        for row in read? {
            read_of.entry(row.try_get("inspection_id")?).or_default().push(row);
        }
        targets
            .iter()
            .zip(&locked)
            .map(|(target, row)| {
                Ok(if row.try_get("is_locked")? {
                    let points = read_of.get(&target.inspection_id).map(Vec::as_slice);
                    // Invalid data in one report must not affect the others.
                    match self.report(target, row, points.unwrap_or_default()) {
                        Ok(report) => Locked::Acquired(report),
                        Err(error) => Locked::Unreadable(error),
                    }
                } else if row.try_get("is_open")? {
                    Locked::ByOther
                } else {
                    Locked::NotOpen
                })
            })
            .collect()
    }

    /// Builds a report from the row of its lock and the rows of its points.
    fn report(&self, target: &Target, locked: &Row, points: &[Row]) -> Result<Report, DbError> {
        let now = locked.try_get("now")?;
        let (mut form, mut read_at) = (None, now);
        for row in points {
            form = Some((row.try_get("template_id")?, row.try_get("form_id")?));
            read_at = row.try_get("read_at")?;
        }
        Ok(Report {
            inspection_id: target.inspection_id,
            organization_id: target.organization_id,
            now,
            read_at,
            form,
            test_line: test_line(locked, points, self.documented)?,
        })
    }
}

/// The result of an attempt to lock a report.
pub(super) enum Locked {
    /// The transaction has locked the report.
    Acquired(Report),
    /// Another transaction holds the lock of the report, or held it a moment ago.
    ByOther,
    /// The report is not open for the target.
    NotOpen,
    /// The transaction has locked the report, but its data cannot be read.
    Unreadable(DbError),
}

/// A report that the transaction has locked.
pub(super) struct Report {
    pub inspection_id: Uuid,
    pub organization_id: Uuid,
    /// The start of the transaction by the database's clock, which is the arrival time of the packages that it records.
    pub now: DateTime<Utc>,
    /// When it was read, after it was locked, by the same clock.
    pub read_at: DateTime<Utc>,
    /// The organization's test-line template and the report's form of it, if there is one; `None` without a template.
    pub form: Option<(Uuid, Option<Uuid>)>,
    pub test_line: TestLine,
}

/// Returns the organization of the reports; `None` if they have several.
pub(super) fn organization_of_all(reports: &[Report]) -> Option<Uuid> {
    same(reports.iter().map(|report| report.organization_id))
}

fn same(mut organizations: impl Iterator<Item = Uuid>) -> Option<Uuid> {
    let first = organizations.next()?;
    organizations.all(|other| other == first).then_some(first)
}

/// Builds a report's test-line form from a row with its creation time and its vehicle's registered power, and the rows of [`READ`].
pub(super) fn test_line(report: &Row, points: &[Row], documented: DocumentedRanges) -> Result<TestLine, DbError> {
    let mut form = TestLine {
        documented,
        created_at: report.try_get("created_at")?,
        points: BTreeMap::new(),
        factory_power_hp: report.try_get("factory_power_hp")?,
        replaced: Vec::new(),
    };
    for row in points {
        form.points.insert(row.try_get("code")?, point(row)?);
    }
    Ok(form)
}

fn point(row: &Row) -> Result<TestLinePoint, DbError> {
    let bounds = match row.try_get("has_bounds")? {
        true => Some(thresholds::bounds(row)?),
        false => None,
    };
    let present = match (row.try_get("measured_at")?, row.try_get("received_at")?) {
        (Some(measured_at), Some(received_at)) => Some(ValueTimes {
            measured_at,
            received_at,
        }),
        _ => None,
    };
    Ok(TestLinePoint {
        id: row.try_get("point_id")?,
        bounds,
        narrowed: NarrowedRange {
            minimum: row.try_get("minimum")?,
            maximum: row.try_get("maximum")?,
        },
        present,
        answer: None,
    })
}
