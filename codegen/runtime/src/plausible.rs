//! Ranges of plausible values in a map.

use rust_decimal::Decimal;

/// The range of plausible values for one name of a map (`x-plausible-range`). Reading a map does not check it; the
/// server decides how to treat other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlausibleRange {
    /// The name.
    pub name: &'static str,
    /// The minimum plausible value.
    pub minimum: Decimal,
    /// The maximum plausible value.
    pub maximum: Decimal,
}

impl PlausibleRange {
    /// Whether `value` is plausible. The bounds are inclusive.
    pub fn holds(&self, value: Decimal) -> bool {
        (self.minimum..=self.maximum).contains(&value)
    }
}
