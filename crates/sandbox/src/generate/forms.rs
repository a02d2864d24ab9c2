//! Generates a report's forms with the answers of inspectors and devices.

use chrono::{DateTime, Utc};
use partner_api_domain::score::Assessment;
use partner_api_domain::threshold::{self, Bounds, PointStatus};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::texts::sentence;
use crate::catalog::templates::{BODY_PAINT, Reading, TEMPLATES, can_be};
use crate::catalog::test_line;
use crate::catalog::texts::GENERAL_NOTES;
use crate::data::{Answer, Dataset, Form, MeasurementPoint, Template, Vehicle, Writer};
use crate::random::Random;

/// The percentage of inspectors' texts that contain personal data.
const PERSONAL: i64 = 12;

/// The inspector of a report's forms, how much of them is filled in, and when.
#[derive(Clone, Copy)]
pub struct FormContext {
    /// The inspector's name.
    pub inspector: &'static str,
    /// The percentage of points that get an answer.
    pub answered: i64,
    /// The mileage that was read, in km.
    pub mileage_km: i32,
    /// When the report was opened.
    pub time: DateTime<Utc>,
}

/// Generates a form that an inspector fills in.
pub fn manual_form(random: &mut Random, template: &Template, context: FormContext) -> Form {
    let mut answers = Vec::new();
    if let Some(spec) = TEMPLATES.iter().find(|spec| spec.code == template.code) {
        let statuses: Vec<_> = spec.statuses.iter().map(|status| (status, status.3)).collect();
        for (point, (_, _, reading)) in template.points.iter().zip(spec.points) {
            if !random.chance(context.answered) {
                continue;
            }
            let drawn = random.weighted(&statuses);
            let status = if can_be(point.code, drawn.0) {
                drawn
            } else {
                &spec.statuses[0]
            };
            let has_defect = status.2 != "NONE";
            let note = if has_defect && random.chance(70) {
                let fitting: Vec<&str> = spec
                    .notes
                    .iter()
                    .filter(|note| note.fits(point.code, status.0))
                    .map(|note| note.text)
                    .collect();
                sentence(random, &fitting, context.mileage_km, PERSONAL)
            } else {
                String::new()
            };
            answers.push(Answer {
                point: point.id,
                status_code: status.0,
                status_label: status.1,
                severity: status.2,
                numeric_value: reading.map(|reading| reading_value(random, reading, spec.code, status.0)),
                note,
                writer: Writer::Inspector(context.inspector),
            });
        }
    }
    Form {
        id: random.id(context.time),
        template: template.id,
        general_note: general_note(random, template.code, context),
        answers,
    }
}

fn general_note(random: &mut Random, form: &str, context: FormContext) -> String {
    if random.chance(35) {
        let fitting: Vec<&str> = GENERAL_NOTES
            .iter()
            .filter(|(of, _)| of.is_none_or(|of| of == form))
            .map(|(_, text)| *text)
            .collect();
        sentence(random, &fitting, context.mileage_km, PERSONAL)
    } else {
        String::new()
    }
}

/// Generates a reading. Repainted panels have thicker paint.
fn reading_value(random: &mut Random, reading: Reading, form: &str, status: &str) -> Decimal {
    let (low, high) = match (form, status) {
        (BODY_PAINT, "LOCAL_PAINT") => (165, 290),
        (BODY_PAINT, "PAINTED") => (210, 480),
        _ => reading.range,
    };
    Decimal::new(random.between(low, high), reading.scale)
}

/// Returns the organization's bounds for a point.
fn bounds(data: &Dataset, organization: usize, code: &str) -> Option<Bounds> {
    let row = data
        .thresholds
        .iter()
        .find(|row| row.organization == organization && row.point_code == code)?;
    Some(Bounds {
        good_min: row.good_min,
        good_max: row.good_max,
        borderline_min: row.borderline_min,
        borderline_max: row.borderline_max,
    })
}

/// Returns the status of a value by the organization's thresholds.
pub fn status(data: &Dataset, organization: usize, code: &str, value: Decimal) -> Option<PointStatus> {
    threshold::status(value, bounds(data, organization, code).as_ref())
}

