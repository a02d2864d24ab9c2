//! A report as it is being written, with all that belongs to it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use partner_api_domain::threshold::Bounds;
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use partner_api_store::{DbError, thresholds};
use rust_decimal::Decimal;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::caller::Inspector;
use crate::rules::moves::Status;

/// The version of a report (`i`): its row's, and how often its answers were written, by whomever. Nothing that a device does
/// has to write into the report's row for it.
macro_rules! version {
    () => {
        "(i.version + (SELECT count(*) FROM inspection_forms f JOIN inspection_form_answers a ON a.inspection_form_id = f.id \
          WHERE f.inspection_id = i.id) + (SELECT count(*) FROM inspection_forms f \
          JOIN inspection_form_answer_history h ON h.inspection_form_id = f.id WHERE f.inspection_id = i.id))"
    };
}

pub(super) use version;

statement! {
    /// The report `$1` if it is at one of the branches `$2`.
    HEAD = concat!("\
SELECT i.id, ", version!(), " AS version, i.report_number, i.status, i.branch_id, i.plate, i.snapshot_mileage_km, i.summary,
       i.recommendation, i.package_name, i.base_price, i.discount_percent, i.discount_name, i.final_price, i.payment_type,
       i.currency, i.overall_score, i.public_slug, i.created_at, i.published_at,
       v.plate AS vehicle_plate, i.snapshot_vin, v.brand, v.model, v.year, v.factory_power_hp, d.sha256 AS pdf_sha256
FROM inspections i JOIN vehicles v ON v.id = i.vehicle_id
LEFT JOIN published_pdfs d ON d.object_key = i.pdf_object_key AND i.status = 'PUBLISHED'
WHERE i.id = $1 AND i.branch_id = ANY ($2::uuid[])");

    /// A row for each point of each template of the report's (`$1`) organisation, answered or not.
    FORMS = "\
SELECT t.code AS template_code, t.name AS template_name, t.is_test_line, f.general_note, p.code, p.name, p.unit,
       a.status_code, a.numeric_value, a.note, a.written_by, a.written_at, m.id AS device_measurement, m.device_serial,
       h.point_code IS NOT NULL AS has_bounds, h.good_min, h.good_max, h.borderline_min, h.borderline_max
FROM inspections i
JOIN form_templates t ON t.organization_id = i.organization_id
JOIN form_template_points p ON p.template_id = t.id
LEFT JOIN thresholds h ON t.is_test_line AND h.organization_id = i.organization_id AND h.point_code = p.code
LEFT JOIN inspection_forms f ON f.inspection_id = i.id AND f.template_id = t.id
LEFT JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.point_id = p.id
LEFT JOIN measurements m ON m.id = a.measurement_id
WHERE i.id = $1
ORDER BY t.position, t.code, p.position, p.code";

    /// The photos of the report `$1`, in order.
    PHOTOS = "\
SELECT id, kind, point_code, caption, object_key, coalesce(thumb_object_key, object_key) AS thumb_object_key,
       show_in_report AND kind NOT IN ('REGISTRATION', 'OTOSICIL_PDF') AS is_shown
FROM photos WHERE inspection_id = $1 ORDER BY position, id";

    /// How the report `$1` came to its status, the oldest first.
    TRANSITIONS = "\
SELECT from_status, to_status, inspector_name, reason, occurred_at FROM inspection_transitions WHERE inspection_id = $1 ORDER BY number";
}

/// A report.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its id.
    pub id: Uuid,
    /// Grows with every change.
    pub version: i64,
    /// Its number.
    pub report_number: String,
    /// Its status.
    pub status: Status,
    /// Its branch.
    pub branch_id: Uuid,
    /// The plate under which it was opened.
    pub plate: String,
    /// What the odometer showed, in kilometres.
    pub mileage_km: i32,
    /// The overall text.
    pub summary: String,
    /// The advice.
    pub recommendation: String,
    /// What it costs.
    pub pricing: Pricing,
    /// Its score.
    pub overall_score: i32,
    /// The name of its public page.
    pub public_slug: Option<String>,
    /// SHA-256 of its PDF.
    pub pdf_sha256: Option<Vec<u8>>,
    /// When it was opened.
    pub created_at: DateTime<Utc>,
    /// When it was published first.
    pub published_at: Option<DateTime<Utc>>,
    /// The vehicle.
    pub vehicle: Vehicle,
    /// Its forms.
    pub forms: Vec<Form>,
    /// Its photos.
    pub photos: Vec<Photo>,
    /// How it came to its status.
    pub transitions: Vec<Transition>,
}

