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
    pub branch: Branch,
    /// Who inspected it and answers for the report, as far as the privacy mode tells.
    pub inspector: String,
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
    /// How many the report has: where that is more than are shown, the page says so.
    pub photos_in_all: usize,
    /// Address at which the report can be verified; printed, linked and drawn as a QR code if it is http(s).
    pub verification_url: Option<String>,
}

/// Where a vehicle was inspected. What is empty is left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Branch {
    /// Its name.
    pub name: String,
    /// Street address, without district and city.
    pub address: String,
    /// District.
    pub district: String,
    /// City.
    pub city: String,
    /// Telephone.
    pub telephone: String,
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
    /// Whether the form holds the test line's device values; it then gets a section with scales.
    pub is_test_line: bool,
    /// What follows from the values of a test line: axles' sums (`BRAKE_FRONT_SUM`) and differences
    /// (`BRAKE_FRONT_DIFFERENCE`), and the power's ratio where that is no point.
    pub computed: Vec<Point>,
    /// The measurements whose values it holds, in the order of their time.
    pub devices: Vec<Device>,
}

/// A measurement whose values a test line's form holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Device {
    /// The device's serial number; empty where it sent none.
    pub serial: String,
    /// When it measured.
    pub measured_at: DateTime<Utc>,
    /// When its values were written into the report.
    pub applied_at: Option<DateTime<Utc>>,
}

/// One inspected point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Point code, for example `BRAKE_FRONT_LEFT`.
    pub code: String,
    /// Name as shown to the customer.
    pub name: String,
    /// Status code; `GOOD`, `BORDERLINE` and `OUT_OF_LIMIT` have colours of their own, others that of their severity.
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
    /// The limits that gave the value its status; `None` where they are not known.
    pub limits: Option<Limits>,
    /// Where the value is from.
    pub source: Source,
}

/// Where a value is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Source {
    /// An inspector wrote it.
    Inspector,
    /// A device measured it; which of the form's [`devices`](Form::devices), where that is known.
    Device(Option<usize>),
    /// It follows from other values.
    Computed,
}

/// Limits of a value: in words, and as stretches of its scale.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limits {
    /// The least and the greatest good value; one that is missing is open.
    pub good: (Option<Decimal>, Option<Decimal>),
    /// The same of borderline values; there is no such range where both are missing.
    pub borderline: (Option<Decimal>, Option<Decimal>),
    /// All values from the least to the greatest, as stretches of one status.
    pub stretches: Vec<Stretch>,
}

/// A stretch of the values that have one status.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stretch {
    /// Where it ends; the last one has no end.
    pub until: Option<Decimal>,
    /// `GOOD`, `BORDERLINE` or `OUT_OF_LIMIT`.
    pub status_code: String,
}

/// A photo of the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Photo {
    /// Caption; the kind's Turkish name stands in for a missing one.
    pub caption: Option<String>,
    /// Photo kind code, for example `EXTERIOR`.
    pub kind: String,
    /// Name of the point that it shows.
    pub point: Option<String>,
    /// The format of the file; `None` for one that cannot be printed.
    pub format: Option<PhotoFormat>,
    /// The file's bytes, embedded as they are (EXIF data included); of what cannot be decoded a placeholder is drawn
    /// instead.
    #[serde(skip)]
    pub data: Vec<u8>,
}

/// A format that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum PhotoFormat {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// WebP.
    WebP,
}
