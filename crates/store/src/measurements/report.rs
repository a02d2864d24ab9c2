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
use crate::statement;
use crate::statement::Prepared;
use crate::transaction::Transaction;
use crate::{DbError, thresholds};

statement! {
    /// Locks a report (`$1`) if it is open, at the branch `$2`, and for the plate `$3`. Unless `$4` is true, it must also have been
    /// created within the last 24 hours by the database's clock.
    ///
    /// Publishing a report updates its row. So publishing waits for this lock, or this statement waits for the publishing
    /// and then checks the row again. The lock does not prevent photos or forms from being added.
    pub LOCK = "\
SELECT now() AS now, i.created_at, v.factory_power_hp
FROM inspections i JOIN vehicles v ON v.id = i.vehicle_id
WHERE i.id = $1 AND i.branch_id = $2 AND i.plate = $3 AND i.status IN ('DRAFT', 'REVISION_REQUESTED')
  AND ($4 OR i.created_at >= now() - interval '24 hours')
FOR NO KEY UPDATE OF i";
}

statement! {
    /// Locks those of several reports (`$1`) that are not locked by others, on the conditions of [`LOCK`]: at the branch `$2`,
    /// for the plate `$3`, created within the last 24 hours. For the others it returns whether they meet the conditions.
    ///
    /// It never waits, so it cannot deadlock even though it holds several locks.
    pub LOCK_SKIPPING = "\
WITH target AS (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[]) WITH ORDINALITY AS t (inspection_id, branch_id, plate, place)
), locked AS MATERIALIZED (
    SELECT i.id
    FROM target t
    JOIN inspections i ON i.id = t.inspection_id AND i.branch_id = t.branch_id AND i.plate = t.plate
    WHERE i.status IN ('DRAFT', 'REVISION_REQUESTED') AND i.created_at >= now() - interval '24 hours'
    FOR NO KEY UPDATE OF i SKIP LOCKED
)
SELECT now() AS now, locked.id IS NOT NULL AS is_locked, i.created_at, v.factory_power_hp,
       i.id IS NOT NULL AS is_open
FROM target t
LEFT JOIN inspections i ON i.id = t.inspection_id AND i.branch_id = t.branch_id AND i.plate = t.plate
    AND i.status IN ('DRAFT', 'REVISION_REQUESTED') AND i.created_at >= now() - interval '24 hours'
LEFT JOIN vehicles v ON v.id = i.vehicle_id
LEFT JOIN locked ON locked.id = t.inspection_id
ORDER BY t.place";
}

statement! {
    /// The points of the test-line forms of reports (`$1`), each with the organization's thresholds and ranges, and the time of
    /// its current device value.
    ///
    /// The time is read from the measurement of the answer and stored nowhere else, so it disappears when an inspector
    /// overwrites the value.
    pub READ = "\
SELECT i.id AS inspection_id, t.id AS template_id, f.id AS form_id, p.id AS point_id, p.code, h.point_code IS NOT NULL AS has_bounds,
       h.good_min, h.good_max, h.borderline_min, h.borderline_max, r.minimum, r.maximum, m.measured_at, m.received_at
FROM inspections i
JOIN form_templates t ON t.organization_id = i.organization_id AND t.is_test_line
JOIN form_template_points p ON p.template_id = t.id
LEFT JOIN thresholds h ON h.organization_id = i.organization_id AND h.point_code = p.code
LEFT JOIN plausible_ranges r ON r.organization_id = i.organization_id AND r.point_code = p.code
LEFT JOIN inspection_forms f ON f.inspection_id = i.id AND f.template_id = t.id
LEFT JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.point_id = p.id
LEFT JOIN measurements m ON m.id = a.measurement_id
WHERE i.id = ANY ($1::uuid[])";
}

