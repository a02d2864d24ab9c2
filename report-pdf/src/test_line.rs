//! The test line's values, device by device and axle by axle, each on a scale with its limits.

use rust_decimal::Decimal;
use serde::Serialize;

use crate::layout::{self, Run};
use crate::report::{Device, Limits, Source};
use crate::scale::{Range, Scale};
use crate::view::Status;
use crate::{Form, Point, format, labels};

/// A test-line form as the template draws it.
#[derive(Serialize)]
pub(crate) struct TestLine {
    pub(crate) title: String,
    note: String,
    devices: Vec<Measured>,
    /// Whether some values were written by hand.
    has_manual: bool,
    groups: Vec<Group>,
}

/// A device's measurement.
#[derive(Serialize)]
struct Measured {
    /// Its number among several; empty where it is the only one.
    number: String,
    serial: String,
    measured_at: String,
    applied_at: String,
}

/// Values of one kind of device.
#[derive(Serialize)]
struct Group {
    title: &'static str,
    /// What is computed of the values, in words; empty where nothing is.
    explanation: &'static str,
    rows: Vec<Row>,
    runs: Vec<Run>,
    /// Inspector's notes with the name of their point.
    notes: Vec<Note>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    /// Where the value is from: nothing for the only device, its number for one of several, a word for an inspector.
    source: String,
    value: String,
    /// A value that follows from those above it.
    is_computed: bool,
    /// The first row of its axle.
    is_first: bool,
    scale: Option<Scale>,
    /// The limits in words, a line for each range.
    limits: Vec<String>,
    status: Option<Status>,
}

#[derive(Serialize)]
struct Note {
    name: String,
    text: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Power,
    Suspension,
    Brake,
    Slip,
    Other,
}

/// Values that share a scale and a number of decimals.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Side,
    Sum,
    Difference,
    Ratio,
}

impl Class {
    fn of(code: &str) -> Class {
        match code {
            code if code.ends_with("_DIFFERENCE") => Class::Difference,
            code if code.ends_with("_SUM") => Class::Sum,
            code if code.ends_with("_RATIO") => Class::Ratio,
            _ => Class::Side,
        }
    }
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Brake, Kind::Suspension, Kind::Slip, Kind::Power, Kind::Other];

    fn of(code: &str) -> Kind {
        match code.split('_').next() {
            Some("DYNO") => Kind::Power,
            Some("SUSP") => Kind::Suspension,
            Some("BRAKE" | "HANDBRAKE") => Kind::Brake,
            Some("SLIP") => Kind::Slip,
            _ => Kind::Other,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Kind::Power => "Motor gücü (dinamometre)",
            Kind::Suspension => "Süspansiyon verimi",
            Kind::Brake => "Fren kuvveti",
            Kind::Slip => "Yanal kayma",
            Kind::Other => "Diğer ölçümler",
        }
    }

    fn explanation(self, rows: &[Row]) -> &'static str {
        if !rows.iter().any(|row| row.is_computed) {
            return "";
        }
        match self {
            Kind::Brake => {
                "Toplam: aksın iki tekerleğinin kuvveti birlikte. Fark: zayıf tarafın güçlü taraftan eksiği, güçlü tarafın \
                 yüzdesi olarak."
            }
            Kind::Suspension => "Fark: zayıf tarafın güçlü taraftan eksiği, güçlü tarafın yüzdesi olarak.",
            Kind::Power => "Oran: ölçülen güç, aracın kayıtlı fabrika gücünün yüzdesi olarak.",
            Kind::Slip | Kind::Other => "",
        }
    }

    /// How far the scale of a class goes at least.
    fn least(self, class: Class, unit: Option<&str>) -> f64 {
        match (self, class, unit) {
            (_, Class::Difference, _) => 50.0,
            (Kind::Slip, ..) => 10.0,
            (_, Class::Ratio, _) => 120.0,
            (_, _, Some("percent" | "%")) => 100.0,
            _ => 0.0,
        }
    }
}

impl TestLine {
    /// Arranges a form whose `is_test_line` is set.
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
                .map(|(index, device)| Measured::new(device, numbered(form, index)))
                .collect(),
            has_manual: form.points.iter().any(is_manual),
            groups,
        }
    }
}

impl TestLine {
    /// A value as it stands in its table.
    pub(crate) fn value_of(form: &Form, point: &Point) -> String {
        let of_kind = |other: &&Point| Kind::of(&other.code) == Kind::of(&point.code);
        let all = form.points.iter().chain(&form.computed).filter(of_kind);
        let unit = point.unit.as_deref();
        let decimals = format::decimals(unit, alike(all, point));
        let written = |value| format::quantity(value, decimals, unit);
        point.numeric_value.map(written).unwrap_or_default()
    }

    /// What a point is called, also one that was computed.
    pub(crate) fn name_of(point: &Point) -> String {
        name(point, point.name.is_empty())
    }
}

/// The values and limits of all points that share a scale and a number of decimals with this one.
fn alike<'p>(all: impl Iterator<Item = &'p Point>, point: &'p Point) -> impl Iterator<Item = Decimal> {
    let class = Class::of(&point.code);
    let alike = all.filter(move |other| other.unit == point.unit && Class::of(&other.code) == class);
    alike.flat_map(|other| {
        let limits = other.limits.iter();
        let bounds = limits.flat_map(|limits| [limits.good.0, limits.good.1, limits.borderline.0, limits.borderline.1]);
        bounds.chain([other.numeric_value]).flatten()
    })
}