/// What a report costs.
#[derive(Clone, Debug)]
pub struct Pricing {
    /// What was sold.
    pub package_name: String,
    /// Before the discount.
    pub base_price: Decimal,
    /// The discount in percent.
    pub discount_percent: Decimal,
    /// What it is called.
    pub discount_name: String,
    /// Computed.
    pub final_price: Decimal,
    /// How it was paid.
    pub payment_type: String,
    /// ISO 4217.
    pub currency: String,
}

/// A report's vehicle.
#[derive(Clone, Debug)]
pub struct Vehicle {
    /// Its plate today.
    pub plate: String,
    /// Its chassis number when it was inspected.
    pub vin: String,
    /// Its brand.
    pub brand: String,
    /// Its model.
    pub model: String,
    /// The model year.
    pub year: i32,
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
    /// Whether devices write into it.
    pub is_test_line: bool,
    /// What is said of the whole form.
    pub general_note: String,
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
    /// What was found.
    pub answer: Option<Answer>,
    /// The organisation's thresholds, on the test-line form.
    pub bounds: Option<Bounds>,
}

/// What was found at a point.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status_code: String,
    /// Its number.
    pub numeric_value: Option<Decimal>,
    /// What the inspector saw.
    pub note: String,
    /// Who wrote it: a name, or a device.
    pub written_by: Writer,
    /// When.
    pub written_at: DateTime<Utc>,
}

/// Who wrote an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writer {
    /// A device, with its serial number where it said one.
    Device(Option<String>),
    /// An inspector, by name.
    Person(String),
}

/// A photo.
#[derive(Clone, Debug)]
pub struct Photo {
    /// Its id.
    pub id: Uuid,
    /// What it shows.
    pub kind: String,
    /// The point that it shows.
    pub point_code: Option<String>,
    /// What stands below it.
    pub caption: Option<String>,
    /// The object that holds it.
    pub object_key: String,
    /// The object that holds its small version.
    pub thumb_object_key: String,
    /// Whether partners see it once the report is published.
    pub is_shown: bool,
}

/// A move from one status to another.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The status before; none for the opening.
    pub from: Option<Status>,
    /// The status since.
    pub to: Status,
    /// Who moved it.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub at: DateTime<Utc>,
}

impl Report {
    /// The status from which the report's cancellation was requested, if it is.
    pub fn before_request(&self) -> Option<Status> {
        let last = self.transitions.last()?;
        (last.to == Status::CancelRequested).then_some(last.from).flatten()
    }
}

