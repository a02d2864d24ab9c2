//! The data of reports' public pages, which anyone with the address can read (REP-22), and the address of these pages, which is
//! printed on all reports (REP-20).

use chrono::{DateTime, Utc};
use partner_api_domain::pdf_key;
use partner_api_domain::personal::StoredPlate;
use partner_api_domain::privacy::PiiMode;
use uuid::Uuid;

use super::DbError;
use super::column::Text;
use super::connection::Connection;
use crate::statement;

statement! {
    /// The published report with the public slug `$1`.
    FIND = "\
SELECT i.id, i.organization_id, i.report_number, i.published_at, v.plate, o.pii_mode, i.pdf_object_key,
       report_fingerprint(i.id) AS fingerprint
FROM inspections i
JOIN organizations o ON o.id = i.organization_id
JOIN vehicles v ON v.id = i.vehicle_id
WHERE i.public_slug = $1 AND i.status = 'PUBLISHED'";

    /// The published PDFs of the report `$1` of the organization `$2`, the last one first.
    PDFS = "\
SELECT object_key, sha256, published_at FROM published_pdfs WHERE inspection_id = $1 AND organization_id = $2
ORDER BY published_at DESC, object_key";

    /// Sets the address of reports' public pages. An empty one means that the operator wants none.
    SET_ADDRESS = "\
UPDATE report_settings SET public_report_url = coalesce($1::text, '')
WHERE public_report_url IS DISTINCT FROM coalesce($1::text, '')";

    /// Sets the address if none was ever set.
    SET_DEFAULT_ADDRESS = "UPDATE report_settings SET public_report_url = $1 WHERE public_report_url IS NULL";
}

/// The content of a report's public page. It contains no personal data.
#[derive(Clone, Debug)]
pub struct PublicReport {
    /// The number.
    pub report_number: String,
    /// The time of the publication.
    pub published_at: DateTime<Utc>,
    /// The masked plate, also if the organization shows whole plates to partners.
    pub plate: String,
    /// The PDF that shows the report's current data; `None` while it is rendered.
    pub pdf: Option<PublicPdf>,
    /// The earlier PDFs, the last one first.
    pub earlier_pdfs: Vec<PublicPdf>,
}

/// A published PDF.
#[derive(Clone, Debug)]
pub struct PublicPdf {
    /// The SHA-256 of its bytes.
    pub sha256: Vec<u8>,
    /// The time at which it was rendered.
    pub published_at: DateTime<Utc>,
}

/// Returns the report with a public slug; `None` if there is none, or it is not published at the moment.
///
/// # Errors
/// If the database reports an error.
pub async fn find(client: &Connection, slug: &str) -> Result<Option<PublicReport>, DbError> {
    let Some(row) = client.query_opt(FIND, &[&slug]).await? else {
        return Ok(None);
    };
    let (id, organization_id): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organization_id")?);
    let Text::<StoredPlate>(plate) = row.try_get("plate")?;
    let Text::<PiiMode>(mode) = row.try_get("pii_mode")?;
    let mode = match mode {
        PiiMode::None => PiiMode::None,
        PiiMode::Masked | PiiMode::Full => PiiMode::Masked,
    };
    let (key, fingerprint): (Option<String>, String) = (row.try_get("pdf_object_key")?, row.try_get("fingerprint")?);
    let current = key.filter(|key| pdf_key::is_current(key, id, &fingerprint));
    let mut report = PublicReport {
        report_number: row.try_get("report_number")?,
        published_at: row.try_get("published_at")?,
        plate: mode.plate(&plate),
        pdf: None,
        earlier_pdfs: Vec::new(),
    };
    for row in client.query(PDFS, &[&id, &organization_id]).await? {
        let pdf = PublicPdf {
            sha256: row.try_get("sha256")?,
            published_at: row.try_get("published_at")?,
        };
        match current == Some(row.try_get::<_, String>("object_key")?) {
            true => report.pdf = Some(pdf),
            false => report.earlier_pdfs.push(pdf),
        }
    }
    Ok(Some(report))
}

/// Sets or removes the address of reports' public pages, which contains a placeholder for the slug. Returns whether it has
/// changed; all PDFs are then rendered again.
///
/// # Errors
/// If the statement fails.
pub async fn set_address(client: &Connection, address: Option<&str>) -> Result<bool, DbError> {
    Ok(client.execute(SET_ADDRESS, &[&address]).await? == 1)
}

/// Sets the address of reports' public pages unless one was set before, or removed. Returns whether it was set.
///
/// # Errors
/// If the statement fails.
pub async fn set_default_address(client: &Connection, address: &str) -> Result<bool, DbError> {
    Ok(client.execute(SET_DEFAULT_ADDRESS, &[&address]).await? == 1)
}
