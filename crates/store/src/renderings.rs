//! Rendering as work in the database: which reports' PDFs are wanted, who draws which, and which objects nobody needs.
//!
//! A claim is a lease by the database's clock: it moves the row's turn ahead, so that no transaction is open while a report
//! is drawn and uploaded, and what a crashed or frozen renderer leaves comes up again by itself. Locks are taken in one order
//! (report, then its rendering) and waited for by nobody: a report under somebody's transaction is skipped.
//!
//! Of each PDF that a report comes to name the SHA-256 is kept for ever (REP-19).

use std::time::Duration;

use partner_api_domain::pdf_key;
use tokio_postgres::Row;
use uuid::Uuid;

use super::connection::Connection;
use super::{DbError, inspections};
use crate::statement;

statement! {
    /// Wants a report rendered.
    WANT = "SELECT try_enqueue_rendering($1::uuid, $2::text, $3::integer, $4::boolean)";

    /// The lease doubles with each attempt: a report that kills its renderer is not the first thing the next one does, again
    /// and again.
    CLAIM = "\
UPDATE report_renderings r
SET claim = $1::uuid, attempts = r.attempts + 1,
    due_at = now() + make_interval(secs => $2::float8 * 2 ^ least(r.attempts, 6))
WHERE r.inspection_id = (
    SELECT inspection_id FROM report_renderings WHERE due_at <= now() AND least_version <= $3::integer
    ORDER BY is_requested DESC, due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING r.inspection_id, r.attempts, r.is_requested";

    /// Claims one report that somebody publishes: put in line if it is not, and taken out of its turn, but not out of the hands
    /// of who has it.
    CLAIM_ONE = "\
INSERT INTO report_renderings AS r (inspection_id, organization_id, is_requested, attempts, claim, due_at)
SELECT i.id, i.organization_id, true, 1, $1::uuid, now() + make_interval(secs => $2::float8) FROM inspections i
WHERE i.id = $3::uuid AND i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL
ON CONFLICT (inspection_id, organization_id) DO UPDATE SET claim = excluded.claim, attempts = r.attempts + 1,
    is_requested = true,
    due_at = now() + make_interval(secs => $2::float8 * 2 ^ least(r.attempts, 6))
WHERE (r.claim IS NULL OR r.due_at <= now()) AND r.least_version <= $4::integer
RETURNING r.inspection_id, r.attempts, r.is_requested";

    /// What a report's PDF is by now, if it was drawn from what the report holds.
    PUBLISHED = "\
SELECT i.pdf_object_key, report_fingerprint(i.id), p.sha256, p.size_bytes
FROM inspections i LEFT JOIN published_pdfs p ON p.object_key = i.pdf_object_key
WHERE i.id = $1::uuid AND i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL";

    /// What a claimed report is drawn from.
    DOCUMENT = "\
SELECT report_document(i.id)::text, report_fingerprint(i.id), p.object_key
FROM inspections i LEFT JOIN published_pdfs p ON p.object_key = i.pdf_object_key
WHERE i.id = $1::uuid AND i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL";

    /// Notes an object before it is uploaded.
    RECORD = "\
INSERT INTO orphaned_objects (object_key, inspection_id, organization_id, delete_at)
SELECT $1::text, i.id, i.organization_id, now() + interval '1 day' FROM inspections i WHERE i.id = $2::uuid";

    /// All or nothing: the report names the new object, which is no longer orphaned, the one before is, what the new one holds is
    /// kept, and the work is done. The object that is replaced stays for an hour, for those who read it. One that is not among the report's own is not ours to
    /// delete.
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
), named AS (
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

    /// Ends a claim.
    DONE = "DELETE FROM report_renderings WHERE inspection_id = $1::uuid AND claim = $2::uuid";

    /// Ends a claim and lets the report come up again.
    POSTPONE = "\
UPDATE report_renderings SET claim = NULL, due_at = now() + make_interval(secs => $3::float8), attempts = $4::integer
WHERE inspection_id = $1::uuid AND claim = $2::uuid";

    /// Lets an object that no report came to name be deleted.
    DISCARD = "UPDATE orphaned_objects SET delete_at = now() WHERE object_key = $1::text AND NOT is_condemned";

    /// One replica every ten seconds, and none while there is enough to do.
    SWEEP = "\
UPDATE report_sweep SET due_at = now() + interval '10 seconds'
WHERE due_at <= now()
  AND (SELECT count(*) FROM (SELECT FROM report_renderings WHERE due_at <= now() LIMIT 500) waiting) < 500
RETURNING after_id";

    /// A step is bounded by the rows it passes, not by those it finds.
    SWEPT = "\
SELECT i.id, i.pdf_object_key,
    CASE WHEN i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL THEN report_fingerprint(i.id) END
FROM (SELECT id, status, public_slug, pdf_object_key FROM inspections WHERE id > $1::uuid ORDER BY id LIMIT 200) i
ORDER BY i.id";

    /// The sweep has come so far.
    SWEPT_TO = "UPDATE report_sweep SET after_id = $2::uuid WHERE after_id = $1::uuid";

    /// What a report does name, as its PDF or as a photo, by whatever hand, is not to be deleted. For the others a crash in between
    /// only means another try.
    CONDEMN = "\
WITH due AS (
    SELECT u.object_key, EXISTS (
        SELECT FROM inspections i WHERE i.id = u.inspection_id AND i.pdf_object_key = u.object_key
        UNION ALL
        SELECT FROM photos p WHERE p.inspection_id = u.inspection_id AND u.object_key IN (p.object_key, p.thumb_object_key)) AS is_named
    FROM orphaned_objects u WHERE u.delete_at <= now() ORDER BY u.delete_at LIMIT 100 FOR UPDATE SKIP LOCKED
), spared AS (
    DELETE FROM orphaned_objects u USING due WHERE u.object_key = due.object_key AND due.is_named
)
UPDATE orphaned_objects u SET is_condemned = true, delete_at = now() + interval '10 minutes'
FROM due WHERE u.object_key = due.object_key AND NOT due.is_named
RETURNING u.object_key";

    /// Forgets a deleted object.
    DELETED = "DELETE FROM orphaned_objects WHERE object_key = $1::text AND is_condemned";
}

