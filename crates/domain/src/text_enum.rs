//! Enumerations with a text for each variant, as the database and messages use it.

/// Implements the conversions between an enumeration and its texts: `text_enum! { Status { Applied = "APPLIED", … } }`.
#[macro_export]
macro_rules! text_enum {
    ($name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $name {
            /// Returns the text of the variant.
            #[allow(dead_code)]
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }

            /// Returns the variant with this text, if there is one.
            pub fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($text => Some($name::$variant),)+
                    _ => None,
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                $name::from_text(&text).ok_or_else(|| format!("{text:?} is not a valid {}", stringify!($name)))
            }
        }
    };
}
