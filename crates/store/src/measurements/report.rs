//! Reports under their locks: what decides about device values, and the values into their test-line forms.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use partner_api_domain::newer::Moment;
use partner_api_domain::plausible::{Documented, Narrowed};
use partner_api_domain::threshold::PointStatus;
use rust_decimal::Decimal;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::decide::{DeviceValue, TestLine, TestLinePoint};
use super::{Target, unexpected};
use crate::statement;
use crate::transaction::{Prepared, Transaction};
use crate::{DbError, thresholds};

statement! {
    /// Locks a report (`$1`) if it is in its writing phase, at the branch `$2`, for the plate `$3` and, unless `$4`, created
    /// within the last 24 hours by the database's clock.
    ///
    /// Whoever publishes a report changes its row, and so waits for this lock, or this statement for him: it then looks at the
    /// row again. The lock does not keep photos or forms from being added.
    pub LOCK = "\
SELECT now() AS now, v.factory_power_hp
FROM inspections i JOIN vehicles v ON v.id = i.vehicle_id
WHERE i.id = $1 AND i.branch_id = $2 AND i.plate = $3 AND i.status IN ('DRAFT', 'REVISION_REQUESTED')
  AND ($4 OR i.created_at >= now() - interval '24 hours')
FOR NO KEY UPDATE OF i";
}

statement! {
    /// Locks those of several reports (`$1`) that nobody else has locked, each on the terms of [`LOCK`]: at the branch `$2`, for
    /// the plate `$3`, created within the last 24 hours. Of the others it says whether they are open for it.
    ///
    /// It waits for nobody, so it may hold some of them while it asks for others.
    pub LOCK_FREE = "\
WITH target AS (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[]) WITH ORDINALITY AS t (inspection_id, branch_id, plate, place)
), locked AS MATERIALIZED (
    SELECT i.id
    FROM target t
    JOIN inspections i ON i.id = t.inspection_id AND i.branch_id = t.branch_id AND i.plate = t.plate
    WHERE i.status IN ('DRAFT', 'REVISION_REQUESTED') AND i.created_at >= now() - interval '24 hours'
    FOR NO KEY UPDATE OF i SKIP LOCKED
)
SELECT now() AS now, locked.id IS NOT NULL AS is_locked, v.factory_power_hp,
       i.id IS NOT NULL AS is_open
FROM target t
LEFT JOIN inspections i ON i.id = t.inspection_id AND i.branch_id = t.branch_id AND i.plate = t.plate
    AND i.status IN ('DRAFT', 'REVISION_REQUESTED') AND i.created_at >= now() - interval '24 hours'
LEFT JOIN vehicles v ON v.id = i.vehicle_id
LEFT JOIN locked ON locked.id = t.inspection_id
ORDER BY t.place";
}

