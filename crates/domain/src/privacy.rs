//! The privacy modes: how much of the personal data in an organization's reports each `pii_mode` shows.

use serde::Deserialize;

use super::personal::{StoredPerson, StoredPlate, StoredText, StoredVin};
use super::plate::{Parts, spaced};
use super::scrub;
use crate::text_enum;

/// The replacement of a completely hidden value.
pub const HIDDEN: &str = "***";

/// The number of characters of a VIN that `MASKED` shows: the manufacturer's code, and the end of the serial number.
const VIN_SHOWN: (usize, usize) = (3, 4);

/// The privacy mode of an organization (PII-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum PiiMode {
    /// Personal data is hidden.
    None,
    /// Personal data is partly hidden.
    Masked,
    /// Personal data is shown.
    Full,
}

text_enum! { PiiMode { None = "NONE", Masked = "MASKED", Full = "FULL" } }

impl PiiMode {
    /// The modes that show complete VINs. A search by VIN includes only reports in these modes, because it would otherwise reveal
    /// VINs that the other modes hide (PII-4).
    pub const SHOWING_VINS: &'static [Self] = &[Self::Full];

    /// Returns `plate_masked` for a stored plate.
    ///
    /// `NONE` hides it, `MASKED` shows the province code and the last two digits (`34***23`), and `FULL` shows it with spaces
    /// (`34 ABC 123`). `MASKED` hides a stored value that is not a Turkish plate, and `FULL` shows it unchanged.
    pub fn plate(self, stored: &StoredPlate) -> String {
        match self {
            Self::None => HIDDEN.to_owned(),
            Self::Masked => match Parts::of(stored.stored()) {
                Ok(Parts { province, digits, .. }) => format!("{province}{HIDDEN}{}", &digits[digits.len() - 2..]),
                Err(_) => HIDDEN.to_owned(),
            },
            Self::Full => spaced(stored.stored()),
        }
    }

    /// Returns `vin_masked` for a stored VIN.
    ///
    /// `NONE` hides it, `MASKED` shows the first three and the last four characters, and `FULL` shows all of it. A VIN has 17
    /// characters; `MASKED` hides a shorter value completely if it would show more characters than it hides.
    pub fn vin(self, stored: &StoredVin) -> String {
        let stored = stored.stored();
        match self {
            Self::None => HIDDEN.to_owned(),
            Self::Masked => {
                let (first, last) = VIN_SHOWN;
                if stored.chars().count() < 2 * (first + last) {
                    return HIDDEN.to_owned();
                }
                let head = stored.char_indices().nth(first).map_or("", |(end, _)| &stored[..end]);
                let tail = stored
                    .char_indices()
                    .nth_back(last - 1)
                    .map_or("", |(start, _)| &stored[start..]);
                format!("{head}{HIDDEN}{tail}")
            }
            Self::Full => stored.to_owned(),
        }
    }

    /// Returns a free text of a report, such as `note` or `discount_name`. `NONE` and `MASKED` remove national IDs and telephone numbers ([`scrub::scrub`]); `FULL` returns the text as stored.
    pub fn text(self, stored: StoredText) -> String {
        self.marked(stored, scrub::REMOVED)
    }

    /// The same for the pages of a report, with the mark for removed text in their language.
    pub fn printed_text(self, stored: StoredText) -> String {
        self.marked(stored, scrub::REMOVED_IN_PDF)
    }

    fn marked(self, stored: StoredText, mark: &str) -> String {
        let stored = stored.into_stored();
        match self {
            Self::None | Self::Masked => match scrub::scrub_with(&stored, mark) {
                std::borrow::Cow::Borrowed(_) => stored,
                std::borrow::Cow::Owned(clean) => clean,
            },
            Self::Full => stored,
        }
    }

