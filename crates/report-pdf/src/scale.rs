//! The scale of a measured value: its ends, the zones of its limits, and the position of the value.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Serialize;

use crate::report::Limits;
use crate::status::tone_of_status;

/// The possible ends of a scale, each times a power of ten.
const SCALE_ENDS: [f64; 9] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 8.0];
/// The minimum distance of two numbers, as a share of the scale. Closer ones would overlap.
const MIN_DISTANCE: f64 = 0.11;

/// The range of a scale. Values that are printed below each other share one range, so that their lengths can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    from: f64,
    to: f64,
}

impl Range {
    /// The range of these values and limits, up to at least `min_end`. A signed range is symmetric around zero.
    pub(crate) fn of(numbers: impl Iterator<Item = Decimal>, min_end: f64, signed: bool) -> Range {
        let numbers: Vec<f64> = numbers.filter_map(|number| number.to_f64()).collect();
        let signed = signed || numbers.iter().any(|number| *number < 0.0);
        let greatest = numbers.iter().fold(0.0, |max: f64, number| max.max(number.abs()));
        let to = if greatest <= min_end {
            min_end
        } else {
            round_up(greatest)
        };
        Range {
            from: if signed { -to } else { 0.0 },
            to,
        }
    }

    /// The position of a number, from 0 to 1. Numbers beyond an end are at that end.
    fn share(self, number: Decimal) -> f64 {
        let number = number.to_f64().unwrap_or_default();
        let share = (number - self.from) / (self.to - self.from);
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// The smallest round number that is not less than `greatest`.
fn round_up(greatest: f64) -> f64 {
    let power = 10_f64.powf(greatest.log10().floor());
    let fits = SCALE_ENDS
        .iter()
        .map(|end| end * power)
        .find(|end| *end >= greatest * 0.999_999);
    fits.unwrap_or(10.0 * power)
}

/// A scale as the template draws it. All positions are shares of its length.
#[derive(Debug, Serialize)]
pub(crate) struct Scale {
    zones: Vec<Zone>,
    marks: Vec<Mark>,
    /// The position of zero.
    origin: f64,
    /// The position of the value.
    value: f64,
    /// The numbers at its ends.
    ends: (String, String),
}

#[derive(Debug, Serialize)]
struct Zone {
    from: f64,
    to: f64,
    tone: &'static str,
}

#[derive(Debug, Serialize)]
struct Mark {
    at: f64,
    /// The number below the mark; empty if there is no room for it.
    label: String,
}

impl Scale {
    /// The scale of a value and its limits. `written` formats the numbers of the limits.
    pub(crate) fn new(
        value: Decimal,
        limits: Option<&Limits>,
        range: Range,
        written: impl Fn(Decimal) -> String,
    ) -> Scale {
        let (mut zones, mut marks) = (Vec::new(), Vec::<Mark>::new());
        let mut from = 0.0;
        for status_range in limits.into_iter().flat_map(|limits| &limits.status_ranges) {
            let to = status_range.until.map_or(1.0, |until| range.share(until));
            if to > from {
                zones.push(Zone {
                    from,
                    to,
                    tone: tone_of_status(&status_range.status_code),
                });
            }
            if let Some(until) = status_range.until {
                let labeled = marks.iter().rev().find(|mark| !mark.label.is_empty());
                let has_room = labeled.map_or(to, |last| to - last.at) >= MIN_DISTANCE && 1.0 - to >= MIN_DISTANCE;
                marks.push(Mark {
                    at: to,
                    label: if has_room { written(until) } else { String::new() },
                });
            }
            from = to;
        }
        let ends = [range.from, range.to].map(|end| {
            let end = Decimal::try_from(end).unwrap_or_default().round_dp(3).normalize();
            crate::format::decimal(end)
        });
        let [first, last] = ends;
        Scale {
            zones,
            marks,
            origin: range.share(Decimal::ZERO),
            value: range.share(value),
            ends: (first, last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::StatusRange;

    fn number(text: &str) -> Decimal {
        text.parse().unwrap_or_default()
    }

    fn range(numbers: &[&str], least: f64, signed: bool) -> Range {
        Range::of(numbers.iter().map(|text| number(text)), least, signed)
    }

    #[test]
    fn a_scale_ends_with_a_round_number_above_the_greatest_value() {
        for (numbers, least, signed, from, to) in [
            (&["3.42", "2.00"][..], 0.0, false, 0.0, 4.0),
            (&["61.5"], 100.0, false, 0.0, 100.0),
            (&["108.3"], 100.0, false, 0.0, 120.0),
            (&["4.1", "-7"], 10.0, true, -10.0, 10.0),
            (&["-12"], 10.0, true, -12.0, 12.0),
            (&["-1"], 0.0, false, -1.0, 1.0),
            (&["150"], 0.0, false, 0.0, 150.0),
            (&["900"], 0.0, false, 0.0, 1000.0),
        ] {
            let found = range(numbers, least, signed);
            assert!(
                (found.from - from).abs() < 1e-9 && (found.to - to).abs() < 1e-9,
                "{numbers:?}: {found:?}"
            );
        }
    }

    #[test]
    fn zones_cover_the_scale_and_the_value_is_in_the_zone_of_its_status() {
        let status_range = |until: Option<&str>, code: &str| StatusRange {
            until: until.map(number),
            status_code: code.to_owned(),
        };
        let limits = Limits {
            good: (Some(number("1.8")), None),
            borderline: (Some(number("1.5")), None),
            status_ranges: vec![
                status_range(Some("1.5"), "OUT_OF_LIMIT"),
                status_range(Some("1.8"), "BORDERLINE"),
                status_range(None, "GOOD"),
            ],
        };
        let scale = Scale::new(number("1.62"), Some(&limits), range(&["2", "4"], 0.0, false), |value| {
            value.to_string()
        });
        let zones: Vec<_> = scale.zones.iter().map(|zone| (zone.from, zone.to, zone.tone)).collect();
        assert_eq!(zones, [(0.0, 0.375, "bad"), (0.375, 0.45, "warn"), (0.45, 1.0, "good")]);
        assert!((0.375..0.45).contains(&scale.value));
        // The number of the second mark would overlap that of the first, so only its line is drawn.
        assert_eq!(
            scale.marks.iter().map(|mark| mark.label.as_str()).collect::<Vec<_>>(),
            ["1.5", ""]
        );
        assert_eq!(scale.ends, ("0".to_owned(), "4".to_owned()));
    }

    #[test]
    fn a_value_beyond_the_scale_is_drawn_at_its_end() {
        let scale = Scale::new(Decimal::MAX, None, range(&["1"], 0.0, false), |value| value.to_string());
        assert!((scale.value - 1.0).abs() < f64::EPSILON);
    }
}
