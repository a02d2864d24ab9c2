//! What a report consists of, as its caller hands it over.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::Serialize;

/// A whole report. All text is already filtered for the organisation's privacy mode; an empty text is left out of the
/// page or printed as a dash.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Number printed on every page; also the PDF's stable identity.
    pub report_number: String,
    /// Organisation that inspected the vehicle; the PDF's author.
    pub organization_name: String,
    /// Branch where it was inspected.
    pub branch_name: String,
    /// City of the branch.
    pub branch_city: String,
    /// Time of publication; also the PDF's creation date.
    pub published_at: DateTime<Utc>,
    /// Time the report was opened.
    pub created_at: DateTime<Utc>,
    /// Status as shown to the customer, for example `Yayımlandı`.
    pub status_label: String,
    /// The inspected vehicle.
    pub vehicle: Vehicle,
    /// Mileage in km read at the inspection; may differ from the vehicle's own record.
    pub snapshot_mileage_km: i32,
    /// Name of the inspection package.
    pub package_name: String,
    /// What was charged.
    pub pricing: Pricing,
    /// Overall score, 0 (worst) to 100 (best); values outside are drawn as the nearest bound.
    pub overall_score: i32,
    /// Inspector's overall text.
    pub summary: String,
    /// Inspector's recommendation.
    pub recommendation: String,
    /// Forms in the order of the template; grouped by category in the order of first appearance.
    pub forms: Vec<Form>,
    /// Photos to show, in order; hidden ones are the caller's to leave out.
    pub photos: Vec<Photo>,
    /// Address at which the report can be verified; printed, linked and drawn as a QR code if it is http(s).
    pub verification_url: Option<String>,
}

/// The vehicle as printed: plate and VIN are in whatever form the privacy mode leaves them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Vehicle {
    /// Plate, plain or masked.
    pub plate: String,
    /// Vehicle identification number, plain or masked.
    pub vin: String,
    /// Make.
    pub brand: String,
    /// Model.
    pub model: String,
    /// Model year.
    pub year: i32,
    /// Body type code, for example `SEDAN`.
    pub body_type: String,
    /// Fuel code, for example `DIESEL`.
    pub fuel_type: String,
    /// Transmission code, for example `AUTOMATIC`.
    pub transmission: String,
    /// Colour.
    pub color: String,
    /// Mileage in km in the vehicle's own record.
    pub mileage_km: i32,
}

/// Prices in units of `currency`, two decimals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pricing {
    /// Price before the discount.
    pub base_price: Decimal,
    /// Discount in percent.
    pub discount_percent: Decimal,
    /// Name of the discount; empty if there is none.
    pub discount_name: String,
    /// Price paid.
    pub final_price: Decimal,
    /// Payment code, for example `CARD`.
    pub payment_type: String,
    /// ISO 4217 code; `TRY` prints as `TL`.
    pub currency: String,
}

/// A form: a template with its answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Form {
    /// Name as shown to the customer.
    pub name: String,
    /// Category code, for example `BODY`; forms of one category stand together.
    pub score_category: String,
    /// Inspector's note on the whole form; empty if there is none.
    pub general_note: String,
    /// Points in order.
    pub points: Vec<Point>,
    /// Whether the form holds the test line's device values; it then gets a section with left/right bars.
    pub is_test_line: bool,
}

/// One inspected point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Point code, for example `BRAKE_FRONT_LEFT`.
    pub code: String,
    /// Name as shown to the customer.
    pub name: String,
    /// Status code; `GOOD`, `BORDERLINE` and `OUT_OF_LIMIT` have colours, others are grey by severity.
    pub status_code: String,
    /// Status as shown to the customer.
    pub status_label: String,
    /// `NONE`, `LOW`, `MEDIUM` or `HIGH`; anything else counts as `NONE`.
    pub severity: String,
    /// Measured value in `unit`.
    pub numeric_value: Option<Decimal>,
    /// Unit of the value: `HP`, `percent`, `kN`, `m/km`.
    pub unit: Option<String>,
    /// Inspector's note; empty if there is none.
    pub note: String,
}

/// A photo of the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Photo {
    /// Caption; the kind's Turkish name stands in for a missing one.
    pub caption: Option<String>,
    /// Photo kind code, for example `EXTERIOR`.
    pub kind: String,
    /// The JPEG file's bytes, embedded as they are (EXIF data included); of what cannot be decoded a placeholder is
    /// drawn instead.
    #[serde(skip)]
    pub jpeg: Vec<u8>,
}
