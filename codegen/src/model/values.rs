//! The types of values.

use std::collections::BTreeSet;

use codegen_runtime::{ArrayRules, NumberRules, Pattern};
use proc_macro2::Ident;

/// What a string must be like.
pub type StringRules = codegen_runtime::StringRules<Pattern>;

/// What a map must be like.
pub type MapRules = codegen_runtime::MapRules<Pattern>;

/// The Rust type of a whole number.
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
    /// The name in Rust.
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

    /// The least and the greatest value.
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
            // What a document states is a JSON number, far below.
            IntegerKind::U128 => (0, i128::MAX),
        }
    }
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Text.
    String(StringRules),
    /// A decimal amount in a string (`format: decimal`).
    Decimal {
        /// `x-decimal-places`
        places: u32,
    },
    /// RFC 3339 (`format: date-time`).
    DateTime,
    /// A calendar day (`format: date`).
    Date,
    /// Bytes in Base64 (`format: byte`).
    Bytes,
    /// `format: uuid`
    Uuid,
    /// `true` or `false`
    Boolean,
    /// `null` (`enum: [null]`)
    Null,
    /// No value at all (`not: {}`).
    Never,
    /// A whole number.
    Integer {
        /// The Rust type.
        kind: IntegerKind,
        /// What it must be like.
        rules: NumberRules<i128>,
    },
    /// A floating-point number.
    Number(NumberRules<f64>),
    /// A number whose decimal text is kept (`type: number, format: decimal`).
    ExactNumber {
        /// `x-max-significant-digits`, by default 28.
        max_significant_digits: u32,
    },
    /// A list.
    Array {
        /// The type of its items.
        items: Box<Type>,
        /// What it must be like.
        rules: ArrayRules,
    },
    /// An object whose members' names are data.
    Map {
        /// The type of its values.
        values: Box<Type>,
        /// What it must be like.
        rules: MapRules,
    },
    /// An item or a map's value that may be null.
    Nullable(Box<Type>),
    /// A value that would hold itself without end if it stood here itself.
    Boxed(Box<Type>),
    /// A named type.
    Named(Ident),
    /// Any JSON value.
    Any,
}

impl Type {
    /// Adds the named types that it is made of.
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

    /// The named type that a value of this one holds in itself.
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
