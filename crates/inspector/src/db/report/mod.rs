//! A report with its forms, photos and transitions, while it is edited.

mod read;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use partner_api_domain::axle::{self, Computed};
use partner_api_domain::score::{self, Assessment};
use partner_api_domain::template::{PhotoKind, Status as PointStatus};
use partner_api_domain::threshold::Bounds;
use partner_api_store::DbError;
use rust_decimal::Decimal;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::rules::moves::{Review, Status};

pub use read::find;

/// The SQL expression of the version of a report (`i`) of an organization (an expression of its ID): the version in its row plus
/// the number of its answers and of their history. A device that writes answers therefore does not have to update the report's row.
macro_rules! version {
    ($organization:literal) => {
        concat!(
            "(i.version + (SELECT count(*) FROM inspection_forms f \
              JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.organization_id = f.organization_id \
              WHERE f.inspection_id = i.id AND f.organization_id = ",
            $organization,
            ") + (SELECT count(*) FROM inspection_forms f \
              JOIN inspection_form_answer_history h ON h.inspection_form_id = f.id AND h.organization_id = f.organization_id \
              WHERE f.inspection_id = i.id AND f.organization_id = ",
            $organization,
            "))"
        )
    };
}

/// The SQL columns with the rule about the review of a report (`i`) of an organization (`o`, and an expression of its ID), for
/// [`review_of`].
macro_rules! review {
    ($organization:literal) => {
        concat!(
            "o.needs_review, (SELECT t.inspector_id FROM inspection_transitions t \
              WHERE t.inspection_id = i.id AND t.to_status = 'IN_REVIEW' AND t.organization_id = ",
            $organization,
            " ORDER BY t.number DESC LIMIT 1) AS reviewed_for, \
             (SELECT a.written_by FROM inspection_forms f \
              JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.organization_id = f.organization_id \
              WHERE f.inspection_id = i.id AND NOT a.by_device AND f.organization_id = ",
            $organization,
            " ORDER BY a.written_at DESC LIMIT 1) AS last_author"
        )
    };
}

pub(super) use {review, version};

/// Returns the rule about the review of a report.
pub(super) fn review_of(row: &Row) -> Result<Review, DbError> {
    Ok(Review {
        is_needed: row.try_get("needs_review")?,
        sent_by: row.try_get("reviewed_for")?,
        last_author: row.try_get("last_author")?,
    })
}

/// A report.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its ID.
    pub id: Uuid,
    /// The version, which grows with every change.
    pub version: i64,
    /// Its number.
    pub report_number: String,
    /// Its status.
    pub status: Status,
    /// The rule about its review.
    pub review: Review,
    /// Its branch.
    pub branch_id: Uuid,
    /// Its plate.
    pub plate: String,
    /// The reading of the odometer, in km.
    pub mileage_km: i32,
    /// The overall assessment.
    pub summary: String,
    /// The recommendation.
    pub recommendation: String,
    /// Its prices.
    pub pricing: Pricing,
    /// Its score.
    pub overall_score: i32,
    /// Its public slug.
    pub public_slug: Option<String>,
    /// The SHA-256 of its published PDF, if that shows the current data.
    pub pdf_sha256: Option<Vec<u8>>,
    /// The time at which it was opened.
    pub created_at: DateTime<Utc>,
    /// The time of its first publication.
    pub published_at: Option<DateTime<Utc>>,
    /// The vehicle.
    pub vehicle: Vehicle,
    /// Its forms.
    pub forms: Vec<Form>,
    /// The kinds of photos of the organization's templates.
    pub photo_kinds: Vec<PhotoKind>,
    /// Its photos.
    pub photos: Vec<Photo>,
    /// Its transitions.
    pub transitions: Vec<Transition>,
    /// The corrections of its plate, the oldest first.
    pub plate_corrections: Vec<PlateCorrection>,
    /// Its published PDFs, the oldest first.
    pub pdfs: Vec<Pdf>,
    /// The measurements that can be made pending again.
    pub settled: Vec<Settled>,
    /// The limits of the values that are computed from the test line.
    pub axle_limits: AxleLimits,
}

