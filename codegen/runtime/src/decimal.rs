//! Decimal amounts as strings with a fixed number of decimal places.

use rust_decimal::{Decimal, RoundingStrategy};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Serializes an amount with exactly `PLACES` decimal places, rounding half away from zero.
///
/// # Errors
/// The serializer's error.
pub fn serialize<const PLACES: u32, S: Serializer>(value: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    let mut value = value.round_dp_with_strategy(PLACES, RoundingStrategy::MidpointAwayFromZero);
    value.rescale(PLACES);
    serializer.collect_str(&value)
}

/// Serializes an optional amount like [`serialize`].
///
/// # Errors
/// The serializer's error.
pub fn serialize_optional<const PLACES: u32, S: Serializer>(
    value: &Option<Decimal>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serialize::<PLACES, S>(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// Deserializes an amount with at most `places` decimal places.
///
/// # Errors
/// The deserializer's error, or one that describes the expected form.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D, places: u32) -> Result<Decimal, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text, places).map_err(D::Error::custom)
}

/// Parses an amount with at most `places` decimal places.
pub(crate) fn parse(text: &str, places: u32) -> Result<Decimal, String> {
    match Decimal::from_str_exact(text) {
        Ok(value) if value.scale() <= places => Ok(value),
        _ => Err(format!("must be a decimal number with at most {places} decimals")),
    }
}
