//! Enumerations whose values have a word each, in the database and in messages.

/// Gives an enumeration its words: `words! { Status { Applied = "APPLIED", … } }`.
#[macro_export]
macro_rules! words {
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
    };
}
