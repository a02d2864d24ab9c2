//! The test line's device values, arranged as left/right pairs and single values with the length of their bars.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Serialize;

use crate::view::Status;
use crate::{Form, Point, format, labels};

/// Scale end of lateral slip in m/km, so that a small slip is seen to be small.
const SLIP_SCALE: Decimal = Decimal::TEN;

/// A test-line form as the template draws it.
#[derive(Serialize)]
pub(crate) struct TestLine {
    name: String,
    note: String,
    groups: Vec<Group>,
}

/// Values of one kind of device.
#[derive(Serialize)]
struct Group {
    title: &'static str,
    pairs: Vec<Pair>,
    singles: Vec<Single>,
    /// Inspector's notes with the name of their point.
    notes: Vec<Note>,
}

#[derive(Serialize)]
struct Pair {
    place: String,
    left: Cell,
    right: Cell,
    /// Difference in percent of the greater value.
    difference: String,
}

#[derive(Serialize)]
struct Single {
    name: String,
    cell: Cell,
}

#[derive(Serialize)]
struct Note {
    name: String,
    text: String,
}

#[derive(Serialize)]
struct Cell {
    value: String,
    /// Length of the bar as a share of the whole, -1 to 1; negative for signed values to the left.
    bar: f64,
    /// Whether the bar starts in the middle.
    signed: bool,
    status: Status,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Power,
    Suspension,
    Brake,
    Slip,
    Other,
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
}

impl TestLine {
    /// Arranges a form whose `is_test_line` is set.
    pub(crate) fn new(form: &Form) -> TestLine {
        let groups = Kind::ALL
            .into_iter()
            .filter_map(|kind| Group::new(kind, &form.points))
            .collect();
        TestLine {
            name: form.name.clone(),
            note: form.general_note.clone(),
            groups,
        }
    }
}

impl Group {
    fn new(kind: Kind, all: &[Point]) -> Option<Group> {
        let points: Vec<&Point> = all.iter().filter(|point| Kind::of(&point.code) == kind).collect();
        if points.is_empty() {
            return None;
        }
        let (mut pairs, mut singles) = (Vec::new(), Vec::new());
        for point in &points {
            let other = |from: &str, to: &str| {
                let code = format!("{}{to}", point.code.strip_suffix(from)?);
                points.iter().find(|other| other.code == code)
            };
            if let Some(right) = other("_LEFT", "_RIGHT") {
                pairs.push(Pair::new(kind, &points, point, right));
            } else if other("_RIGHT", "_LEFT").is_none() {
                singles.push(Single {
                    name: point.name.clone(),
                    cell: Cell::new(kind, &points, point),
                });
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
            pairs,
            singles,
            notes,
        })
    }
}

impl Pair {
    fn new(kind: Kind, points: &[&Point], left: &Point, right: &Point) -> Pair {
        let stem = left.code.strip_suffix("_LEFT").unwrap_or(&left.code);
        Pair {
            place: labels::pair(stem).map_or_else(|| left.name.clone(), str::to_owned),
            left: Cell::new(kind, points, left),
            right: Cell::new(kind, points, right),
            difference: difference(left.numeric_value, right.numeric_value),
        }
    }
}

impl Cell {
    fn new(kind: Kind, points: &[&Point], point: &Point) -> Cell {
        let unit = point.unit.as_deref();
        let percent = matches!(unit, Some("percent" | "%"));
        let greatest = points
            .iter()
            .filter(|other| other.unit == point.unit)
            .filter_map(|other| other.numeric_value)
            .map(|value| value.abs())
            .max()
            .unwrap_or_default();
        let scale = match kind {
            _ if percent => greatest.max(Decimal::ONE_HUNDRED),
            Kind::Slip => greatest.max(SLIP_SCALE),
            _ => greatest,
        };
        let value = point.numeric_value;
        let share = value
            .and_then(|value| value.checked_div(scale))
            .and_then(|share| share.to_f64());
        Cell {
            value: value.map_or_else(|| "—".to_owned(), |value| format::quantity(value, unit)),
            bar: share.unwrap_or(0.0).clamp(-1.0, 1.0),
            signed: kind == Kind::Slip || value.is_some_and(|value| value.is_sign_negative()),
            status: Status::new(point),
        }
    }
}

fn difference(left: Option<Decimal>, right: Option<Decimal>) -> String {
    let share = left.zip(right).and_then(|(left, right)| {
        let greater = left.abs().max(right.abs());
        left.checked_sub(right)?
            .abs()
            .checked_mul(Decimal::ONE_HUNDRED)?
            .checked_div(greater)
    });
    share.map_or_else(|| "—".to_owned(), |share| format::percent(share.round()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_a_share_of_the_greater_side() {
        let number = |value| Some(Decimal::new(value, 2));
        assert_eq!(difference(number(300), number(240)), "%20");
        assert_eq!(difference(number(240), number(300)), "%20");
        assert_eq!(difference(number(0), number(0)), "—");
        assert_eq!(difference(None, number(300)), "—");
    }
}
