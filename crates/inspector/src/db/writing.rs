//! Writing in a report: under its lock, and only while it is written.

use codegen_runtime::fault::Faults;
use partner_api_domain::plausible::Narrowed;
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
use partner_api_store::{DbError, thresholds};
use rust_decimal::Decimal;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::report::version;
use super::{execute, row, rows};
use crate::caller::Inspector;
use crate::rules::answers::{Judged, Template, TemplatePoint, ToWrite};
use crate::rules::moves::Status;

statement! {
    /// Locks the report `$1` if it is at one of the branches `$2`. Devices and other inspectors wait for it, or it for them.
    LOCK = "\
SELECT i.status, i.branch_id, i.organization_id, i.plate FROM inspections i
WHERE i.id = $1 AND i.branch_id = ANY ($2::uuid[]) FOR NO KEY UPDATE";

    /// The version of the report `$1`, which is locked, and from which status its cancellation was requested, if it is.
    VERSION = concat!("\
SELECT ", version!(), " AS version,
       (SELECT CASE WHEN t.to_status = 'CANCEL_REQUESTED' THEN t.from_status END FROM inspection_transitions t
        WHERE t.inspection_id = i.id ORDER BY t.number DESC LIMIT 1) AS before_request
FROM inspections i WHERE i.id = $1");

    /// Changes what is not null of a report (`$1`).
    UPDATE = "\
UPDATE inspections SET version = version + 1, summary = coalesce($2, summary), recommendation = coalesce($3, recommendation),
    snapshot_mileage_km = coalesce($4, snapshot_mileage_km), base_price = coalesce($5, base_price),
    discount_percent = coalesce($6, discount_percent), discount_name = coalesce($7, discount_name),
    payment_type = coalesce($8, payment_type),
    final_price = round(coalesce($5, base_price) * (100 - coalesce($6, discount_percent)) / 100, 2)
WHERE id = $1";

    /// The points of the template with the code `$2` of the report's (`$1`) organisation, with bounds and ranges where devices
    /// write into it, the vehicle's registered power, and what is there.
    POINTS = "\
SELECT t.id AS template_id, t.is_test_line, v.factory_power_hp, p.id, p.code, h.point_code IS NOT NULL AS has_bounds, h.good_min,
       h.good_max, h.borderline_min, h.borderline_max, r.minimum, r.maximum, a.point_id IS NOT NULL AS is_answered,
       a.numeric_value
FROM inspections i
JOIN vehicles v ON v.id = i.vehicle_id
JOIN form_templates t ON t.organization_id = i.organization_id AND t.code = $2
JOIN form_template_points p ON p.template_id = t.id
LEFT JOIN thresholds h ON t.is_test_line AND h.organization_id = i.organization_id AND h.point_code = p.code
LEFT JOIN plausible_ranges r ON t.is_test_line AND r.organization_id = i.organization_id AND r.point_code = p.code
LEFT JOIN inspection_forms f ON f.inspection_id = i.id AND f.template_id = t.id
LEFT JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.point_id = p.id
WHERE i.id = $1";

    /// Writes answers (`$6` points, `$7` codes, `$8` labels, `$9` severities, `$10` numbers, `$11` notes or null) of `$5` into a
    /// form (`$1` its id if it is new, `$2` the report, `$3` the template, `$4` its general note or null), and keeps those that
    /// they replace. What is null is left as it was; a status and a number that stay keep who wrote them, and when.
    WRITE = "\
WITH form AS (
    INSERT INTO inspection_forms AS f (id, organization_id, inspection_id, template_id, general_note)
    SELECT $1, i.organization_id, i.id, $3, coalesce($4, '') FROM inspections i WHERE i.id = $2
    ON CONFLICT (inspection_id, template_id, organization_id) DO UPDATE SET general_note = coalesce($4, f.general_note)
    RETURNING id, organization_id
), answer AS (
    SELECT * FROM unnest($6::uuid[], $7::text[], $8::text[], $9::text[], $10::numeric[], $11::text[])
                  AS a (point_id, status_code, status_label, severity, numeric_value, note)
), old AS (
    SELECT o.* FROM form JOIN inspection_form_answers o ON o.inspection_form_id = form.id JOIN answer USING (point_id)
), replaced AS (
    INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, organization_id, status_code, status_label,
                                                severity, numeric_value, note, by_device, measurement_id, written_by, written_at)
    SELECT inspection_form_id, point_id, organization_id, status_code, status_label, severity, numeric_value, note, by_device,
           measurement_id, written_by, written_at
    FROM old
)
INSERT INTO inspection_form_answers (inspection_form_id, point_id, organization_id, status_code, status_label, severity,
                                     numeric_value, note, by_device, measurement_id, written_by, written_at)
