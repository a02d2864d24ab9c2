//! Changes of a report's content, under the lock of its row.

use codegen_runtime::validation::ValidationErrors;
use partner_api_domain::plausible::NarrowedRange;
use partner_api_domain::template;
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
use partner_api_store::{DbError, thresholds};
use rust_decimal::Decimal;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::report::{review, version};
use super::{execute, listed, row, rows};
use crate::caller::Inspector;
use crate::rules::answers::{NewAnswer, Template, TemplatePoint, ValidatedAnswer};
use crate::rules::moves::{Review, Status};

statement! {
    /// Locks the report `$1` if it is at one of the branches `$2` of the organization `$3`. Devices and other inspectors lock it
    /// too before they write.
    LOCK = "\
SELECT i.status, i.branch_id, i.plate FROM inspections i
WHERE i.id = $1 AND i.organization_id = $3 AND i.branch_id = ANY ($2::uuid[]) FOR NO KEY UPDATE";

    /// The version of the locked report `$1` of the organization `$2`, the rule about its review, and the status from which its
    /// cancellation was requested, if it was.
    VERSION = concat!("\
SELECT ", version!("$2"), " AS version,
       (SELECT CASE WHEN t.to_status = 'CANCEL_REQUESTED' THEN t.from_status END FROM inspection_transitions t
        WHERE t.inspection_id = i.id AND t.organization_id = $2 ORDER BY t.number DESC LIMIT 1) AS before_request,
       ", review!("$2"), "
FROM inspections i JOIN organizations o ON o.id = i.organization_id WHERE i.id = $1 AND i.organization_id = $2");

    /// Sets the fields of the report `$1` of the organization `$9` whose parameters are not null.
    UPDATE = "\
UPDATE inspections SET version = version + 1, summary = coalesce($2, summary), recommendation = coalesce($3, recommendation),
    snapshot_mileage_km = coalesce($4, snapshot_mileage_km), base_price = coalesce($5, base_price),
    discount_percent = coalesce($6, discount_percent), discount_name = coalesce($7, discount_name),
    payment_type = coalesce($8, payment_type),
    final_price = round(coalesce($5, base_price) * (100 - coalesce($6, discount_percent)) / 100, 2)
WHERE id = $1 AND organization_id = $9";

    /// The points of the template `$2` of the organization `$3` of the report `$1`, with their answers and the vehicle's registered
    /// power. The points of a test-line form also have their thresholds and plausible ranges.
    POINTS = "\
SELECT t.id AS template_id, t.is_test_line, CASE WHEN row_number() OVER () = 1 THEN t.statuses END AS statuses,
       v.factory_power_hp, p.id, p.code, h.point_code IS NOT NULL AS has_bounds, h.good_min,
       h.good_max, h.borderline_min, h.borderline_max, r.minimum, r.maximum, a.point_id IS NOT NULL AS is_answered,
       a.numeric_value
FROM inspections i
JOIN vehicles v ON v.id = i.vehicle_id
JOIN form_templates t ON t.organization_id = i.organization_id AND t.code = $2
JOIN form_template_points p ON p.template_id = t.id AND p.organization_id = t.organization_id
LEFT JOIN thresholds h ON t.is_test_line AND h.organization_id = i.organization_id AND h.point_code = p.code
LEFT JOIN plausible_ranges r ON t.is_test_line AND r.organization_id = i.organization_id AND r.point_code = p.code
LEFT JOIN inspection_forms f ON f.inspection_id = i.id AND f.template_id = t.id AND f.organization_id = i.organization_id
LEFT JOIN inspection_form_answers a
       ON a.inspection_form_id = f.id AND a.point_id = p.id AND a.organization_id = f.organization_id
WHERE i.id = $1 AND i.organization_id = $3";

    /// Writes answers of the author `$5` to a form of the organization `$12`. The form: `$1` its ID if it is new, `$2` the report,
    /// `$3` the template, `$4` its general note or null. The answers: `$6` points, `$7` codes, `$8` labels, `$9` severities, `$10`
    /// numbers, `$11` notes or null. Replaced answers are kept in the history. Null leaves a value unchanged. If neither status nor
    /// number changes, the author and the time stay.
    WRITE = "\
WITH form AS (
    INSERT INTO inspection_forms AS f (id, organization_id, inspection_id, template_id, general_note)
    SELECT $1, i.organization_id, i.id, $3, coalesce($4, '') FROM inspections i WHERE i.id = $2 AND i.organization_id = $12
    ON CONFLICT (inspection_id, template_id, organization_id) DO UPDATE SET general_note = coalesce($4, f.general_note)
    RETURNING id, organization_id
), answer AS (
    SELECT * FROM unnest($6::uuid[], $7::text[], $8::text[], $9::text[], $10::numeric[], $11::text[])
                  AS a (point_id, status_code, status_label, severity, numeric_value, note)
), old AS (
    SELECT o.* FROM form JOIN inspection_form_answers o ON o.inspection_form_id = form.id AND o.organization_id = $12
    JOIN answer USING (point_id)
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

    /// Removes the answers at the points `$3` from the form of the report `$1` of the organization `$4` and the template `$2`, and
    /// keeps them in the history.
    REMOVE = "\
WITH gone AS (
    DELETE FROM inspection_form_answers a USING inspection_forms f
    WHERE f.inspection_id = $1 AND f.template_id = $2 AND f.organization_id = $4
      AND a.inspection_form_id = f.id AND a.organization_id = f.organization_id AND a.point_id = ANY ($3::uuid[])
    RETURNING a.*
)
INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, organization_id, status_code, status_label, severity,
                                            numeric_value, note, by_device, measurement_id, written_by, written_at)