statement! {
    /// The points of the test-line forms of reports (`$1`), each with the organisation's bounds and ranges, and when the device value that it
    /// has came about.
    ///
    /// That time is read from the answer's measurement, and kept nowhere else: an inspector who overwrites the value thereby
    /// removes its time, too.
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
    /// Writes device values into reports' forms, and keeps the answers they replace.
    ///
    /// A form is made when its report has none yet. An inspector's note on a point stays beside the new value. The reports are
    /// locked by the caller, so that nobody changes answers between the copy into the history and the new value.
    ///
    /// `$1`–`$4` the reports: id, form or null, template, id for a new form; `$5`–`$11` the answers: report, point, status code,
    /// label, severity, value, measurement; `$12`–`$18` likewise those that were replaced by them before they were written.
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
    -- Changes nothing, but returns the form if somebody has added it meanwhile.
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

/// The statements that take reports and fill them; prepared together, so that they can be sent without waiting for each
/// other's answers.
pub(super) struct Statements {
    documented: Documented,
    lock: Prepared,
    lock_free: Prepared,
    read: Prepared,
    write_answers: Prepared,
}

impl Statements {
    pub async fn prepare(transaction: &Transaction<'_>, documented: Documented) -> Result<Self, DbError> {
        Ok(Statements {
            documented,
            lock: transaction.prepare(LOCK).await?,
            lock_free: transaction.prepare(LOCK_FREE).await?,
            read: transaction.prepare(READ).await?,
            write_answers: transaction.prepare(WRITE_ANSWERS).await?,
        })
    }

    /// Locks a report and reads it, the one right behind the other; `None` when it is no open report for the target.
    pub async fn lock(
        &self,
        transaction: &Transaction<'_>,
        target: &Target,
        of_any_age: bool,
    ) -> Result<Option<Report>, DbError> {
        let report_id = target.inspection_id;
        let ids = vec![report_id];
        let parameters: [&(dyn ToSql + Sync); 4] = [&report_id, &target.branch_id, &target.plate, &of_any_age];
        let of_it: [&(dyn ToSql + Sync); 1] = [&ids];
        let (locked, read) = futures::join!(
            transaction.query_opt(&self.lock, &parameters),
            transaction.query(&self.read, &of_it),
        );
        let Some(locked) = locked? else { return Ok(None) };
        self.report(report_id, &locked, &read?).map(Some)
    }

    /// Locks those reports that nobody else has locked, and reads them; what became of each, in their order.
    pub async fn lock_free(&self, transaction: &Transaction<'_>, targets: &[&Target]) -> Result<Vec<Locked>, DbError> {
        let ids: Vec<Uuid> = targets.iter().map(|target| target.inspection_id).collect();
        let branches: Vec<Uuid> = targets.iter().map(|target| target.branch_id).collect();
        let plates: Vec<&str> = targets.iter().map(|target| target.plate.as_str()).collect();
        let parameters: [&(dyn ToSql + Sync); 3] = [&ids, &branches, &plates];
        let (locked, read) = futures::join!(
            transaction.query(&self.lock_free, &parameters),
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
                    // What one report holds must not keep the others from theirs.
                    match self.report(id, row, read_of.get(&id).map(Vec::as_slice).unwrap_or_default()) {
                        Ok(report) => Locked::Here(report),
                        Err(error) => Locked::Unreadable(error),
                    }
                } else if row.try_get("is_open")? {
                    Locked::Elsewhere
                } else {
                    Locked::NotOpen
                })
            })
            .collect()
    }

    /// Writes what the forms have taken.
    pub async fn write_answers(&self, transaction: &Transaction<'_>, reports: &[Report]) -> Result<(), DbError> {
        let (mut ids, mut forms, mut templates, mut new_ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut answers, mut replaced) = (AnswerColumns::default(), AnswerColumns::default());
        for report in reports {
            // Points that were taken are those of a form.
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

    /// A report from the row of its lock and those of its form's points.
    fn report(&self, inspection_id: Uuid, locked: &Row, points: &[Row]) -> Result<Report, DbError> {
        let mut form = None;
        for row in points {
            form = Some((row.try_get("template_id")?, row.try_get("form_id")?));
        }
        Ok(Report {
            inspection_id,
            now: locked.try_get("now")?,
            form,
            test_line: test_line(locked.try_get("factory_power_hp")?, points, self.documented)?,
        })
    }
}

/// What became of a report that was to be locked.
pub(super) enum Locked {
    /// The transaction has it.
    Here(Report),
    /// Somebody else has it, or had a moment ago.
    Elsewhere,
    /// It is not open for its target.
    NotOpen,
    /// The transaction has it, but it holds what cannot be read.
    Unreadable(DbError),
}

/// A report that the transaction has locked.
pub(super) struct Report {
    inspection_id: Uuid,
    /// When the transaction began, by the database's clock: when what it records arrived.
    pub now: DateTime<Utc>,
    /// The organisation's test-line template, and the report's form of it if there is one; `None` without a template.
    form: Option<(Uuid, Option<Uuid>)>,
    pub test_line: TestLine,
}

/// A report's test-line form from the rows of [`READ`].
pub(super) fn test_line(
    factory_power_hp: Option<Decimal>,
    points: &[Row],
    documented: Documented,
) -> Result<TestLine, DbError> {
    let mut form = TestLine {
        documented,
        points: BTreeMap::new(),
        factory_power_hp,
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
        (Some(measured_at), Some(received_at)) => Some(Moment {
            measured_at,
            received_at,
        }),
        _ => None,
    };
    Ok(TestLinePoint {
        id: row.try_get("point_id")?,
        bounds,
        narrowed: Narrowed {
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
