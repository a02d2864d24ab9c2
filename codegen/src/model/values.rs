//! Types of values.

use std::collections::BTreeSet;

use codegen_runtime::{ArrayRules, ExactNumber, NumberRules, Pattern};
use proc_macro2::Ident;
use rust_decimal::Decimal;
use serde_json::Value;

use crate::node::members;

pub type StringRules = codegen_runtime::StringRules<Pattern>;

pub type MapRules = codegen_runtime::MapRules<Pattern>;

/// The Rust type of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerKind {
    pub signed: bool,
    pub bits: u32,
}

impl IntegerKind {
    /// The type of a `format`: `int8` to `int128`, `uint8` to `uint128`, `int` and `uint`. Without a format that exists in
    /// Rust, it is `i64`.
    pub fn of_format(format: Option<&str>) -> Self {
        let format = format.unwrap_or_default();
        let (signed, bits) = match format.strip_prefix("uint") {
            Some(bits) => (false, bits),
            None => (true, format.strip_prefix("int").unwrap_or_default()),
        };
        match bits.parse() {
            Ok(bits @ (8 | 16 | 32 | 64 | 128)) => IntegerKind { signed, bits },
            _ => IntegerKind {
                signed: signed || !bits.is_empty(),
                bits: 64,
            },
        }
    }

    pub fn name(self) -> String {
        format!("{}{}", if self.signed { 'i' } else { 'u' }, self.bits)
    }

    pub fn range(self) -> (i128, i128) {
        // JSON numbers in documents are far below the actual maximum of `u128`.
        let high = i128::MAX >> (128 - self.bits - u32::from(!self.signed && self.bits < 128));
        (if self.signed { -high - 1 } else { 0 }, high)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    String(StringRules),
    /// A decimal number in a string (`format: decimal`).
    Decimal {
        places: u32,
    },
    /// A date and time in RFC 3339 (`format: date-time`).
    DateTime,
    /// A date (`format: date`).
    Date,
    /// Bytes in Base64 (`format: byte`).
    Bytes,
    Uuid,
    Boolean,
    /// `null` (`enum: [null]`).
    Null,
    /// A type without values (`not: {}`).
    Never,
    Integer {
        kind: IntegerKind,
        rules: NumberRules<i128>,
    },
    Number(NumberRules<f64>),
    /// A number whose decimal text is preserved (`type: number, format: decimal`).
    ExactNumber {
        /// `x-max-significant-digits`; 28 by default.
        max_significant_digits: u32,
    },
    Array {
        items: Box<Type>,
        rules: ArrayRules,
    },
    /// An object with arbitrary member names.
    Map {
        values: Box<Type>,
        rules: MapRules,
    },
    /// An item or map value that may be null.
    Nullable(Box<Type>),
    /// A boxed value, for types that contain themselves.
    Boxed(Box<Type>),
    Named(Ident),
    Any,
}

impl Type {
    /// Collects the named types that it uses.
    pub fn mentioned(&self, found: &mut BTreeSet<Ident>) {
        match self {
            Type::Named(ident) => {
                found.insert(ident.clone());
            }
            Type::Array { items: inner, .. }
            | Type::Map { values: inner, .. }
            | Type::Nullable(inner)
            | Type::Boxed(inner) => inner.mentioned(found),
            _ => {}
        }
    }

    /// The named type whose value is stored inline in a value of this type.
    pub fn held(&self) -> Option<&Ident> {
        match self {
            Type::Named(ident) => Some(ident),
            Type::Nullable(inner) => inner.held(),
            _ => None,
        }
    }
}

/// The ranges in which the values of a map are expected, by name.
pub const PLAUSIBLE_RANGE: &str = "x-plausible-range";

/// The ranges of a map's schema that has been checked: name, minimum and maximum.
pub fn plausible_ranges(schema: &Value) -> Vec<(&str, Decimal, Decimal)> {
    members(schema.get(PLAUSIBLE_RANGE))
        .filter_map(|(name, range)| {
            let bound = |key: &str| exact(range.get(key)?);
            Some((name.as_str(), bound("minimum")?, bound("maximum")?))
        })
        .collect()
}

/// The exact value of a number in the document.
pub fn exact(value: &Value) -> Option<Decimal> {
    let Value::Number(number) = value else { return None };
    Some(ExactNumber::parse(&number.to_string(), 28).ok()?.value)
}
