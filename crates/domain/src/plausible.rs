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
