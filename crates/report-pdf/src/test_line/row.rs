//! A row with a value, its scale, and its limits in words.

use rust_decimal::Decimal;
use serde::Serialize;

use super::device_label;
use super::kind::{Class, Kind};
use crate::report::{Limits, Source};
use crate::scale::{Range, Scale};
use crate::status::Status;
use crate::{Form, Point, format, labels};

#[derive(Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// The source of the value: empty for the only device, a label for one of several, or a text for an inspector.
    source: String,
    value: String,
    /// Whether the value is computed from those above it.
    pub(super) is_computed: bool,
    /// Whether this is the first row of its axle.
    is_first: bool,
    scale: Option<Scale>,
    /// The limits in words, one line per range.
    limits: Vec<String>,
    status: Option<Status>,
}

/// The values and limits of all points that share a scale with `point`.
fn comparable<'p>(all: impl Iterator<Item = &'p Point>, point: &'p Point) -> impl Iterator<Item = Decimal> {
    let class = Class::of(&point.code);
    let points = all.filter(move |other| other.unit == point.unit && Class::of(&other.code) == class);
    points.flat_map(|other| {
        let limits = other.limits.iter();
        let bounds = limits.flat_map(|limits| [limits.good.0, limits.good.1, limits.borderline.0, limits.borderline.1]);
        bounds.chain([other.numeric_value]).flatten()
    })
}

impl Row {
    pub(super) fn new(
        kind: Kind,
        all: &[&Point],
        point: &Point,
        form: &Form,
        is_computed: bool,
        is_first: bool,
    ) -> Row {
        let unit = point.unit.as_deref();
        let class = Class::of(&point.code);
        let comparable = comparable(all.iter().copied(), point);
        let range = Range::of(comparable, kind.min_end(class, unit), kind == Kind::Slip);
        let written = |value: Decimal| format::measured(value, unit);
        let is_reference = point.code == "DYNO_FACTORY_HP";
        Row {
            name: name(point, is_computed),
            source: match point.source {
                Source::Device(Some(device)) => device_label(form, device),
                Source::Inspector if point.numeric_value.is_some() => "elle girildi".to_owned(),
                Source::Device(None) | Source::Inspector | Source::Computed => String::new(),
            },
            value: point
                .numeric_value
                .map_or_else(|| "—".to_owned(), |value| format::quantity(value, unit)),
            is_computed,
            is_first,
            // The factory power is not measured.
            scale: point
                .numeric_value
                .filter(|_| !is_reference)
                .map(|value| Scale::new(value, point.limits.as_ref(), range, written)),
            limits: match &point.limits {
                _ if is_reference => Vec::new(),
                Some(limits) => describe(limits, written),
                None if point.numeric_value.is_some() => vec!["limit kaydı yok".to_owned()],
                None => Vec::new(),
            },
            status: (!(is_reference || is_computed && point.status_code.is_empty())).then(|| Status::new(point)),
        }
    }

    pub(super) fn missing_ratio() -> Row {
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

/// The name of a point. Computed points are named by their codes.
pub(super) fn name(point: &Point, is_computed: bool) -> String {
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

/// Describes the ranges of limits: `iyi: en az 2,00`.
fn describe(limits: &Limits, written: impl Fn(Decimal) -> String) -> Vec<String> {
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
    fn limits_are_described_in_words() {
        let limits = |good, borderline| Limits {
            good,
            borderline,
            status_ranges: Vec::new(),
        };
        let written = |value: Decimal| format::measured(value, Some("percent"));
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
            assert_eq!(describe(&limits, written), expected);
        }
    }
}
