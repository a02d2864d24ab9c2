//! The sandbox's data as plain rows, with one struct for each table.

use chrono::{DateTime, Duration, Utc};
use partner_api_domain::template;
use rust_decimal::Decimal;
use uuid::Uuid;

/// An organization: one tenant of the platform, with its privacy mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Organization {
    /// Its ID.
    pub id: Uuid,
    /// Its name in URLs.
    pub slug: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// `NONE`, `MASKED` or `FULL` (PII-1).
    pub pii_mode: &'static str,
    /// When it joined the platform.
    pub created_at: DateTime<Utc>,
}

/// A branch (MEA-1, REP-10).
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Its ID.
    pub id: Uuid,
    /// Index of its organization in [`Dataset::organizations`].
    pub organization: usize,
    /// The code that device makers send.
    pub code: &'static str,
    /// Its name for people.
    pub name: String,
    /// Province.
    pub city: &'static str,
    /// District of the province.
    pub district: &'static str,
    /// The province's number on plates, 1 to 81.
    pub province: u8,
    /// Street address.
    pub address: &'static str,
    /// Telephone.
    pub telephone: &'static str,
    /// Whether it accepts measurements.
    pub is_active: bool,
}

/// A point of a form template: one item that the inspector checks.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplatePoint {
    /// Its ID.
    pub id: Uuid,
    /// Its code; on the test-line form, the measurement point code.
    pub code: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// The unit of its numeric value, if it has one.
    pub unit: Option<&'static str>,
    /// The panel of the car that it is about.
    pub place: Option<&'static str>,
}

/// An organization's form template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Its ID.
    pub id: Uuid,
    /// Index of its organization in [`Dataset::organizations`].
    pub organization: usize,
    /// Form code.
    pub code: &'static str,
    /// Form name.
    pub name: &'static str,
    /// The score category to which the form counts.
    pub score_category: &'static str,
    /// Whether device measurements are written into it.
    pub is_test_line: bool,
    /// The statuses of its points.
    pub statuses: Vec<template::Status>,
    /// The kinds of its photos.
    pub photo_kinds: Vec<template::PhotoKind>,
    /// Its points, in order.
    pub points: Vec<TemplatePoint>,
}

/// Inclusive bounds from which a device value's status follows, in the point's unit. A missing bound is open.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdRow {
    /// Index of its organization in [`Dataset::organizations`].
    pub organization: usize,
    /// The measurement point code.
    pub point_code: &'static str,
    /// Lowest good value.
    pub good_min: Option<Decimal>,
    /// Highest good value.
    pub good_max: Option<Decimal>,
    /// Lowest borderline value.
    pub borderline_min: Option<Decimal>,
    /// Highest borderline value.
    pub borderline_max: Option<Decimal>,
    /// The start of their validity, which is before any value of the data.
    pub since: DateTime<Utc>,
}

/// A registered vehicle.
#[derive(Clone, Debug, PartialEq)]
pub struct Vehicle {
    /// Its ID.
    pub id: Uuid,
    /// Normalized plate.
    pub plate: String,
    /// 17 characters with a valid check digit.
    pub vin: String,
    /// Maker.
    pub brand: &'static str,
    /// Model.
    pub model: &'static str,
    /// Model year.
    pub year: i32,
    /// Body type code.
    pub body: &'static str,
    /// Fuel code.
    pub fuel: &'static str,
    /// Transmission code.
    pub transmission: &'static str,
    /// Color.
    pub color: &'static str,
    /// Registered mileage in km.
    pub mileage_km: i32,
    /// The registered factory power in HP, if known.
    pub factory_power_hp: Option<Decimal>,
}

/// The writer of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// An inspector, by name.
    Inspector(&'static str),
    /// A device, by its measurement.
    Device(Uuid),
}

/// The answer to a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The point's ID.
    pub point: Uuid,
    /// Status code.
    pub status_code: &'static str,
    /// The status for people.
    pub status_label: &'static str,
    /// `NONE`, `LOW`, `MEDIUM` or `HIGH`.
    pub severity: &'static str,
    /// The measured value, if there is one.
    pub numeric_value: Option<Decimal>,
    /// The inspector's free text.
    pub note: String,
    /// Its writer.
    pub writer: Writer,
}

/// A form of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Its ID.
    pub id: Uuid,
    /// Its template's ID.
    pub template: Uuid,
    /// The inspector's free text for the whole form.
    pub general_note: String,
    /// Its answers; not every point has one.
    pub answers: Vec<Answer>,
}

/// A photo of a report, showing one of the shared [scenes](sandbox_pictures::Scene).
#[derive(Clone, Debug, PartialEq)]
pub struct Photo {
    /// Its ID.
    pub id: Uuid,
    /// Kind code.
    pub kind: &'static str,
    /// The point it belongs to.
    pub point_code: Option<&'static str>,
    /// The inspector's caption.
    pub caption: Option<String>,
    /// Index of the scene in [`sandbox_pictures::SCENES`].
    pub scene: usize,
    /// Whether it has a thumbnail.
    pub has_thumbnail: bool,
    /// Whether the report shows it.
    pub show_in_report: bool,
}

