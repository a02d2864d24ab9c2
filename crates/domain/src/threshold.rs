//! The status of device values, which follows from an organization's bounds and not from the device (MEA-12).

use rust_decimal::Decimal;

/// An organization's bounds for one measurement point, in the point's unit. Bounds are inclusive. A range with one bound is open
/// on the other side. Signed values (`SLIP_*`) have bounds on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The smallest good value.
    pub good_min: Option<Decimal>,
    /// The largest good value.
    pub good_max: Option<Decimal>,
    /// The smallest borderline value.
    pub borderline_min: Option<Decimal>,
    /// The largest borderline value.
    pub borderline_max: Option<Decimal>,
}

/// The status of a device value in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointStatus {
    /// Within the good bounds.
    Good,
    /// Not good, but within the borderline bounds.
    Borderline,
    /// Outside of both ranges.
    OutOfLimit,
}

impl PointStatus {
    /// All statuses, the best first.
    pub const ALL: [PointStatus; 3] = [PointStatus::Good, PointStatus::Borderline, PointStatus::OutOfLimit];

    /// Returns the answer's `status_code`.
    pub fn code(self) -> &'static str {
        match self {
            PointStatus::Good => "GOOD",
            PointStatus::Borderline => "BORDERLINE",
            PointStatus::OutOfLimit => "OUT_OF_LIMIT",
        }
    }

    /// Returns the answer's `status_label`, in the language of the reports.
    pub fn label(self) -> &'static str {
        match self {
            PointStatus::Good => "İyi",
            PointStatus::Borderline => "Sınırda",
            PointStatus::OutOfLimit => "Limit dışı",
        }
    }

    /// Returns the label in English.
    pub fn label_en(self) -> &'static str {
        match self {
            PointStatus::Good => "Good",
            PointStatus::Borderline => "Borderline",
            PointStatus::OutOfLimit => "Out of limits",
        }
    }

    /// Returns the answer's `severity`.
    pub fn severity(self) -> &'static str {
        match self {
            PointStatus::Good => "NONE",
            PointStatus::Borderline => "MEDIUM",
            PointStatus::OutOfLimit => "HIGH",
        }
    }
}

/// Returns the status of `value` under an organization's bounds, or `None` if the organization has none for the point.
///
/// If both borderline bounds are missing, there is no borderline range, and a value that is not good is out of limit. The same
/// applies to the good range.
pub fn status(value: Decimal, bounds: Option<&Bounds>) -> Option<PointStatus> {
    let bounds = bounds?;
    Some(if within(value, bounds.good_min, bounds.good_max) {
        PointStatus::Good
    } else if within(value, bounds.borderline_min, bounds.borderline_max) {
        PointStatus::Borderline
    } else {
        PointStatus::OutOfLimit
    })
}

/// A range of values with the same status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRange {
    /// The end of the range; `None` for the last one, which is unbounded.
    pub until: Option<Decimal>,
    /// The status of the values in the range.
    pub status: PointStatus,
}

/// Divides all values into ranges with the same status, in ascending order, for the colors of a scale. [`status`] decides to
/// which of two ranges the value between them belongs.
pub fn status_ranges(bounds: &Bounds) -> Vec<StatusRange> {
    let mut limits: Vec<Decimal> = [
        bounds.good_min,
        bounds.good_max,
        bounds.borderline_min,
        bounds.borderline_max,
    ]
    .into_iter()
    .flatten()
    .collect();
    limits.sort();
    limits.dedup();
    let mut status_ranges: Vec<StatusRange> = Vec::new();
    let mut from: Option<Decimal> = None;
    for until in limits.into_iter().map(Some).chain([None]) {
        // Any value in the range determines its status: the middle, or, in an unbounded range, one step from its end.
        let inside = match (from, until) {
            (Some(from), Some(until)) => from.checked_add(until).map(|sum| sum / Decimal::TWO),
            (Some(from), None) => from.checked_add(Decimal::ONE),
            (None, Some(until)) => until.checked_sub(Decimal::ONE),
            (None, None) => Some(Decimal::ZERO),
        };
        if let Some(status) = inside.and_then(|value| status(value, Some(bounds))) {
            match status_ranges.last_mut() {
                Some(last) if last.status == status => last.until = until,
                _ => status_ranges.push(StatusRange { until, status }),
            }
        }
        from = until;
    }
    status_ranges
}

