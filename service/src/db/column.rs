//! Columns that hold one of a few words: each is a type that reads and writes itself, once; out of JSON, too, with
//! `#[serde(try_from = "String")]`.

/// For [`column!`](crate::column) in other crates.
#[doc(hidden)]
pub use {bytes, tokio_postgres};

/// Lets an enumeration be read from, and written to, a text column: `column! { Status { Applied = "APPLIED", … } }`.
#[macro_export]
macro_rules! column {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// The word that the column holds.
            #[allow(dead_code)]
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            /// What a word means; `None` for any other.
            pub fn of_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(word: String) -> Result<Self, String> {
                $name::of_word(&word).ok_or_else(|| format!("{word:?} is no {}", stringify!($name)))
            }
        }

        impl<'a> $crate::db::column::tokio_postgres::types::FromSql<'a> for $name {
            fn from_sql(
                ty: &$crate::db::column::tokio_postgres::types::Type,
                raw: &'a [u8],
            ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
                Ok($name::try_from(<String as $crate::db::column::tokio_postgres::types::FromSql>::from_sql(ty, raw)?)?)
            }

            fn accepts(ty: &$crate::db::column::tokio_postgres::types::Type) -> bool {
                <&str as $crate::db::column::tokio_postgres::types::FromSql>::accepts(ty)
            }
        }

        impl $crate::db::column::tokio_postgres::types::ToSql for $name {
            fn to_sql(
                &self,
                ty: &$crate::db::column::tokio_postgres::types::Type,
                out: &mut $crate::db::column::bytes::BytesMut,
            ) -> Result<$crate::db::column::tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
                $crate::db::column::tokio_postgres::types::ToSql::to_sql(&self.word(), ty, out)
            }

            fn accepts(ty: &$crate::db::column::tokio_postgres::types::Type) -> bool {
                <&str as $crate::db::column::tokio_postgres::types::ToSql>::accepts(ty)
            }

            $crate::db::column::tokio_postgres::types::to_sql_checked!();
        }
    };
}

pub(crate) use column;