    /// Returns the inspector's name (PII-6): hidden in `NONE`, initials in `MASKED` (`M. Y.`), the whole name in `FULL`. An empty
    /// name is empty in every mode.
    pub fn person(self, stored: &StoredPerson) -> String {
        let name = stored.stored().trim();
        if name.is_empty() {
            return String::new();
        }
        match self {
            Self::None => HIDDEN.to_owned(),
            Self::Masked => {
                let initials = name.split_whitespace().filter_map(|part| part.chars().next());
                initials
                    .map(|initial| format!("{initial}."))
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            Self::Full => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::strategies::{harmless_text, national_id, plate, vin};
    use super::{PiiMode::*, *};

    fn plate_of(text: &str) -> StoredPlate {
        text.to_owned().into()
    }

    fn number(text: &str) -> StoredVin {
        text.to_owned().into()
    }

    /// PII-6
    #[test]
    fn the_inspectors_name_is_hidden_abbreviated_or_shown() {
        let person = |name: &str| StoredPerson::from(name.to_owned());
        for (mode, shown) in [(None, "***"), (Masked, "Ş. T. Ö."), (Full, "Şule Taş Öz")] {
            assert_eq!(
                mode.person(&person(" Şule  Taş Öz")).replace("  ", " "),
                shown,
                "{mode:?}"
            );
            assert_eq!(mode.person(&person(" ")), "", "{mode:?}");
        }
    }

    /// PII-3
    #[test]
    fn printed_texts_have_the_mark_in_the_language_of_the_report() {
        let text = || "Sahibi arandı: 0532 123 45 67.".to_owned().into();
        for (mode, shown) in [
            (None, "Sahibi arandı: [gizlendi]."),
            (Masked, "Sahibi arandı: [gizlendi]."),
            (Full, "Sahibi arandı: 0532 123 45 67."),
        ] {
            assert_eq!(mode.printed_text(text()), shown, "{mode:?}");
        }
    }

    /// PII-5
    #[test]
    fn names_and_addresses_in_a_text_are_not_removed() {
        let text = "Deniz Barış, deniz@ornek.example, Moda Cad. No: 3, IBAN TR33 0006 1005 1978 6457 8413 26";
        for mode in [None, Masked] {
            let shown = mode.text(text.to_owned().into());
            for kept in ["Deniz Barış", "deniz@ornek.example", "Moda Cad. No: 3"] {
                assert!(shown.contains(kept), "{mode:?}: {shown}");
            }
        }
    }

    /// PII-1
    #[test]
    fn each_mode_shows_what_the_contract_says() {
        let vin = "WVWZZZ1JZ3W386752";
        let text = "Sahibi 0532 123 45 67, TC 12345678901, 123.456 km";
        let clean = "Sahibi [removed], TC [removed], 123.456 km";
        for (mode, plate_masked, vin_masked, shown) in [
            (None, "***", "***", clean),
            (Masked, "34***23", "WVW***6752", clean),
            (Full, "34 ABC 123", vin, text),
        ] {
            assert_eq!(mode.plate(&plate_of("34ABC123")), plate_masked, "{mode:?}");
            assert_eq!(mode.vin(&number(vin)), vin_masked, "{mode:?}");
            assert_eq!(mode.text(text.to_owned().into()), shown, "{mode:?}");
            let is_shown = mode.vin(&number(vin)) == vin;
            assert_eq!(PiiMode::SHOWING_VINS.contains(&mode), is_shown, "{mode:?}");
        }
    }

    #[test]
    fn plates_of_every_length_are_masked_and_spaced() {
        for (plate, masked, full) in [
            ("06A1234", "06***34", "06 A 1234"),
            ("35AB12345", "35***45", "35 AB 12345"),
            ("81ABC12", "81***12", "81 ABC 12"),
        ] {
            assert_eq!(Masked.plate(&plate_of(plate)), masked);
            assert_eq!(Full.plate(&plate_of(plate)), full);
        }
    }

    #[test]
    fn masked_mode_hides_stored_values_that_are_not_plates() {
        for odd in [
            "",
            "3",
            "34",
            "34ABC",
            "34ABC1",
            "ABC123",
            "34 ABC 123",
            "34ABCD123",
            "34ABC123456",
            "34ÇBC123",
            "ÇÇ",
            "3ÇABC123",
            "82ABC123",
        ] {
            assert_eq!(None.plate(&plate_of(odd)), "***");
            assert_eq!(Masked.plate(&plate_of(odd)), "***", "{odd}");
            assert_eq!(Full.plate(&plate_of(odd)), odd);
        }
    }

    #[test]
    fn masked_mode_hides_short_vins() {
        for odd in ["", "W", "WVW", "WVW6752", "WVW16752", "WVW1234566752", "ÇÖŞ"] {
            assert_eq!(None.vin(&number(odd)), "***");
            assert_eq!(Masked.vin(&number(odd)), "***", "{odd}");
            assert_eq!(Full.vin(&number(odd)), odd);
        }
        assert_eq!(Masked.vin(&number("WVW12345676752")), "WVW***6752");
    }

    /// Plates with one invalid part, and arbitrary texts that may have been stored as a plate.
    fn not_a_plate() -> impl Strategy<Value = String> {
        let invalid = plate().prop_flat_map(|(province, letters, digits)| {
            prop_oneof![
                Just(format!("{province} {letters} {digits}")),
                Just(format!("{province}{}{digits}", letters.to_lowercase())),
                Just(format!("{province}Ş{letters}{digits}")),
                Just(format!("{province}{letters}{digits}A")),
                Just(format!("{province}{letters}{digits}1234")),
                Just(format!("{province}{digits}")),
                Just(format!("{letters}{digits}")),
            ]
        });
        prop_oneof![invalid, any::<String>()]
    }

    proptest! {
        #![proptest_config(crate::strategies::fixed_seed())]

        #[test]
        fn a_masked_plate_is_its_province_and_its_last_two_digits(
            (province, letters, digits) in plate(), (_, other_letters, other_digits) in plate(),
        ) {
            let last = &digits[digits.len() - 2..];
            let masked = Masked.plate(&plate_of(&format!("{province}{letters}{digits}")));
            prop_assert_eq!(&masked, &format!("{province}***{last}"));
            // The length of the hidden part is not visible either.
            let hidden = other_digits.get(2..).unwrap_or_default();
            let alike = plate_of(&format!("{province}{other_letters}{hidden}{last}"));
            prop_assert_eq!(Masked.plate(&alike), masked);
            prop_assert_eq!(None.plate(&alike), "***");
        }

        #[test]
        fn a_value_that_is_not_a_plate_is_hidden_completely(stored in not_a_plate()) {
            prop_assert_eq!(Masked.plate(&plate_of(&stored)), "***");
            prop_assert_eq!(None.plate(&plate_of(&stored)), "***");
            prop_assert_eq!(Full.plate(&plate_of(&stored)), stored);
        }

        #[test]
        fn a_masked_vin_is_its_first_three_and_last_four_characters(
            vin in vin(), between in "[A-Z0-9ÇŞ]{7,20}", cut in 0..14_usize,
        ) {
            let (first, last) = (&vin[..3], &vin[13..]);
            prop_assert_eq!(Masked.vin(&number(&vin)), format!("{first}***{last}"));
            prop_assert_eq!(Masked.vin(&number(&format!("{first}{between}{last}"))), format!("{first}***{last}"));
            prop_assert_eq!(Masked.vin(&number(&vin[..cut])), "***");
            prop_assert_eq!(None.vin(&number(&vin)), "***");
            prop_assert_eq!(Full.vin(&number(&vin)), vin);
        }

        #[test]
        fn texts_are_scrubbed_except_in_full_mode(word in harmless_text(), id in national_id()) {
            let text = || format!("{word}; {id}").into();
            for mode in [None, Masked] {
                prop_assert_eq!(mode.text(text()), format!("{word}; [removed]"));
            }
            prop_assert_eq!(Full.text(text()), format!("{word}; {id}"));
        }
    }
}
