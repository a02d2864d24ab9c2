use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

/// An exact decimal number (`type: number, format: decimal`): 2.50 keeps its second decimal place. It can only be
/// serialized and deserialized with `serde_json`.
///
/// In untagged unions and undeclared members, serde converts the number to binary floating point first. The result is
/// then the shortest decimal for that value, which is exact up to 15 digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecimalNumber(pub Decimal);

/// The name for which `serde_json` provides a value's text instead of the value.
const TEXT: &str = "$serde_json::private::RawValue";

impl<'de> Deserialize<'de> for DecimalNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(TEXT, Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = DecimalNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DecimalNumber, A::Error> {
        if map.next_key::<String>()?.as_deref() != Some(TEXT) {
            return Err(A::Error::custom("invalid type: map, expected a number"));
        }
        let text: String = map.next_value()?;
        if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            return Err(A::Error::custom(format!("invalid value: {text}, expected a number")));
        }
        text.parse().map_err(A::Error::custom)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<DecimalNumber, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<DecimalNumber, E> {
        Ok(DecimalNumber(value.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<DecimalNumber, E> {
        Ok(DecimalNumber(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<DecimalNumber, E> {
        value.to_string().parse().map_err(E::custom)
    }
}

impl Serialize for DecimalNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = RawValue::from_string(self.to_string()).map_err(S::Error::custom)?;
        text.serialize(serializer)
    }
}

impl FromStr for DecimalNumber {
    type Err = rust_decimal::Error;

    /// Parses `2.85` or `285e-2`. More digits than a [`Decimal`] can hold are an error rather than rounded.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((digits, _)) = text.split_once(['e', 'E']) else {
            return Decimal::from_str_exact(text).map(DecimalNumber);
        };
        Decimal::from_str_exact(digits)?;
        Decimal::from_scientific(text).map(DecimalNumber)
    }
}

impl fmt::Display for DecimalNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Decimal> for DecimalNumber {
    fn from(value: Decimal) -> Self {
        DecimalNumber(value)
    }
}

impl From<DecimalNumber> for Decimal {
    fn from(value: DecimalNumber) -> Self {
        value.0
    }
}