/// The right to render one report, for the length of its lease.
#[derive(Debug)]
pub struct Claim {
    report: Uuid,
    token: Uuid,
    attempts: i32,
    is_asked: bool,
}

impl Claim {
    /// The report.
    #[must_use]
    pub fn report(&self) -> Uuid {
        self.report
    }

    /// Which attempt this is, from 1 on.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempts.unsigned_abs()
    }

    /// Whether somebody waits for the PDF.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.is_asked
    }
}

/// A PDF in the storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPdf {
    /// Its key.
    pub object_key: String,
    /// The SHA-256 of its bytes.
    pub sha256: Vec<u8>,
    /// How many there are.
    pub size_bytes: i64,
}

/// What a report's PDF is drawn from.
#[derive(Debug)]
pub struct Document {
    /// `report_document` as JSON.
    pub json: String,
    /// The fingerprint of it.
    pub fingerprint: String,
    /// The key of the stored PDF, if that was drawn from the same and what it holds is kept.
    pub current_key: Option<String>,
}

/// Notes that a partner asked for a PDF that is missing or stale: it is the next to be rendered.
///
/// # Errors
/// [`DbError`] when the query fails, or the report's rendering is under somebody's lock for longer than 100 ms.
pub async fn ask(client: &Connection, pdf: &inspections::Pdf) -> Result<(), DbError> {
    want(client, pdf.report(), pdf.fingerprint(), true).await
}

async fn want(client: &Connection, report: Uuid, fingerprint: &str, is_asked: bool) -> Result<(), DbError> {
    client
        .execute(WANT, &[&report, &fingerprint, &pdf_key::DRAWING, &is_asked])
        .await?;
    Ok(())
}

/// Claims the report that is next in line, if one is due: one somebody asked for before all others.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn claim(client: &Connection, lease: Duration) -> Result<Option<Claim>, DbError> {
    let token = Uuid::new_v4();
    let row = client
        .query_opt(CLAIM, &[&token, &lease.as_secs_f64(), &pdf_key::DRAWING])
        .await?;
    row.map(|row| claimed(&row, token)).transpose()
}

