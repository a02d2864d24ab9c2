//! Transitions of a report from one status to another (INS-6).

use partner_api_domain::score::Assessment;
use partner_api_store::DbError;
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
use rand::Rng;
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
    /// Appends a transition of the report `$1` from the status `$2` to `$3`.
    RECORD = "\
INSERT INTO inspection_transitions (inspection_id, number, organization_id, from_status, to_status, reason, inspector_id,
                                    inspector_name)
SELECT $1, coalesce((SELECT max(number) FROM inspection_transitions WHERE inspection_id = $1), 0) + 1, $4, $2, $3, $5, $6, $7";

    /// The points of the report `$1`, each with the status of its answer, and whether it must be inspected.
    POINTS = "\
SELECT t.name AS form, p.name AS point, a.status_code, a.severity, coalesce(p.is_required, t.is_required) AS is_required
FROM inspections i
JOIN form_templates t ON t.organization_id = i.organization_id
JOIN form_template_points p ON p.template_id = t.id
LEFT JOIN inspection_forms f ON f.inspection_id = i.id AND f.template_id = t.id
LEFT JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.point_id = p.id
WHERE i.id = $1 ORDER BY t.position, t.code, p.position, p.code";

    /// Whether nothing was entered into the report `$1`, and it has not been moved.
    IS_UNTOUCHED = "\
SELECT i.summary = '' AND i.recommendation = ''
   AND NOT EXISTS (SELECT FROM photos p WHERE p.inspection_id = i.id)
   AND NOT EXISTS (SELECT FROM measurements m WHERE m.inspection_id = i.id)
   AND NOT EXISTS (SELECT FROM inspection_forms f WHERE f.inspection_id = i.id AND (f.general_note <> '' OR EXISTS (
           SELECT FROM inspection_form_answers a WHERE a.inspection_form_id = f.id)))
FROM inspections i WHERE i.id = $1";

    /// Sets the report's status.
    MOVE = "UPDATE inspections SET status = $2, version = version + 1 WHERE id = $1";

    /// Publishes the report `$1` with its score (`$2`). The public slug (`$3`) and the time are set by the first publication only.
    /// The publishing inspector (`$4`) is responsible for the report.
    PUBLISH = "\
UPDATE inspections SET status = 'PUBLISHED', version = version + 1, overall_score = $2, public_slug = coalesce(public_slug, $3),
    published_at = coalesce(published_at, now()), inspector_name = $4
WHERE id = $1";

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
    if to == Status::Published && report.status != Status::CancelRequested {
        let score = match score_to_publish(transaction, report.id).await? {
            Ok(score) => score,
            Err(error) => return Ok(Err(error)),
        };
        execute(transaction, PUBLISH, &[&report.id, &score, &slug(), &inspector.name()]).await?;
    } else {
        if to == Status::Discarded && !is_untouched(transaction, report.id).await? {
            return Ok(Err(MoveError::NotEmpty));
        }
        execute(transaction, MOVE, &[&report.id, &to]).await?;
    }
    if to == Status::Published {
        execute(transaction, PRIORITIZE_PDF, &[&report.id]).await?;
    }
    record(transaction, inspector, report.id, Some(report.status), to, reason).await?;
    Ok(Ok(()))
}

/// Returns the score of what was inspected, if that is enough for a publication (INS-13).
async fn score_to_publish(transaction: &Transaction<'_>, report: Uuid) -> Result<Result<i32, MoveError>, DbError> {
    let (mut assessment, mut unanswered) = (Assessment::default(), Vec::new());
    for row in rows(transaction, POINTS, &[&report]).await? {
        let answer: (Option<String>, Option<String>) = (row.try_get("status_code")?, row.try_get("severity")?);
        if !assessment.add(answer.0.as_deref().zip(answer.1.as_deref())) && row.try_get("is_required")? {
            let (form, point): (String, String) = (row.try_get("form")?, row.try_get("point")?);
            unanswered.push(format!("{form}: {point}"));
        }
    }
    Ok(match assessment.score() {
        None => Err(MoveError::NothingInspected),
        Some(score) if unanswered.is_empty() => Ok(score),
        Some(_) => Err(MoveError::Unanswered(unanswered)),
    })
}

async fn is_untouched(transaction: &Transaction<'_>, report: Uuid) -> Result<bool, DbError> {
    let found = row(transaction, IS_UNTOUCHED, &[&report]).await?;
    found.map_or(Ok(false), |row| Ok(row.try_get(0)?))
}

fn slug() -> String {
    let mut random = rand::rng();
    (0..SLUG_LENGTH)
        .map(|_| char::from(SLUG_CHARACTERS[random.random_range(0..SLUG_CHARACTERS.len())]))
        .collect()
}
