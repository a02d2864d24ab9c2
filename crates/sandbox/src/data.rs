//! The sandbox's data as plain rows, one struct for each table it fills, before any of it meets a database.

use chrono::{DateTime, Duration, Utc};
use rust_decimal::Decimal;
use uuid::Uuid;

/// An organisation: one tenant of the platform, with its privacy mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Organization {
    /// Its id.
    pub id: Uuid,
    /// Its name in addresses.
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
    /// Its id.
    pub id: Uuid,
    /// Index of its organisation in [`Dataset::organizations`].
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
    /// Whether it takes measurements.
    pub is_active: bool,
}

/// A point of a form template: one thing the inspector looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplatePoint {
    /// Its id.
    pub id: Uuid,
    /// Its code; on the test-line form, the measurement point code.
    pub code: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// Unit of its numeric value, where it has one.
    pub unit: Option<&'static str>,
}

/// An organisation's form template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Its id.
    pub id: Uuid,
    /// Index of its organisation in [`Dataset::organizations`].
    pub organization: usize,
    /// Form code.
    pub code: &'static str,
    /// Form name.
    pub name: &'static str,
    /// What the form's result counts towards.
    pub score_category: &'static str,
    /// Whether device measurements are written into it.
    pub is_test_line: bool,
    /// Its points, in order.
    pub points: Vec<TemplatePoint>,
}

/// Bounds that give a device value its status, in the point's unit; a missing bound is open, bounds are inclusive.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdRow {
    /// Index of its organisation in [`Dataset::organizations`].
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
    /// From when on they hold: before any value that they judge.
    pub since: DateTime<Utc>,
}

/// A vehicle as it is registered.
#[derive(Clone, Debug, PartialEq)]
pub struct Vehicle {
    /// Its id.
    pub id: Uuid,
    /// Normalised plate.
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
    /// Colour.
    pub color: &'static str,
    /// Registered mileage in km.
    pub mileage_km: i32,
    /// Registered factory power in HP; unknown for some.
    pub factory_power_hp: Option<Decimal>,
}

/// Who wrote an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// An inspector, by name.
    Inspector(&'static str),
    /// A device, by its measurement.
    Device(Uuid),
}

/// An answer given to a template's point.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The point's id.
    pub point: Uuid,
    /// Status code.
    pub status_code: &'static str,
    /// The status for people.
    pub status_label: &'static str,
    /// `NONE`, `LOW`, `MEDIUM` or `HIGH`.
    pub severity: &'static str,
    /// The measured value, where the point has one.
    pub numeric_value: Option<Decimal>,
    /// The inspector's free text.
    pub note: String,
    /// Who wrote it.
    pub writer: Writer,
}

/// A form of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Its id.
    pub id: Uuid,
    /// Its template's id.
    pub template: Uuid,
    /// The inspector's free text for the whole form.
    pub general_note: String,
    /// Its answers; a point may be without one.
    pub answers: Vec<Answer>,
}

/// A photo of a report, showing one of the shared [scenes](sandbox_pictures::Scene).
#[derive(Clone, Debug, PartialEq)]
pub struct Photo {
    /// Its id.
    pub id: Uuid,
    /// Kind code.
    pub kind: &'static str,
    /// The point it belongs to.
    pub point_code: Option<&'static str>,
    /// The inspector's caption.
    pub caption: Option<String>,
    /// Index of the scene in [`sandbox_pictures::SCENES`].
    pub scene: usize,
    /// Whether it has a small version.
    pub has_thumbnail: bool,
    /// Whether the report shows it.
    pub show_in_report: bool,
}

/// When a report was opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Opened {
    /// At a fixed time.
    At(DateTime<Utc>),
    /// So long before the sandbox was last started: each start moves it, so that open reports are open again and those
    /// just outside of the window stay just outside.
    Before(Duration),
}

/// A report.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// Its id.
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
    /// What the customer paid in TRY.
    pub final_price: Decimal,
    /// `CASH`, `CARD` or `TRANSFER`.
    pub payment_type: &'static str,
    /// Who inspected the vehicle.
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
    /// What became of it; none while the measurement waits.
    pub outcome: Option<&'static str>,
}

/// A package a device sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Its id.
    pub id: Uuid,
    /// Index of its branch in [`Dataset::branches`].
    pub branch: usize,
    /// Normalised plate.
    pub plate: String,
    /// The device maker's id.
    pub external_id: String,
    /// The device.
    pub device_serial: String,
    /// When it was measured.
    pub measured_at: DateTime<Utc>,
    /// When it arrived.
    pub received_at: DateTime<Utc>,
    /// The exact bytes of the package.
    pub raw: Vec<u8>,
    /// `APPLIED`, `PENDING` or `DISCARDED`.
    pub status: &'static str,
    /// Index in [`Dataset::inspections`] of the report it was written to.
    pub inspection: Option<usize>,
    /// When it was applied or discarded.
    pub settled_at: Option<DateTime<Utc>>,
    /// The inspector who did; none when the service did on arrival.
    pub settled_by: Option<&'static str>,
    /// Its values.
    pub points: Vec<MeasurementPoint>,
}

/// What `sandbox.json` names for people to try, as indexes and codes.
#[derive(Clone, Debug, PartialEq)]
pub struct Examples {
    /// Index of a published report that has a PDF, forms and photos.
    pub published: usize,
    /// Index of an archived report.
    pub archived: usize,
    /// Index of a cancelled report.
    pub cancelled: usize,
    /// Index of the report that every start opens again.
    pub open_report: usize,
    /// Code of a branch that takes no measurements.
    pub inactive_branch_code: &'static str,
    /// A code of two branches in two organisations.
    pub ambiguous_branch_code: &'static str,
    /// Code of a branch not granted to beta.
    pub not_granted_branch_code: &'static str,
}

/// Everything the sandbox puts into its database but partners and keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// Three, one for each privacy mode.
    pub organizations: Vec<Organization>,
    /// Of all organisations.
    pub branches: Vec<Branch>,
    /// Of all organisations.
    pub templates: Vec<Template>,
    /// Of all organisations.
    pub thresholds: Vec<ThresholdRow>,
    /// One for each report and some that came twice.
    pub vehicles: Vec<Vehicle>,
    /// Of all statuses.
    pub inspections: Vec<Inspection>,
    /// In every state.
    pub measurements: Vec<Measurement>,
    /// What to try first.
    pub examples: Examples,
}
