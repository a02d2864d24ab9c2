//! Decimal amounts as strings with a fixed number of decimal places, and as JSON numbers that keep their text.

use std::fmt;

use rust_decimal::{Decimal, RoundingStrategy};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

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

/// A JSON number (`type: number, format: decimal`) with its exact value and its original text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactNumber {
    /// The original text, such as `12.50` or `1.25e1`.
    pub text: String,
    /// The value, with the original number of decimal places after resolving an exponent.
    pub value: Decimal,
}

/// The maximum number of decimal places of a [`Decimal`].
const MAX_DECIMALS: i64 = 28;
const OUT_OF_RANGE: &str = "is too large or has too many decimals; send a plain number such as 2.85";

impl ExactNumber {
    /// Parses a JSON number.
    ///
    /// # Errors
    /// If the text is not a number, has more digits than `max_significant_digits`, or cannot be represented exactly
    /// with 28 decimal places and 96 bits.
    pub fn parse(text: &str, max_significant_digits: u32) -> Result<Self, String> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let (whole, decimals) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = format!("{whole}{decimals}");
        let exponent_digits = exponent.trim_start_matches(['+', '-']);
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(&digits) || !all_digits(exponent_digits) {
            return Err("must be a number".into());
        }
        let significant = digits.trim_start_matches('0').len();
        if significant > max_significant_digits as usize {
            return Err(format!(
                "must have at most {max_significant_digits} significant digits, has {significant}{}",
                rounding(text, max_significant_digits as usize)
            ));
        }
        let out_of_range = || OUT_OF_RANGE.to_string();
        // Larger exponents have no effect.
        const MAX_EXPONENT: i64 = i32::MAX as i64;
        let size = exponent_digits.parse::<i64>().unwrap_or(MAX_EXPONENT).min(MAX_EXPONENT);
        let exponent = if exponent.starts_with('-') { -size } else { size };
        let mut mantissa: i128 = digits.parse().map_err(|_| out_of_range())?;
        let mut scale = decimals.len() as i64 - exponent;
        if mantissa == 0 {
            scale = (decimals.len() as i64).min(MAX_DECIMALS);
        }
        while scale > MAX_DECIMALS && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        while scale < 0 {
            mantissa = mantissa.checked_mul(10).ok_or_else(out_of_range)?;
            scale += 1;
        }
        if text.starts_with('-') {
            mantissa = -mantissa;
        }
        let scale = u32::try_from(scale).map_err(|_| out_of_range())?;
        Ok(ExactNumber {
            text: text.to_string(),
            value: Decimal::try_from_i128_with_scale(mantissa, scale).map_err(|_| out_of_range())?,
        })
    }

    /// Deserializes a JSON number with at most `max_significant_digits` digits. Used by [`crate::body`].
    ///
    /// # Errors
    /// The deserializer's error, or that of [`ExactNumber::parse`].
    pub fn read<'de, D: Deserializer<'de>>(deserializer: D, max_significant_digits: u32) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            let kind = match text.as_bytes().first() {
                Some(b'"') => "a string",
                Some(b'{') => "an object",
                Some(b'[') => "an array",
                Some(b'n') => "null",
                _ => "a boolean",
            };
            return Err(D::Error::custom(format!("must be a number, is {kind}")));
        }
        Self::parse(text, max_significant_digits).map_err(D::Error::custom)
    }
}

/// A hint with the nearest number that a floating-point number can represent, which has at most 17 significant digits. An excess of
/// digits usually comes from a calculation with floating-point numbers.
fn rounding(text: &str, max_significant_digits: usize) -> String {
    const MAX_LENGTH: usize = 24;
    let digits = |text: &str| {
        let digits = text.chars().filter(char::is_ascii_digit);
        digits.skip_while(|digit| *digit == '0').count()
    };
    match text.parse::<f64>().map(|number| number.to_string()) {
        Ok(rounded) if rounded.len() <= MAX_LENGTH && digits(&rounded) <= max_significant_digits => {
            format!("; round it, for example to {rounded}")
        }
        _ => String::new(),
    }
}

impl<'de> Deserialize<'de> for ExactNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(deserializer, 28)
    }
}

impl Serialize for ExactNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match RawValue::from_string(self.text.clone()) {
            Ok(raw) => raw.serialize(serializer),
            Err(error) => Err(serde::ser::Error::custom(error)),
        }
    }
}

impl Default for ExactNumber {
    /// 0
    fn default() -> Self {
        Decimal::ZERO.into()
    }
}

impl From<Decimal> for ExactNumber {
    fn from(value: Decimal) -> Self {
        ExactNumber {
            text: value.to_string(),
            value,
        }
    }
}

impl fmt::Display for ExactNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
