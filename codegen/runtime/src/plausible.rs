//! Which values can be, by their names.

use rust_decimal::Decimal;

/// A name of a map, and which of its values can be (`x-plausible-range`). What lies outside is read all the same: what
/// becomes of it is for the server to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlausibleRange {
    /// The name.
    pub name: &'static str,
    /// The least value that can be.
    pub minimum: Decimal,
    /// The greatest value that can be.
    pub maximum: Decimal,
}

impl PlausibleRange {
    /// Whether `value` can be; both bounds can.
    pub fn holds(&self, value: Decimal) -> bool {
        (self.minimum..=self.maximum).contains(&value)
    }
}
