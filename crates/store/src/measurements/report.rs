//! Locking of reports, and reading and writing of their test-line forms.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use partner_api_domain::newer::ValueTimes;
use partner_api_domain::plausible::{DocumentedRanges, NarrowedRange};
use partner_api_domain::threshold::PointStatus;
use rust_decimal::Decimal;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::decide::{DeviceValue, TestLine, TestLinePoint};
use super::{Target, unexpected};
use crate::connection::Parameters;
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
    /// and ranges, whether it has an answer, the time of its current device value, and the time of reading.
    ///
    /// The time is read from the measurement of the answer and stored nowhere else, so it disappears when an inspector
    /// overwrites the value.
    pub READ = "\
SELECT i.id AS inspection_id, t.id AS template_id, f.id AS form_id, p.id AS point_id, p.code, h.point_code IS NOT NULL AS has_bounds,
       h.good_min, h.good_max, h.borderline_min, h.borderline_max, r.minimum, r.maximum, a.point_id IS NOT NULL AS has_answer,
       m.measured_at, m.received_at, clock_timestamp() AS read_at
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

statement! {
    /// Adds forms to reports: `$1`–`$3` are report, template and ID of the form, `$4` is the organization of all. A form that was added
    /// concurrently remains.
    pub ADD_FORMS = "\
INSERT INTO inspection_forms (id, organization_id, inspection_id, template_id)
SELECT r.new_id, i.organization_id, i.id, r.template_id
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS r (inspection_id, template_id, new_id)
JOIN inspections i ON i.id = r.inspection_id
WHERE $4::uuid IS NULL OR i.organization_id = $4
ORDER BY i.id
ON CONFLICT (inspection_id, template_id, organization_id) DO NOTHING";

    /// Copies the answers that will be replaced into the history: `$1`–`$3` are report, template and point, `$4` is a time since the
    /// reports were locked, and `$5` is the organization of all.
    ///
    /// The caller has locked the reports, so that answers do not change between the copy and the write. The time is a parameter because
    /// the start of the transaction may be earlier than another one that locked the report before.
    pub KEEP_ANSWERS = "\
INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, organization_id, status_code, status_label, severity,
                                            numeric_value, note, by_device, measurement_id, written_by, written_at,
                                            replaced_at)
SELECT o.inspection_form_id, o.point_id, o.organization_id, o.status_code, o.status_label, o.severity, o.numeric_value, o.note,
       o.by_device, o.measurement_id, o.written_by, o.written_at, greatest($4::timestamptz, now())
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS a (inspection_id, template_id, point_id)
JOIN inspection_forms f ON f.inspection_id = a.inspection_id AND f.template_id = a.template_id
JOIN inspection_form_answers o ON o.inspection_form_id = f.id AND o.point_id = a.point_id AND o.organization_id = f.organization_id
WHERE $5::uuid IS NULL OR f.organization_id = $5";

    /// Writes device values into the forms of reports. An inspector's note on a point remains with the new value.
    ///
    /// `$1` and `$2` are the reports and the templates of their forms. `$3`–`$9` are the answers: report, point, status code, label,
    /// severity, value, measurement. `$10` is the organization of all reports.
    pub WRITE_ANSWERS = "\
INSERT INTO inspection_form_answers (inspection_form_id, point_id, organization_id, status_code, status_label, severity,
                                     numeric_value, by_device, measurement_id, written_at)
SELECT f.id, a.point_id, f.organization_id, a.status_code, a.status_label, a.severity, a.numeric_value, true, a.measurement_id, now()
FROM unnest($1::uuid[], $2::uuid[]) AS r (inspection_id, template_id)
JOIN inspection_forms f ON f.inspection_id = r.inspection_id AND f.template_id = r.template_id
JOIN unnest($3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::numeric[], $9::uuid[])
     AS a (inspection_id, point_id, status_code, status_label, severity, numeric_value, measurement_id)
     ON a.inspection_id = r.inspection_id
WHERE $10::uuid IS NULL OR f.organization_id = $10
ON CONFLICT (inspection_form_id, point_id, organization_id) DO UPDATE
SET status_code = excluded.status_code, status_label = excluded.status_label, severity = excluded.severity,
    numeric_value = excluded.numeric_value, by_device = excluded.by_device, measurement_id = excluded.measurement_id,
    written_by = excluded.written_by, written_at = excluded.written_at";

    /// Adds to the history the values of a batch that were replaced before they were written, with the parameters of [`WRITE_ANSWERS`]
    /// and those of [`KEEP_ANSWERS`] after them. The last values of their points are written already, with the points' notes.
    pub KEEP_REPLACED = "\
INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, organization_id, status_code, status_label, severity,
                                            numeric_value, note, by_device, measurement_id, written_at, replaced_at,
                                            ordinal)
SELECT f.id, a.point_id, f.organization_id, a.status_code, a.status_label, a.severity, a.numeric_value, last.note, true,
       a.measurement_id, now(), greatest($10::timestamptz, now()), a.place::integer
FROM unnest($1::uuid[], $2::uuid[]) AS r (inspection_id, template_id)
JOIN inspection_forms f ON f.inspection_id = r.inspection_id AND f.template_id = r.template_id
JOIN unnest($3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::numeric[], $9::uuid[]) WITH ORDINALITY
     AS a (inspection_id, point_id, status_code, status_label, severity, numeric_value, measurement_id, place)
     ON a.inspection_id = r.inspection_id
JOIN inspection_form_answers last
     ON last.inspection_form_id = f.id AND last.point_id = a.point_id AND last.organization_id = f.organization_id
WHERE $11::uuid IS NULL OR f.organization_id = $11";
}

