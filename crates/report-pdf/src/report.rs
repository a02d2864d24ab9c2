//! The data of a report, which the caller provides.

use chrono::{DateTime, Utc};
use partner_api_domain::score;
use rust_decimal::Decimal;
use serde::Serialize;

/// A report. All texts are already filtered for the organization's privacy mode. An empty text is omitted or printed as a
/// dash.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The number, printed on every page. It is also the PDF's stable identifier.
    pub report_number: String,
    /// The organization that inspected the vehicle; the PDF's author.
    pub organization_name: String,
    /// The branch where the vehicle was inspected.
    pub branch: Branch,
    /// The inspector who is responsible for the report, as far as the privacy mode allows.
    pub inspector: String,
    /// The time of publication; also the PDF's creation date.
    pub published_at: DateTime<Utc>,
    /// The time at which the report was opened.
    pub created_at: DateTime<Utc>,
    /// The status as shown to the customer, for example `Yayımlandı`.
    pub status_label: String,
    /// The inspected vehicle.
    pub vehicle: Vehicle,
    /// The mileage in km that was read at the inspection. It may differ from the vehicle's record.
    pub snapshot_mileage_km: i32,
    /// The name of the inspection package.
    pub package_name: String,
    /// The prices.
    pub pricing: Pricing,
    /// The overall score from 0 (worst) to 100 (best). Values outside are drawn as the nearest bound. It is omitted if no point was
    /// inspected.
    pub overall_score: i32,
    /// The inspector's overall assessment.
    pub summary: String,
    /// The inspector's recommendation.
    pub recommendation: String,
    /// The forms in the order of their templates. They are grouped by category, in the order of first appearance.
    pub forms: Vec<Form>,
    /// The photos to print, in order. The caller must omit hidden ones.
    pub photos: Vec<Photo>,
    /// The number of the report's photos. If it is greater than the number of printed ones, the PDF says so.
    pub photos_in_all: usize,
    /// The address at which the report can be verified. It is printed; an http(s) address is also linked and drawn as a QR code.
    pub verification_url: Option<String>,
}

/// The branch where a vehicle was inspected. Empty fields are omitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Branch {
    /// The name.
    pub name: String,
    /// The street address, without district and city.
    pub address: String,
    /// The district.
    pub district: String,
    /// The city.
    pub city: String,
    /// The telephone number.
    pub telephone: String,
}

/// The vehicle. Plate and VIN are plain or masked, depending on the privacy mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Vehicle {
    /// The plate, plain or masked.
    pub plate: String,
    /// The vehicle identification number (VIN), plain or masked.
    pub vin: String,
    /// The make.
    pub brand: String,
    /// The model.
    pub model: String,
    /// The model year.
    pub year: i32,
    /// The code of the body type, for example `SEDAN`.
    pub body_type: String,
    /// The code of the fuel, for example `DIESEL`.
    pub fuel_type: String,
    /// The code of the transmission, for example `AUTOMATIC`.
    pub transmission: String,
    /// The color.
    pub color: String,
    /// The mileage in km in the vehicle's record.
    pub mileage_km: i32,
}

/// Prices in units of `currency`, two decimals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pricing {
    /// The price before the discount.
    pub base_price: Decimal,
    /// The discount in percent.
    pub discount_percent: Decimal,
    /// The name of the discount; empty if there is none.
    pub discount_name: String,
    /// The price after the discount.
    pub final_price: Decimal,
    /// The code of the payment method, for example `CARD`.
    pub payment_type: String,
    /// The ISO 4217 code of the currency; `TRY` is printed as `TL`.
    pub currency: String,
}

