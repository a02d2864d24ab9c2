//! What follows from the two sides of an axle: their sum and their difference, judged by limits of their own (MEA-18).

use rust_decimal::{Decimal, RoundingStrategy};

use super::threshold::{self, Bounds, PointStatus};

/// The pairs of measurement points, by their codes without `_LEFT` and `_RIGHT`, and whether the sides add up to something:
/// forces do, efficiencies do not.
pub const PAIRS: [(&str, bool); 5] = [
    ("BRAKE_FRONT", true),
    ("BRAKE_REAR", true),
    ("HANDBRAKE", true),
    ("SUSP_FRONT", false),
    ("SUSP_REAR", false),
];

/// A value that no device sends, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// Its code, by which an organisation sets its limits: `BRAKE_FRONT_SUM`, `BRAKE_FRONT_DIFFERENCE`.
    pub code: String,
    /// The sum in the unit of its sides, or the difference in percent.
    pub value: Decimal,
    /// Whether it is a difference.
    pub is_difference: bool,
    /// The limits that decide.
    pub bounds: Option<Bounds>,
    /// What they say; none without limits.
    pub status: Option<PointStatus>,
}

/// The sums and differences of all pairs of which both sides have a value; `value_of` and `bounds_of` look up by code.
pub fn computed(
    value_of: impl Fn(&str) -> Option<Decimal>,
    bounds_of: impl Fn(&str) -> Option<Bounds>,
) -> Vec<Computed> {
    let mut all = Vec::new();
    for (stem, adds_up) in PAIRS {
        let sides = value_of(&format!("{stem}_LEFT")).zip(value_of(&format!("{stem}_RIGHT")));
        let Some((left, right)) = sides else { continue };
        let values = [
            (adds_up, format!("{stem}_SUM"), left.checked_add(right), false),
            (true, format!("{stem}_DIFFERENCE"), difference(left, right), true),
        ];
        for (is_wanted, code, value, is_difference) in values {
            if let (true, Some(value)) = (is_wanted, value) {
                let bounds = bounds_of(&code);
                all.push(Computed {
                    status: threshold::status(value, bounds.as_ref()),
                    code,
                    value,
                    is_difference,
                    bounds,
                });
            }
        }
    }
    all
}

/// By how much the smaller side is less than the greater one, in percent of the greater one, with one decimal. None where
/// neither side is more than nothing.
pub fn difference(left: Decimal, right: Decimal) -> Option<Decimal> {
    let greater = left.max(right);
    if greater <= Decimal::ZERO {
        return None;
    }
    let share = left
        .checked_sub(right)?
        .abs()
        .checked_mul(Decimal::ONE_HUNDRED)?
        .checked_div(greater)?;
    let mut share = share.round_dp_with_strategy(1, RoundingStrategy::MidpointAwayFromZero);
    share.rescale(1);
    Some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        text.parse().expect("a number")
    }

    /// MEA-18
    #[test]
    fn the_difference_is_a_share_of_the_greater_side() {
        let table = [
            ("3.00", "2.40", Some("20.0")),
            ("2.40", "3.00", Some("20.0")),
            ("2.85", "2.85", Some("0.0")),
            ("0", "2", Some("100.0")),
            ("3", "2.997", Some("0.1")),
            ("3", "2.9985", Some("0.1")),
            ("0", "0", None),
            ("-1", "-2", None),
        ];
        for (left, right, expected) in table {
            let found = difference(number(left), number(right)).map(|share| share.to_string());
            assert_eq!(found.as_deref(), expected, "{left} and {right}");
        }
    }

    /// MEA-18
    #[test]
    fn sums_and_differences_are_judged_by_limits_of_their_own() {
        let value_of = |code: &str| match code {
            "BRAKE_FRONT_LEFT" => Some(number("2.10")),
            "BRAKE_FRONT_RIGHT" => Some(number("1.47")),
            "SUSP_REAR_LEFT" => Some(number("70")),
            "SUSP_REAR_RIGHT" => Some(number("63")),
            // A side alone gives nothing.
            "HANDBRAKE_LEFT" => Some(number("1")),
            _ => None,
        };
        let at_most = |good: &str, borderline: &str| Bounds {
            good_min: None,
            good_max: good.parse().ok(),
            borderline_min: None,
            borderline_max: borderline.parse().ok(),
        };
        let bounds_of = |code: &str| match code {
            "BRAKE_FRONT_DIFFERENCE" => Some(at_most("20", "30")),
            "SUSP_REAR_DIFFERENCE" => Some(at_most("10", "20")),
            _ => None,
        };
        let found = computed(value_of, bounds_of);
        let said: Vec<_> = found
            .iter()
            .map(|one| (one.code.as_str(), one.value.to_string(), one.is_difference, one.status))
            .collect();
        assert_eq!(
            said,
            [
                ("BRAKE_FRONT_SUM", "3.57".to_owned(), false, None),
                (
                    "BRAKE_FRONT_DIFFERENCE",
                    "30.0".to_owned(),
                    true,
                    Some(PointStatus::Borderline)
                ),
                ("SUSP_REAR_DIFFERENCE", "10.0".to_owned(), true, Some(PointStatus::Good)),
            ]
        );
    }
}
