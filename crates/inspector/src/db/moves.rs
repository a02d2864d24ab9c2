//! Moving a report from one status to another (INS-6).

use partner_api_domain::score;
use partner_api_store::DbError;
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
use rand::Rng;
use uuid::Uuid;

use super::writing::Locked;
use super::{execute, rows};
use crate::caller::Inspector;
use crate::rules::moves::Status;

/// What a public page is named by: nothing that looks like something else.
const SLUG: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Characters of a slug: 60 bits, which nobody guesses.
const SLUG_LENGTH: usize = 12;

statement! {
    /// Notes a move of the report `$1` to the status `$3`, behind those before.
    NOTE = "\
INSERT INTO inspection_transitions (inspection_id, number, organization_id, from_status, to_status, reason, inspector_id,
                                    inspector_name)
SELECT $1, coalesce((SELECT max(number) FROM inspection_transitions WHERE inspection_id = $1), 0) + 1, $4, $2, $3, $5, $6, $7";

    /// The severities of the report's (`$1`) answers.
    SEVERITIES = "\
SELECT a.severity FROM inspection_forms f JOIN inspection_form_answers a ON a.inspection_form_id = f.id
WHERE f.inspection_id = $1";

    /// Sets the report's status.
    MOVE = "UPDATE inspections SET status = $2, version = version + 1 WHERE id = $1";

    /// Publishes the report `$1` with its score (`$2`); a public page's name (`$3`) and a time are given once, and whoever publishes it (`$4`)
    /// answers for it.
    PUBLISH = "\
UPDATE inspections SET status = 'PUBLISHED', version = version + 1, overall_score = $2, public_slug = coalesce(public_slug, $3),
    published_at = coalesce(published_at, now()), inspector_name = $4
WHERE id = $1";

    /// Has the PDF of the report `$1` drawn before those for which nobody waits: who has published it looks at the page. That it is
    /// wanted at all is a trigger's.
    AWAIT_PDF = "SELECT enqueue_rendering($1, NULL, 0, true)";
}

/// Notes a move, with who and when.
pub(super) async fn note(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    report: Uuid,
    from: Option<Status>,
    to: Status,
    reason: Option<&str>,
) -> Result<(), DbError> {
    execute(
        transaction,
        NOTE,
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

/// Moves a locked report to a status that it may have.
///
/// # Errors
/// What the database says.
pub async fn move_to(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    report: &Locked,
    to: Status,
    reason: Option<&str>,
) -> Result<(), DbError> {
    if to == Status::Published && report.status != Status::CancelRequested {
        let severities: Result<Vec<String>, _> = rows(transaction, SEVERITIES, &[&report.id])
            .await?
            .iter()
            .map(|row| row.try_get(0))
            .collect();
        let score = score::score(severities?.iter().map(String::as_str));
        execute(transaction, PUBLISH, &[&report.id, &score, &slug(), &inspector.name()]).await?;
    } else {
        execute(transaction, MOVE, &[&report.id, &to]).await?;
    }
    if to == Status::Published {
        execute(transaction, AWAIT_PDF, &[&report.id]).await?;
    }
    note(transaction, inspector, report.id, Some(report.status), to, reason).await
}

fn slug() -> String {
    let mut random = rand::rng();
    (0..SLUG_LENGTH)
        .map(|_| char::from(SLUG[random.random_range(0..SLUG.len())]))
        .collect()
}
