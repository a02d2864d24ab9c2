//! Personal data as stored. It can be read only with the privacy mode of its organization.
//!
//! The types implement neither `Display` nor `Serialize`, and only [`super::privacy`] can read their text. An endpoint that
//! ignores the privacy mode does not compile:
//!
//! ```compile_fail,E0308
//! use partner_api_domain::personal::StoredPlate;
//! let shown: String = StoredPlate::from("34ABC123".to_owned());
//! ```
//!
//! ```compile_fail,E0277
//! use partner_api_domain::personal::StoredText;
//! let shown = format!("{}", StoredText::from("call 0532 123 45 67".to_owned()));
//! ```
//!
//! ```compile_fail,E0277
//! use partner_api_domain::personal::StoredVin;
//! let sent = serde_json::to_string(&StoredVin::from("WVWZZZ1JZ3W386752".to_owned()));
//! ```
//!
//! ```compile_fail,E0624
//! use partner_api_domain::personal::StoredVin;
//! let read: &str = StoredVin::from("WVWZZZ1JZ3W386752".to_owned()).stored();
//! ```

use std::fmt;

use serde::Deserialize;

macro_rules! personal {
    ($($(#[$about:meta])* $name:ident;)+) => {$(
        $(#[$about])*
        #[derive(Clone, PartialEq, Eq, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Returns whether the text is empty.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// For `PiiMode` only.
            #[allow(dead_code)]
            pub(super) fn stored(&self) -> &str {
                &self.0
            }

            /// For `PiiMode` only.
            #[allow(dead_code)]
            pub(super) fn into_stored(self) -> String {
                self.0
            }
        }

        impl From<String> for $name {
            fn from(stored: String) -> Self {
                $name(stored)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "([personal])"))
            }
        }
    )+};
}

personal! {
    /// A normalized plate: upper case, no spaces.
    StoredPlate;
    /// A vehicle identification number.
    StoredVin;
    /// The name of an inspector.
    StoredPerson;
    /// A free text of a report: `note`, `general_note`, `summary`, `recommendation`, `caption`, and the names of the package and of
    /// the discount, which inspectors type.
    StoredText;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_does_not_contain_personal_data() {
        assert_eq!(
            format!("{:?}", StoredPlate::from("34ABC123".to_owned())),
            "StoredPlate([personal])"
        );
    }
}