SELECT form.id, answer.point_id, form.organization_id, coalesce(answer.status_code, old.status_code),
       coalesce(answer.status_label, old.status_label), coalesce(answer.severity, old.severity),
       coalesce(answer.numeric_value, old.numeric_value), coalesce(answer.note, old.note, ''),
       stays.yes AND old.by_device, CASE WHEN stays.yes THEN old.measurement_id END,
       CASE WHEN stays.yes THEN old.written_by ELSE $5 END, CASE WHEN stays.yes THEN old.written_at ELSE now() END
FROM form CROSS JOIN answer LEFT JOIN old ON old.point_id = answer.point_id
CROSS JOIN LATERAL (
    SELECT old.point_id IS NOT NULL AND coalesce(answer.status_code = old.status_code, true)
       AND coalesce(answer.numeric_value = old.numeric_value, answer.numeric_value IS NULL) AS yes) AS stays
ON CONFLICT (inspection_form_id, point_id, organization_id) DO UPDATE
SET status_code = excluded.status_code, status_label = excluded.status_label, severity = excluded.severity,
    numeric_value = excluded.numeric_value, note = excluded.note, by_device = excluded.by_device,
    measurement_id = excluded.measurement_id, written_by = excluded.written_by, written_at = excluded.written_at";

    /// Takes the answer at the point `$3` out of the form of the report `$1` and the template `$2`, and keeps it.
    REMOVE = "\
WITH gone AS (
    DELETE FROM inspection_form_answers a USING inspection_forms f
    WHERE f.inspection_id = $1 AND f.template_id = $2 AND a.inspection_form_id = f.id AND a.point_id = $3
    RETURNING a.*
)
INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, organization_id, status_code, status_label, severity,
                                            numeric_value, note, by_device, measurement_id, written_by, written_at)
SELECT inspection_form_id, point_id, organization_id, status_code, status_label, severity, numeric_value, note, by_device,
       measurement_id, written_by, written_at
FROM gone";

    /// Notes that the report `$1` was changed.
    pub(super) CHANGED = "UPDATE inspections SET version = version + 1 WHERE id = $1";
}

/// A report that the transaction has locked, of a branch of the inspector's.
#[derive(Clone, Debug)]
pub struct Locked {
    /// Its id.
    pub id: Uuid,
    /// Its organisation.
    pub organization_id: Uuid,
    /// Its branch.
    pub branch_id: Uuid,
    /// The plate under which it was opened.
    pub plate: String,
    /// Its status.
    pub status: Status,
    /// Its version.
    pub version: i64,
    /// The status from which its cancellation was requested, if it is.
    pub before_request: Option<Status>,
}

/// Locks a report until the transaction ends; `None` where there is none at a branch of the inspector's.
///
/// # Errors
/// What the database says.
pub async fn lock(transaction: &Transaction<'_>, inspector: &Inspector, id: Uuid) -> Result<Option<Locked>, DbError> {
    let Some(locked) = row(transaction, LOCK, &[&id, &inspector.branch_ids()]).await? else {
        return Ok(None);
    };
    // Read behind the lock: by a snapshot of its own.
    let Some(version) = row(transaction, VERSION, &[&id]).await? else {
        return Ok(None);
    };
    Ok(Some(Locked {
        id,
        organization_id: locked.try_get("organization_id")?,
        branch_id: locked.try_get("branch_id")?,
        plate: locked.try_get("plate")?,
        status: locked.try_get("status")?,
        version: version.try_get("version")?,
        before_request: version.try_get("before_request")?,
    }))
}

/// What of a report is to be changed; `None` leaves it.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// The overall text.
    pub summary: Option<String>,
    /// The advice.
    pub recommendation: Option<String>,
    /// What the odometer shows, in kilometres.
    pub mileage_km: Option<i32>,
    /// The price before the discount.
    pub base_price: Option<Decimal>,
    /// The discount in percent.
    pub discount_percent: Option<Decimal>,
    /// What it is called.
    pub discount_name: Option<String>,
    /// How it was paid.
    pub payment_type: Option<String>,
}