/// The limits of sums and differences, by their codes.
#[derive(Clone, Debug, Default)]
pub struct AxleLimits {
    /// Those of the report's values: the ones that applied when the last of them was written, as in the PDF.
    pub written: BTreeMap<String, Bounds>,
    /// Those of values that are written now.
    pub current: BTreeMap<String, Bounds>,
}

/// A published PDF.
#[derive(Clone, Debug)]
pub struct Pdf {
    /// The SHA-256 of its bytes.
    pub sha256: Vec<u8>,
    /// The time at which it was rendered.
    pub published_at: DateTime<Utc>,
}

/// A measurement that was applied or discarded.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Its ID.
    pub id: Uuid,
    /// The device's serial number.
    pub device_serial: Option<String>,
    /// The time of the measurement.
    pub measured_at: DateTime<Utc>,
    /// The time at which it was applied or discarded.
    pub settled_at: DateTime<Utc>,
    /// The inspector; `None` if it was applied when it arrived.
    pub settled_by: Option<String>,
    /// Whether it was applied.
    pub is_applied: bool,
}

/// The prices of a report.
#[derive(Clone, Debug)]
pub struct Pricing {
    /// The name of the inspection package.
    pub package_name: String,
    /// The price before the discount.
    pub base_price: Decimal,
    /// The discount in percent.
    pub discount_percent: Decimal,
    /// The name of the discount.
    pub discount_name: String,
    /// The price after the discount, computed.
    pub final_price: Decimal,
    /// The payment method.
    pub payment_type: String,
    /// The currency, as an ISO 4217 code.
    pub currency: String,
}

/// A report's vehicle.
#[derive(Clone, Debug)]
pub struct Vehicle {
    /// Its current plate.
    pub plate: String,
    /// Its vehicle identification number (VIN) at the inspection.
    pub vin: String,
    /// The make.
    pub brand: String,
    /// The model.
    pub model: String,
    /// The model year.
    pub year: i32,
    /// The body type.
    pub body_type: String,
    /// The fuel.
    pub fuel_type: String,
    /// The transmission.
    pub transmission: String,
    /// The color.
    pub color: String,
    /// The registered power, in HP.
    pub factory_power_hp: Option<Decimal>,
}

/// A form.
#[derive(Clone, Debug)]
pub struct Form {
    /// The template's code.
    pub template_code: String,
    /// The template's name.
    pub name: String,
    /// Whether devices write to it.
    pub is_test_line: bool,
    /// The note on the whole form.
    pub general_note: String,
    /// The statuses of its points, the best first.
    pub statuses: Vec<PointStatus>,
    /// All points of the template.
    pub points: Vec<Point>,
}

/// A point of a form.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its code.
    pub code: String,
    /// Its name.
    pub name: String,
    /// The unit of its number.
    pub unit: Option<String>,
    /// Its answer.
    pub answer: Option<Answer>,
    /// The organization's thresholds, on the test-line form.
    pub bounds: Option<Bounds>,
    /// Whether the report is published only with an answer.
    pub is_required: bool,
    /// The inspector's answer that a device replaced on arrival.
    pub replaced: Option<Replaced>,
    /// The panel of the car that the point is about.
    pub place: Option<String>,
    /// The replaced and removed answers, the last one first.
    pub earlier: Vec<EarlierAnswer>,
}

/// An answer that was replaced or removed.
#[derive(Clone, Debug)]
pub struct EarlierAnswer {
    /// The answer.
    pub answer: Answer,
    /// The time at which it was replaced or removed.
    pub replaced_at: DateTime<Utc>,
}

/// An inspector's answer that a device replaced.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// Its status.
    pub status_code: String,
    /// Its number.
    pub numeric_value: Option<Decimal>,
    /// The inspector.
    pub written_by: String,
    /// The time at which the inspector wrote it.
    pub written_at: DateTime<Utc>,
}

/// The answer at a point.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status_code: String,
    /// The label of the status.
    pub status_label: String,
    /// The severity of the status.
    pub severity: String,
    /// Its number.
    pub numeric_value: Option<Decimal>,
    /// The inspector's note.
    pub note: String,
    /// Its author.
    pub written_by: Writer,
    /// The time at which it was written.
    pub written_at: DateTime<Utc>,
}

