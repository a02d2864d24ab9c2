//! A report's forms: the inspector's answers, and those a device's measurement gave.

use chrono::{DateTime, Utc};
use partner_api_domain::score;
use partner_api_domain::threshold::{self, Bounds, PointStatus};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::texts::sentence;
use crate::catalogue::templates::{BODY_PAINT, Reading, TEMPLATES, can_be};
use crate::catalogue::test_line;
use crate::catalogue::texts::GENERAL_NOTES;
use crate::data::{Answer, Dataset, Form, MeasurementPoint, Template, Vehicle, Writer};
use crate::random::Random;

/// How often in a hundred an inspector's text holds personal data it should not hold.
const PERSONAL: i64 = 12;

/// Who fills a report's forms, how far, and when.
#[derive(Clone, Copy)]
pub struct Hand {
    /// The inspector's name.
    pub inspector: &'static str,
    /// How many points in a hundred get an answer.
    pub answered: i64,
    /// The mileage that was read, in km.
    pub mileage_km: i32,
    /// When the report was opened.
    pub time: DateTime<Utc>,
}

/// A form filled by hand.
pub fn by_hand(random: &mut Random, template: &Template, hand: Hand) -> Form {
    let mut answers = Vec::new();
    if let Some(spec) = TEMPLATES.iter().find(|spec| spec.code == template.code) {
        let statuses: Vec<_> = spec.statuses.iter().map(|status| (status, status.3)).collect();
        for (point, (_, _, reading)) in template.points.iter().zip(spec.points) {
            if !random.chance(hand.answered) {
                continue;
            }
            let drawn = random.weighted(&statuses);
            let status = if can_be(point.code, drawn.0) {
                drawn
            } else {
                &spec.statuses[0]
            };
            let at_best = status.2 == "NONE";
            let note = if !at_best && random.chance(70) {
                let fitting: Vec<&str> = spec
                    .notes
                    .iter()
                    .filter(|note| note.fits(point.code, status.0))
                    .map(|note| note.text)
                    .collect();
                sentence(random, &fitting, hand.mileage_km, PERSONAL)
            } else {
                String::new()
            };
            answers.push(Answer {
                point: point.id,
                status_code: status.0,
                status_label: status.1,
                severity: status.2,
                numeric_value: reading.map(|reading| read(random, reading, spec.code, status.0)),
                note,
                writer: Writer::Inspector(hand.inspector),
            });
        }
    }
    Form {
        id: random.id(hand.time),
        template: template.id,
        general_note: general_note(random, template.code, hand),
        answers,
    }
}

fn general_note(random: &mut Random, form: &str, hand: Hand) -> String {
    if random.chance(35) {
        let fitting: Vec<&str> = GENERAL_NOTES
            .iter()
            .filter(|(of, _)| of.is_none_or(|of| of == form))
            .map(|(_, text)| *text)
            .collect();
        sentence(random, &fitting, hand.mileage_km, PERSONAL)
    } else {
        String::new()
    }
}

/// A reading; paint is thicker where it is not the maker's.
fn read(random: &mut Random, reading: Reading, form: &str, status: &str) -> Decimal {
    let (low, high) = match (form, status) {
        (BODY_PAINT, "LOCAL_PAINT") => (165, 290),
        (BODY_PAINT, "PAINTED") => (210, 480),
        _ => reading.range,
    };
    Decimal::new(random.between(low, high), reading.scale)
}

/// The organisation's bounds for a point.
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

/// The status the organisation's thresholds give a value.
pub fn status(data: &Dataset, organization: usize, code: &str, value: Decimal) -> Option<PointStatus> {
    threshold::status(value, bounds(data, organization, code).as_ref())
}

/// A value a device would send for the point, two decimals at most; none for the computed ratio. `before` are those of other
/// points: most right sides are not far from their left ones.
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
            let greatest = Decimal::new(point.hundredths.1, 2);
            Some(value.min(greatest).normalize())
        }
    }
}

/// The test-line form: `sent` by a device under `device` where there is one, the rest read by the inspector. Also settles
/// the outcome of each sent point.
pub fn test_line(
    random: &mut Random,
    data: &Dataset,
    template: &Template,
    vehicle: &Vehicle,
    sent: &mut [MeasurementPoint],
    device: Option<Uuid>,
    hand: Hand,
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
            _ if random.chance(hand.answered) => match device_value(random, vehicle, point.code, |code| {
                let of = template.points.iter().find(|point| point.code == code)?.id;
                answers
                    .iter()
                    .find(|answer: &&Answer| answer.point == of)?
                    .numeric_value
            }) {
                Some(value) => (value, Writer::Inspector(hand.inspector)),
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
        id: random.id(hand.time),
        template: template.id,
        general_note: general_note(random, template.code, hand),
        answers,
    }
}

fn ratio(vehicle: &Vehicle, sent: &[MeasurementPoint]) -> Option<Decimal> {
    let measured = sent
        .iter()
        .find(|point| point.code == partner_api_domain::dyno::MEASURED_HP)?;
    partner_api_domain::dyno::ratio(measured.value, vehicle.factory_power_hp?)
}

/// What the report scores by its answers' defects.
pub fn score(forms: &[Form]) -> i32 {
    let answers = forms.iter().flat_map(|form| &form.answers);
    score::score(answers.map(|answer| answer.severity))
}