/// A form: a template with its answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Form {
    /// The name as shown to the customer.
    pub name: String,
    /// The code of the category, for example `BODY`. Forms of one category share a section.
    pub score_category: String,
    /// The inspector's note on the whole form; empty if there is none.
    pub general_note: String,
    /// The points with an answer, in order. One whose status is such as `NOT_CHECKED` counts as not inspected.
    pub points: Vec<Point>,
    /// The names of the points without an answer, in order.
    pub not_inspected: Vec<String>,
    /// Whether the form holds the device values of the test line. It then gets a section with scales.
    pub is_test_line: bool,
    /// Points computed from the values of a test line: the axles' sums (`BRAKE_FRONT_SUM`) and differences
    /// (`BRAKE_FRONT_DIFFERENCE`), and the ratio of the power if the form has no point for it.
    pub computed: Vec<Point>,
    /// The measurements whose values the form holds, in the order of their times.
    pub devices: Vec<Device>,
}

impl Form {
    /// The names of the points that were not inspected, as a sentence; empty if there are none.
    pub(crate) fn not_inspected_note(&self) -> String {
        match self.not_inspected.len() {
            0 => String::new(),
            count => format!("İncelenmeyen noktalar ({count}): {}.", self.not_inspected.join(", ")),
        }
    }
}

/// A device measurement whose values a test-line form holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Device {
    /// The device's serial number; empty if it sent none.
    pub serial: String,
    /// The time of the measurement.
    pub measured_at: DateTime<Utc>,
    /// The time at which its values were written to the report.
    pub applied_at: Option<DateTime<Utc>>,
}

/// A point with its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The point's code, for example `BRAKE_FRONT_LEFT`.
    pub code: String,
    /// The name as shown to the customer.
    pub name: String,
    /// The status code. `GOOD`, `BORDERLINE` and `OUT_OF_LIMIT` have their own colors; other statuses have that of their severity.
    pub status_code: String,
    /// The status as shown to the customer.
    pub status_label: String,
    /// The severity: `NONE`, `LOW`, `MEDIUM` or `HIGH`. Any other text counts as `NONE`.
    pub severity: String,
    /// The measured value, in `unit`.
    pub numeric_value: Option<Decimal>,
    /// The unit of the value, such as `HP`, `percent`, `kN` or `m/km`.
    pub unit: Option<String>,
    /// The inspector's note; empty if there is none.
    pub note: String,
    /// The limits that determined the value's status; `None` if they are unknown.
    pub limits: Option<Limits>,
    /// The source of the value.
    pub source: Source,
}

impl Point {
    /// Returns whether the point was inspected (INS-13).
    pub(crate) fn is_inspected(&self) -> bool {
        score::is_inspected(&self.status_code, &self.severity)
    }
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Source {
    /// An inspector wrote it.
    Inspector,
    /// A device measured it; with the index in the form's [`devices`](Form::devices), if it is known.
    Device(Option<usize>),
    /// It was computed from other values.
    Computed,
}

/// The limits of a value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limits {
    /// The smallest and the greatest good value; a missing bound is open.
    pub good: (Option<Decimal>, Option<Decimal>),
    /// The smallest and the greatest borderline value. If both are missing, no value is borderline.
    pub borderline: (Option<Decimal>, Option<Decimal>),
    /// All possible values from the smallest to the greatest, divided into ranges with one status each.
    pub status_ranges: Vec<StatusRange>,
}

/// A range of values with one status.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusRange {
    /// The end of the range; `None` for the last one.
    pub until: Option<Decimal>,
    /// The status: `GOOD`, `BORDERLINE` or `OUT_OF_LIMIT`.
    pub status_code: String,
}

/// A photo of the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Photo {
    /// The caption.
    pub caption: Option<String>,
    /// The kind of photo as shown to the customer, for example `Dış görünüm`.
    pub kind: String,
    /// The name of the point that the photo shows.
    pub point: Option<String>,
    /// The format of the file; `None` if it cannot be printed.
    pub format: Option<PhotoFormat>,
    /// The bytes of the file, which are embedded unchanged (including EXIF data). A file that cannot be decoded is replaced by a
    /// placeholder.
    #[serde(skip)]
    pub data: Vec<u8>,
}

/// An image format that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum PhotoFormat {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// WebP.
    WebP,
}