/// Claims this report, whether or not it is due; nothing when somebody has it, or when it is none that has a PDF.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn claim_one(client: &Connection, report: Uuid, lease: Duration) -> Result<Option<Claim>, DbError> {
    let token = Uuid::new_v4();
    let row = client
        .query_opt(CLAIM_ONE, &[&token, &lease.as_secs_f64(), &report, &pdf_key::DRAWING])
        .await?;
    row.map(|row| claimed(&row, token)).transpose()
}

fn claimed(row: &Row, token: Uuid) -> Result<Claim, DbError> {
    Ok(Claim {
        report: row.try_get(0)?,
        token,
        attempts: row.try_get(1)?,
        is_asked: row.try_get(2)?,
    })
}

/// The PDF of a report as it is published now.
#[derive(Debug, PartialEq, Eq)]
pub enum Published {
    /// The report has none: it is not published, or has no public slug.
    Never,
    /// It is missing or stale.
    NotYet,
    /// This.
    Now(StoredPdf),
}

/// Whether a report's PDF is there, and which.
///
/// # Errors
/// [`DbError`] when the query fails.
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

/// What a claimed report is drawn from; nothing when it has no PDF any more.
///
/// # Errors
/// [`DbError`] when the query fails.
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

/// Notes the key of an object before it is uploaded, so that a crash leaves none that nobody knows of.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn record(client: &Connection, claim: &Claim, key: &str) -> Result<(), DbError> {
    client.execute(RECORD, &[&key, &claim.report]).await?;
    Ok(())
}

/// Makes the report name the uploaded object, keeps what that holds and ends the claim; returns whether it did. It does not when
/// the claim is somebody else's by now, when the report holds something else than what was drawn, or while somebody has it
/// locked.
///
/// # Errors
/// [`DbError`] when the query fails; then it is not known which.
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

/// Ends the claim: there is nothing to render.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn done(client: &Connection, claim: &Claim) -> Result<(), DbError> {
    client.execute(DONE, &[&claim.report, &claim.token]).await?;
    Ok(())
}

/// Ends the claim and lets the report come up again after `pause`, with so many `attempts` behind it; returns whether the
/// claim was still held.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn postpone(client: &Connection, claim: &Claim, pause: Duration, attempts: u32) -> Result<bool, DbError> {
    let attempts = i32::try_from(attempts).unwrap_or(i32::MAX);
    let postponed = client
        .execute(
            POSTPONE,
            &[&claim.report, &claim.token, &pause.as_secs_f64(), &attempts],
        )
        .await?;
    Ok(postponed == 1)
}

/// Lets an object that no report came to name be deleted at once.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn discard(client: &Connection, key: &str) -> Result<(), DbError> {
    client.execute(DISCARD, &[&key]).await?;
    Ok(())
}

/// Takes the next step of the sweep over all reports, if it is due: wants those rendered whose PDF is missing or stale.
/// Returns how many. After the last report it begins anew.
///
/// # Errors
/// [`DbError`] when a query fails; the step is then taken again.
pub async fn sweep(client: &Connection) -> Result<usize, DbError> {
    let Some(step) = client.query_opt(SWEEP, &[]).await? else {
        return Ok(0);
    };
    let after: Uuid = step.try_get(0)?;
    let (mut last, mut wanted) = (Uuid::nil(), 0);
    for row in client.query(SWEPT, &[&after]).await? {
        last = row.try_get(0)?;
        let (key, fingerprint): (Option<String>, Option<String>) = (row.try_get(1)?, row.try_get(2)?);
        let Some(fingerprint) = fingerprint else { continue };
        if !key.is_some_and(|key| pdf_key::is_current(&key, last, &fingerprint)) {
            want(client, last, &fingerprint, false).await?;
            wanted += 1;
        }
    }
    client.execute(SWEPT_TO, &[&after, &last]).await?;
    Ok(wanted)
}

/// The keys of objects to delete from the storage: their time has come, and no report names them or ever will.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn condemn(client: &Connection) -> Result<Vec<String>, DbError> {
    let rows = client.query(CONDEMN, &[]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Forgets an object that is deleted.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn deleted(client: &Connection, key: &str) -> Result<(), DbError> {
    client.execute(DELETED, &[&key]).await?;
    Ok(())
}
