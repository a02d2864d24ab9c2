//! Conversion between text columns and Rust types.
//!
//! An enumeration from [`column!`](crate::column) also deserializes from JSON with `#[serde(try_from = "String")]`.

use std::error::Error;

use tokio_postgres::types::{FromSql, Type};

/// Reads a text column as a domain type that converts from a string. The domain crate does not depend on the database driver.
#[derive(Debug)]
pub struct Text<T>(pub T);

impl<'a, T> FromSql<'a> for Text<T>
where
    T: TryFrom<String>,
    T::Error: Into<Box<dyn Error + Sync + Send>>,
{
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        T::try_from(String::from_sql(ty, raw)?).map(Text).map_err(Into::into)
    }

    fn accepts(ty: &Type) -> bool {
        <String as FromSql>::accepts(ty)
    }
}

/// For [`column!`](crate::column) in other crates.
#[doc(hidden)]
pub use {bytes, partner_api_domain, tokio_postgres};

/// Implements reading and writing of an enumeration as a text column: `column! { Status { Applied = "APPLIED", … } }`.
#[macro_export]
macro_rules! column {
    ($name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $crate::column::partner_api_domain::text_enum! { $name { $($variant = $text),+ } }

        impl<'a> $crate::column::tokio_postgres::types::FromSql<'a> for $name {
            fn from_sql(
                ty: &$crate::column::tokio_postgres::types::Type,
                raw: &'a [u8],
            ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
                Ok($name::try_from(<String as $crate::column::tokio_postgres::types::FromSql>::from_sql(ty, raw)?)?)
            }

            fn accepts(ty: &$crate::column::tokio_postgres::types::Type) -> bool {
                <&str as $crate::column::tokio_postgres::types::FromSql>::accepts(ty)
            }
        }

        impl $crate::column::tokio_postgres::types::ToSql for $name {
            fn to_sql(
                &self,
                ty: &$crate::column::tokio_postgres::types::Type,
                out: &mut $crate::column::bytes::BytesMut,
            ) -> Result<$crate::column::tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
                $crate::column::tokio_postgres::types::ToSql::to_sql(&self.as_str(), ty, out)
            }

            fn accepts(ty: &$crate::column::tokio_postgres::types::Type) -> bool {
                <&str as $crate::column::tokio_postgres::types::ToSql>::accepts(ty)
            }

            $crate::column::tokio_postgres::types::to_sql_checked!();
        }
    };
}
