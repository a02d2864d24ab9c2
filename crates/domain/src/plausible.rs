//! Plausible ranges of device values: those of the contract, which an organization can narrow (MEA-17).

use rust_decimal::Decimal;

/// The plausible range of an organization, in the point's unit. Bounds are inclusive. For a missing bound, the contract's
/// applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NarrowedRange {
    /// The minimum.
    pub minimum: Option<Decimal>,
    /// The maximum.
    pub maximum: Option<Decimal>,
}

/// Returns the contract's minimum and maximum for the code of a point, if the contract defines them.
pub type DocumentedRanges = fn(&str) -> Option<(Decimal, Decimal)>;

/// Returns whether a value is inside the contract's range and the organization's range, which cannot extend it.
pub fn is_plausible(documented: Option<(Decimal, Decimal)>, value: Decimal, narrowed: NarrowedRange) -> bool {
    let within = documented.is_none_or(|(minimum, maximum)| (minimum..=maximum).contains(&value));
    let NarrowedRange { minimum, maximum } = narrowed;
    within && minimum.is_none_or(|minimum| minimum <= value) && maximum.is_none_or(|maximum| value <= maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MEA-17
    #[test]
    fn a_value_is_plausible_in_both_ranges_whose_bounds_are_inclusive() {
        let documented = Some((Decimal::from(0), Decimal::from(30)));
        let narrowed = |minimum: Option<i32>, maximum: Option<i32>| NarrowedRange {
            minimum: minimum.map(Decimal::from),
            maximum: maximum.map(Decimal::from),
        };
        let table = [
            (
                documented,
                None,
                None,
                [(-1, false), (0, true), (30, true), (31, false)],
            ),
            (
                documented,
                Some(5),
                None,
                [(4, false), (5, true), (30, true), (31, false)],
            ),
            (
                documented,
                None,
                Some(20),
                [(-1, false), (0, true), (20, true), (21, false)],
            ),
            (
                documented,
                Some(-5),
                Some(40),
                [(-1, false), (0, true), (30, true), (31, false)],
            ),
            (
                None,
                Some(5),
                Some(20),
                [(4, false), (5, true), (20, true), (21, false)],
            ),
        ];
        for (documented, minimum, maximum, values) in table {
            for (value, expected) in values {
                let is_plausible = is_plausible(documented, Decimal::from(value), narrowed(minimum, maximum));
                assert_eq!(
                    is_plausible, expected,
                    "{value} in {documented:?}, {minimum:?} to {maximum:?}"
                );
            }
        }
    }
}