/// Changes a report's texts, mileage and pricing.
///
/// # Errors
/// What the database says.
pub async fn update(transaction: &Transaction<'_>, report: &Locked, update: &Update) -> Result<(), DbError> {
    let Update {
        summary,
        recommendation,
        mileage_km,
        base_price,
        discount_percent,
        discount_name,
        payment_type,
    } = update;
    let parameters: [&(dyn ToSql + Sync); 8] = [
        &report.id,
        summary,
        recommendation,
        mileage_km,
        base_price,
        discount_percent,
        discount_name,
        payment_type,
    ];
    execute(transaction, UPDATE, &parameters).await?;
    Ok(())
}

/// Why answers were not written.
#[derive(Debug)]
pub enum Unwritten {
    /// The organisation has no such template.
    NoTemplate,
    /// Something is wrong with answers; all of them are named.
    Faults(Faults),
    /// What the database says.
    Db(DbError),
}

impl From<DbError> for Unwritten {
    fn from(error: DbError) -> Self {
        Unwritten::Db(error)
    }
}

/// Writes answers of the inspector into a form of a locked report (INS-7).
///
/// # Errors
/// [`Unwritten`]; the transaction must not be committed then.
pub async fn fill(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    report: &Locked,
    template_code: &str,
    general_note: Option<&str>,
    answers: &[ToWrite],
) -> Result<(), Unwritten> {
    let template = template(transaction, report.id, template_code).await?;
    let template = template.ok_or(Unwritten::NoTemplate)?;
    let written = template.judge(answers).map_err(Unwritten::Faults)?;
    let mut columns = Columns::default();
    for answer in &written {
        columns.push(answer);
    }
    let new_form = Uuid::now_v7();
    let by = inspector.name();
    let parameters: [&(dyn ToSql + Sync); 11] = [
        &new_form,
        &report.id,
        &template.id,
        &general_note,
        &by,
        &columns.points,
        &columns.codes,
        &columns.labels,
        &columns.severities,
        &columns.numbers,
        &columns.notes,
    ];
    execute(transaction, WRITE, &parameters).await?;
    if let Some(ratio) = template.ratio_without_ground(answers, &written) {
        execute(transaction, REMOVE, &[&report.id, &template.id, &ratio]).await?;
    }
    execute(transaction, CHANGED, &[&report.id]).await?;
    Ok(())
}

#[derive(Default)]
struct Columns<'a> {
    points: Vec<Uuid>,
    codes: Vec<Option<&'static str>>,
    labels: Vec<Option<&'static str>>,
    severities: Vec<Option<&'static str>>,
    numbers: Vec<Option<Decimal>>,
    notes: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, answer: &Judged<'a>) {
        self.points.push(answer.point);
        self.codes.push(answer.word.map(|word| word.code));
        self.labels.push(answer.word.map(|word| word.label));
        self.severities.push(answer.word.map(|word| word.severity));
        self.numbers.push(answer.number);
        self.notes.push(answer.note);
    }
}

/// The template `code` of the organisation of a report, and what stands at its points; `None` where there is none.
async fn template(transaction: &Transaction<'_>, report: Uuid, code: &str) -> Result<Option<Template>, DbError> {
    let found = rows(transaction, POINTS, &[&report, &code]).await?;
    let Some(first) = found.first() else { return Ok(None) };
    let mut template = Template {
        id: first.try_get("template_id")?,
        is_test_line: first.try_get("is_test_line")?,
        factory_power_hp: first.try_get("factory_power_hp")?,
        points: Vec::new(),
    };
    for row in &found {
        template.points.push(TemplatePoint {
            id: row.try_get("id")?,
            code: row.try_get("code")?,
            bounds: match row.try_get("has_bounds")? {
                true => Some(thresholds::bounds(row)?),
                false => None,
            },
            narrowed: Narrowed {
                minimum: row.try_get("minimum")?,
                maximum: row.try_get("maximum")?,
            },
            is_answered: row.try_get("is_answered")?,
            number: row.try_get("numeric_value")?,
        });
    }
    Ok(Some(template))
}
