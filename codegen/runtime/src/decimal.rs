//! Decimal amounts as strings with a fixed number of decimals.

use rust_decimal::{Decimal, RoundingStrategy};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes an amount with exactly `PLACES` decimals; half a unit is rounded away from zero.
///
/// # Errors
/// The serialiser's.
pub fn serialize<const PLACES: u32, S: Serializer>(value: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    let mut value = value.round_dp_with_strategy(PLACES, RoundingStrategy::MidpointAwayFromZero);
    value.rescale(PLACES);
    serializer.collect_str(&value)
}

/// As [`serialize`], for an amount that may be absent.
///
/// # Errors
/// The serialiser's.
pub fn serialize_optional<const PLACES: u32, S: Serializer>(
    value: &Option<Decimal>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serialize::<PLACES, S>(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// Reads an amount with at most `places` decimals.
///
/// # Errors
/// The deserialiser's; a fragment that says what is expected.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D, places: u32) -> Result<Decimal, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text, places).map_err(D::Error::custom)
}

/// Reads the text of an amount with at most `places` decimals.
pub(crate) fn parse(text: &str, places: u32) -> Result<Decimal, String> {
    match Decimal::from_str_exact(text) {
        Ok(value) if value.scale() <= places => Ok(value),
        _ => Err(format!("must be a decimal number with at most {places} decimals")),
    }
}
