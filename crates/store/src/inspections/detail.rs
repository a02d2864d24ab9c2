//! One inspection: its detail and its PDF.

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
     FROM inspections i JOIN organizations o ON o.id = i.organization_id JOIN branches b ON b.id = i.branch_id \
     JOIN vehicles v ON v.id = i.vehicle_id",
    where_visible!()
);

    /// Whether a report has a PDF; the one of a report that has, and what the report holds now.
    PDF = concat!(
    "SELECT has.pdf, i.id, i.report_number, i.pdf_object_key, CASE WHEN has.pdf THEN report_fingerprint(i.id) ELSE '' END \
     FROM inspections i CROSS JOIN LATERAL (SELECT i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL AS pdf) has",
    where_visible!()
);
}

/// The PDF of a report that a partner sees, which may be missing or stale: its key is only had while neither is so. Only the
/// statement that asks for the grants makes one, and nobody else's wish has a report rendered:
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
/// async fn any_report(client: &partner_api_store::connection::Connection) {
///     let _ = partner_api_store::renderings::ask(client, &uuid::Uuid::nil()).await;
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
    /// The key of the object to serve, if there is one that was rendered from what the report holds now: privacy mode,
    /// photos, content.
    #[must_use]
    pub fn current_key(&self) -> Option<&str> {
        self.object_key
            .as_deref()
            .filter(|key| pdf_key::is_current(key, self.report, &self.fingerprint))
    }

    /// The report's id.
    #[must_use]
    pub fn report(&self) -> Uuid {
        self.report
    }

    /// The report's number, after which the file is called.
    #[must_use]
    pub fn report_number(&self) -> &str {
        &self.report_number
    }

    /// What it is to be rendered from.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// A report with all its fields as stored: texts are not scrubbed, plate and VINs not masked.
#[derive(Debug, Clone)]
pub struct Detail {
    /// Its id.
    pub id: Uuid,
    /// Its number.
    pub report_number: String,
    /// Its status.
    pub status: Status,
    /// How its organisation shows personal data.
    pub pii_mode: PiiMode,
    /// The organisation's id.
    pub organization_id: Uuid,
    /// The organisation's short name.
    pub organization_slug: String,
    /// The organisation's name.
    pub organization_name: String,
    /// The branch's id.
    pub branch_id: Uuid,
    /// The branch's name.
    pub branch_name: String,
    /// The city the branch is in.
    pub branch_city: String,
    /// The name of the package that was bought.
    pub package_name: String,
    /// The package's list price, two decimals.
    pub package_base_price: Decimal,
    /// The price before the discount, two decimals.
    pub base_price: Decimal,
    /// The discount in percent, two decimals.
    pub discount_percent: Decimal,
    /// What the discount is called; empty without one.
    pub discount_name: String,
    /// The price paid, two decimals.
    pub final_price: Decimal,
    /// The payment's code.
    pub payment_type: String,
    /// The currency's ISO 4217 code.
    pub currency: String,
    /// The vehicle as registered.
    pub vehicle: Vehicle,
    /// The VIN when it was inspected.
    pub snapshot_vin: StoredVin,
    /// The mileage when it was inspected, in kilometres.
    pub snapshot_mileage_km: i32,
    /// The inspector's overall text.
    pub summary: StoredText,
    /// The inspector's recommendation.
    pub recommendation: StoredText,
    /// The overall score, 0 to 100.
    pub overall_score: i32,
    /// When something of it, or of what all reports of its organisation show, last changed.
    pub updated_at: DateTime<Utc>,
}

/// The report's PDF: a report has one while it is published and has its public slug (REP-8). Whether the stored one
/// still holds is found by the same statement, whatever was changed and however.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn pdf(client: &Connection, grants: &Grants, id: Uuid) -> Result<OfPdf, DbError> {
    let parameters: &Parameters<'_> = &[&id, &grants.whole(), &grants.branches()];
    let Some(row) = client.query_opt(PDF, parameters).await? else {
        return Ok(OfPdf::Unseen);
    };
    let mut columns = Columns::of(&row);
    if !columns.take::<bool>()? {
        return Ok(OfPdf::None);
    }
    Ok(OfPdf::Some(Pdf {
        report: columns.take()?,
        report_number: columns.take()?,
        object_key: columns.take()?,
        fingerprint: columns.take()?,
    }))
}

/// What a partner finds where it looks for a report's PDF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfPdf {
    /// No report that it sees.
    Unseen,
    /// A report without one.
    None,
    /// It.
    Some(Pdf),
}

/// The report with this id and all its fields, if the partner sees it.
///
/// # Errors
/// [`DbError`] when the query fails.
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
        package_name: columns.take()?,
        package_base_price: columns.take()?,
        base_price: columns.take()?,
        discount_percent: columns.take()?,
        discount_name: columns.take()?,
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
