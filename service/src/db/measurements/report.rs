//! A report under its lock: what decides about device values, and the values into its test-line form.

use chrono::{DateTime, Utc};
use deadpool_postgres::GenericClient;
use rust_decimal::Decimal;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};
use uuid::Uuid;

use super::Target;
use super::decide::{Answer, TestLine, TestLinePoint};
use crate::db::{DbError, thresholds};
use crate::rules::newer::Moment;
use crate::rules::threshold::PointStatus;
use crate::statement;

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
    /// The points of a report's (`$1`) test-line form, each with the organisation's bounds, and when the device value that it
    /// has came about.
    ///
    /// That time is read from the measurement that the answer names as its writer, and kept nowhere else: an inspector or an
    /// older version of the service who overwrites the value thereby changes or removes its time too.
    pub READ = "\
SELECT t.id AS template_id, f.id AS form_id, p.id AS point_id, p.code, h.point_code IS NOT NULL AS has_bounds,
       h.good_min, h.good_max, h.borderline_min, h.borderline_max, m.measured_at, m.received_at
FROM inspections i
JOIN form_templates t ON t.organization_id = i.organization_id AND t.is_test_line
JOIN form_template_points p ON p.template_id = t.id
LEFT JOIN thresholds h ON h.organization_id = i.organization_id AND h.point_code = p.code
LEFT JOIN inspection_forms f ON f.inspection_id = i.id AND f.template_id = t.id
LEFT JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.point_id = p.id
LEFT JOIN measurements m ON m.id = CASE WHEN a.written_by ~ '^device:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
                                        THEN substr(a.written_by, 8)::uuid END
WHERE i.id = $1";
}

statement! {
    /// Writes device values into a report's form, and keeps the answers they replace.
    ///
    /// The form is made when the report has none yet. An inspector's note on a point stays beside the new value. The report is
    /// locked by the caller, so that nobody changes answers between the copy into the history and the new value.
    ///
    /// `$1` report, `$2` its form or null, `$3` template, `$4` id for a new form; `$5`–`$10` the answers: point, status code,
    /// label, severity, value, writer; `$11`–`$16` likewise those that were replaced by them before they were written.
    pub WRITE_ANSWERS = "\
WITH answer AS (
    SELECT * FROM unnest($5::uuid[], $6::text[], $7::text[], $8::text[], $9::numeric[], $10::text[])
                  AS a (point_id, status_code, status_label, severity, numeric_value, written_by)
), made AS (
    INSERT INTO inspection_forms AS f (id, inspection_id, template_id)
    SELECT $4::uuid, $1::uuid, $3::uuid WHERE $2::uuid IS NULL
    -- Changes nothing, but returns the form if somebody has added it meanwhile.
    ON CONFLICT (inspection_id, template_id) DO UPDATE SET general_note = f.general_note
    RETURNING id
), form AS (
    SELECT $2::uuid AS id WHERE $2::uuid IS NOT NULL UNION ALL SELECT id FROM made
), old AS (
    SELECT old.*
    FROM form JOIN inspection_form_answers old ON old.inspection_form_id = form.id JOIN answer USING (point_id)
), replaced AS (
    INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, status_code, status_label, severity,
                                                numeric_value, note, written_by, written_at)
    SELECT inspection_form_id, point_id, status_code, status_label, severity, numeric_value, note, written_by, written_at
    FROM old
    UNION ALL
    SELECT form.id, p.point_id, p.status_code, p.status_label, p.severity, p.numeric_value, coalesce(old.note, ''),
           p.written_by, now()
    FROM form
    CROSS JOIN unnest($11::uuid[], $12::text[], $13::text[], $14::text[], $15::numeric[], $16::text[])
               AS p (point_id, status_code, status_label, severity, numeric_value, written_by)
    LEFT JOIN old USING (point_id)
)
INSERT INTO inspection_form_answers (inspection_form_id, point_id, status_code, status_label, severity, numeric_value,
                                     written_by, written_at)
