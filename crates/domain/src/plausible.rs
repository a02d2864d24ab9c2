//! Values that cannot be: outside what the document says of a measurement point, or what the organization has narrowed it to
//! (MEA-17).

use rust_decimal::Decimal;

/// What an organization takes for possible, in the point's unit. Bounds are inclusive; without one, the document's stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// The least value.
    pub minimum: Option<Decimal>,
    /// The greatest value.
    pub maximum: Option<Decimal>,
}

/// Which values of a point the document takes for possible: its least and its greatest. None where it says nothing of the
/// point.
pub type Documented = fn(&str) -> Option<(Decimal, Decimal)>;

/// Whether a device can have measured this. What an organization says narrows the document's range, and never widens it.
pub fn is_plausible(documented: Option<(Decimal, Decimal)>, value: Decimal, narrowed: Narrowed) -> bool {
    let within = documented.is_none_or(|(minimum, maximum)| (minimum..=maximum).contains(&value));
    let Narrowed { minimum, maximum } = narrowed;
    within && minimum.is_none_or(|minimum| minimum <= value) && maximum.is_none_or(|maximum| value <= maximum)
}
