//! The queue of renderings in the database: which PDFs are missing or stale, and which replica renders each.
//!
//! A claim is a lease in the database's time: it postpones the row's `due_at`. No transaction is open while a report is rendered
//! and uploaded. The work of a crashed or hung renderer becomes due again when the lease expires. Locks are acquired in one
//! order (the report, then its rendering) without waiting: a locked report is skipped.
//!
//! The SHA-256 of each published PDF is stored as long as its report (REP-19).

use std::time::Duration;

use partner_api_domain::pdf_key;
use tokio_postgres::Row;
use uuid::Uuid;

use super::connection::Connection;
use super::{DbError, inspections};
use crate::statement;

statement! {
    /// Enqueues a report for rendering.
    ENQUEUE = "SELECT try_enqueue_rendering($1::uuid, $2::text, $3::integer, $4::boolean)";

    /// Claims the next report. The lease doubles with each attempt, so that a report that crashes its renderer is retried less
    /// and less often.
    CLAIM = "\
UPDATE report_renderings r
SET claim = $1::uuid, attempts = r.attempts + 1,
    due_at = now() + make_interval(secs => $2::float8 * 2 ^ least(r.attempts, 6))
WHERE r.inspection_id = (
    SELECT inspection_id FROM report_renderings WHERE due_at <= now() AND least_version <= $3::integer
    ORDER BY is_requested DESC, due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING r.inspection_id, r.attempts, r.is_requested";

    /// Claims a particular report that is being published. Adds it to the queue if necessary, and takes it out of order, but not
    /// while another claim is active.
    CLAIM_ONE = "\
INSERT INTO report_renderings AS r (inspection_id, organization_id, is_requested, attempts, claim, due_at)
SELECT i.id, i.organization_id, true, 1, $1::uuid, now() + make_interval(secs => $2::float8) FROM inspections i
WHERE i.id = $3::uuid AND i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL
ON CONFLICT (inspection_id, organization_id) DO UPDATE SET claim = excluded.claim, attempts = r.attempts + 1,
    is_requested = true,
    due_at = now() + make_interval(secs => $2::float8 * 2 ^ least(r.attempts, 6))
WHERE (r.claim IS NULL OR r.due_at <= now()) AND r.least_version <= $4::integer
RETURNING r.inspection_id, r.attempts, r.is_requested";

    /// The stored PDF of a report, and the fingerprint of the current data.
    PUBLISHED = "\
SELECT i.pdf_object_key, report_fingerprint(i.id), p.sha256, p.size_bytes
FROM inspections i LEFT JOIN published_pdfs p ON p.object_key = i.pdf_object_key
WHERE i.id = $1::uuid AND i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL";

    /// The data that a claimed report is rendered from.
    DOCUMENT = "\
SELECT report_document(i.id)::text, report_fingerprint(i.id), p.object_key
FROM inspections i LEFT JOIN published_pdfs p ON p.object_key = i.pdf_object_key
WHERE i.id = $1::uuid AND i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL";

    /// Records an object before it is uploaded.
    RECORD = "\
INSERT INTO orphaned_objects (object_key, inspection_id, organization_id, delete_at)
SELECT $1::text, i.id, i.organization_id, now() + interval '1 day' FROM inspections i WHERE i.id = $2::uuid";

    /// In one statement: makes the report reference the new object, marks the previous object as orphaned, records the
    /// SHA-256, and removes the report from the queue. The previous object is deleted after an hour, so that downloads can
    /// finish. It is not deleted if its key is outside of the report's folder.
    SWITCH = "\
WITH report AS (
    SELECT id, organization_id, pdf_object_key FROM inspections
    WHERE id = $1::uuid AND status = 'PUBLISHED' AND public_slug IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED
), object AS (
    SELECT object_key FROM orphaned_objects WHERE object_key = $3::text AND NOT is_condemned FOR UPDATE SKIP LOCKED
), done AS (
    DELETE FROM report_renderings r USING report, object
    WHERE r.inspection_id = report.id AND r.claim = $2::uuid AND report_fingerprint(report.id) = $4::text
    RETURNING r.inspection_id, r.organization_id
), referenced AS (
    DELETE FROM orphaned_objects u USING done, object WHERE u.object_key = object.object_key
), replaced AS (
    INSERT INTO orphaned_objects (object_key, inspection_id, organization_id, delete_at)
    SELECT report.pdf_object_key, report.id, report.organization_id, now() + interval '1 hour' FROM report, done
    WHERE starts_with(report.pdf_object_key, $5::text)
    ON CONFLICT (object_key) DO NOTHING
), published AS (
    INSERT INTO published_pdfs (object_key, inspection_id, organization_id, sha256, size_bytes)
    SELECT $3::text, done.inspection_id, done.organization_id, $6::bytea, $7::bigint FROM done
)
UPDATE inspections i SET pdf_object_key = $3::text FROM done WHERE i.id = done.inspection_id";

    /// Ends a claim and removes the report from the queue.
    DONE = "DELETE FROM report_renderings WHERE inspection_id = $1::uuid AND claim = $2::uuid";

    /// Ends a claim and schedules the report again.
    POSTPONE = "\
UPDATE report_renderings SET claim = NULL, due_at = now() + make_interval(secs => $3::float8), attempts = $4::integer
WHERE inspection_id = $1::uuid AND claim = $2::uuid";

    /// Starts a step of the sweep: one replica every ten seconds, and none while the queue is long.
    SWEEP = "\
UPDATE report_sweep SET due_at = now() + interval '10 seconds'
WHERE due_at <= now()
  AND (SELECT count(*) FROM (SELECT FROM report_renderings WHERE due_at <= now() LIMIT 500) waiting) < 500
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
    token: Uuid,
    attempts: i32,
    is_requested: bool,
}