/// The report, if it is at a branch of the inspector's.
///
/// Its version is read before what it stands for: who changes by it what was changed in between is told so.
///
/// # Errors
/// What the database says.
pub async fn find(client: &Connection, inspector: &Inspector, id: Uuid) -> Result<Option<Report>, DbError> {
    let Some(head) = client.query_opt(HEAD, &[&id, &inspector.branch_ids()]).await? else {
        return Ok(None);
    };
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&id];
    let (forms, photos, transitions) = futures::join!(
        client.query(FORMS, &parameters),
        client.query(PHOTOS, &parameters),
        client.query(TRANSITIONS, &parameters),
    );
    let photos: Result<_, DbError> = photos?.iter().map(photo).collect();
    let transitions: Result<_, DbError> = transitions?.iter().map(transition).collect();
    Ok(Some(Report {
        id: head.try_get("id")?,
        version: head.try_get("version")?,
        report_number: head.try_get("report_number")?,
        status: head.try_get("status")?,
        branch_id: head.try_get("branch_id")?,
        plate: head.try_get("plate")?,
        mileage_km: head.try_get("snapshot_mileage_km")?,
        summary: head.try_get("summary")?,
        recommendation: head.try_get("recommendation")?,
        pricing: Pricing {
            package_name: head.try_get("package_name")?,
            base_price: head.try_get("base_price")?,
            discount_percent: head.try_get("discount_percent")?,
            discount_name: head.try_get("discount_name")?,
            final_price: head.try_get("final_price")?,
            payment_type: head.try_get("payment_type")?,
            currency: head.try_get("currency")?,
        },
        overall_score: head.try_get("overall_score")?,
        public_slug: head.try_get("public_slug")?,
        pdf_sha256: head.try_get("pdf_sha256")?,
        created_at: head.try_get("created_at")?,
        published_at: head.try_get("published_at")?,
        vehicle: Vehicle {
            plate: head.try_get("vehicle_plate")?,
            vin: head.try_get("snapshot_vin")?,
            brand: head.try_get("brand")?,
            model: head.try_get("model")?,
            year: head.try_get("year")?,
            factory_power_hp: head.try_get("factory_power_hp")?,
        },
        forms: grouped(&forms?)?,
        photos: photos?,
        transitions: transitions?,
    }))
}

/// The forms of rows that are in their order.
fn grouped(rows: &[Row]) -> Result<Vec<Form>, DbError> {
    let mut forms: Vec<Form> = Vec::new();
    for row in rows {
        let template_code: String = row.try_get("template_code")?;
        if forms.last().is_none_or(|form| form.template_code != template_code) {
            forms.push(Form {
                template_code,
                name: row.try_get("template_name")?,
                is_test_line: row.try_get("is_test_line")?,
                general_note: row.try_get::<_, Option<String>>("general_note")?.unwrap_or_default(),
                points: Vec::new(),
            });
        }
        if let Some(form) = forms.last_mut() {
            form.points.push(point(row)?);
        }
    }
    Ok(forms)
}

fn point(row: &Row) -> Result<Point, DbError> {
    let answer = match row.try_get::<_, Option<String>>("status_code")? {
        None => None,
        Some(status_code) => Some(Answer {
            status_code,
            numeric_value: row.try_get("numeric_value")?,
            note: row.try_get("note")?,
            written_by: match row.try_get::<_, Option<Uuid>>("device_measurement")? {
                Some(_) => Writer::Device(row.try_get("device_serial")?),
                None => Writer::Person(row.try_get("written_by")?),
            },
            written_at: row.try_get("written_at")?,
        }),
    };
    Ok(Point {
        code: row.try_get("code")?,
        name: row.try_get("name")?,
        unit: row.try_get("unit")?,
        answer,
        bounds: match row.try_get("has_bounds")? {
            true => Some(thresholds::bounds(row)?),
            false => None,
        },
    })
}

fn photo(row: &Row) -> Result<Photo, DbError> {
    Ok(Photo {
        id: row.try_get("id")?,
        kind: row.try_get("kind")?,
        point_code: row.try_get("point_code")?,
        caption: row.try_get("caption")?,
        object_key: row.try_get("object_key")?,
        thumb_object_key: row.try_get("thumb_object_key")?,
        is_shown: row.try_get("is_shown")?,
    })
}

fn transition(row: &Row) -> Result<Transition, DbError> {
    Ok(Transition {
        from: row.try_get("from_status")?,
        to: row.try_get("to_status")?,
        by: row.try_get("inspector_name")?,
        reason: row.try_get("reason")?,
        at: row.try_get("occurred_at")?,
    })
}

/// The numbers of a report's points today, by code, for what is shown beside a measurement that waits.
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