/// When a report was opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Opened {
    /// At a fixed time.
    At(DateTime<Utc>),
    /// This long before the last start of the sandbox. Each start moves the time, so that open reports are open again (MEA-6), and
    /// reports that are slightly too old stay slightly too old.
    Before(Duration),
}

/// A report.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// Its ID.
    pub id: Uuid,
    /// Its number for people.
    pub report_number: String,
    /// Index of its branch in [`Dataset::branches`].
    pub branch: usize,
    /// Index of its vehicle in [`Dataset::vehicles`].
    pub vehicle: usize,
    /// One of the seven statuses, upper-case.
    pub status: &'static str,
    /// Package name.
    pub package_name: &'static str,
    /// The package's list price in TRY.
    pub package_base_price: Decimal,
    /// The price before the discount in TRY.
    pub base_price: Decimal,
    /// Discount, 0 to 100.
    pub discount_percent: Decimal,
    /// The discount's name, empty without one.
    pub discount_name: &'static str,
    /// The price that the customer paid, in TRY.
    pub final_price: Decimal,
    /// `CASH`, `CARD` or `TRANSFER`.
    pub payment_type: &'static str,
    /// The inspector.
    pub inspector_name: &'static str,
    /// Mileage read at the inspection, in km.
    pub snapshot_mileage_km: i32,
    /// The inspector's overall text.
    pub summary: String,
    /// The inspector's recommendation.
    pub recommendation: String,
    /// 0 to 100.
    pub overall_score: i32,
    /// Name of the public page.
    pub public_slug: Option<String>,
    /// When it was published.
    pub published_at: Option<DateTime<Utc>>,
    /// When it was opened.
    pub opened: Opened,
    /// Its forms.
    pub forms: Vec<Form>,
    /// Its photos, in order.
    pub photos: Vec<Photo>,
}

/// A point of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasurementPoint {
    /// The measurement point code.
    pub code: &'static str,
    /// The value as sent.
    pub value: Decimal,
    /// The outcome; none while the measurement is pending.
    pub outcome: Option<&'static str>,
}

/// A package that a device sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Its ID.
    pub id: Uuid,
    /// Index of its branch in [`Dataset::branches`].
    pub branch: usize,
    /// Normalized plate.
    pub plate: String,
    /// The device maker's ID.
    pub external_id: String,
    /// The device.
    pub device_serial: String,
    /// When it was measured.
    pub measured_at: DateTime<Utc>,
    /// When it arrived.
    pub received_at: DateTime<Utc>,
    /// Whether both times are relative to the sandbox's start instead of [`base`](crate::generate::base). The package then has no
    /// time.
    pub is_recent: bool,
    /// The exact bytes of the package.
    pub raw: Vec<u8>,
    /// `APPLIED`, `PENDING` or `DISCARDED`.
    pub status: &'static str,
    /// Index in [`Dataset::inspections`] of the report to which it was applied.
    pub inspection: Option<usize>,
    /// When it was applied or discarded.
    pub settled_at: Option<DateTime<Utc>>,
    /// The inspector who applied or discarded it; none if the service applied it on arrival.
    pub settled_by: Option<&'static str>,
    /// Its values.
    pub points: Vec<MeasurementPoint>,
}

/// The examples in `sandbox.json`, as indexes and codes.
#[derive(Clone, Debug, PartialEq)]
pub struct Examples {
    /// Index of a published report that has a PDF, forms and photos.
    pub published: usize,
    /// Index of an archived report.
    pub archived: usize,
    /// Index of a cancelled report.
    pub cancelled: usize,
    /// Index of the report that every start reopens.
    pub open_report: usize,
    /// Code of a branch that does not accept measurements.
    pub inactive_branch_code: &'static str,
    /// A code that two branches of different organizations have.
    pub ambiguous_branch_code: &'static str,
    /// Code of a branch that is not granted to beta.
    pub not_granted_branch_code: &'static str,
}

/// All data of the sandbox except partners and keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// Three organizations, one for each privacy mode.
    pub organizations: Vec<Organization>,
    /// The branches of all organizations.
    pub branches: Vec<Branch>,
    /// The templates of all organizations.
    pub templates: Vec<Template>,
    /// The thresholds of all organizations.
    pub thresholds: Vec<ThresholdRow>,
    /// The vehicles; some of them have several reports.
    pub vehicles: Vec<Vehicle>,
    /// Reports in all statuses.
    pub inspections: Vec<Inspection>,
    /// Measurements in all states.
    pub measurements: Vec<Measurement>,
    /// The examples.
    pub examples: Examples,
}
