//! Device values to statuses: an organization's bounds decide, the device does not (MEA-12).

use rust_decimal::Decimal;

/// An organization's bounds for one measurement point, in the point's unit. Bounds are inclusive; of a range with one
/// bound the other side is open. Signed values (`SLIP_*`) have bounds on both sides.
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

/// What a device value means in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointStatus {
    /// Within the good bounds.
    Good,
    /// Not good, but within the borderline bounds.
    Borderline,
    /// Neither.
    OutOfLimit,
}

impl PointStatus {
    /// The answer's `status_code`.
    pub fn code(self) -> &'static str {
        match self {
            PointStatus::Good => "GOOD",
            PointStatus::Borderline => "BORDERLINE",
            PointStatus::OutOfLimit => "OUT_OF_LIMIT",
        }
    }

    /// The answer's `status_label`, in the language of the reports.
    pub fn label(self) -> &'static str {
        match self {
            PointStatus::Good => "İyi",
            PointStatus::Borderline => "Sınırda",
            PointStatus::OutOfLimit => "Limit dışı",
        }
    }

    /// The answer's `severity`.
    pub fn severity(self) -> &'static str {
        match self {
            PointStatus::Good => "NONE",
            PointStatus::Borderline => "MEDIUM",
            PointStatus::OutOfLimit => "HIGH",
        }
    }
}

/// The status of `value` under an organization's bounds; `None` when the organization has none for the point.
///
/// Where both borderline bounds are missing there is no borderline range, not one without end: a value that is not good is
/// then out of limit. The same holds of the good range.
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

/// A stretch of the values that have one status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Where it ends; the last one has no end.
    pub until: Option<Decimal>,
    /// The status of the values within it.
    pub status: PointStatus,
}

/// All values from the least to the greatest, as stretches of one status: what a scale is coloured by. To which of two
/// stretches the value between them belongs, only [`status`] says.
pub fn stretches(bounds: &Bounds) -> Vec<Stretch> {
    let mut cuts: Vec<Decimal> = [
        bounds.good_min,
        bounds.good_max,
        bounds.borderline_min,
        bounds.borderline_max,
    ]
    .into_iter()
    .flatten()
    .collect();
    cuts.sort();
    cuts.dedup();
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut from: Option<Decimal> = None;
    for until in cuts.into_iter().map(Some).chain([None]) {
        // Any value between the two tells the stretch; beyond the ends, one step further.
        let inside = match (from, until) {
            (Some(from), Some(until)) => from.checked_add(until).map(|sum| sum / Decimal::TWO),
            (Some(from), None) => from.checked_add(Decimal::ONE),
            (None, Some(until)) => until.checked_sub(Decimal::ONE),
            (None, None) => Some(Decimal::ZERO),
        };
        if let Some(status) = inside.and_then(|value| status(value, Some(bounds))) {
            match stretches.last_mut() {
                Some(last) if last.status == status => last.until = until,
                _ => stretches.push(Stretch { until, status }),
            }
        }
        from = until;
    }
    stretches
}

fn within(value: Decimal, min: Option<Decimal>, max: Option<Decimal>) -> bool {
    (min.is_some() || max.is_some()) && min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rust_decimal::Decimal;

    use super::PointStatus::{Borderline, Good, OutOfLimit};
    use super::{Bounds, Stretch, status, stretches};

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
    fn the_whole_table() {
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
    fn a_scale_is_coloured_as_its_values_are_judged() {
        let stretch = |until: &str, status| Stretch {
            until: until.parse().ok(),
            status,
        };
        let table = [
            (
                bounds("60", "", "40", ""),
                vec![stretch("40", OutOfLimit), stretch("60", Borderline), stretch("", Good)],
            ),
            (
                bounds("", "20", "", "30"),
                vec![stretch("20", Good), stretch("30", Borderline), stretch("", OutOfLimit)],
            ),
            (
                bounds("-5", "5", "-7", "7"),
                vec![
                    stretch("-7", OutOfLimit),
                    stretch("-5", Borderline),
                    stretch("5", Good),
                    stretch("7", Borderline),
                    stretch("", OutOfLimit),
                ],
            ),
            (
                bounds("60", "", "", ""),
                vec![stretch("60", OutOfLimit), stretch("", Good)],
            ),
            // Borderline on one side only, and bounds that are the same.
            (
                bounds("10", "20", "10", "30"),
                vec![
                    stretch("10", OutOfLimit),
                    stretch("20", Good),
                    stretch("30", Borderline),
                    stretch("", OutOfLimit),
                ],
            ),
        ];
        for (bounds, expected) in table {
            assert_eq!(stretches(&bounds), expected, "{bounds:?}");
        }
    }

    #[test]
    fn without_bounds_there_is_no_status() {
        assert_eq!(status(Decimal::ONE, None), None);
    }

    #[test]
    fn each_status_has_its_code_label_and_severity() {
        let said = [Good, Borderline, OutOfLimit].map(|status| (status.code(), status.label(), status.severity()));
        assert_eq!(
            said,
            [
                ("GOOD", "İyi", "NONE"),
                ("BORDERLINE", "Sınırda", "MEDIUM"),
                ("OUT_OF_LIMIT", "Limit dışı", "HIGH")
            ]
        );
    }

    proptest! {
        #[test]
        fn every_value_has_the_status_of_its_stretch(
            bounds in [proptest::option::of(-20i64..20), proptest::option::of(-20i64..20),
                       proptest::option::of(-20i64..20), proptest::option::of(-20i64..20)],
            value in -50i64..50,
        ) {
            let [good_min, good_max, borderline_min, borderline_max] = bounds.map(|bound| bound.map(Decimal::from));
            let bounds = Bounds { good_min, good_max, borderline_min, borderline_max };
            // Between whole numbers, where no bound is.
            let value = Decimal::from(value) + Decimal::new(5, 1);
            let of = stretches(&bounds).into_iter().find(|stretch| stretch.until.is_none_or(|until| value <= until));
            prop_assert_eq!(of.map(|stretch| stretch.status), status(value, Some(&bounds)));
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