/// Generates a value that a device could send for a point, with at most two decimals, or `None` for the computed ratio. `before`
/// returns the values of earlier points, because most right sides differ little from their left sides.
pub fn device_value(
    random: &mut Random,
    vehicle: &Vehicle,
    code: &str,
    before: impl Fn(&str) -> Option<Decimal>,
) -> Option<Decimal> {
    let factory = vehicle.factory_power_hp.unwrap_or(Decimal::from(110));
    let point = test_line::POINTS.iter().find(|point| point.code == code)?;
    match code {
        partner_api_domain::dyno::RATIO => None,
        test_line::FACTORY_HP => Some(factory.normalize()),
        partner_api_domain::dyno::MEASURED_HP => {
            let permille = Decimal::new(random.between(760, 1_030), 3);
            Some((factory * permille).round_dp(1).normalize())
        }
        _ => {
            let left = code
                .strip_suffix("_RIGHT")
                .and_then(|stem| before(&format!("{stem}_LEFT")))
                .filter(|_| random.chance(85));
            let value = match left {
                Some(left) => (left * Decimal::new(random.between(88, 108), 2)).round_dp(2),
                None => Decimal::new(random.between(point.hundredths.0, point.hundredths.1), 2),
            };
            let max = Decimal::new(point.hundredths.1, 2);
            Some(value.min(max).normalize())
        }
    }
}

/// Generates the test-line form and sets the outcome of each point in `sent`. Those values come from the measurement `device`, if there
/// is one; the inspector reads the other points.
pub fn test_line(
    random: &mut Random,
    data: &Dataset,
    template: &Template,
    vehicle: &Vehicle,
    sent: &mut [MeasurementPoint],
    device: Option<Uuid>,
    context: FormContext,
) -> Form {
    let organization = template.organization;
    for point in sent.iter_mut() {
        let known = template.points.iter().any(|known| known.code == point.code);
        point.outcome = Some(match (known, status(data, organization, point.code, point.value)) {
            (false, _) => "unknown_point",
            (true, None) => "no_status",
            (true, Some(_)) => "applied",
        });
    }
    let mut answers = Vec::new();
    for point in &template.points {
        let from_device = match point.code {
            partner_api_domain::dyno::RATIO => ratio(vehicle, sent),
            code => sent.iter().find(|sent| sent.code == code).map(|sent| sent.value),
        };
        let (value, writer) = match (from_device, device) {
            (Some(value), Some(measurement)) => (value, Writer::Device(measurement)),
            _ if random.chance(context.answered) => match device_value(random, vehicle, point.code, |code| {
                let of = template.points.iter().find(|point| point.code == code)?.id;
                answers
                    .iter()
                    .find(|answer: &&Answer| answer.point == of)?
                    .numeric_value
            }) {
                Some(value) => (value, Writer::Inspector(context.inspector)),
                None => continue,
            },
            _ => continue,
        };
        if let Some(status) = status(data, organization, point.code, value) {
            answers.push(Answer {
                point: point.id,
                status_code: status.code(),
                status_label: status.label(),
                severity: status.severity(),
                numeric_value: Some(value),
                note: String::new(),
                writer,
            });
        }
    }
    Form {
        id: random.id(context.time),
        template: template.id,
        general_note: general_note(random, template.code, context),
        answers,
    }
}

fn ratio(vehicle: &Vehicle, sent: &[MeasurementPoint]) -> Option<Decimal> {
    let measured = sent
        .iter()
        .find(|point| point.code == partner_api_domain::dyno::MEASURED_HP)?;
    partner_api_domain::dyno::ratio(measured.value, vehicle.factory_power_hp?)
}

/// Returns the report's score, which depends on the defects in its answers.
pub fn score(forms: &[Form]) -> i32 {
    let mut assessment = Assessment::default();
    for answer in forms.iter().flat_map(|form| &form.answers) {
        assessment.add(Some((answer.status_code, answer.severity)));
    }
    assessment.score().unwrap_or_default()
}