statement! {
    /// Writes device values into the forms of reports, and copies the answers that they replace into the history.
    ///
    /// A form is created if its report does not have one. An inspector's note on a point remains with the new value. The caller
    /// has locked the reports, so that answers do not change between the copy and the write.
    ///
    /// `$1`–`$4` are the reports: ID, form or null, template, ID for a new form. `$5`–`$11` are the answers: report, point,
    /// status code, label, severity, value, measurement. `$12`–`$18` are, in the same form, the answers of the batch that were
    /// replaced before they were written.
    pub WRITE_ANSWERS = "\
WITH report AS (
    SELECT r.*, i.organization_id
    FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[]) AS r (inspection_id, form_id, template_id, new_id)
    JOIN inspections i ON i.id = r.inspection_id
), answer AS (
    SELECT * FROM unnest($5::uuid[], $6::uuid[], $7::text[], $8::text[], $9::text[], $10::numeric[], $11::uuid[])
                  AS a (inspection_id, point_id, status_code, status_label, severity, numeric_value, measurement_id)
), made AS (
    INSERT INTO inspection_forms AS f (id, organization_id, inspection_id, template_id)
    SELECT new_id, organization_id, inspection_id, template_id FROM report WHERE form_id IS NULL ORDER BY inspection_id
    -- Changes nothing, but returns the form if it was added concurrently.
    ON CONFLICT (inspection_id, template_id, organization_id) DO UPDATE SET general_note = f.general_note
    RETURNING id, inspection_id, organization_id
), form AS (
    SELECT form_id AS id, inspection_id, organization_id FROM report WHERE form_id IS NOT NULL
    UNION ALL SELECT id, inspection_id, organization_id FROM made
), old AS (
    SELECT old.*
    FROM form JOIN answer USING (inspection_id)
    CROSS JOIN LATERAL (
        SELECT * FROM inspection_form_answers o
        WHERE o.inspection_form_id = form.id AND o.point_id = answer.point_id LIMIT 1
    ) AS old
), replaced AS (
    INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, organization_id, status_code, status_label,
                                                severity, numeric_value, note, by_device, measurement_id, written_by, written_at,
                                                ordinal)
    SELECT inspection_form_id, point_id, organization_id, status_code, status_label, severity, numeric_value, note, by_device,
           measurement_id, written_by, written_at, 0
    FROM old
    UNION ALL
    SELECT form.id, p.point_id, form.organization_id, p.status_code, p.status_label, p.severity, p.numeric_value,
           coalesce(old.note, ''), true, p.measurement_id, NULL, now(), p.ordinal::integer
    FROM unnest($12::uuid[], $13::uuid[], $14::text[], $15::text[], $16::text[], $17::numeric[], $18::uuid[])
         WITH ORDINALITY
         AS p (inspection_id, point_id, status_code, status_label, severity, numeric_value, measurement_id, ordinal)
    JOIN form USING (inspection_id)
    LEFT JOIN old ON old.inspection_form_id = form.id AND old.point_id = p.point_id
)
INSERT INTO inspection_form_answers (inspection_form_id, point_id, organization_id, status_code, status_label, severity,
                                     numeric_value, by_device, measurement_id, written_at)
SELECT form.id, answer.point_id, form.organization_id, answer.status_code, answer.status_label, answer.severity,
       answer.numeric_value, true, answer.measurement_id, now()
FROM form JOIN answer USING (inspection_id)
ON CONFLICT (inspection_form_id, point_id, organization_id) DO UPDATE
SET status_code = excluded.status_code, status_label = excluded.status_label, severity = excluded.severity,
    numeric_value = excluded.numeric_value, by_device = excluded.by_device, measurement_id = excluded.measurement_id,
    written_by = excluded.written_by, written_at = excluded.written_at";
}

/// The statements that lock, read and write reports. They are prepared together, so that they can be pipelined.
pub(super) struct Statements {
    documented: DocumentedRanges,
    lock: Prepared,
    lock_skipping: Prepared,
    read: Prepared,
    write_answers: Prepared,
}

