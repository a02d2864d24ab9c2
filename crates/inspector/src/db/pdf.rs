//! Finds the PDF of a published report.

use partner_api_domain::pdf_key;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use uuid::Uuid;

use crate::caller::Inspector;

statement! {
    /// The PDF of the published report `$1` if it is at one of the branches `$2` of the organization `$3`, and the fingerprint of
    /// the report's current data.
    PDF = "\
SELECT i.report_number, i.pdf_object_key, report_fingerprint(i.id) AS fingerprint
FROM inspections i
WHERE i.id = $1 AND i.organization_id = $3 AND i.branch_id = ANY ($2::uuid[]) AND i.status = 'PUBLISHED'
  AND i.pdf_object_key IS NOT NULL";
}

/// A PDF that shows the report's current data.
#[derive(Clone, Debug)]
pub struct CurrentPdf {
    /// The number of the report.
    pub report_number: String,
    /// The key of its object.
    pub key: String,
}

/// Returns a report's PDF; `None` if there is none at the inspector's branches, or the report's data has changed since.
///
/// # Errors
/// The database failed.
pub async fn current(client: &Connection, inspector: &Inspector, id: Uuid) -> Result<Option<CurrentPdf>, DbError> {
    let (branches, organization) = (inspector.branch_ids(), inspector.organization_id());
    let Some(row) = client.query_opt(PDF, &[&id, &branches, &organization]).await? else {
        return Ok(None);
    };
    let (key, fingerprint): (String, String) = (row.try_get("pdf_object_key")?, row.try_get("fingerprint")?);
    let pdf = CurrentPdf {
        report_number: row.try_get("report_number")?,
        key,
    };
    Ok(pdf_key::is_current(&pdf.key, id, &fingerprint).then_some(pdf))
}
