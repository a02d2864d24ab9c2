//! What each `pii_mode` of an organisation shows of the personal data in its reports. One type decides.

use serde::Deserialize;

use super::personal::{StoredPerson, StoredPlate, StoredText, StoredVin};
use super::plate::{Parts, spaced};
use super::scrub;
use crate::words;

/// What is shown in place of a value that is hidden whole.
pub const HIDDEN: &str = "***";

/// How many characters of a VIN stay visible under `MASKED`: the manufacturer's code, and the end of the serial number.
const VIN_SHOWN: (usize, usize) = (3, 4);

/// An organisation's mode for personal data (PII-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum PiiMode {
    /// No personal data.
    None,
    /// Partly hidden.
    Masked,
    /// Plain.
    Full,
}

words! { PiiMode { None = "NONE", Masked = "MASKED", Full = "FULL" } }

impl PiiMode {
    /// The modes that show VINs whole: reports may be looked for by VIN in these alone, or the answer would tell what the
    /// others hide (PII-4).
    pub const SHOWING_VINS: &'static [Self] = &[Self::Full];

    /// `plate_masked` for a stored plate (normalised: upper case, no spaces).
    ///
    /// `NONE` hides it, `MASKED` leaves the province code and the last two digits (`34***23`), `FULL` spaces it
    /// (`34 ABC 123`). A stored value that is no Turkish plate is hidden under `MASKED` and plain under `FULL`.
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

    /// `vin_masked` for a stored VIN.
    ///
    /// `NONE` hides it, `MASKED` leaves the first three and the last four characters, `FULL` shows it whole. One so
    /// short that more would be shown than hidden (a VIN has 17 characters) is hidden whole under `MASKED`.
    pub fn vin(self, stored: &StoredVin) -> String {
        let stored = stored.stored();
        match self {
            Self::None => HIDDEN.to_owned(),
            Self::Masked => {
                let characters: Vec<char> = stored.chars().collect();
                let (first, last) = VIN_SHOWN;
                if characters.len() < 2 * (first + last) {
                    return HIDDEN.to_owned();
                }
                let head: String = characters[..first].iter().collect();
                let tail: String = characters[characters.len() - last..].iter().collect();
                format!("{head}{HIDDEN}{tail}")
            }
            Self::Full => stored.to_owned(),
        }
    }

    /// An inspector's free text (`note`, `general_note`, `summary`, `recommendation`, `caption`): without national ids
    /// and telephone numbers under `NONE` and `MASKED` ([`scrub::scrub`]), as stored under `FULL`.
    pub fn text(self, stored: StoredText) -> String {
        self.marked(stored, scrub::REMOVED)
    }

    /// The same for the pages of a report, where a mark in their language stands in the place of what is removed.
    pub fn printed_text(self, stored: StoredText) -> String {
        self.marked(stored, scrub::REMOVED_ON_PAPER)
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

    /// Who inspected (PII-6): hidden under `NONE`, initials under `MASKED` (`M. Y.`), the whole name under `FULL`. Nobody's
    /// name is an empty text in every mode.
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

    use super::super::strategies::{kept_words, national_id, plate, vin};
    use super::{PiiMode::*, *};

    fn plate_of(text: &str) -> StoredPlate {
        text.to_owned().into()
    }

    fn number(text: &str) -> StoredVin {
        text.to_owned().into()
    }

    /// PII-6
    #[test]
    fn who_inspected_is_hidden_shortened_or_named() {
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
    fn on_paper_the_mark_is_in_the_language_of_the_report() {
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
    fn no_mode_promises_to_find_names_of_persons_in_a_text() {
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
    fn the_whole_table_is_as_decided() {
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
    fn every_form_of_plate_is_masked_and_spaced() {
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
    fn odd_stored_plates_never_leak_when_masked() {
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
    fn short_vins_never_leak_when_masked() {
        for odd in ["", "W", "WVW", "WVW6752", "WVW16752", "WVW1234566752", "ÇÖŞ"] {
            assert_eq!(None.vin(&number(odd)), "***");
            assert_eq!(Masked.vin(&number(odd)), "***", "{odd}");
            assert_eq!(Full.vin(&number(odd)), odd);
        }
        assert_eq!(Masked.vin(&number("WVW12345676752")), "WVW***6752");
    }

    /// Plates with one part wrong, and texts that may have been stored as one.
    fn no_plate() -> impl Strategy<Value = String> {
        let wrong = plate().prop_flat_map(|(province, letters, digits)| {
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
        prop_oneof![wrong, any::<String>()]
    }

    proptest! {
        #[test]
        fn a_masked_plate_is_its_province_and_its_last_two_digits(
            (province, letters, digits) in plate(), (_, other_letters, other_digits) in plate(),
        ) {
            let last = &digits[digits.len() - 2..];
            let masked = Masked.plate(&plate_of(&format!("{province}{letters}{digits}")));
            prop_assert_eq!(&masked, &format!("{province}***{last}"));
            // Of what is between them not even the length.
            let hidden = other_digits.get(2..).unwrap_or_default();
            let alike = plate_of(&format!("{province}{other_letters}{hidden}{last}"));
            prop_assert_eq!(Masked.plate(&alike), masked);
            prop_assert_eq!(None.plate(&alike), "***");
        }

        #[test]
        fn what_is_no_plate_is_hidden_whole(stored in no_plate()) {
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
        fn a_text_is_scrubbed_where_plates_are_not_shown(word in kept_words(), id in national_id()) {
            let text = || format!("{word}; {id}").into();
            for mode in [None, Masked] {
                prop_assert_eq!(mode.text(text()), format!("{word}; [removed]"));
            }
            prop_assert_eq!(Full.text(text()), format!("{word}; {id}"));
        }
    }
}