fn within(value: Decimal, min: Option<Decimal>, max: Option<Decimal>) -> bool {
    (min.is_some() || max.is_some()) && min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rust_decimal::Decimal;

    use super::PointStatus::{Borderline, Good, OutOfLimit};
    use super::{Bounds, StatusRange, status, status_ranges};

    fn bounds(good_min: &str, good_max: &str, borderline_min: &str, borderline_max: &str) -> Bounds {
        let number = |text: &str| (!text.is_empty()).then(|| text.parse().expect("a number"));
        Bounds {
            good_min: number(good_min),
            good_max: number(good_max),
            borderline_min: number(borderline_min),
            borderline_max: number(borderline_max),
        }
    }

    /// MEA-12
    #[test]
    fn values_have_the_status_of_the_range_that_they_are_in() {
        let at_least = bounds("60", "", "40", "");
        let at_most = bounds("", "10", "", "20");
        let two_sided = bounds("-5", "5", "-7.5", "7.5");
        let good_only = bounds("60", "", "", "");
        let table = [
            (at_least, "60", Good),
            (at_least, "100000", Good),
            (at_least, "59.999999999999", Borderline),
            (at_least, "40.0", Borderline),
            (at_least, "39.99", OutOfLimit),
            (at_least, "-1", OutOfLimit),
            (at_most, "-100", Good),
            (at_most, "10.000", Good),
            (at_most, "10.001", Borderline),
            (at_most, "20", Borderline),
            (at_most, "20.000000001", OutOfLimit),
            (two_sided, "0", Good),
            (two_sided, "-5", Good),
            (two_sided, "5", Good),
            (two_sided, "-5.1", Borderline),
            (two_sided, "5.1", Borderline),
            (two_sided, "-7.5", Borderline),
            (two_sided, "7.51", OutOfLimit),
            (two_sided, "-7.51", OutOfLimit),
            (good_only, "60", Good),
            (good_only, "59", OutOfLimit),
        ];
        for (bounds, value, expected) in table {
            let value: Decimal = value.parse().expect("a number");
            assert_eq!(status(value, Some(&bounds)), Some(expected), "{value} in {bounds:?}");
        }
    }

    #[test]
    fn the_ranges_of_a_scale_follow_from_the_bounds() {
        let range = |until: &str, status| StatusRange {
            until: until.parse().ok(),
            status,
        };
        let table = [
            (
                bounds("60", "", "40", ""),
                vec![range("40", OutOfLimit), range("60", Borderline), range("", Good)],
            ),
            (
                bounds("", "20", "", "30"),
                vec![range("20", Good), range("30", Borderline), range("", OutOfLimit)],
            ),
            (
                bounds("-5", "5", "-7", "7"),
                vec![
                    range("-7", OutOfLimit),
                    range("-5", Borderline),
                    range("5", Good),
                    range("7", Borderline),
                    range("", OutOfLimit),
                ],
            ),
            (bounds("60", "", "", ""), vec![range("60", OutOfLimit), range("", Good)]),
            // The borderline range is inside of the good one.
            (
                bounds("0", "30", "10", "20"),
                vec![range("0", OutOfLimit), range("30", Good), range("", OutOfLimit)],
            ),
            // Borderline on one side only, and equal bounds.
            (
                bounds("10", "20", "10", "30"),
                vec![
                    range("10", OutOfLimit),
                    range("20", Good),
                    range("30", Borderline),
                    range("", OutOfLimit),
                ],
            ),
        ];
        for (bounds, expected) in table {
            assert_eq!(status_ranges(&bounds), expected, "{bounds:?}");
        }
    }

    #[test]
    fn without_bounds_there_is_no_status() {
        assert_eq!(status(Decimal::ONE, None), None);
    }

    #[test]
    fn each_status_has_its_code_label_and_severity() {
        let texts = [Good, Borderline, OutOfLimit]
            .map(|status| (status.code(), status.label(), status.label_en(), status.severity()));
        assert_eq!(
            texts,
            [
                ("GOOD", "İyi", "Good", "NONE"),
                ("BORDERLINE", "Sınırda", "Borderline", "MEDIUM"),
                ("OUT_OF_LIMIT", "Limit dışı", "Out of limits", "HIGH")
            ]
        );
    }

    proptest! {
        #[test]
        fn every_value_has_the_status_of_its_range(
            bounds in [proptest::option::of(-20i64..20), proptest::option::of(-20i64..20),
                       proptest::option::of(-20i64..20), proptest::option::of(-20i64..20)],
            value in -50i64..50,
        ) {
            let [good_min, good_max, borderline_min, borderline_max] = bounds.map(|bound| bound.map(Decimal::from));
            let bounds = Bounds { good_min, good_max, borderline_min, borderline_max };
            // Between whole numbers, so that the value is not on a bound.
            let value = Decimal::from(value) + Decimal::new(5, 1);
            let of = status_ranges(&bounds).into_iter().find(|range| range.until.is_none_or(|until| value <= until));
            prop_assert_eq!(of.map(|range| range.status), status(value, Some(&bounds)));
        }

        #[test]
        fn moving_away_from_the_good_range_never_makes_a_status_better(
            good in 0i64..1_000, margin in 0i64..1_000, value in -5_000i64..5_000, further in 0i64..1_000,
        ) {
            let bounds = Bounds {
                good_min: Some(Decimal::from(-good)),
                good_max: Some(Decimal::from(good)),
                borderline_min: Some(Decimal::from(-good - margin)),
                borderline_max: Some(Decimal::from(good + margin)),
            };
            let away = if value < 0 { value - further } else { value + further };
            let rank = |value: i64| match status(Decimal::from(value), Some(&bounds)) {
                Some(Good) => 0,
                Some(Borderline) => 1,
                _ => 2,
            };
            prop_assert!(rank(away) >= rank(value));
        }
    }
}