SELECT inspection_form_id, point_id, organization_id, status_code, status_label, severity, numeric_value, note, by_device,
       measurement_id, written_by, written_at
FROM gone";

    /// Increments the version of the report `$1` of the organization `$2`.
    INCREMENT_VERSION = "UPDATE inspections SET version = version + 1 WHERE id = $1 AND organization_id = $2";
}

/// A report at one of the inspector's branches that the transaction has locked.
#[derive(Clone, Debug)]
pub struct LockedReport {
    /// Its ID.
    pub id: Uuid,
    /// The ID of its organization.
    pub organization_id: Uuid,
    /// Its branch.
    pub branch_id: Uuid,
    /// The plate under which it was opened.
    pub plate: String,
    /// Its status.
    pub status: Status,
    /// Its version.
    pub version: i64,
    /// The status from which its cancellation was requested, if it was.
    pub before_request: Option<Status>,
    /// The rule about its review.
    pub review: Review,
}

impl LockedReport {
    /// Increments the version.
    pub(super) async fn increment_version(&self, transaction: &Transaction<'_>) -> Result<(), DbError> {
        execute(transaction, INCREMENT_VERSION, &[&self.id, &self.organization_id]).await?;
        Ok(())
    }
}

/// Locks a report until the transaction ends. Returns `None` if it does not exist at the inspector's branches.
///
/// # Errors
/// The database failed.
pub async fn lock(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    id: Uuid,
) -> Result<Option<LockedReport>, DbError> {
    let organization = inspector.organization_id();
    let Some(locked) = row(transaction, LOCK, &[&id, &inspector.branch_ids(), &organization]).await? else {
        return Ok(None);
    };
    // Read with a new snapshot, after the lock was acquired.
    let Some(version) = row(transaction, VERSION, &[&id, &organization]).await? else {
        return Ok(None);
    };
    Ok(Some(LockedReport {
        id,
        organization_id: organization,
        branch_id: locked.try_get("branch_id")?,
        plate: locked.try_get("plate")?,
        status: locked.try_get("status")?,
        version: version.try_get("version")?,
        before_request: version.try_get("before_request")?,
        review: super::report::review_of(&version)?,
    }))
}

/// Changes of a report; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// The overall assessment.
    pub summary: Option<String>,
    /// The recommendation.
    pub recommendation: Option<String>,
    /// The reading of the odometer, in km.
    pub mileage_km: Option<i32>,
    /// The price before the discount.
    pub base_price: Option<Decimal>,
    /// The discount in percent.
    pub discount_percent: Option<Decimal>,
    /// The name of the discount.
    pub discount_name: Option<String>,
    /// The payment method.
    pub payment_type: Option<&'static str>,
}

/// Changes a report's texts, mileage and pricing.
///
/// # Errors
/// The database failed.
pub async fn update(transaction: &Transaction<'_>, report: &LockedReport, update: &Update) -> Result<(), DbError> {
    let Update {
        summary,
        recommendation,
        mileage_km,
        base_price,
        discount_percent,
        discount_name,
        payment_type,
    } = update;
    let parameters: [&(dyn ToSql + Sync); 9] = [
        &report.id,
        summary,
        recommendation,
        mileage_km,
        base_price,
        discount_percent,
        discount_name,
        payment_type,
        &report.organization_id,
    ];
    execute(transaction, UPDATE, &parameters).await?;
    Ok(())
}