impl Claim {
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

/// Claims the next report that is due, if there is one. Requested reports come first.
///
/// # Errors
/// If the query fails.
pub async fn claim(client: &Connection, lease: Duration) -> Result<Option<Claim>, DbError> {
    let token = Uuid::new_v4();
    let row = client
        .query_opt(CLAIM, &[&token, &lease.as_secs_f64(), &pdf_key::RENDERER_VERSION])
        .await?;
    row.map(|row| claimed(&row, token)).transpose()
}

/// Claims this report, whether or not it is due. Returns `None` if another claim is active, or the report has no PDF.
///
/// # Errors
/// If the query fails.
pub async fn claim_one(client: &Connection, report: Uuid, lease: Duration) -> Result<Option<Claim>, DbError> {
    let token = Uuid::new_v4();
    let row = client
        .query_opt(
            CLAIM_ONE,
            &[&token, &lease.as_secs_f64(), &report, &pdf_key::RENDERER_VERSION],
        )
        .await?;
    row.map(|row| claimed(&row, token)).transpose()
}

fn claimed(row: &Row, token: Uuid) -> Result<Claim, DbError> {
    Ok(Claim {
        report: row.try_get(0)?,
        token,
        attempts: row.try_get(1)?,
        is_requested: row.try_get(2)?,
    })
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
    let Some(row) = client.query_opt(DOCUMENT, &[&claim.report]).await? else {
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
    client.execute(RECORD, &[&key, &claim.report]).await?;
    Ok(())
}

/// Makes the report reference the uploaded object, records its SHA-256, ends the claim, and returns true.
///
/// Returns false and changes nothing if
/// - another claim has replaced this one,
/// - the report's data has changed since it was rendered, or
/// - the report is locked.
///
/// # Errors
/// If the query fails. The outcome may then be unknown.
pub async fn switch(client: &Connection, claim: &Claim, pdf: &StoredPdf, fingerprint: &str) -> Result<bool, DbError> {
    let folder = pdf_key::folder(claim.report);
    let switched = client
        .execute(
            SWITCH,
            &[
                &claim.report,
                &claim.token,
                &pdf.object_key,
                &fingerprint,
                &folder,
                &pdf.sha256,
                &pdf.size_bytes,
            ],
        )
        .await?;
    Ok(switched == 1)
}

/// Ends the claim, because there is nothing to render.
///
/// # Errors
/// If the query fails.
pub async fn done(client: &Connection, claim: &Claim) -> Result<(), DbError> {
    client.execute(DONE, &[&claim.report, &claim.token]).await?;
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
            &[&claim.report, &claim.token, &delay.as_secs_f64(), &attempts],
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