/// The author of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writer {
    /// A device, with its serial number if it sent one.
    Device(Option<String>),
    /// An inspector, by name.
    Person(String),
}

/// A photo.
#[derive(Clone, Debug)]
pub struct Photo {
    /// Its ID.
    pub id: Uuid,
    /// The kind of photo.
    pub kind: String,
    /// The code of the point that it shows.
    pub point_code: Option<String>,
    /// The caption.
    pub caption: Option<String>,
    /// The key of its object.
    pub object_key: String,
    /// The key of its thumbnail's object.
    pub thumb_object_key: String,
    /// Whether partners see it once the report is published.
    pub is_shown: bool,
}

/// A transition from one status to another.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The previous status; `None` for the opening.
    pub from: Option<Status>,
    /// The new status.
    pub to: Status,
    /// The name of the inspector.
    pub by: String,
    /// The reason.
    pub reason: Option<String>,
    /// The time.
    pub at: DateTime<Utc>,
}

/// A correction of a report's plate.
#[derive(Clone, Debug)]
pub struct PlateCorrection {
    /// The plate before.
    pub from: String,
    /// The plate after.
    pub to: String,
    /// The name of the inspector.
    pub by: String,
    /// The time.
    pub at: DateTime<Utc>,
}

impl Point {
    /// Whether the point was inspected (INS-13).
    pub fn is_inspected(&self) -> bool {
        self.answer
            .as_ref()
            .is_some_and(|answer| score::is_inspected(&answer.status_code, &answer.severity))
    }
}

impl Report {
    /// The inspected part, and the score that a publication would give.
    pub fn assessment(&self) -> Assessment {
        let mut assessment = Assessment::default();
        for point in self.forms.iter().flat_map(|form| &form.points) {
            let answer = point.answer.as_ref();
            assessment.add(answer.map(|answer| (answer.status_code.as_str(), answer.severity.as_str())));
        }
        assessment
    }

    /// Why the report was revised after a PDF was published; `None` if it was not.
    ///
    /// A PDF belongs to the last publication before it. A transition's time is the beginning of its transaction, so that of a revision
    /// may precede the PDF; that of the publication cannot, because a report is rendered after it is published.
    pub fn revision_of(&self, pdf: &Pdf) -> Option<&str> {
        let publication = self
            .transitions
            .iter()
            .rposition(|transition| transition.to == Status::Published && transition.at <= pdf.published_at);
        let later = &self.transitions[publication.map_or(0, |index| index + 1)..];
        let revision = later.iter().find(|transition| {
            transition.from == Some(Status::Published) && transition.to == Status::RevisionRequested
        })?;
        revision.reason.as_deref()
    }

    /// Whether nothing was entered, so that the report can be discarded.
    pub fn is_untouched(&self) -> bool {
        let has_content =
            |form: &Form| !form.general_note.is_empty() || form.points.iter().any(|point| point.answer.is_some());
        self.summary.is_empty()
            && self.recommendation.is_empty()
            && self.photos.is_empty()
            && !self.settled.iter().any(|measurement| measurement.is_applied)
            && !self.forms.iter().any(has_content)
    }

    /// The status from which the report's cancellation was requested, if it was.
    pub fn before_request(&self) -> Option<Status> {
        let last = self.transitions.last()?;
        (last.to == Status::CancelRequested).then_some(last.from).flatten()
    }
}

/// Returns the current numbers of a report's test line by point code, to be shown beside those of a pending measurement.
pub fn numbers(report: &Report) -> BTreeMap<&str, Decimal> {
    let points = report
        .forms
        .iter()
        .filter(|form| form.is_test_line)
        .flat_map(|form| &form.points);
    points
        .filter_map(|point| Some((point.code.as_str(), point.answer.as_ref()?.numeric_value?)))
        .collect()
}

/// Computes the sums and differences of axles by the rule of the PDF (MEA-18).
pub fn computed(numbers: &BTreeMap<&str, Decimal>, limits: &BTreeMap<String, Bounds>) -> Vec<Computed> {
    axle::computed(|code| numbers.get(code).copied(), |code| limits.get(code).copied())
}
