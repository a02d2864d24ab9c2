//! Turkish license plates: their normal form and their readable form.
//!
//! A plate is a province code (01 to 81), one to three letters `A`–`Z`, and two to five digits. Plates may be sent with spaces,
//! dots and dashes and in any letter case. They are normalized before they are compared or stored.

use std::fmt;

use thiserror::Error;

use super::fold::fold;

/// The number of Turkey's provinces, which are numbered from 1.
const PROVINCES: u32 = 81;

/// A plate in its normal form, upper-case letters and digits only (`34ABC123`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Plate(String);

/// The first part of a text that makes it an invalid plate.
///
/// The message describes the expected format. It does not contain the text, because a plate is personal data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlateError {
    /// The text does not begin with the two digits of a province.
    #[error("must begin with a province code of two digits from 01 to 81, as in 34 ABC 123")]
    Province,
    /// The province is not followed by one to three letters `A`–`Z`.
    #[error("must have 1 to 3 letters of A-Z after the province code, as in 34 ABC 123")]
    Letters,
    /// The text does not end in two to five digits.
    #[error("must end in 2 to 5 digits after the letters, as in 34 ABC 123")]
    Digits,
}

impl Plate {
    /// Normalizes and parses a plate: folds its letter case (see [`fold`](super::fold)), and removes spaces, dots and dashes.
    ///
    /// # Errors
    /// The first invalid part: province, letters or digits.
    pub fn parse(text: &str) -> Result<Self, PlateError> {
        let normal = normal(text);
        Parts::of(&normal)?;
        Ok(Plate(normal))
    }

    /// Returns the normal form, such as `34ABC123`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Plate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Plate {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<Plate> for String {
    fn from(plate: Plate) -> Self {
        plate.0
    }
}

/// Normalizes a text, whether or not it is a plate: upper case, without spaces, dots and dashes.
fn normal(text: &str) -> String {
    let compact: String = text.chars().filter(|c| !is_separator(*c)).collect();
    // Unicode converts some letters that Turkish keyboards do not have to A–Z (`ß` to `SS`). They are not valid in plates.
    match compact
        .chars()
        .all(|c| c.is_ascii() || matches!(c, 'ı' | 'İ' | '\u{307}'))
    {
        true => fold(&compact),
        false => compact,
    }
}

/// Returns how an invalid plate was read, and its first invalid character. The result contains the text, so it must only be shown
/// to the sender.
pub fn read_as(text: &str) -> String {
    let normal = normal(text);
    if has_letter_for_zero(&normal) {
        return format!("it was read as {normal:?}, with the letter O in place of the digit 0");
    }
    let foreign = normal.chars().find(|c| !c.is_ascii_uppercase() && !c.is_ascii_digit());
    match foreign {
        Some(foreign) => format!(
            "it was read as {normal:?}, and {:?} is not allowed",
            foreign.to_string()
        ),
        None => format!("it was read as {normal:?}"),
    }
}

/// Returns whether a text is a plate except that a digit 0 is written as the letter O.
fn has_letter_for_zero(normal: &str) -> bool {
    let Some((province, rest)) = normal.split_at_checked(2) else {
        return false;
    };
    let end_of_letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
    let (letters, digits) = rest.split_at(end_of_letters);
    let corrected = format!("{}{letters}{}", province.replace('O', "0"), digits.replace('O', "0"));
    corrected != normal && Parts::of(&corrected).is_ok()
}

/// Returns a plate with spaces between its three parts: `34ABC123` → `34 ABC 123`.
///
/// This function is for plates from the database. It returns a text that is not a plate in normal form unchanged.
pub fn spaced(text: &str) -> String {
    match Parts::of(text) {
        Ok(parts) => parts.spaced(),
        Err(_) => text.to_owned(),
    }
}

/// The three parts of a plate in its normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts<'p> {
    /// Two digits.
    pub province: &'p str,
    /// One to three letters `A`–`Z`.
    pub letters: &'p str,
    /// Two to five digits.
    pub digits: &'p str,
}