/// The statements that lock, read and write reports. They are prepared together, so that they can be pipelined.
pub(super) struct Statements {
    documented: DocumentedRanges,
    lock: Prepared,
    lock_skipping: Prepared,
    read: Prepared,
    add_forms: Prepared,
    keep_answers: Prepared,
    write_answers: Prepared,
    keep_replaced: Prepared,
}

impl Statements {
    pub async fn prepare(transaction: &Transaction<'_>, documented: DocumentedRanges) -> Result<Self, DbError> {
        Ok(Statements {
            documented,
            lock: transaction.prepare(LOCK).await?,
            lock_skipping: transaction.prepare(LOCK_SKIPPING).await?,
            read: transaction.prepare(READ).await?,
            add_forms: transaction.prepare(ADD_FORMS).await?,
            keep_answers: transaction.prepare(KEEP_ANSWERS).await?,
            write_answers: transaction.prepare(WRITE_ANSWERS).await?,
            keep_replaced: transaction.prepare(KEEP_REPLACED).await?,
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

    /// Writes the new values of the forms, and copies the answers that they replace into the history. A form is created if its report
    /// does not have one. The statements are sent together.
    pub async fn write_answers(&self, transaction: &Transaction<'_>, reports: &[Report]) -> Result<(), DbError> {
        let (mut ids, mut templates) = (Vec::new(), Vec::new());
        let (mut added, mut kept) = (PartColumns::default(), PartColumns::default());
        let (mut answers, mut replaced) = (AnswerColumns::default(), AnswerColumns::default());
        for report in reports {
            // Without a form there are no points that could have been written.
            let Some((template_id, form_id)) = report.form else {
                continue;
            };
            if report.test_line.answers().next().is_none() {
                continue;
            }
            ids.push(report.inspection_id);
            templates.push(template_id);
            if form_id.is_none() {
                added.push(report.inspection_id, template_id, Uuid::now_v7());
            }
            for point_id in report.test_line.replaced_points() {
                kept.push(report.inspection_id, template_id, point_id);
            }
            answers.extend(report.inspection_id, report.test_line.answers());
            replaced.extend(report.inspection_id, report.test_line.replaced.iter());
        }
        if ids.is_empty() {
            return Ok(());
        }
        let organization_id = organization_of_all(reports);
        let read_at = reports.iter().map(|report| report.read_at).max();
        let (organization, time): (&(dyn ToSql + Sync), &(dyn ToSql + Sync)) = (&organization_id, &read_at);
        let of_reports: [&(dyn ToSql + Sync); 2] = [&ids, &templates];
        let of_added = [&added.parameters()[..], &[organization]].concat();
        let of_kept = [&kept.parameters()[..], &[time, organization]].concat();
        let of_answers = [&of_reports[..], &answers.parameters(), &[organization]].concat();
        let of_replaced = [&of_reports[..], &replaced.parameters(), &[time, organization]].concat();
        let execute = async |statement: &Prepared, parameters: &Parameters<'_>, is_needed: bool| {
            if is_needed {
                transaction.execute(statement, parameters).await?;
            }
            Ok::<_, DbError>(())
        };
        // In the order in which they depend on each other.
        let (added, kept, written, replaced) = futures::join!(
            execute(&self.add_forms, &of_added, !added.ids.is_empty()),
            execute(&self.keep_answers, &of_kept, !kept.ids.is_empty()),
            execute(&self.write_answers, &of_answers, true),
            execute(&self.keep_replaced, &of_replaced, !replaced.inspection_ids.is_empty()),
        );
        added.and(kept).and(written).and(replaced)
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
    inspection_id: Uuid,
    organization_id: Uuid,
    /// The start of the transaction by the database's clock, which is the arrival time of the packages that it records.
    pub now: DateTime<Utc>,
    /// When it was read, after it was locked, by the same clock.
    read_at: DateTime<Utc>,
    /// The organization's test-line template and the report's form of it, if there is one; `None` without a template.
    form: Option<(Uuid, Option<Uuid>)>,
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
        has_answer: row.try_get("has_answer")?,
        answer: None,
    })
}

/// Parts of reports: forms of a template, or points of its form.
#[derive(Default)]
struct PartColumns {
    inspection_ids: Vec<Uuid>,
    template_ids: Vec<Uuid>,
    ids: Vec<Uuid>,
}

impl PartColumns {
    fn push(&mut self, inspection_id: Uuid, template_id: Uuid, id: Uuid) {
        self.inspection_ids.push(inspection_id);
        self.template_ids.push(template_id);
        self.ids.push(id);
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); 3] {
        [&self.inspection_ids, &self.template_ids, &self.ids]
    }
}

#[derive(Default)]
struct AnswerColumns {
    inspection_ids: Vec<Uuid>,
    point_ids: Vec<Uuid>,
    status_codes: Vec<&'static str>,
    labels: Vec<&'static str>,
    severities: Vec<&'static str>,
    values: Vec<Decimal>,
    measurement_ids: Vec<Uuid>,
}

impl AnswerColumns {
    fn extend<'a>(&mut self, inspection_id: Uuid, answers: impl Iterator<Item = &'a DeviceValue>) {
        for answer in answers {
            let status: PointStatus = answer.status;
            self.inspection_ids.push(inspection_id);
            self.point_ids.push(answer.point_id);
            self.status_codes.push(status.code());
            self.labels.push(status.label());
            self.severities.push(status.severity());
            self.values.push(answer.value);
            self.measurement_ids.push(answer.measurement_id);
        }
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); 7] {
        [
            &self.inspection_ids,
            &self.point_ids,
            &self.status_codes,
            &self.labels,
            &self.severities,
            &self.values,
            &self.measurement_ids,
        ]
    }
}