/// How a device is called among several.
fn numbered(form: &Form, device: usize) -> String {
    match form.devices.len() {
        0 | 1 => String::new(),
        _ => format!("Cihaz {}", device + 1),
    }
}

impl Measured {
    fn new(device: &Device, number: String) -> Measured {
        Measured {
            number,
            serial: match device.serial.trim() {
                "" => "bildirilmedi".to_owned(),
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
            // A power says little without what the maker promised: where the ratio cannot be had, that is said.
            if has("DYNO_MEASURED_HP") && !has("DYNO_RATIO") {
                rows.push(Row::without_ratio());
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

/// The points in the order in which they are printed: sides of an axle, then what follows from them, then the next axle. What
/// has no sides stands by itself.
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

impl Row {
    fn new(kind: Kind, all: &[&Point], point: &Point, form: &Form, is_computed: bool, is_first: bool) -> Row {
        let unit = point.unit.as_deref();
        let class = Class::of(&point.code);
        let alike = || alike(all.iter().copied(), point);
        let decimals = format::decimals(unit, alike());
        let range = Range::of(alike(), kind.least(class, unit), kind == Kind::Slip);
        let written = |value: Decimal| format::fixed(value, decimals);
        let is_reference = point.code == "DYNO_FACTORY_HP";
        Row {
            name: name(point, is_computed),
            source: match point.source {
                Source::Device(Some(device)) => numbered(form, device),
                Source::Inspector if point.numeric_value.is_some() => "elle girildi".to_owned(),
                Source::Device(None) | Source::Inspector | Source::Computed => String::new(),
            },
            value: point
                .numeric_value
                .map_or_else(|| "—".to_owned(), |value| format::quantity(value, decimals, unit)),
            is_computed,
            is_first,
            // What the maker promised is no measurement.
            scale: point
                .numeric_value
                .filter(|_| !is_reference)
                .map(|value| Scale::new(value, point.limits.as_ref(), range, written)),
            limits: match &point.limits {
                _ if is_reference => Vec::new(),
                Some(limits) => in_words(limits, written),
                None if point.numeric_value.is_some() => vec!["sınır kaydı yok".to_owned()],
                None => Vec::new(),
            },
            status: (!(is_reference || is_computed && point.status_code.is_empty())).then(|| Status::new(point)),
        }
    }

    fn without_ratio() -> Row {
        Row {
            name: "Güç oranı".to_owned(),
            source: String::new(),
            value: "—".to_owned(),
            is_computed: true,
            is_first: true,
            scale: None,
            limits: vec!["hesaplanamadı: fabrika gücü kayıtlı değil".to_owned()],
            status: None,
        }
    }
}

/// Names of what is computed; a point has its own.
fn name(point: &Point, is_computed: bool) -> String {
    if !is_computed {
        return point.name.clone();
    }
    let of = |end: &str, what: &str| {
        let stem = point.code.strip_suffix(end)?;
        Some(format!("{} {what}", labels::axle(stem)?))
    };
    of("_SUM", "toplamı")
        .or_else(|| of("_DIFFERENCE", "sol–sağ farkı"))
        .unwrap_or_else(|| "Güç oranı".to_owned())
}

/// The ranges of limits: `iyi: en az 2,00`.
fn in_words(limits: &Limits, written: impl Fn(Decimal) -> String) -> Vec<String> {
    let range = |word: &str, (least, greatest): (Option<Decimal>, Option<Decimal>)| {
        Some(match (least, greatest) {
            (Some(least), Some(greatest)) if least == -greatest => format!("{word}: ±{}", written(greatest)),
            (Some(least), Some(greatest)) => format!("{word}: {} … {}", written(least), written(greatest)),
            (Some(least), None) => format!("{word}: en az {}", written(least)),
            (None, Some(greatest)) => format!("{word}: en çok {}", written(greatest)),
            (None, None) => return None,
        })
    };
    let ranges = [range("iyi", limits.good), range("sınırda", limits.borderline)];
    ranges.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Option<Decimal> {
        text.parse().ok()
    }

    #[test]
    fn limits_are_told_in_words() {
        let limits = |good, borderline| Limits {
            good,
            borderline,
            stretches: Vec::new(),
        };
        let written = |value: Decimal| format::fixed(value, 1);
        for (limits, expected) in [
            (
                limits((number("2"), None), (number("1.5"), None)),
                vec!["iyi: en az 2,0", "sınırda: en az 1,5"],
            ),
            (
                limits((None, number("20")), (None, number("30"))),
                vec!["iyi: en çok 20,0", "sınırda: en çok 30,0"],
            ),
            (
                limits((number("-5"), number("5")), (number("-6"), number("7"))),
                vec!["iyi: ±5,0", "sınırda: -6,0 … 7,0"],
            ),
            (limits((number("90"), None), (None, None)), vec!["iyi: en az 90,0"]),
        ] {
            assert_eq!(in_words(&limits, written), expected);
        }
    }

    #[test]
    fn an_axle_is_its_sides_and_then_what_follows_from_them() {
        let point = |code: &str| Point {
            code: code.to_owned(),
            name: code.to_owned(),
            status_code: "GOOD".to_owned(),
            status_label: "İyi".to_owned(),
            severity: "NONE".to_owned(),
            numeric_value: number("1"),
            unit: None,
            note: String::new(),
            limits: None,
            source: Source::Inspector,
        };
        // As a template may have them: axles mixed, a lone side, one of a code of its own.
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