impl<'p> Parts<'p> {
    /// Splits a plate in its normal form.
    ///
    /// # Errors
    /// The first invalid part: province, letters or digits.
    pub fn of(normal: &'p str) -> Result<Self, PlateError> {
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (province, rest) = normal.split_at_checked(2).ok_or(PlateError::Province)?;
        let is_province =
            are_digits(province) && province.parse().is_ok_and(|number| (1..=PROVINCES).contains(&number));
        if !is_province {
            return Err(PlateError::Province);
        }
        let end = rest.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(rest.len());
        let (letters, digits) = rest.split_at(end);
        if !(1..=3).contains(&letters.len()) || digits.starts_with(|c: char| !c.is_ascii_digit()) {
            return Err(PlateError::Letters);
        }
        if !(2..=5).contains(&digits.len()) || !are_digits(digits) {
            return Err(PlateError::Digits);
        }
        Ok(Parts {
            province,
            letters,
            digits,
        })
    }

    /// Returns the readable form, `34 ABC 123`.
    pub fn spaced(&self) -> String {
        format!("{} {} {}", self.province, self.letters, self.digits)
    }
}

/// Returns whether a character is a space, dot or dash, in any of the variants that keyboards and word processors produce.
fn is_separator(character: char) -> bool {
    character.is_whitespace() || matches!(character, '.' | '-' | '\u{2010}'..='\u{2015}' | '\u{2212}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::super::strategies::{mistyped, plate, province, spelled};
    use super::{Plate, PlateError, spaced};

    /// MEA-2
    #[test]
    fn plates_are_normalized() {
        let table = [
            ("34ABC123", "34ABC123"),
            ("34 abc 123", "34ABC123"),
            (" 34\tabc\u{a0}123 ", "34ABC123"),
            ("34-ABC-123", "34ABC123"),
            ("34.ABC.123", "34ABC123"),
            ("34–ABC—123", "34ABC123"),
            ("3 4 A B C 1 2 3", "34ABC123"),
            ("06 iıİ 12", "06III12"),
            ("06 i\u{307}z 1234", "06IZ1234"),
            ("01 A 12", "01A12"),
            ("81 A 12345", "81A12345"),
            ("35 ZZZ 99", "35ZZZ99"),
            ("34 wxq 100", "34WXQ100"),
        ];
        for (text, normal) in table {
            assert_eq!(Plate::parse(text).map(String::from).as_deref(), Ok(normal), "{text:?}");
        }
    }

    #[test]
    fn a_plate_is_written_in_its_normal_form() {
        let plate = Plate::parse("34 abc 123").expect("a plate");
        assert_eq!((plate.to_string().as_str(), plate.as_ref()), ("34ABC123", "34ABC123"));
    }

    #[test]
    fn an_error_names_the_first_invalid_part() {
        use PlateError::{Digits, Letters, Province};
        let table = [
            ("", Province),
            ("   ", Province),
            ("3", Province),
            ("34", Letters),
            ("ABCDEF", Province),
            ("A34BC123", Province),
            ("00 ABC 123", Province),
            ("82 ABC 123", Province),
            ("99 ABC 123", Province),
            ("1 ABC 123", Province),
            ("٣٤ ABC 123", Province),
            ("+4 ABC 123", Province),
            ("34 123", Letters),
            ("34 ABCD 123", Letters),
            ("34 ŞC 123", Letters),
            ("34 CŞ 123", Letters),
            ("34 ß 123", Letters),
            ("34 A_B 123", Letters),
            ("34 ABC", Digits),
            ("34 ABC 1", Digits),
            ("34 ABC 123456", Digits),
            ("34 ABC 12D", Digits),
            ("34 ABC 1/23", Digits),
            ("34 ABC 12٣", Digits),
            ("34 ABC 123 TR", Digits),
        ];
        for (text, error) in table {
            assert_eq!(Plate::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn an_error_message_describes_the_format_without_the_plate() {
        let message = Plate::parse("35 XYZ").expect_err("no digits").to_string();
        assert!(message.contains("2 to 5 digits"), "{message}");
        assert!(!message.contains("XYZ"), "{message}");
    }

    #[test]
    fn read_as_shows_the_normalized_text_and_its_first_invalid_character() {
        let table = [
            ("34 123", r#"it was read as "34123""#),
            ("34/abc/123", r#"it was read as "34/ABC/123", and "/" is not allowed"#),
            ("34 şğ 123", r#"it was read as "34şğ123", and "ş" is not allowed"#),
            ("", r#"it was read as """#),
            (
                "O6 ABC 123",
                r#"it was read as "O6ABC123", with the letter O in place of the digit 0"#,
            ),
            (
                "34 ABO 1o2",
                r#"it was read as "34ABO1O2", with the letter O in place of the digit 0"#,
            ),
            ("OO ABC 123", r#"it was read as "OOABC123""#),
        ];
        for (text, expected) in table {
            assert_eq!(super::read_as(text), expected);
        }
    }

    #[test]
    fn the_readable_form_separates_the_parts() {
        assert_eq!(spaced("34ABC123"), "34 ABC 123");
        assert_eq!(spaced("06A12"), "06 A 12");
        for other in ["", "3", "34", "34ABC", "34123", "ABC", "şş"] {
            assert_eq!(spaced(other), other);
        }
    }

    /// Parses a plate with one regular expression for the whole grammar.
    fn as_documented(text: &str) -> Option<String> {
        let pattern = |pattern: &str| Regex::new(pattern).expect("a pattern");
        let compact = pattern("[ .\u{a0}–-]").replace_all(text, "");
        let normal = pattern("[iIıİ]\u{307}*")
            .replace_all(&compact, "I")
            .to_ascii_uppercase();
        let plate = pattern("^(0[1-9]|[1-7][0-9]|8[01])[A-Z]{1,3}[0-9]{2,5}$");
        plate.is_match(&normal).then_some(normal)
    }

    /// A plate with one invalid part, and that part.
    fn invalid_plate() -> impl Strategy<Value = (String, PlateError)> {
        let no_province = prop_oneof!["00", "8[2-9]", "9[0-9]", "[A-ZŞ][0-9]", "[0-9][A-ZŞ]", "[0-9]٣"];
        let no_letters = prop_oneof!["", "[A-Z]{4,5}", "[A-Z]{0,2}[ÇĞÖŞÜçğöşüß_][A-Z]{0,2}"];
        let no_digits = prop_oneof!["", "[0-9]", "[0-9]{6,8}", "[0-9]{1,4}[A-ZŞ٣/+][0-9]{0,3}"];
        let (letters, digits) = ("[A-Z]{1,3}", "[0-9]{2,5}");
        prop_oneof![
            (no_province, letters, digits, Just(PlateError::Province)),
            (province(), no_letters, digits, Just(PlateError::Letters)),
            (province(), letters, no_digits, Just(PlateError::Digits)),
        ]
        .prop_map(|(province, letters, digits, wrong)| (format!("{province} {letters} {digits}"), wrong))
    }

    proptest! {
        #[test]
        fn a_plate_is_accepted_in_any_spelling(
            ((province, letters, digits), spelling) in plate().prop_flat_map(|parts| {
                let spelling = spelled(format!("{}{}{}", parts.0, parts.1, parts.2));
                (Just(parts), spelling)
            })
        ) {
            let plate = Plate::parse(&spelling);
            prop_assert_eq!(plate.as_ref().map(Plate::as_str), Ok(&*format!("{province}{letters}{digits}")));
            prop_assert_eq!(plate.map(|plate| spaced(plate.as_str())), Ok(format!("{province} {letters} {digits}")));
        }

        #[test]
        fn any_text_is_a_plate_or_not_and_a_plate_is_read_again_as_itself(
            text in prop_oneof!["[ .-]{0,2}[0-9٣O]{1,3}[ .–-]{0,2}[A-Za-zıİşß]{0,4}[ .\u{a0}-]{0,2}[0-9Oo]{0,6}", ".*"]
        ) {
            if let Ok(plate) = Plate::parse(&text) {
                let documented = as_documented(plate.as_str());
                let again = Plate::parse(plate.as_str());
                prop_assert_eq!(documented.as_deref(), Some(plate.as_str()));
                prop_assert_eq!(again.as_ref(), Ok(&plate));
            }
            // The hint to an error must not panic for any text either.
            prop_assert!(super::read_as(&text).starts_with("it was read as "));
        }

        #[test]
        fn a_plate_with_one_invalid_part_is_rejected((text, invalid) in invalid_plate()) {
            prop_assert_eq!(Plate::parse(&text), Err(invalid));
        }

        #[test]
        fn a_mistyped_plate_is_accepted_only_if_it_is_still_a_plate(
            text in plate()
                .prop_flat_map(|(province, letters, digits)| spelled(format!("{province}{letters}{digits}")))
                .prop_flat_map(mistyped)
        ) {
            prop_assert_eq!(Plate::parse(&text).ok().map(String::from), as_documented(&text));
            let blanks = |text: &str| text.replace(' ', "");
            prop_assert_eq!(blanks(&spaced(&text)), blanks(&text));
        }
    }
}
