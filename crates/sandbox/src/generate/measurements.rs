//! Generates the measurements of test-line devices.

use std::fmt::Write as _;

use chrono::{DateTime, Duration, FixedOffset, Utc};
use partner_api_domain::plate;

use super::forms::FormContext;
use super::{base, forms};
use crate::catalog::test_line;
use crate::catalog::texts::INSPECTORS;
use crate::data::{Dataset, Form, Measurement, MeasurementPoint, Opened, Template, Vehicle};
use crate::random::Random;

/// Generates the test-line form of the report with index `report`. Half of the finished forms have values from a device.
pub fn test_line_form(
    random: &mut Random,
    data: &mut Dataset,
    template: &Template,
    vehicle: usize,
    branch: usize,
    report: usize,
    context: FormContext,
) -> Form {
    let vehicle = data.vehicles[vehicle].clone();
    let is_finished = context.answered > 50;
    if !is_finished || random.chance(50) {
        return forms::test_line(random, data, template, &vehicle, &mut [], None, context);
    }
    let received_at = context.time + Duration::minutes(random.between(-30, 45));
    let mut measurement = package(random, data, &vehicle, branch, received_at, false);
    let device = Some(measurement.id);
    let form = forms::test_line(
        random,
        data,
        template,
        &vehicle,
        &mut measurement.points,
        device,
        context,
    );
    measurement.status = "APPLIED";
    measurement.inspection = Some(report);
    // A measurement that arrived before the report was opened was applied by the inspector.
    let was_pending = received_at < context.time;
    measurement.settled_by = was_pending.then_some(context.inspector);
    measurement.settled_at = Some(if was_pending {
        context.time + Duration::minutes(3)
    } else {
        received_at
    });
    data.measurements.push(measurement);
    form
}

/// Adds measurements without a report: pending ones, and some that inspectors discarded.
pub fn add_unsettled(random: &mut Random, data: &mut Dataset) {
    // Vehicles without a report, at active branches.
    for number in 0..54 {
        let branch = loop {
            let branch = random.index(data.branches.len());
            if data.branches[branch].is_active {
                break branch;
            }
        };
        let mut vehicle = data.vehicles[random.index(data.vehicles.len())].clone();
        vehicle.plate = random.plate(data.branches[branch].province);
        let received_at = base() - Duration::minutes(random.between(60, 60 * 24 * 45));
        let mut measurement = package(random, data, &vehicle, branch, received_at, false);
        if number % 3 == 2 {
            measurement.status = "DISCARDED";
            measurement.settled_at = Some(received_at + Duration::minutes(random.between(10, 600)));
            measurement.settled_by = Some(random.pick::<&'static str>(&INSPECTORS));
        }
        data.measurements.push(measurement);
    }
    // Vehicles whose report was opened too long ago, so that their measurements are pending.
    let late: Vec<(usize, usize)> = data
        .inspections
        .iter()
        .filter(|inspection| matches!(inspection.opened, Opened::Before(age) if age > Duration::hours(24)))
        .map(|inspection| (inspection.branch, inspection.vehicle))
        .collect();
    for (branch, vehicle) in late.into_iter().take(6) {
        let vehicle = data.vehicles[vehicle].clone();
        let received_at = base() - Duration::minutes(random.between(5, 50));
        let measurement = package(random, data, &vehicle, branch, received_at, true);
        data.measurements.push(measurement);
    }
}

/// Generates a package on arrival, without outcomes. If it is recent, it was measured on arrival and has no time of its own.
fn package(
    random: &mut Random,
    data: &Dataset,
    vehicle: &Vehicle,
    branch: usize,
    received_at: DateTime<Utc>,
    is_recent: bool,
) -> Measurement {
    let mut points = Vec::new();
    for point in &test_line::POINTS {
        if random.chance(88)
            && let Some(value) = forms::device_value(random, vehicle, point.code, |code| {
                let before = points.iter().find(|point: &&MeasurementPoint| point.code == code);
                before.map(|point| point.value)
            })
        {
            points.push(MeasurementPoint {
                code: point.code,
                value,
                outcome: None,
            });
        }
    }
    if points.is_empty() {
        // A package must have at least one value.
        let code = "BRAKE_FRONT_LEFT";
        points.extend(
            forms::device_value(random, vehicle, code, |_| None).map(|value| MeasurementPoint {
                code,
                value,
                outcome: None,
            }),
        );
    }
    let delay = Duration::seconds(random.between(5, 240));
    let measured_at = if is_recent { received_at } else { received_at - delay };
    let external_id = format!("TL-{:06}", 1_001 + data.measurements.len());
    let device_serial = format!(
        "BRK{:04}-{}",
        2_000 + branch * 7,
        if random.chance(50) { "A" } else { "B" }
    );
    let mut measurement = Measurement {
        id: random.id(received_at),
        branch,
        plate: vehicle.plate.clone(),
        external_id,
        device_serial,
        measured_at,
        received_at,
        is_recent,
        raw: Vec::new(),
        status: "PENDING",
        inspection: None,
        settled_at: None,
        settled_by: None,
        points,
    };
    measurement.raw = raw(random, data, &measurement);
    measurement
}

/// Generates the bytes that the device sent. Device makers spell plates and format JSON differently.
fn raw(random: &mut Random, data: &Dataset, measurement: &Measurement) -> Vec<u8> {
    let plate = match random.index(3) {
        0 => measurement.plate.clone(),
        1 => measurement.plate.to_ascii_lowercase(),
        _ => plate::spaced(&measurement.plate),
    };
    let code = data.branches[measurement.branch].code;
    let measured_at = match FixedOffset::east_opt(3 * 3_600) {
        Some(offset) => measurement.measured_at.with_timezone(&offset).to_rfc3339(),
        None => measurement.measured_at.to_rfc3339(),
    };
    let (newline, space) = if random.chance(30) { ("\n  ", " ") } else { ("", "") };
    let time = match measurement.is_recent {
        true => String::new(),
        false => format!("{newline}\"measured_at\":{space}\"{measured_at}\","),
    };
    let mut values = String::new();
    for point in &measurement.points {
        let comma = if values.is_empty() { "" } else { "," };
        // Writing into a String cannot fail.
        let _ = write!(values, "{comma}{space}\"{}\":{space}{}", point.code, point.value);
    }
    format!(
        "{{{newline}\"branch_code\":{space}\"{code}\",{newline}\"plate\":{space}\"{plate}\",{time}{newline}\"external_id\":{space}\"{}\",{newline}\"device_serial\":{space}\"{}\",{newline}\
         \"measurements\":{space}{{{values}{space}}}{newline}}}",
        measurement.external_id, measurement.device_serial
    )
    .into_bytes()
}
