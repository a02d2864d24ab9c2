//! Converts the database's report document into the printed report, under the organization's privacy mode.
//!
//! The PDF shows no more than the API's JSON (PII-3), because every partner that is granted the report gets the same file. So
//! plates, VINs, names and free texts are masked by the organization's privacy mode before rendering, and hidden photos are left
//! out.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use partner_api_domain::personal::{StoredPerson, StoredPlate, StoredText, StoredVin};
use partner_api_domain::privacy::PiiMode;
use partner_api_domain::report_link;
use partner_api_store::DbError;
use report_pdf::{Branch, Device, Form, Photo, PhotoFormat, Point, Pricing, Report, Source, Vehicle};
use rust_decimal::Decimal;
use serde::Deserialize;

use super::limits::{self, StoredLimits};

/// The maximum number of photos in a PDF; the API returns all of them.
pub const PHOTOS_MAX: usize = 12;
/// The kind of photos that show damage; they come first.
const DAMAGE: &str = "DAMAGE";

/// The result of the database function `report_document`.
#[derive(Deserialize)]
struct Stored {
    pii_mode: PiiMode,
    report_number: String,
    organization_name: String,
    branch_name: String,
    branch_city: String,
    branch_district: String,
    branch_address: String,
    branch_telephone: String,
    inspector_name: StoredPerson,
    public_slug: Option<String>,
    public_report_url: Option<String>,
    published_at: DateTime<Utc>,
    created_at: DateTime<Utc>,
    vehicle: StoredVehicle,
    snapshot_mileage_km: i32,
    package_name: StoredText,
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
    factory_power_hp: Option<Decimal>,
}

#[derive(Deserialize)]
struct StoredPricing {
    base_price: Decimal,
    discount_percent: Decimal,
    discount_name: StoredText,
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
    /// The names of the points without an answer.
    not_inspected: Vec<String>,
    /// The measurements that its values come from; null if it is not a test-line form.
    measurements: Option<Vec<StoredMeasurement>>,
    /// The limits of points without an answer; null if it is not a test-line form.
    limits: Option<BTreeMap<String, StoredLimits>>,
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
    /// The ID of the measurement that the value comes from; null if an inspector entered it.
    measurement: Option<String>,
    /// The limits at the time when the value was written.
    limits: Option<StoredLimits>,
}

#[derive(Deserialize)]
struct StoredMeasurement {
    id: String,
    device_serial: Option<String>,
    measured_at: DateTime<Utc>,
    applied_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct StoredPhoto {
    kind: String,
    /// The label of the kind in the organization's templates; null if they do not have it.
    kind_label: Option<String>,
    point_code: Option<String>,
    caption: Option<StoredText>,
    object_key: String,
    mime_type: String,
}

/// Parses a report document. Returns the report to print, and the object keys of its photos, whose data is still to be read.
///
/// # Errors
/// [`DbError::Data`] if the document does not have the expected form.
pub fn read(json: &str) -> Result<(Report, Vec<String>), DbError> {
    // The parser's message is not used, because it may quote the report.
    let invalid = |detail: String| DbError::Data {
        table: "report_document",
        detail,
    };
    let stored: Stored = serde_json::from_str(json)
        .map_err(|error| invalid(format!("{:?} error at column {}", error.classify(), error.column())))?;
    let mode = stored.pii_mode;
    Ok(printed(stored, mode))
}

fn printed(stored: Stored, mode: PiiMode) -> (Report, Vec<String>) {
    let photos_in_all = stored.photos.len();
    let (photos, keys) = photos(stored.photos, &stored.forms, mode);
    let factory_power_hp = stored.vehicle.factory_power_hp;
    let report = Report {
        report_number: stored.report_number,
        organization_name: stored.organization_name,
        branch: Branch {
            name: stored.branch_name,
            address: stored.branch_address,
            district: stored.branch_district,
            city: stored.branch_city,
            telephone: stored.branch_telephone,
        },
        inspector: mode.person(&stored.inspector_name),
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
        package_name: mode.printed_text(stored.package_name),
        pricing: Pricing {
            base_price: stored.pricing.base_price,
            discount_percent: stored.pricing.discount_percent,
            discount_name: mode.printed_text(stored.pricing.discount_name),
            final_price: stored.pricing.final_price,
            payment_type: stored.pricing.payment_type,
            currency: stored.pricing.currency,
        },
        overall_score: stored.overall_score,
        summary: mode.printed_text(stored.summary),
        recommendation: mode.printed_text(stored.recommendation),
        forms: stored
            .forms
            .into_iter()
            .filter(|form| !form.points.is_empty() || !form.general_note.is_empty() || !form.not_inspected.is_empty())
            .map(|form| printed_form(form, mode, factory_power_hp))
            .collect(),
        photos,
        photos_in_all,
        verification_url: stored
            .public_report_url
            .zip(stored.public_slug)
            .map(|(address, slug)| report_link::of(&address, &slug)),
    };
    (report, keys)
}

/// Returns the photos to print, photos of damage first, and their object keys.
fn photos(mut stored: Vec<StoredPhoto>, forms: &[StoredForm], mode: PiiMode) -> (Vec<Photo>, Vec<String>) {
    stored.sort_by_key(|photo| photo.kind != DAMAGE);
    let point_name = |code: &str| {
        let mut points = forms.iter().flat_map(|form| &form.points);
        points.find(|point| point.code == code).map(|point| point.name.clone())
    };
    stored
        .into_iter()
        .take(PHOTOS_MAX)
        .map(|photo| {
            let printed = Photo {
                point: photo.point_code.as_deref().and_then(point_name),
                caption: photo.caption.map(|caption| mode.printed_text(caption)),
                kind: photo.kind_label.unwrap_or(photo.kind),
                format: match photo.mime_type.as_str() {
                    "image/jpeg" => Some(PhotoFormat::Jpeg),
                    "image/png" => Some(PhotoFormat::Png),
                    "image/webp" => Some(PhotoFormat::WebP),
                    _ => None,
                },
                data: Vec::new(),
            };
            (printed, photo.object_key)
        })
        .unzip()
}

fn printed_form(form: StoredForm, mode: PiiMode, factory_power_hp: Option<Decimal>) -> Form {
    let computed = if form.is_test_line {
        let value_of = |code: &str| form.points.iter().find(|point| point.code == code)?.numeric_value;
        limits::computed(value_of, &form.limits.unwrap_or_default(), factory_power_hp)
    } else {
        Vec::new()
    };
    let measurements = form.measurements.unwrap_or_default();
    let device_of = |id: &str| measurements.iter().position(|measurement| measurement.id == id);
    let points = form.points.into_iter().map(|point| Point {
        limits: point
            .numeric_value
            .zip(point.limits)
            .and_then(|(value, limits)| limits.of_value(value, &point.status_code)),
        code: point.code,
        name: point.name,
        status_code: point.status_code,
        status_label: point.status_label,
        severity: point.severity,
        numeric_value: point.numeric_value,
        unit: point.unit,
        note: mode.printed_text(point.note),
        source: match &point.measurement {
            Some(measurement) => Source::Device(device_of(measurement)),
            None => Source::Inspector,
        },
    });
    Form {
        name: form.name,
        score_category: form.score_category,
        general_note: mode.printed_text(form.general_note),
        points: points.collect(),
        not_inspected: form.not_inspected,
        is_test_line: form.is_test_line,
        computed,
        devices: measurements
            .iter()
            .map(|measurement| Device {
                serial: measurement.device_serial.clone().unwrap_or_default(),
                measured_at: measurement.measured_at,
                applied_at: measurement.applied_at,
            })
            .collect(),
    }
}
