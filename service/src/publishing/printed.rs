//! What the database says of a report, as it is printed under its organisation's privacy mode.
//!
//! The document shows no more than the JSON beside it (PII-3): one serves every partner that is granted the report, and
//! a partner of a `NONE` or `MASKED` organisation must not find in the PDF what the detail hides.
//! So plate, VIN and free texts pass the organisation's privacy mode before they are drawn, and hidden photos stay out.

use chrono::{DateTime, Utc};
use report_pdf::{Form, Photo, Point, Pricing, Report, Vehicle};
use rust_decimal::Decimal;
use serde::Deserialize;

use crate::db::DbError;
use crate::rules::personal::{StoredPlate, StoredText, StoredVin};
use crate::rules::privacy::PiiMode;

/// The most photos a PDF shows; the API has them all.
pub const PHOTOS_MAX: usize = 6;

/// `report_document` of the database.
#[derive(Deserialize)]
struct Stored {
    pii_mode: PiiMode,
    report_number: String,
    organization_name: String,
    branch_name: String,
    branch_city: String,
    published_at: DateTime<Utc>,
    created_at: DateTime<Utc>,
    vehicle: StoredVehicle,
    snapshot_mileage_km: i32,
    package_name: String,
    pricing: StoredPricing,
    overall_score: i32,
    summary: StoredText,
    recommendation: StoredText,
    forms: Vec<StoredForm>,
    photos: Vec<StoredPhoto>,
}

#[derive(Deserialize)]
struct StoredVehicle {
    plate: StoredPlate,
    vin: StoredVin,
    brand: String,
    model: String,
    year: i32,
    body_type: String,
    fuel_type: String,
    transmission: String,
    color: String,
    mileage_km: i32,
}

#[derive(Deserialize)]
struct StoredPricing {
    base_price: Decimal,
    discount_percent: Decimal,
    discount_name: String,
    final_price: Decimal,
    payment_type: String,
    currency: String,
}

#[derive(Deserialize)]
struct StoredForm {
    name: String,
    score_category: String,
    general_note: StoredText,
    is_test_line: bool,
    points: Vec<StoredPoint>,
}

#[derive(Deserialize)]
struct StoredPoint {
    code: String,
    name: String,
    unit: Option<String>,
    status_code: String,
    status_label: String,
    severity: String,
    numeric_value: Option<Decimal>,
    note: StoredText,
}

#[derive(Deserialize)]
struct StoredPhoto {
    kind: String,
    caption: Option<StoredText>,
    object_key: String,
}

/// The report as it is printed, and the keys of its photos, whose bytes are not read yet.
///
/// # Errors
/// [`DbError::Data`] when the document holds what cannot be printed.
pub fn read(json: &str) -> Result<(Report, Vec<String>), DbError> {
    // The reader's own words may quote the report.
    let odd = |detail: String| DbError::Data {
        table: "report_document",
        detail,
    };
    let stored: Stored = serde_json::from_str(json)
        .map_err(|error| odd(format!("{:?} error at column {}", error.classify(), error.column())))?;
    let mode = stored.pii_mode;
    Ok(printed(stored, mode))
}

fn printed(stored: Stored, mode: PiiMode) -> (Report, Vec<String>) {
    let (photos, keys) = stored
        .photos
        .into_iter()
        .take(PHOTOS_MAX)
        .map(|photo| {
            let printed = Photo {
                caption: photo.caption.map(|caption| mode.text(caption)),
                kind: photo.kind,
                jpeg: Vec::new(),
            };
            (printed, photo.object_key)
        })
        .unzip();
    let report = Report {
        report_number: stored.report_number,
        organization_name: stored.organization_name,
        branch_name: stored.branch_name,
        branch_city: stored.branch_city,
        published_at: stored.published_at,
        created_at: stored.created_at,
        status_label: "Yayımlandı".to_owned(),
        vehicle: Vehicle {
            plate: mode.plate(&stored.vehicle.plate),
            vin: mode.vin(&stored.vehicle.vin),
            brand: stored.vehicle.brand,
            model: stored.vehicle.model,
            year: stored.vehicle.year,
            body_type: stored.vehicle.body_type,
            fuel_type: stored.vehicle.fuel_type,
            transmission: stored.vehicle.transmission,
            color: stored.vehicle.color,
            mileage_km: stored.vehicle.mileage_km,
        },
        snapshot_mileage_km: stored.snapshot_mileage_km,
        package_name: stored.package_name,
        pricing: Pricing {
            base_price: stored.pricing.base_price,
            discount_percent: stored.pricing.discount_percent,
            discount_name: stored.pricing.discount_name,
            final_price: stored.pricing.final_price,
            payment_type: stored.pricing.payment_type,
            currency: stored.pricing.currency,
        },
        overall_score: stored.overall_score,
        summary: mode.text(stored.summary),
        recommendation: mode.text(stored.recommendation),
        forms: stored
            .forms
            .into_iter()
            .filter(|form| !form.points.is_empty() || !form.general_note.is_empty())
            .map(|form| printed_form(form, mode))
            .collect(),
        photos,
        verification_url: None,
    };
    (report, keys)
}

fn printed_form(form: StoredForm, mode: PiiMode) -> Form {
    let points = form.points.into_iter().map(|point| Point {
        code: point.code,
        name: point.name,
        status_code: point.status_code,
        status_label: point.status_label,
        severity: point.severity,
        numeric_value: point.numeric_value,
        unit: point.unit,
        note: mode.text(point.note),
    });
    Form {
        name: form.name,
        score_category: form.score_category,
        general_note: mode.text(form.general_note),
        points: points.collect(),
        is_test_line: form.is_test_line,
    }
}
