//! The detail of a report and its PDF.

use chrono::{DateTime, Utc};
use partner_api_domain::{
    grants::Grants,
    pdf_key,
    personal::{StoredText, StoredVin},
    privacy::PiiMode,
};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::row::{Columns, Status, Vehicle};
use super::where_visible;
use crate::{
    DbError,
    connection::{Connection, Parameters},
    standby::Reader,
    statement,
};

statement! {
    /// A report with all its fields.
    DETAIL = concat!(
    "SELECT i.id, i.report_number, i.status, o.pii_mode, o.id, o.slug, o.name, b.id, b.name, b.city, \
     i.package_name, i.package_base_price, i.base_price, i.discount_percent, i.discount_name, i.final_price, \
     i.payment_type, i.currency, \
     v.plate, v.vin, v.brand, v.model, v.year, v.type, v.fuel_type, v.transmission, v.color, v.mileage_km, \
     i.snapshot_vin, i.snapshot_mileage_km, i.summary, i.recommendation, i.overall_score, \
     greatest(i.updated_at, o.reports_changed_at) \
     FROM inspections i JOIN organizations o ON o.id = i.organization_id \
     JOIN branches b ON b.id = i.branch_id AND b.organization_id = i.organization_id \
     JOIN vehicles v ON v.id = i.vehicle_id",
    where_visible!()
);

    /// Whether a report has a PDF; if it has, the key of the stored PDF and the fingerprint of the current data.
    PDF = concat!(
    "SELECT has.pdf, i.id, i.report_number, i.pdf_object_key, CASE WHEN has.pdf THEN report_fingerprint(i.id) ELSE '' END \
     FROM inspections i CROSS JOIN LATERAL (SELECT i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL AS pdf) has",
    where_visible!()
);
}

/// The PDF of a report that a partner may see. The stored PDF may be missing or stale; its key is available only if it is
/// current.
///
/// Only the statement that checks the grants constructs this type, and a rendering can be requested only with it:
///
/// ```compile_fail,E0451
/// use partner_api_store::inspections::Pdf;
/// let forged = Pdf { report: uuid::Uuid::nil(), report_number: String::new(), object_key: None, fingerprint: String::new() };
/// ```
///
/// ```compile_fail,E0616
/// fn stale_key(pdf: &partner_api_store::inspections::Pdf) -> Option<&str> {
///     pdf.object_key.as_deref()
/// }
/// ```
///
/// ```compile_fail,E0308
/// async fn without_check(client: &partner_api_store::connection::Connection) {
///     let _ = partner_api_store::renderings::request(client, &uuid::Uuid::nil()).await;
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdf {
    report: Uuid,
    report_number: String,
    object_key: Option<String>,
    fingerprint: String,
}

impl Pdf {
    /// Returns the key of the object to serve, if it was rendered from the report's current content, photos and privacy mode.
    #[must_use]
    pub fn current_key(&self) -> Option<&str> {
        self.object_key
            .as_deref()
            .filter(|key| pdf_key::is_current(key, self.report, &self.fingerprint))
    }

    /// Returns the ID of the report.
    #[must_use]
    pub fn report(&self) -> Uuid {
        self.report
    }

    /// Returns the report number, which the file is named after.
    #[must_use]
    pub fn report_number(&self) -> &str {
        &self.report_number
    }

