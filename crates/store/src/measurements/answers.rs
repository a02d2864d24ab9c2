//! Writing of device values into the test-line forms of reports.

use rust_decimal::Decimal;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::decide::DeviceValue;
use super::report::{Report, organization_of_all};
use crate::DbError;
use crate::connection::Parameters;
use crate::statement;
use crate::statement::Prepared;
use crate::transaction::Transaction;

// The organization of all reports is null if they have several. The statements select the same rows without it.

statement! {
    /// Adds forms to reports: `$1`–`$3` are report, template and ID of the form, `$4` is the organization of all. A form that was added
    /// concurrently remains.
    ADD_FORMS = "\
INSERT INTO inspection_forms (id, organization_id, inspection_id, template_id)
SELECT r.new_id, i.organization_id, i.id, r.template_id
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS r (inspection_id, template_id, new_id)
JOIN inspections i ON i.id = r.inspection_id
WHERE $4::uuid IS NULL OR i.organization_id = $4
ORDER BY i.id
ON CONFLICT (inspection_id, template_id, organization_id) DO NOTHING";

    /// Copies the answers that will be replaced into the history, with the first four parameters of [`WRITE_ANSWERS`]: the reports, the
    /// templates of their forms, and report and point of each answer. `$5` is a time since the reports were locked, and `$6` is the
    /// organization of all.
    ///
    /// The caller has locked the reports, so that answers do not change between the copy and the write. The time is a parameter because
    /// the start of the transaction may be earlier than another one that locked the report before.
    KEEP_ANSWERS = "\
INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, organization_id, status_code, status_label, severity,
                                            numeric_value, note, by_device, measurement_id, written_by, written_at,
                                            replaced_at)
SELECT o.inspection_form_id, o.point_id, o.organization_id, o.status_code, o.status_label, o.severity, o.numeric_value, o.note,
       o.by_device, o.measurement_id, o.written_by, o.written_at, greatest($5::timestamptz, now())
FROM unnest($1::uuid[], $2::uuid[]) AS r (inspection_id, template_id)
JOIN inspection_forms f ON f.inspection_id = r.inspection_id AND f.template_id = r.template_id
JOIN unnest($3::uuid[], $4::uuid[]) AS a (inspection_id, point_id) ON a.inspection_id = r.inspection_id
JOIN inspection_form_answers o ON o.inspection_form_id = f.id AND o.point_id = a.point_id AND o.organization_id = f.organization_id
WHERE $6::uuid IS NULL OR f.organization_id = $6";

    /// Writes device values into the forms of reports. An inspector's note on a point remains with the new value.
    ///
    /// `$1` and `$2` are the reports and the templates of their forms. `$3`–`$9` are the answers: report, point, status code, label,
    /// severity, value, measurement. `$10` is the organization of all reports.
    WRITE_ANSWERS = "\
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

    /// Adds to the history the values of a batch that were replaced before they were written, with the first nine parameters of
    /// [`WRITE_ANSWERS`] and the last two of [`KEEP_ANSWERS`]. The last values of their points are written already, with the points' notes.
    KEEP_REPLACED = "\
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

/// The statements that write answers. They are prepared together, so that they can be pipelined.
pub(super) struct Statements {
    add_forms: Prepared,
    keep_answers: Prepared,
    write_answers: Prepared,
    keep_replaced: Prepared,
}

impl Statements {
    pub async fn prepare(transaction: &Transaction<'_>) -> Result<Self, DbError> {
        Ok(Statements {
            add_forms: transaction.prepare(ADD_FORMS).await?,
            keep_answers: transaction.prepare(KEEP_ANSWERS).await?,
            write_answers: transaction.prepare(WRITE_ANSWERS).await?,
            keep_replaced: transaction.prepare(KEEP_REPLACED).await?,
        })
    }

    /// Writes the new values of the forms, and copies the answers that they replace into the history. A form is created if its report
    /// does not have one. The statements are sent together.
    pub async fn write(&self, transaction: &Transaction<'_>, reports: &[Report]) -> Result<(), DbError> {
        let (mut ids, mut templates) = (Vec::new(), Vec::new());
        let (mut without_form, mut templates_to_add, mut new_ids) = (Vec::new(), Vec::new(), Vec::new());
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
                without_form.push(report.inspection_id);
                templates_to_add.push(template_id);
                new_ids.push(Uuid::now_v7());
            }
            answers.extend(report.inspection_id, report.test_line.answers());
            replaced.extend(report.inspection_id, report.test_line.replaced.iter());
        }
        if ids.is_empty() {
            return Ok(());
        }
        let organization_id = organization_of_all(reports);
        let read_at = reports.iter().map(|report| report.read_at).max();
        let of_forms: [&(dyn ToSql + Sync); 4] = [&without_form, &templates_to_add, &new_ids, &organization_id];
        let of_reports: [&(dyn ToSql + Sync); 2] = [&ids, &templates];
        let time_and_organization: [&(dyn ToSql + Sync); 2] = [&read_at, &organization_id];
        let of_kept = [&of_reports[..], &answers.parameters()[..2], &time_and_organization].concat();
        let of_answers = [&of_reports[..], &answers.parameters(), &time_and_organization[1..]].concat();
        let of_replaced = [&of_reports[..], &replaced.parameters(), &time_and_organization].concat();
        let execute = async |statement: &Prepared, parameters: &Parameters<'_>, is_needed: bool| {
            if is_needed {
                transaction.execute(statement, parameters).await?;
            }
            Ok::<_, DbError>(())
        };
        // In the order in which they depend on each other.
        let (added, kept, written, replaced) = futures::join!(
            execute(&self.add_forms, &of_forms, !new_ids.is_empty()),
            execute(&self.keep_answers, &of_kept, true),
            execute(&self.write_answers, &of_answers, true),
            execute(&self.keep_replaced, &of_replaced, !replaced.inspection_ids.is_empty()),
        );
        added.and(kept).and(written).and(replaced)
    }
}

/// The parameters of device values: an array for each column.
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
            let status = answer.status;
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
