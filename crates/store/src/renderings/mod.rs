//! The queue of renderings in the database: which PDFs are missing or stale, and which replica renders each.
//!
//! A claim is a lease in the database's time: it postpones the row's `due_at`. No transaction is open while a report is rendered
//! and uploaded. The work of a crashed or hung renderer becomes due again when the lease expires. Locks are acquired in one
//! order (the report, then its rendering) without waiting: a locked report is skipped.
//!
//! The SHA-256 of each published PDF is stored as long as its report (REP-19).

mod switch;

use std::time::Duration;

use partner_api_domain::pdf_key;
use uuid::Uuid;

use super::connection::{Connection, Parameters};
use super::{DbError, inspections};
use crate::statement;
use crate::transaction::Transaction;

pub use self::switch::switch;

statement! {
    /// Enqueues a report for rendering.
    ENQUEUE = "SELECT try_enqueue_rendering($1::uuid, $2::text, $3::integer, $4::boolean)";

    /// The organizations of the reports that are due, in the order of their turn.
    DUE = "\
SELECT organization_id FROM report_renderings WHERE due_at <= now() AND least_version <= $1::integer
ORDER BY is_requested DESC, due_at LIMIT 100";

    /// Locks the next report of the organization `$1`. Skips those that are locked by others.
    LOCK_NEXT = "\
SELECT inspection_id, attempts, is_requested FROM report_renderings
WHERE organization_id = $1::uuid AND due_at <= now() AND least_version <= $2::integer
ORDER BY is_requested DESC, due_at LIMIT 1 FOR UPDATE SKIP LOCKED";

    /// Claims a locked report.
    CLAIM = "\
UPDATE report_renderings
SET claim = $3::uuid, attempts = $4::integer, is_requested = $5::boolean, due_at = now() + make_interval(secs => $6::float8)
WHERE inspection_id = $1::uuid AND organization_id = $2::uuid";

    /// The organization of a report that has a PDF.
    OWNER = "SELECT organization_id FROM inspections WHERE id = $1::uuid AND status = 'PUBLISHED' AND public_slug IS NOT NULL";

    /// Adds a particular report to the queue if necessary.
    ADD = "\
INSERT INTO report_renderings (inspection_id, organization_id, is_requested) VALUES ($1::uuid, $2::uuid, true)
ON CONFLICT (inspection_id, organization_id) DO NOTHING";

    /// Locks a particular report that is being published, out of order, but not while a claim is active.
    LOCK_ONE = "\
SELECT r.attempts FROM report_renderings r
JOIN inspections i ON i.id = r.inspection_id AND i.organization_id = r.organization_id
WHERE r.inspection_id = $1::uuid AND r.organization_id = $2::uuid AND (r.claim IS NULL OR r.due_at <= now())
  AND r.least_version <= $3::integer AND i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL
FOR UPDATE OF r";

    /// The stored PDF of a report, and the fingerprint of the current data.
    PUBLISHED = "\
SELECT i.pdf_object_key, report_fingerprint(i.id), p.sha256, p.size_bytes
FROM inspections i LEFT JOIN published_pdfs p ON p.object_key = i.pdf_object_key AND p.organization_id = i.organization_id
WHERE i.id = $1::uuid AND i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL";

    /// The data that a claimed report is rendered from.
    DOCUMENT = "\
SELECT report_document(i.id)::text, report_fingerprint(i.id), p.object_key
FROM inspections i LEFT JOIN published_pdfs p ON p.object_key = i.pdf_object_key AND p.organization_id = i.organization_id
WHERE i.id = $1::uuid AND i.organization_id = $2::uuid AND i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL";

    /// Records an object before it is uploaded.
    RECORD = "\
INSERT INTO orphaned_objects (object_key, inspection_id, organization_id, delete_at)
SELECT $1::text, i.id, i.organization_id, now() + interval '1 day' FROM inspections i
WHERE i.id = $2::uuid AND i.organization_id = $3::uuid";

    /// Ends a claim and removes the report from the queue.
    DONE = "DELETE FROM report_renderings WHERE inspection_id = $1::uuid AND organization_id = $2::uuid AND claim = $3::uuid";

    /// Ends a claim and schedules the report again.
    POSTPONE = "\
UPDATE report_renderings SET claim = NULL, due_at = now() + make_interval(secs => $4::float8), attempts = $5::integer
WHERE inspection_id = $1::uuid AND organization_id = $2::uuid AND claim = $3::uuid";

    /// Starts a step of the sweep: one replica every ten seconds, and none while the queue is long.
    SWEEP = "\
UPDATE report_sweep SET due_at = now() + interval '10 seconds'
WHERE due_at <= now()
  AND (SELECT count(*) FROM (SELECT 1 FROM report_renderings WHERE due_at <= now() LIMIT 500) waiting) < 500
RETURNING after_id";

    /// The reports that a step examines. Their number is limited, whether or not their PDFs are stale.
    SWEEP_BATCH = "\
SELECT i.id, i.pdf_object_key,
    CASE WHEN i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL THEN report_fingerprint(i.id) END
FROM (SELECT id, status, public_slug, pdf_object_key FROM inspections WHERE id > $1::uuid ORDER BY id LIMIT 200) i
ORDER BY i.id";

    /// Advances the sweep.
    SWEEP_ADVANCE = "UPDATE report_sweep SET after_id = $2::uuid WHERE after_id = $1::uuid";
}