/// Why answers were not written.
#[derive(Debug)]
pub enum FillError {
    /// The organization has no template with the code.
    NoTemplate,
    /// Some answers are invalid; all of them are named.
    Invalid(ValidationErrors),
    /// The database failed.
    Db(DbError),
}

impl From<DbError> for FillError {
    fn from(error: DbError) -> Self {
        FillError::Db(error)
    }
}

/// The changes of a form.
#[derive(Clone, Debug)]
pub struct Filling {
    /// The template's code.
    pub template_code: String,
    /// The note on the whole form; `None` leaves it unchanged.
    pub general_note: Option<String>,
    /// The codes of points whose answers are removed first.
    pub clear: Vec<String>,
    /// The answers to write.
    pub answers: Vec<NewAnswer>,
}

/// Writes the inspector's answers to a form of a locked report (INS-7).
///
/// # Errors
/// [`FillError`]; the transaction must not be committed then.
pub async fn fill(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    report: &LockedReport,
    filling: &Filling,
) -> Result<(), FillError> {
    let Filling {
        template_code,
        general_note,
        clear,
        answers,
    } = filling;
    let template = template(transaction, report, template_code).await?;
    let mut template = template.ok_or(FillError::NoTemplate)?;
    let cleared = template.clear(clear).map_err(FillError::Invalid)?;
    if !cleared.is_empty() {
        remove(transaction, report, template.id, &cleared).await?;
    }
    let written = template.validate(answers).map_err(FillError::Invalid)?;
    let mut columns = Columns::default();
    for answer in &written {
        columns.push(answer);
    }
    let new_form = Uuid::now_v7();
    let by = inspector.name();
    let parameters: [&(dyn ToSql + Sync); 12] = [
        &new_form,
        &report.id,
        &template.id,
        general_note,
        &by,
        &columns.points,
        &columns.codes,
        &columns.labels,
        &columns.severities,
        &columns.numbers,
        &columns.notes,
        &report.organization_id,
    ];
    execute(transaction, WRITE, &parameters).await?;
    if let Some(ratio) = template.outdated_ratio(answers, &written) {
        remove(transaction, report, template.id, &[ratio]).await?;
    }
    report.increment_version(transaction).await?;
    Ok(())
}

/// Removes the answers at these points from a form.
async fn remove(
    transaction: &Transaction<'_>,
    report: &LockedReport,
    template: Uuid,
    points: &[Uuid],
) -> Result<(), DbError> {
    let parameters: [&(dyn ToSql + Sync); 4] = [&report.id, &template, &points, &report.organization_id];
    execute(transaction, REMOVE, &parameters).await?;
    Ok(())
}

#[derive(Default)]
struct Columns<'a> {
    points: Vec<Uuid>,
    codes: Vec<Option<&'a str>>,
    labels: Vec<Option<&'a str>>,
    severities: Vec<Option<&'a str>>,
    numbers: Vec<Option<Decimal>>,
    notes: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, answer: &'a ValidatedAnswer<'_>) {
        self.points.push(answer.point);
        let status = answer.status.as_ref();
        self.codes.push(status.map(|status| status.code.as_str()));
        self.labels.push(status.map(|status| status.label.as_str()));
        self.severities.push(status.map(|status| status.severity.as_str()));
        self.numbers.push(answer.number);
        self.notes.push(answer.note);
    }
}

/// Returns the template `code` of a report's organization with the report's answers; `None` if there is no such template.
async fn template(
    transaction: &Transaction<'_>,
    report: &LockedReport,
    code: &str,
) -> Result<Option<Template>, DbError> {
    let found = rows(transaction, POINTS, &[&report.id, &code, &report.organization_id]).await?;
    let Some(first) = found.first() else { return Ok(None) };
    let is_test_line = first.try_get("is_test_line")?;
    let mut statuses = Vec::new();
    for row in &found {
        statuses.extend(listed::<template::Status>(row, "statuses")?);
    }
    let mut template = Template {
        id: first.try_get("template_id")?,
        is_test_line,
        statuses: template::statuses(is_test_line, statuses),
        factory_power_hp: first.try_get("factory_power_hp")?,
        points: Vec::new(),
        is_power_cleared: false,
    };
    for row in &found {
        template.points.push(TemplatePoint {
            id: row.try_get("id")?,
            code: row.try_get("code")?,
            bounds: match row.try_get("has_bounds")? {
                true => Some(thresholds::bounds(row)?),
                false => None,
            },
            narrowed: NarrowedRange {
                minimum: row.try_get("minimum")?,
                maximum: row.try_get("maximum")?,
            },
            is_answered: row.try_get("is_answered")?,
            number: row.try_get("numeric_value")?,
        });
    }
    Ok(Some(template))
}