SELECT form.id, answer.point_id, answer.status_code, answer.status_label, answer.severity, answer.numeric_value,
       answer.written_by, now()
FROM form, answer
ON CONFLICT (inspection_form_id, point_id) DO UPDATE
SET status_code = excluded.status_code, status_label = excluded.status_label, severity = excluded.severity,
    numeric_value = excluded.numeric_value, written_by = excluded.written_by, written_at = excluded.written_at";
}

/// The statements that take a report and fill it; prepared together, so that they can be sent without waiting for each
/// other's answers.
pub(super) struct Statements {
    lock: Statement,
    read: Statement,
    write_answers: Statement,
}

impl Statements {
    pub async fn prepare<C: GenericClient>(client: &C) -> Result<Self, DbError> {
        Ok(Statements {
            lock: client.prepare_cached(LOCK.sql()).await?,
            read: client.prepare_cached(READ.sql()).await?,
            write_answers: client.prepare_cached(WRITE_ANSWERS.sql()).await?,
        })
    }

    /// Locks a report and reads it, the one right behind the other; `None` when it is no open report for the target.
    pub async fn lock<C: GenericClient>(
        &self,
        client: &C,
        target: &Target,
        of_any_age: bool,
    ) -> Result<Option<Report>, DbError> {
        let report_id = target.inspection_id;
        let target: [&(dyn ToSql + Sync); 4] = [&report_id, &target.branch_id, &target.plate, &of_any_age];
        let (locked, read) = futures::join!(
            client.query_opt(&self.lock, &target),
            client.query(&self.read, &target[..1]),
        );
        let Some(locked) = locked? else { return Ok(None) };
        let mut report = Report {
            inspection_id: report_id,
            now: locked.try_get("now")?,
            form: None,
            test_line: TestLine {
                factory_power_hp: locked.try_get("factory_power_hp")?,
                ..TestLine::default()
            },
        };
        for row in read? {
            report.form = Some((row.try_get("template_id")?, row.try_get("form_id")?));
            report.test_line.points.insert(row.try_get("code")?, point(&row)?);
        }
        Ok(Some(report))
    }

    /// Writes what the form has taken.
    pub async fn write_answers<C: GenericClient>(&self, client: &C, report: &Report) -> Result<(), DbError> {
        let answers = Columns::of(report.test_line.answers());
        // Points that were taken are those of a form.
        let (false, Some((template_id, form_id))) = (answers.point_ids.is_empty(), report.form) else {
            return Ok(());
        };
        let replaced = Columns::of(report.test_line.replaced.iter());
        client
            .execute(
                &self.write_answers,
                &[
                    &report.inspection_id,
                    &form_id,
                    &template_id,
                    &Uuid::now_v7(),
                    &answers.point_ids,
                    &answers.status_codes,
                    &answers.labels,
                    &answers.severities,
                    &answers.values,
                    &answers.writers,
                    &replaced.point_ids,
                    &replaced.status_codes,
                    &replaced.labels,
                    &replaced.severities,
                    &replaced.values,
                    &replaced.writers,
                ],
            )
            .await?;
        Ok(())
    }
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
        present,
        answer: None,
    })
}

#[derive(Default)]
struct Columns {
    point_ids: Vec<Uuid>,
    status_codes: Vec<&'static str>,
    labels: Vec<&'static str>,
    severities: Vec<&'static str>,
    values: Vec<Decimal>,
    writers: Vec<String>,
}

impl Columns {
    fn of<'a>(answers: impl Iterator<Item = &'a Answer>) -> Self {
        let mut columns = Columns::default();
        for answer in answers {
            let status: PointStatus = answer.status;
            columns.point_ids.push(answer.point_id);
            columns.status_codes.push(status.code());
            columns.labels.push(status.label());
            columns.severities.push(status.severity());
            columns.values.push(answer.value);
            columns.writers.push(format!("device:{}", answer.measurement_id));
        }
        columns
    }
}