/// The exclusive right to render a report until its lease expires.
#[derive(Debug)]
pub struct Claim {
    report: Uuid,
    organization: Uuid,
    token: Uuid,
    attempts: i32,
    is_requested: bool,
}

impl Claim {
    /// A claim after `attempts`.
    fn next(report: Uuid, organization: Uuid, attempts: i32, is_requested: bool) -> Self {
        Claim {
            report,
            organization,
            token: Uuid::new_v4(),
            attempts: attempts.saturating_add(1),
            is_requested,
        }
    }

    /// Returns the ID of the report.
    #[must_use]
    pub fn report(&self) -> Uuid {
        self.report
    }

    /// Returns the number of this attempt, starting at 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempts.unsigned_abs()
    }

    /// Returns whether somebody has requested the PDF.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.is_requested
    }
}

/// A PDF in the storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPdf {
    /// The object key.
    pub object_key: String,
    /// The SHA-256 of the content.
    pub sha256: Vec<u8>,
    /// The size in bytes.
    pub size_bytes: i64,
}

/// The data that a report's PDF is rendered from.
#[derive(Debug)]
pub struct Document {
    /// `report_document` as JSON.
    pub json: String,
    /// The fingerprint of the document.
    pub fingerprint: String,
    /// The key of the stored PDF, if it was rendered from this document and its SHA-256 is recorded.
    pub current_key: Option<String>,
}

/// Requests the rendering of a missing or stale PDF. Requested reports are rendered first.
///
/// # Errors
/// If the query fails, or the row of the rendering is locked for longer than 100 ms.
pub async fn request(client: &Connection, pdf: &inspections::Pdf) -> Result<(), DbError> {
    enqueue(client, pdf.report(), pdf.fingerprint(), true).await
}

async fn enqueue(client: &Connection, report: Uuid, fingerprint: &str, is_requested: bool) -> Result<(), DbError> {
    client
        .execute(
            ENQUEUE,
            &[&report, &fingerprint, &pdf_key::RENDERER_VERSION, &is_requested],
        )
        .await?;
    Ok(())
}

/// Claims the next report that is due, if there is one. Requested reports come first. The lease doubles with each attempt, so that a
/// report that crashes its renderer is retried less and less often.
///
/// # Errors
/// If the query fails.
pub async fn claim(client: &Connection, lease: Duration) -> Result<Option<Claim>, DbError> {
    let mut tried = Vec::new();
    for due in client.query(DUE, &[&pdf_key::RENDERER_VERSION]).await? {
        let organization: Uuid = due.try_get(0)?;
        if tried.contains(&organization) {
            continue;
        }
        tried.push(organization);
        let transaction = client.transaction();
        let lock = transaction.prepare(LOCK_NEXT).await?;
        let parameters: &Parameters<'_> = &[&organization, &pdf_key::RENDERER_VERSION];
        if let Some(row) = transaction.query_opt(&lock, parameters).await? {
            let (attempts, is_requested) = (row.try_get(1)?, row.try_get(2)?);
            let claim = Claim::next(row.try_get(0)?, organization, attempts, is_requested);
            claim_locked(&transaction, &claim, lease).await?;
            return Ok(Some(claim));
        }
        transaction.rollback().await?;
    }
    Ok(None)
}

/// Claims a report that the transaction has locked, and commits it.
async fn claim_locked(transaction: &Transaction<'_>, claim: &Claim, lease: Duration) -> Result<(), DbError> {
    let lease = lease.as_secs_f64() * 2_f64.powi((claim.attempts - 1).min(6));
    let statement = transaction.prepare(CLAIM).await?;
    let parameters: &Parameters<'_> = &[
        &claim.report,
        &claim.organization,
        &claim.token,
        &claim.attempts,
        &claim.is_requested,
        &lease,
    ];
    let (claimed, committed) = futures::join!(transaction.execute(&statement, parameters), transaction.commit());
    claimed?;
    committed
}