    /// Returns the fingerprint of the data that the PDF must show.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// A report with all its fields as stored: texts are not redacted, plate and VINs are not masked.
#[derive(Debug, Clone)]
pub struct Detail {
    /// The ID.
    pub id: Uuid,
    /// The report number.
    pub report_number: String,
    /// The status.
    pub status: Status,
    /// The privacy mode of the organization.
    pub pii_mode: PiiMode,
    /// The organization's ID.
    pub organization_id: Uuid,
    /// The organization's short name.
    pub organization_slug: String,
    /// The organization's name.
    pub organization_name: String,
    /// The branch's ID.
    pub branch_id: Uuid,
    /// The branch's name.
    pub branch_name: String,
    /// The branch's city.
    pub branch_city: String,
    /// The name of the purchased package.
    pub package_name: StoredText,
    /// The package's list price, two decimals.
    pub package_base_price: Decimal,
    /// The price before the discount, two decimals.
    pub base_price: Decimal,
    /// The discount in percent, two decimals.
    pub discount_percent: Decimal,
    /// The name of the discount; empty without a discount.
    pub discount_name: StoredText,
    /// The price paid, two decimals.
    pub final_price: Decimal,
    /// The code of the payment method.
    pub payment_type: String,
    /// The currency's ISO 4217 code.
    pub currency: String,
    /// The vehicle as registered.
    pub vehicle: Vehicle,
    /// The VIN at the time of the inspection.
    pub snapshot_vin: StoredVin,
    /// The mileage at the time of the inspection, in kilometers.
    pub snapshot_mileage_km: i32,
    /// The inspector's summary.
    pub summary: StoredText,
    /// The inspector's recommendation.
    pub recommendation: StoredText,
    /// The overall score, 0 to 100.
    pub overall_score: i32,
    /// The time of the last change to the report, or to data that all reports of the organization show.
    pub updated_at: DateTime<Utc>,
}

/// Finds the PDF of a report. A report has a PDF while it is published and has a public slug (REP-8). The same statement
/// computes the current fingerprint, so it detects every change to the data that the PDF shows.
///
/// # Errors
/// If the query fails.
pub async fn pdf(client: &Connection, grants: &Grants, id: Uuid) -> Result<PdfLookup, DbError> {
    let parameters: &Parameters<'_> = &[&id, &grants.whole(), &grants.branches()];
    let Some(row) = client.query_opt(PDF, parameters).await? else {
        return Ok(PdfLookup::ReportNotVisible);
    };
    let mut columns = Columns::of(&row);
    if !columns.take::<bool>()? {
        return Ok(PdfLookup::None);
    }
    Ok(PdfLookup::Some(Pdf {
        report: columns.take()?,
        report_number: columns.take()?,
        object_key: columns.take()?,
        fingerprint: columns.take()?,
    }))
}

/// The result of a lookup of a report's PDF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PdfLookup {
    /// The report does not exist, or the partner may not see it.
    ReportNotVisible,
    /// The report has no PDF.
    None,
    /// The report has a PDF, which may be stale.
    Some(Pdf),
}

/// Returns the report with this ID and all its fields, if the partner may see it.
///
/// # Errors
/// If the query fails.
pub async fn detail(client: &Reader, grants: &Grants, id: Uuid) -> Result<Option<Detail>, DbError> {
    let parameters: &Parameters<'_> = &[&id, &grants.whole(), &grants.branches()];
    let Some(row) = client.query_opt(DETAIL, parameters).await? else {
        return Ok(None);
    };
    let mut columns = Columns::of(&row);
    Ok(Some(Detail {
        id: columns.take()?,
        report_number: columns.take()?,
        status: columns.take()?,
        pii_mode: columns.text()?,
        organization_id: columns.take()?,
        organization_slug: columns.take()?,
        organization_name: columns.take()?,
        branch_id: columns.take()?,
        branch_name: columns.take()?,
        branch_city: columns.take()?,
        package_name: columns.text()?,
        package_base_price: columns.take()?,
        base_price: columns.take()?,
        discount_percent: columns.take()?,
        discount_name: columns.text()?,
        final_price: columns.take()?,
        payment_type: columns.take()?,
        currency: columns.take()?,
        vehicle: columns.vehicle()?,
        snapshot_vin: columns.text()?,
        snapshot_mileage_km: columns.take()?,
        summary: columns.text()?,
        recommendation: columns.text()?,
        overall_score: columns.take()?,
        updated_at: columns.take()?,
    }))
}
