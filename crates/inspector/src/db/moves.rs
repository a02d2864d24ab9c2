//! Transitions of a report from one status to another (INS-6).

use chrono::{DateTime, Utc};
use partner_api_domain::score::Assessment;
use partner_api_store::DbError;
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
use rand::Rng;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::writing::LockedReport;
use super::{execute, row, rows};
use crate::caller::Inspector;
use crate::rules::moves::Status;

/// The characters of a public slug, without any that are easily confused.
const SLUG_CHARACTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// The length of a public slug. Twelve characters hold 60 random bits.
const SLUG_LENGTH: usize = 12;

statement! {
    /// Appends a transition of the report `$1` of the organization `$4` from the status `$2` to `$3`.
    RECORD = "\
INSERT INTO inspection_transitions (inspection_id, number, organization_id, from_status, to_status, reason, inspector_id,
                                    inspector_name)
SELECT $1, coalesce((SELECT max(number) FROM inspection_transitions WHERE inspection_id = $1 AND organization_id = $4), 0) + 1, $4,
       $2, $3, $5, $6, $7";

    /// The points of the report `$1` of the organization `$2`, each with the status of its answer, and whether it must be
    /// inspected. Each row also has the time of the transaction.
    POINTS = "\
SELECT t.name AS form, p.name AS point, a.status_code, a.severity, coalesce(p.is_required, t.is_required) AS is_required,
       now() AS now
FROM inspections i
JOIN form_templates t ON t.organization_id = i.organization_id
JOIN form_template_points p ON p.template_id = t.id AND p.organization_id = t.organization_id
LEFT JOIN inspection_forms f ON f.inspection_id = i.id AND f.template_id = t.id AND f.organization_id = i.organization_id
LEFT JOIN inspection_form_answers a
       ON a.inspection_form_id = f.id AND a.point_id = p.id AND a.organization_id = f.organization_id
WHERE i.id = $1 AND i.organization_id = $2 ORDER BY t.position, t.code, p.position, p.code";

    /// Whether nothing was entered into the report `$1` of the organization `$2`, and it has not been moved.
    IS_UNTOUCHED = "\
SELECT i.summary = '' AND i.recommendation = ''
   AND NOT EXISTS (SELECT 1 FROM photos p WHERE p.inspection_id = i.id AND p.organization_id = $2)
   AND NOT EXISTS (SELECT 1 FROM measurements m WHERE m.inspection_id = i.id AND m.organization_id = $2)
   AND NOT EXISTS (
           SELECT 1 FROM inspection_forms f
           WHERE f.inspection_id = i.id AND f.organization_id = $2 AND (f.general_note <> '' OR EXISTS (
               SELECT 1 FROM inspection_form_answers a WHERE a.inspection_form_id = f.id AND a.organization_id = $2)))
FROM inspections i WHERE i.id = $1 AND i.organization_id = $2";

    /// Sets the status of the report `$1` of the organization `$3`.
    MOVE = "UPDATE inspections SET status = $2, version = version + 1 WHERE id = $1 AND organization_id = $3";

    /// Publishes the report `$1` of the organization `$5` with its score (`$2`). The public slug (`$3`) and the time (`$6`) are set
    /// by the first publication only. The publishing inspector (`$4`) is responsible for the report.
    PUBLISH = "\
UPDATE inspections SET status = 'PUBLISHED', version = version + 1, overall_score = $2, public_slug = coalesce(public_slug, $3),
    published_at = coalesce(published_at, $6), inspector_name = $4
WHERE id = $1 AND organization_id = $5";

    /// Moves the PDF of the report `$1` to the front of the rendering queue, because the inspector waits for it on the page. A
    /// trigger has already queued it.
    PRIORITIZE_PDF = "SELECT enqueue_rendering($1, NULL, 0, true)";
}

/// Records a transition with the inspector and the time.
pub(super) async fn record(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    report: Uuid,
    from: Option<Status>,
    to: Status,
    reason: Option<&str>,
) -> Result<(), DbError> {
    execute(
        transaction,
        RECORD,
        &[
            &report,
            &from,
            &to,
            &inspector.organization_id(),
            &reason,
            &inspector.id(),
            &inspector.name(),
        ],
    )
    .await?;
    Ok(())
}

/// Why a report was not moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveError {
    /// Nothing was inspected.
    NothingInspected,
    /// Required points were not inspected: their names, each after the name of its form.
    Unanswered(Vec<String>),
    /// Something was entered, so the report cannot be discarded.
    NotEmpty,
}

/// Moves a locked report to a status that its current one allows.
///
/// # Errors
/// The database failed.
pub async fn move_to(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    report: &LockedReport,
    to: Status,
    reason: Option<&str>,
) -> Result<Result<(), MoveError>, DbError> {
    let (id, organization) = (&report.id, &report.organization_id);
    if to == Status::Published && report.status != Status::CancelRequested {
        let (score, now) = match score_to_publish(transaction, report).await? {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let parameters: [&(dyn ToSql + Sync); 6] = [id, &score, &slug(), &inspector.name(), organization, &now];
        execute(transaction, PUBLISH, &parameters).await?;
    } else {
        if to == Status::Discarded && !is_untouched(transaction, report).await? {
            return Ok(Err(MoveError::NotEmpty));
        }
        execute(transaction, MOVE, &[id, &to, organization]).await?;
    }
    if to == Status::Published {
        execute(transaction, PRIORITIZE_PDF, &[id]).await?;
    }
    record(transaction, inspector, report.id, Some(report.status), to, reason).await?;
    Ok(Ok(()))
}

/// Returns the score of what was inspected, if that is enough for a publication (INS-13), and the time of the transaction.
async fn score_to_publish(
    transaction: &Transaction<'_>,
    report: &LockedReport,
) -> Result<Result<(i32, DateTime<Utc>), MoveError>, DbError> {
    let (mut assessment, mut unanswered, mut now) = (Assessment::default(), Vec::new(), None);
    for row in rows(transaction, POINTS, &[&report.id, &report.organization_id]).await? {
        now = Some(row.try_get("now")?);
        let answer: (Option<String>, Option<String>) = (row.try_get("status_code")?, row.try_get("severity")?);
        if !assessment.add(answer.0.as_deref().zip(answer.1.as_deref())) && row.try_get("is_required")? {
            let (form, point): (String, String) = (row.try_get("form")?, row.try_get("point")?);
            unanswered.push(format!("{form}: {point}"));
        }
    }
    Ok(match assessment.score().zip(now) {
        None => Err(MoveError::NothingInspected),
        Some(found) if unanswered.is_empty() => Ok(found),
        Some(_) => Err(MoveError::Unanswered(unanswered)),
    })
}

async fn is_untouched(transaction: &Transaction<'_>, report: &LockedReport) -> Result<bool, DbError> {
    let found = row(transaction, IS_UNTOUCHED, &[&report.id, &report.organization_id]).await?;
    found.map_or(Ok(false), |row| Ok(row.try_get(0)?))
}

fn slug() -> String {
    let mut random = rand::rng();
    (0..SLUG_LENGTH)
        .map(|_| char::from(SLUG_CHARACTERS[random.random_range(0..SLUG_CHARACTERS.len())]))
        .collect()
}
