//! Values computed from the two sides of an axle: their sum and their difference, which have separate limits (MEA-18).

use rust_decimal::{Decimal, RoundingStrategy};

use super::threshold::{self, Bounds, PointStatus};

/// The pairs of measurement points: their code without `_LEFT` and `_RIGHT`, and whether their sum is meaningful. Forces can be
/// added, efficiencies cannot.
pub const PAIRS: [(&str, bool); 5] = [
    ("BRAKE_FRONT", true),
    ("BRAKE_REAR", true),
    ("HANDBRAKE", true),
    ("SUSP_FRONT", false),
    ("SUSP_REAR", false),
];

/// A computed value, which devices do not send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// The code, for which an organization sets limits, such as `BRAKE_FRONT_SUM` or `BRAKE_FRONT_DIFFERENCE`.
    pub code: String,
    /// The sum in the unit of the sides, or the difference in percent.
    pub value: Decimal,
    /// Whether the value is a difference.
    pub is_difference: bool,
    /// The limits of the value.
    pub bounds: Option<Bounds>,
    /// The status of the value; `None` without limits.
    pub status: Option<PointStatus>,
}

impl Computed {
    /// The unit of the value.
    pub fn unit(&self) -> &'static str {
        if self.is_difference { "percent" } else { "kN" }
    }
}

/// Computes the sums and differences of all pairs whose sides both have a value. `value_of` and `bounds_of` look up by code.
pub fn computed(
    value_of: impl Fn(&str) -> Option<Decimal>,
    bounds_of: impl Fn(&str) -> Option<Bounds>,
) -> Vec<Computed> {
    let mut all = Vec::new();
    for (stem, has_sum) in PAIRS {
        let sides = value_of(&format!("{stem}_LEFT")).zip(value_of(&format!("{stem}_RIGHT")));
        let Some((left, right)) = sides else { continue };
        let values = [
            (has_sum, format!("{stem}_SUM"), left.checked_add(right), false),
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

/// Returns the difference of the two sides in percent of the greater one, with one decimal. Returns `None` if neither side is
/// positive.
pub fn difference(left: Decimal, right: Decimal) -> Option<Decimal> {
    let greater = left.max(right);
    if greater <= Decimal::ZERO {
        return None;
    }
    let percent = left
        .checked_sub(right)?
        .abs()
        .checked_mul(Decimal::ONE_HUNDRED)?
        .checked_div(greater)?;
    let mut percent = percent.round_dp_with_strategy(1, RoundingStrategy::MidpointAwayFromZero);
    percent.rescale(1);
    Some(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        text.parse().expect("a number")
    }

    /// MEA-18
    #[test]
    fn the_difference_is_in_percent_of_the_greater_side() {
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
            let found = difference(number(left), number(right)).map(|percent| percent.to_string());
            assert_eq!(found.as_deref(), expected, "{left} and {right}");
        }
    }

    /// MEA-18
    #[test]
    fn sums_and_differences_have_separate_limits() {
        let value_of = |code: &str| match code {
            "BRAKE_FRONT_LEFT" => Some(number("2.10")),
            "BRAKE_FRONT_RIGHT" => Some(number("1.47")),
            "SUSP_REAR_LEFT" => Some(number("70")),
            "SUSP_REAR_RIGHT" => Some(number("63")),
            // There is no value for the other side.
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
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.code.as_str(), one.value.to_string(), one.unit(), one.status))
            .collect();
        assert_eq!(
            found,
            [
                ("BRAKE_FRONT_SUM", "3.57".to_owned(), "kN", None),
                (
                    "BRAKE_FRONT_DIFFERENCE",
                    "30.0".to_owned(),
                    "percent",
                    Some(PointStatus::Borderline)
                ),
                (
                    "SUSP_REAR_DIFFERENCE",
                    "10.0".to_owned(),
                    "percent",
                    Some(PointStatus::Good)
                ),
            ]
        );
    }
}
