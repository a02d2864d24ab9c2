//! Types of values.

use std::collections::BTreeSet;

use codegen_runtime::{ArrayRules, NumberRules, Pattern};
use proc_macro2::Ident;

/// The rules of a string.
pub type StringRules = codegen_runtime::StringRules<Pattern>;

/// The rules of a map.
pub type MapRules = codegen_runtime::MapRules<Pattern>;

/// The Rust type of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerKind {
    /// `format: int8`
    I8,
    /// `format: int16`
    I16,
    /// `format: int32`
    I32,
    /// `format: int64` or `int`, or none
    I64,
    /// `format: uint8`
    U8,
    /// `format: uint16`
    U16,
    /// `format: uint32`
    U32,
    /// `format: uint64` or `uint`
    U64,
    /// `format: int128`
    I128,
    /// `format: uint128`
    U128,
}

impl IntegerKind {
    /// The Rust name.
    pub fn name(self) -> &'static str {
        match self {
            IntegerKind::I8 => "i8",
            IntegerKind::I16 => "i16",
            IntegerKind::I32 => "i32",
            IntegerKind::I64 => "i64",
            IntegerKind::U8 => "u8",
            IntegerKind::U16 => "u16",
            IntegerKind::U32 => "u32",
            IntegerKind::U64 => "u64",
            IntegerKind::I128 => "i128",
            IntegerKind::U128 => "u128",
        }
    }

    /// The minimum and maximum value.
    pub fn range(self) -> (i128, i128) {
        match self {
            IntegerKind::I8 => (i8::MIN.into(), i8::MAX.into()),
            IntegerKind::I16 => (i16::MIN.into(), i16::MAX.into()),
            IntegerKind::I32 => (i32::MIN.into(), i32::MAX.into()),
            IntegerKind::I64 => (i64::MIN.into(), i64::MAX.into()),
            IntegerKind::U8 => (0, u8::MAX.into()),
            IntegerKind::U16 => (0, u16::MAX.into()),
            IntegerKind::U32 => (0, u32::MAX.into()),
            IntegerKind::U64 => (0, u64::MAX.into()),
            IntegerKind::I128 => (i128::MIN, i128::MAX),
            // JSON numbers in documents are far below the actual maximum.
            IntegerKind::U128 => (0, i128::MAX),
        }
    }
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// A string.
    String(StringRules),
    /// A decimal number in a string (`format: decimal`).
    Decimal {
        /// `x-decimal-places`
        places: u32,
    },
    /// A date and time in RFC 3339 (`format: date-time`).
    DateTime,
    /// A date (`format: date`).
    Date,
    /// Bytes in Base64 (`format: byte`).
    Bytes,
    /// `format: uuid`
    Uuid,
    /// `true` or `false`
    Boolean,
    /// `null` (`enum: [null]`).
    Null,
    /// A type without values (`not: {}`).
    Never,
    /// An integer.
    Integer {
        /// The Rust type.
        kind: IntegerKind,
        /// The rules.
        rules: NumberRules<i128>,
    },
    /// A floating-point number.
    Number(NumberRules<f64>),
    /// A number whose decimal text is preserved (`type: number, format: decimal`).
    ExactNumber {
        /// `x-max-significant-digits`; 28 by default.
        max_significant_digits: u32,
    },
    /// An array.
    Array {
        /// The type of the items.
        items: Box<Type>,
        /// The rules.
        rules: ArrayRules,
    },
    /// An object with arbitrary member names.
    Map {
        /// The type of the values.
        values: Box<Type>,
        /// The rules.
        rules: MapRules,
    },
    /// An item or map value that may be null.
    Nullable(Box<Type>),
    /// A boxed value, for types that contain themselves.
    Boxed(Box<Type>),
    /// A named type.
    Named(Ident),
    /// Any JSON value.
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

    /// The type without its box.
    pub fn unboxed(&self) -> &Type {
        match self {
            Type::Boxed(inner) => inner,
            other => other,
        }
    }
}
