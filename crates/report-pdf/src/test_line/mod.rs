//! The values of a test line, grouped by kind and axle, each on a scale with its limits.

mod kind;
mod row;

use serde::Serialize;

use self::kind::Kind;
use self::row::{Row, name};
use crate::layout::{self, Run};
use crate::report::{Device, Source};
use crate::{Form, Point, format};

/// A test-line form as the template draws it.
#[derive(Serialize)]
pub(crate) struct TestLine {
    pub(crate) title: String,
    note: String,
    devices: Vec<DeviceRow>,
    /// Whether an inspector entered some of the values.
    has_manual: bool,
    groups: Vec<Group>,
    /// The points that were not inspected, as a sentence; empty if there are none.
    not_inspected: String,
}

/// A device's measurement.
#[derive(Serialize)]
struct DeviceRow {
    /// The label of one of several devices; empty for the only one.
    number: String,
    serial: String,
    measured_at: String,
    applied_at: String,
}

/// The values of one kind of device.
#[derive(Serialize)]
struct Group {
    title: &'static str,
    /// An explanation of the computed values; empty if there are none.
    explanation: &'static str,
    rows: Vec<Row>,
    runs: Vec<Run>,
    /// The inspector's notes with the names of their points.
    notes: Vec<Note>,
}

#[derive(Serialize)]
struct Note {
    name: String,
    text: String,
}

impl TestLine {
    /// Converts a form whose `is_test_line` is set.
    pub(crate) fn new(form: &Form) -> TestLine {
        let groups = Kind::ALL
            .into_iter()
            .filter_map(|kind| Group::new(kind, form))
            .collect();
        let is_manual = |point: &Point| point.source == Source::Inspector && point.numeric_value.is_some();
        let title = if form.name.trim().is_empty() {
            "Test hattı ölçümleri".to_owned()
        } else {
            form.name.clone()
        };
        TestLine {
            title,
            note: form.general_note.clone(),
            devices: form
                .devices
                .iter()
                .enumerate()
                .map(|(index, device)| DeviceRow::new(device, device_label(form, index)))
                .collect(),
            has_manual: form.points.iter().any(is_manual),
            groups,
            not_inspected: form.not_inspected_note(),
        }
    }
}

impl TestLine {
    /// The name of a measured or computed point.
    pub(crate) fn name_of(point: &Point) -> String {
        name(point, point.name.is_empty())
    }
}

/// The label of one of several devices; empty for the only one.
fn device_label(form: &Form, device: usize) -> String {
    match form.devices.len() {
        0 | 1 => String::new(),
        _ => format!("Cihaz {}", device + 1),
    }
}

impl DeviceRow {
    fn new(device: &Device, number: String) -> DeviceRow {
        DeviceRow {
            number,
            serial: match device.serial.trim() {
                "" => "belirtilmedi".to_owned(),
                serial => serial.to_owned(),
            },
            measured_at: format::minute(device.measured_at),
            applied_at: device.applied_at.map(format::minute).unwrap_or_default(),
        }
    }
}

impl Group {
    fn new(kind: Kind, form: &Form) -> Option<Group> {
        let of_kind = |point: &&Point| Kind::of(&point.code) == kind;
        let points: Vec<&Point> = form.points.iter().filter(of_kind).collect();
        if points.is_empty() {
            return None;
        }
        let computed: Vec<&Point> = form.computed.iter().filter(of_kind).collect();
        let all: Vec<&Point> = points.iter().chain(&computed).copied().collect();
        let mut rows = Vec::new();
        let mut parts = Vec::new();
        for part in parts_of(&points, &computed) {
            let of_part: Vec<Row> = part
                .iter()
                .enumerate()
                .map(|(index, point)| {
                    let is_computed = computed.iter().any(|computed| computed.code == point.code);
                    Row::new(kind, &all, point, form, is_computed, index == 0)
                })
                .collect();
            parts.push(of_part.iter().map(|row| row.name.chars().count()).collect());
            rows.extend(of_part);
        }
        if kind == Kind::Power && !rows.is_empty() {
            let has = |code: &str| all.iter().any(|point| point.code == code);
            // The table says why there is no ratio, because the measured power means little without it.
            if has("DYNO_MEASURED_HP") && !has("DYNO_RATIO") {
                rows.push(Row::missing_ratio());
                parts.push(vec![1]);
            }
        }
        let notes = points
            .iter()
            .filter(|point| !point.note.trim().is_empty())
            .map(|point| Note {
                name: point.name.clone(),
                text: point.note.clone(),
            })
            .collect();
        Some(Group {
            title: kind.title(),
            explanation: kind.explanation(&rows),
            runs: layout::runs(&parts),
            rows,
            notes,
        })
    }
}

/// Groups the points in the order in which they are printed: the sides of an axle, the values computed from them, then the next
/// axle. A point without sides forms its own group.
fn parts_of<'p>(points: &[&'p Point], computed: &[&'p Point]) -> Vec<Vec<&'p Point>> {
    let mut parts: Vec<(String, Vec<&Point>)> = Vec::new();
    for point in points.iter().chain(computed) {
        let stem = ["_LEFT", "_RIGHT", "_SUM", "_DIFFERENCE"]
            .iter()
            .find_map(|end| point.code.strip_suffix(end))
            .unwrap_or("")
            .to_owned();
        match parts.iter_mut().find(|(known, _)| *known == stem && !stem.is_empty()) {
            Some((_, part)) => part.push(point),
            None => parts.push((stem, vec![point])),
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axle_has_its_sides_followed_by_the_computed_values() {
        let point = |code: &str| Point {
            code: code.to_owned(),
            name: code.to_owned(),
            status_code: "GOOD".to_owned(),
            status_label: "İyi".to_owned(),
            severity: "NONE".to_owned(),
            numeric_value: "1".parse().ok(),
            unit: None,
            note: String::new(),
            limits: None,
            source: Source::Inspector,
        };
        // As a template may have them: mixed axles, a single side, and a point with another code.
        let points = [
            "BRAKE_FRONT_LEFT",
            "BRAKE_REAR_LEFT",
            "BRAKE_FRONT_RIGHT",
            "HANDBRAKE_RIGHT",
            "ABS",
        ]
        .map(point);
        let computed = ["BRAKE_FRONT_SUM", "BRAKE_FRONT_DIFFERENCE"].map(point);
        let parts = parts_of(&points.iter().collect::<Vec<_>>(), &computed.iter().collect::<Vec<_>>());
        let codes: Vec<Vec<&str>> = parts
            .iter()
            .map(|part| part.iter().map(|point| point.code.as_str()).collect())
            .collect();
        assert_eq!(
            codes,
            [
                vec![
                    "BRAKE_FRONT_LEFT",
                    "BRAKE_FRONT_RIGHT",
                    "BRAKE_FRONT_SUM",
                    "BRAKE_FRONT_DIFFERENCE"
                ],
                vec!["BRAKE_REAR_LEFT"],
                vec!["HANDBRAKE_RIGHT"],
                vec!["ABS"],
            ]
        );
    }
}
