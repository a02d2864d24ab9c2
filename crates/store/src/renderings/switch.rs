//! The switch of a report from its previous PDF to one that has been uploaded, in one transaction.

use partner_api_domain::pdf_key;

use super::{Claim, DONE, StoredPdf};
use crate::DbError;
use crate::connection::{Connection, Parameters};
use crate::statement;

statement! {
    /// Locks a report and returns the key of its stored PDF, unless the report has none or is locked.
    LOCK_REPORT = "\
SELECT pdf_object_key FROM inspections
WHERE id = $1::uuid AND organization_id = $2::uuid AND status = 'PUBLISHED' AND public_slug IS NOT NULL
FOR NO KEY UPDATE SKIP LOCKED";

    /// Locks the record of an uploaded object, unless it is about to be deleted.
    LOCK_OBJECT = "\
SELECT object_key FROM orphaned_objects WHERE object_key = $1::text AND NOT is_condemned FOR UPDATE SKIP LOCKED";

    /// The fingerprint of a report's current data.
    FINGERPRINT = "SELECT report_fingerprint(id) FROM inspections WHERE id = $1::uuid AND organization_id = $2::uuid";

    /// Makes a report reference an object.
    REFERENCE = "UPDATE inspections SET pdf_object_key = $3::text WHERE id = $1::uuid AND organization_id = $2::uuid";

    /// Removes the record of an object that a report references now.
    REMOVE_ORPHAN = "DELETE FROM orphaned_objects WHERE object_key = $1::text";

    /// Records the previous object of a report as orphaned, if it is not null. It is deleted after an hour, so that downloads can
    /// finish.
    ADD_ORPHAN = "\
INSERT INTO orphaned_objects (object_key, inspection_id, organization_id, delete_at)
SELECT $3::text, $1::uuid, $2::uuid, now() + interval '1 hour' WHERE $3::text IS NOT NULL
ON CONFLICT (object_key) DO NOTHING";

    /// Records the SHA-256 of a PDF.
    PUBLISH = "\
INSERT INTO published_pdfs (object_key, inspection_id, organization_id, sha256, size_bytes)
VALUES ($3::text, $1::uuid, $2::uuid, $4::bytea, $5::bigint)";
}

/// Makes the report reference the uploaded object, marks the previous object as orphaned, records the SHA-256, ends the claim, and
/// returns true. The previous object is not deleted if its key is outside of the report's folder.
///
/// Returns false and changes nothing if
/// - another claim has replaced this one,
/// - the report's data has changed since it was rendered, or
/// - the report is locked.
///
/// # Errors
/// If the query fails. The outcome may then be unknown.
pub async fn switch(client: &Connection, claim: &Claim, pdf: &StoredPdf, fingerprint: &str) -> Result<bool, DbError> {
    let transaction = client.transaction();
    let prepare = async |statement| transaction.prepare(statement).await;
    let (lock_report, lock_object) = (prepare(LOCK_REPORT).await?, prepare(LOCK_OBJECT).await?);
    let (current, done) = (prepare(FINGERPRINT).await?, prepare(DONE).await?);
    let (reference, publish) = (prepare(REFERENCE).await?, prepare(PUBLISH).await?);
    let (remove_orphan, add_orphan) = (prepare(REMOVE_ORPHAN).await?, prepare(ADD_ORPHAN).await?);
    let of_object: &Parameters<'_> = &[&pdf.object_key];
    let of_claim: &Parameters<'_> = &[&claim.report, &claim.organization, &claim.token];
    let (report, object, current) = futures::join!(
        transaction.query_opt(&lock_report, &of_claim[..2]),
        transaction.query_opt(&lock_object, of_object),
        transaction.query_opt(&current, &of_claim[..2]),
    );
    let (Some(report), Some(_), Some(current)) = (report?, object?, current?) else {
        transaction.rollback().await?;
        return Ok(false);
    };
    if current.try_get::<_, String>(0)? != fingerprint || transaction.execute(&done, of_claim).await? == 0 {
        transaction.rollback().await?;
        return Ok(false);
    }
    let previous: Option<String> = report.try_get(0)?;
    let previous = previous.filter(|key| key.starts_with(&pdf_key::folder(claim.report)));
    let of_previous: &Parameters<'_> = &[&claim.report, &claim.organization, &previous];
    let of_pdf: &Parameters<'_> = &[
        &claim.report,
        &claim.organization,
        &pdf.object_key,
        &pdf.sha256,
        &pdf.size_bytes,
    ];
    let (referenced, removed, added, published, committed) = futures::join!(
        transaction.execute(&reference, &of_pdf[..3]),
        transaction.execute(&remove_orphan, of_object),
        transaction.execute(&add_orphan, of_previous),
        transaction.execute(&publish, of_pdf),
        transaction.commit(),
    );
    referenced.and(removed).and(added).and(published)?;
    committed?;
    Ok(true)
}