impl Statements {
    pub async fn prepare(transaction: &Transaction<'_>, documented: DocumentedRanges) -> Result<Self, DbError> {
        Ok(Statements {
            documented,
            lock: transaction.prepare(LOCK).await?,
            lock_skipping: transaction.prepare(LOCK_SKIPPING).await?,
            read: transaction.prepare(READ).await?,
            write_answers: transaction.prepare(WRITE_ANSWERS).await?,
        })
    }

    /// Locks and reads a report in one round trip. Returns `None` if it is not an open report for the target.
    pub async fn lock(
        &self,
        transaction: &Transaction<'_>,
        target: &Target,
        of_any_age: bool,
    ) -> Result<Option<Report>, DbError> {
        let report_id = target.inspection_id;
        let ids = vec![report_id];
        let parameters: [&(dyn ToSql + Sync); 4] = [&report_id, &target.branch_id, &target.plate, &of_any_age];
        let read_parameters: [&(dyn ToSql + Sync); 1] = [&ids];
        let (locked, read) = futures::join!(
            transaction.query_opt(&self.lock, &parameters),
            transaction.query(&self.read, &read_parameters),
        );
        let Some(locked) = locked? else { return Ok(None) };
        self.report(report_id, &locked, &read?).map(Some)
    }

    /// Locks and reads the reports that are not locked by others. Returns a result for each report, in order.
    pub async fn lock_skipping(
        &self,
        transaction: &Transaction<'_>,
        targets: &[&Target],
    ) -> Result<Vec<Locked>, DbError> {
        let ids: Vec<Uuid> = targets.iter().map(|target| target.inspection_id).collect();
        let branches: Vec<Uuid> = targets.iter().map(|target| target.branch_id).collect();
        let plates: Vec<&str> = targets.iter().map(|target| target.plate.as_str()).collect();
        let parameters: [&(dyn ToSql + Sync); 3] = [&ids, &branches, &plates];
        let (locked, read) = futures::join!(
            transaction.query(&self.lock_skipping, &parameters),
            transaction.query(&self.read, &parameters[..1]),
        );
        let locked = locked?;
        if locked.len() != targets.len() {
            return Err(unexpected(format!("{} reports of {}", locked.len(), targets.len())));
        }
        let mut read_of: HashMap<Uuid, Vec<Row>> = HashMap::new();
        for row in read? {
            read_of.entry(row.try_get("inspection_id")?).or_default().push(row);
        }
        ids.into_iter()
            .zip(&locked)
            .map(|(id, row)| {
                Ok(if row.try_get("is_locked")? {
                    // Invalid data in one report must not affect the others.
                    match self.report(id, row, read_of.get(&id).map(Vec::as_slice).unwrap_or_default()) {
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

    /// Writes the new values of the forms.
    pub async fn write_answers(&self, transaction: &Transaction<'_>, reports: &[Report]) -> Result<(), DbError> {
        let (mut ids, mut forms, mut templates, mut new_ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
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
            forms.push(form_id);
            templates.push(template_id);
            new_ids.push(Uuid::now_v7());
            answers.extend(report.inspection_id, report.test_line.answers());
            replaced.extend(report.inspection_id, report.test_line.replaced.iter());
        }
        if ids.is_empty() {
            return Ok(());
        }
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&ids, &forms, &templates, &new_ids];
        parameters.extend(answers.parameters());
        parameters.extend(replaced.parameters());
        transaction.execute(&self.write_answers, &parameters).await?;
        Ok(())
    }

    /// Builds a report from the row of its lock and the rows of its points.
    fn report(&self, inspection_id: Uuid, locked: &Row, points: &[Row]) -> Result<Report, DbError> {
        let mut form = None;
        for row in points {
            form = Some((row.try_get("template_id")?, row.try_get("form_id")?));
        }
        Ok(Report {
            inspection_id,
            now: locked.try_get("now")?,
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
    /// The start of the transaction by the database's clock, which is the arrival time of the packages that it records.
    pub now: DateTime<Utc>,
    /// The organization's test-line template and the report's form of it, if there is one; `None` without a template.
    form: Option<(Uuid, Option<Uuid>)>,
    pub test_line: TestLine,
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
