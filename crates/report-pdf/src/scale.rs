//! The scale of a measured value: from where to where it goes, where its limits are, and where the value is.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Serialize;

use crate::report::Limits;
use crate::view::tone_of_status;

/// What a scale ends with, times a power of ten.
const ENDS: [f64; 9] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 8.0];
/// Marks closer than this share of the scale would print their numbers over each other.
const APART: f64 = 0.11;

/// From where to where a scale goes. Values that stand below each other have one range, so that lengths can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    from: f64,
    to: f64,
}

impl Range {
    /// Of these values and limits, and so far at least; on both sides of zero where it is signed.
    pub(crate) fn of(numbers: impl Iterator<Item = Decimal>, least: f64, signed: bool) -> Range {
        let numbers: Vec<f64> = numbers.filter_map(|number| number.to_f64()).collect();
        let signed = signed || numbers.iter().any(|number| *number < 0.0);
        let greatest = numbers.iter().fold(0.0, |most: f64, number| most.max(number.abs()));
        let to = if greatest <= least { least } else { end(greatest) };
        Range {
            from: if signed { -to } else { 0.0 },
            to,
        }
    }

    /// Where a number is, from 0 to 1; what lies beyond an end is at the end.
    fn share(self, number: Decimal) -> f64 {
        let number = number.to_f64().unwrap_or_default();
        let share = (number - self.from) / (self.to - self.from);
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// The round number that is not less than `greatest`.
fn end(greatest: f64) -> f64 {
    let power = 10_f64.powf(greatest.log10().floor());
    let fits = ENDS
        .iter()
        .map(|end| end * power)
        .find(|end| *end >= greatest * 0.999_999);
    fits.unwrap_or(10.0 * power)
}

/// A scale as the template draws it; all places are shares of its length.
#[derive(Debug, Serialize)]
pub(crate) struct Scale {
    zones: Vec<Zone>,
    marks: Vec<Mark>,
    /// Where zero is.
    origin: f64,
    /// Where the value is.
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
    label: String,
}

impl Scale {
    /// Of a value and its limits, whose numbers `written` writes.
    pub(crate) fn new(
        value: Decimal,
        limits: Option<&Limits>,
        range: Range,
        written: impl Fn(Decimal) -> String,
    ) -> Scale {
        let (mut zones, mut marks) = (Vec::new(), Vec::<Mark>::new());
        let mut from = 0.0;
        for stretch in limits.into_iter().flat_map(|limits| &limits.stretches) {
            let to = stretch.until.map_or(1.0, |until| range.share(until));
            if to > from {
                zones.push(Zone {
                    from,
                    to,
                    tone: tone_of_status(&stretch.status_code),
                });
            }
            let is_apart = |at: f64| marks.last().map_or(at, |last| at - last.at) >= APART && 1.0 - at >= APART;
            if let Some(until) = stretch.until
                && is_apart(to)
            {
                marks.push(Mark {
                    at: to,
                    label: written(until),
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
    use crate::report::Stretch;

    fn number(text: &str) -> Decimal {
        text.parse().unwrap_or_default()
    }

    fn range(numbers: &[&str], least: f64, signed: bool) -> Range {
        Range::of(numbers.iter().map(|text| number(text)), least, signed)
    }

    #[test]
    fn a_scale_ends_with_a_round_number_behind_the_greatest() {
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
    fn zones_cover_the_scale_and_the_value_stands_in_that_of_its_status() {
        let stretch = |until: Option<&str>, code: &str| Stretch {
            until: until.map(number),
            status_code: code.to_owned(),
        };
        let limits = Limits {
            good: (Some(number("1.8")), None),
            borderline: (Some(number("1.5")), None),
            stretches: vec![
                stretch(Some("1.5"), "OUT_OF_LIMIT"),
                stretch(Some("1.8"), "BORDERLINE"),
                stretch(None, "GOOD"),
            ],
        };
        let scale = Scale::new(number("1.62"), Some(&limits), range(&["2", "4"], 0.0, false), |value| {
            value.to_string()
        });
        let zones: Vec<_> = scale.zones.iter().map(|zone| (zone.from, zone.to, zone.tone)).collect();
        assert_eq!(zones, [(0.0, 0.375, "bad"), (0.375, 0.45, "warn"), (0.45, 1.0, "good")]);
        assert!((0.375..0.45).contains(&scale.value));
        // The second would stand on the first one's number.
        assert_eq!(
            scale.marks.iter().map(|mark| mark.label.as_str()).collect::<Vec<_>>(),
            ["1.5"]
        );
        assert_eq!(scale.ends, ("0".to_owned(), "4".to_owned()));
    }

    #[test]
    fn what_lies_beyond_a_scale_is_at_its_end() {
        let scale = Scale::new(Decimal::MAX, None, range(&["1"], 0.0, false), |value| value.to_string());
        assert!((scale.value - 1.0).abs() < f64::EPSILON);
    }
}