/// Claims this report, whether or not it is due. Returns `None` if another claim is active, or the report has no PDF.
///
/// # Errors
/// If the query fails.
pub async fn claim_one(client: &Connection, report: Uuid, lease: Duration) -> Result<Option<Claim>, DbError> {
    let Some(owner) = client.query_opt(OWNER, &[&report]).await? else {
        return Ok(None);
    };
    let organization: Uuid = owner.try_get(0)?;
    let transaction = client.transaction();
    let (add, lock) = (transaction.prepare(ADD).await?, transaction.prepare(LOCK_ONE).await?);
    let parameters: &Parameters<'_> = &[&report, &organization, &pdf_key::RENDERER_VERSION];
    let (added, locked) = futures::join!(
        transaction.execute(&add, &parameters[..2]),
        transaction.query_opt(&lock, parameters)
    );
    added?;
    let Some(row) = locked? else {
        transaction.rollback().await?;
        return Ok(None);
    };
    let claim = Claim::next(report, organization, row.try_get(0)?, true);
    claim_locked(&transaction, &claim, lease).await?;
    Ok(Some(claim))
}

/// The state of a report's PDF.
#[derive(Debug, PartialEq, Eq)]
pub enum Published {
    /// The report has no PDF, because it is not published or has no public slug.
    Never,
    /// The PDF is missing or stale.
    NotYet,
    /// The PDF is current.
    Now(StoredPdf),
}

/// Returns the state of a report's PDF.
///
/// # Errors
/// If the query fails.
pub async fn published(client: &Connection, report: Uuid) -> Result<Published, DbError> {
    let Some(row) = client.query_opt(PUBLISHED, &[&report]).await? else {
        return Ok(Published::Never);
    };
    let (key, fingerprint): (Option<String>, String) = (row.try_get(0)?, row.try_get(1)?);
    let (sha256, size): (Option<Vec<u8>>, Option<i64>) = (row.try_get(2)?, row.try_get(3)?);
    Ok(match (key, sha256, size) {
        (Some(object_key), Some(sha256), Some(size_bytes))
            if pdf_key::is_current(&object_key, report, &fingerprint) =>
        {
            Published::Now(StoredPdf {
                object_key,
                sha256,
                size_bytes,
            })
        }
        _ => Published::NotYet,
    })
}

/// Returns the data that a claimed report is rendered from, or `None` if the report no longer has a PDF.
///
/// # Errors
/// If the query fails.
pub async fn document(client: &Connection, claim: &Claim) -> Result<Option<Document>, DbError> {
    let Some(row) = client
        .query_opt(DOCUMENT, &[&claim.report, &claim.organization])
        .await?
    else {
        return Ok(None);
    };
    let fingerprint: String = row.try_get(1)?;
    let key: Option<String> = row.try_get(2)?;
    Ok(Some(Document {
        json: row.try_get(0)?,
        current_key: key.filter(|key| pdf_key::is_current(key, claim.report, &fingerprint)),
        fingerprint,
    }))
}

/// Records the key of an object before it is uploaded, so that a crash cannot leave an unknown object.
///
/// # Errors
/// If the query fails.
pub async fn record(client: &Connection, claim: &Claim, key: &str) -> Result<(), DbError> {
    client
        .execute(RECORD, &[&key, &claim.report, &claim.organization])
        .await?;
    Ok(())
}

/// Ends the claim, because there is nothing to render.
///
/// # Errors
/// If the query fails.
pub async fn done(client: &Connection, claim: &Claim) -> Result<(), DbError> {
    client
        .execute(DONE, &[&claim.report, &claim.organization, &claim.token])
        .await?;
    Ok(())
}

/// Ends the claim, schedules the report again after `delay`, and sets the number of `attempts`. Returns whether the claim was
/// still held.
///
/// # Errors
/// If the query fails.
pub async fn postpone(client: &Connection, claim: &Claim, delay: Duration, attempts: u32) -> Result<bool, DbError> {
    let attempts = i32::try_from(attempts).unwrap_or(i32::MAX);
    let postponed = client
        .execute(
            POSTPONE,
            &[
                &claim.report,
                &claim.organization,
                &claim.token,
                &delay.as_secs_f64(),
                &attempts,
            ],
        )
        .await?;
    Ok(postponed == 1)
}

/// Runs the next step of the sweep over all reports, if it is due: enqueues the reports whose PDF is missing or stale, and
/// returns their number. After the last report the sweep starts again.
///
/// # Errors
/// If a query fails. The step is then repeated.
pub async fn sweep(client: &Connection) -> Result<usize, DbError> {
    let Some(step) = client.query_opt(SWEEP, &[]).await? else {
        return Ok(0);
    };
    let after: Uuid = step.try_get(0)?;
    let (mut last, mut enqueued) = (Uuid::nil(), 0);
    for row in client.query(SWEEP_BATCH, &[&after]).await? {
        last = row.try_get(0)?;
        let (key, fingerprint): (Option<String>, Option<String>) = (row.try_get(1)?, row.try_get(2)?);
        let Some(fingerprint) = fingerprint else { continue };
        if !key.is_some_and(|key| pdf_key::is_current(&key, last, &fingerprint)) {
            enqueue(client, last, &fingerprint, false).await?;
            enqueued += 1;
        }
    }
    client.execute(SWEEP_ADVANCE, &[&after, &last]).await?;
    Ok(enqueued)
}
