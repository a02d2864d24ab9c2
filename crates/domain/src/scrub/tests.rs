//! Tests of the removal of personal data from texts.

mod corpus;
mod written;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::strategies::{fixed_seed, grouped, harmless_text, national_id, telephone};
use super::*;

/// PII-2
#[test]
fn ids_and_numbers_in_common_formats_are_removed() {
    for text in [
        "12345678901",
        "123 456 789 01",
        "123-456-789-01",
        "123.456.789.01",
        "12345 678901",
        "1 2 3 4 5 6 7 8 9 0 1",
        "+905321234567",
        "+90 532 123 45 67",
        "+90 (532) 123-45-67",
        "+90-532-123-45-67",
        "0090 532 123 45 67",
        "90 532 123 45 67",
        "05321234567",
        "0532 123 45 67",
        "0 532 123 45 67",
        "0(532)1234567",
        "(0532) 123 45 67",
        "0532.123.45.67",
        "0532-123-4567",
        "0212 345 67 89",
        "5321234567",
        "532 123 45 67",
        "(532) 123 4567",
        "532-1234567",
        "212 345 67 89",
        "312.345.67.89",
        "4441234567",
    ] {
        for (before, after) in [
            ("", ""),
            ("Müşteri ", " arandı."),
            ("Tel:", ", akşam"),
            ("TC", ""),
            ("tel.", "'den"),
            ("Araç 34 ABC 123, 2018 model; ", "; 123.456 km"),
            ("GSM-", ""),
            ("12.05.2024 tarihinde ", " (1.250.000,00 TL)"),
        ] {
            let clean = scrub(&format!("{before}{text}{after}")).into_owned();
            assert_eq!(clean, format!("{before}{REMOVED}{after}"), "{text}");
        }
    }
}

#[test]
fn all_of_several_numbers_are_removed() {
    assert_eq!(scrub("0532 123 45 67 0212 345 67 89"), "[removed] [removed]");
    assert_eq!(scrub("532 123 45 67 / 12345678901"), "[removed] / [removed]");
    assert_eq!(scrub("34 0532 123 45 67"), "34 [removed]");
    assert_eq!(scrub("2018 532 123 45 67"), "2018 [removed]");
}

/// Texts without personal data, as inspectors write them.
const HARMLESS: &[&str] = &[
    "",
    "Sol ön çamurluk değişen, 2 parça lokal boyalı.",
    "Şasi no WVWZZZ1JZ3W386752 yerinde.",
    "VIN 1HGCM82633A004352, motor no CAYC123456",
    "VIN NM0LXXTTGLEA12345678901",
    "Plaka 34 ABC 123 ile kayıtlı",
    "06 AB 12345",
    "Fiyat 1.250.000,00 TL",
    "2.250.000.000,00 TL",
    "25.000-30.000 TL arası",
    "250.000 - 300.000 TL arası",
    "Egea 2018 123.456 km",
    "Egea 2018 123456 km'de",
    "2018 1250000 TL",
    "Kilometre 123.456 km, gösterge 123.457 km",
    "45.000-123.456 km",
    "25.05.2024 14:30",
    "25.05.2024 10 adet",
    "03.05.2024 120 bar",
    "25.05.2024-30.05.2024 arası",
    "2024-05-25 14:30:12",
    "2024-05-25T14:30:12Z",
    "Rapor R-2024-0012345",
    "Rapor EKS-2026-000123 ile aynı",
    "Rapor 2026-000123",
    "RPT_20260001234",
    "Lastik 205/55 R16 91V, DOT 2319",
    "Ölçüler 120 115 130 118",
    "Tork 320 Nm, güç 150 HP, basınç 2,3 bar",
    "1.598 cc, 12.5 V",
];

/// PII-2
#[test]
fn texts_without_personal_data_are_unchanged() {
    for text in HARMLESS {
        assert_eq!(scrub(text), *text);
    }
}

/// PII-2
#[test]
fn the_text_around_digits_decides_whether_they_are_a_number() {
    for (text, clean) in [
        // Amounts, and digits beside them.
        ("14.532 123 45 67", "14.532 123 45 67"),
        ("45.5321234567", "45.[removed]"),
        ("5.000₺5321234567", "5.000₺[removed]"),
        ("tel 21.234.567,89 TL", "tel 21.234.567,89 TL"),
        ("2.123.456.789", "2.123.456.789"),
        // A separate 90 or 00 after other digits is not a prefix.
        ("90 90) 212 345 67 89", "90 90) [removed]"),
        ("14:00 90 532 123 45 67", "14:00 90 [removed]"),
        ("78 905321234567", "78 [removed]"),
        ("14:0090 532 123 45 67", "14:[removed]"),
        ("00:34116794300", "00:[removed]"),
        ("00900 532 123 45 67", "[removed]"),
        // A VIN has 17 characters without I, O and Q, and no word before it that announces a number.
        ("12345678901ABCDEF", "12345678901ABCDEF"),
        ("ABCDEF12345678901", "ABCDEF12345678901"),
        ("12345678901ABCDEI", "[removed]ABCDEI"),
        ("IBCDEF12345678901", "IBCDEF[removed]"),
        ("02345678901ABCDEF", "[removed]ABCDEF"),
        ("TC12345678901ABCD", "TC[removed]ABCD"),
        ("10000000146TC", "[removed]TC"),
        ("5321234567A", "[removed]A"),
        ("12345678901a1", "[removed]a1"),
        // Part numbers and codes.
        ("40 20 638 805", "40 20 638 805"),
        ("45 67 456:984", "[removed]"),
        ("52119-02990", "52119-02990"),
        ("52119 02990", "[removed]"),
        ("A 212 345 67 89", "A 212 345 67 89"),
        ("BA 212 345 67 89", "BA [removed]"),
        ("212 345 67 89TR", "212 345 67 89TR"),
        ("Ara2123456789", "Ara[removed]"),
        ("PO-2123456789", "PO-2123456789"),
        ("ref/21 23 45 67 89", "ref/21 23 45 67 89"),
        ("ref/2123456789", "ref/[removed]"),
        ("ref-21 23 45 67 89", "ref-[removed]"),
        // A word that announces a number.
        ("TC 52119-02990", "TC [removed]"),
        ("no 52119-02990", "no 52119-02990"),
        // Lists, longer numbers and dates.
        ("331, 256 51 21", "[removed]"),
        ("212345, 67 89", "212345, 67 89"),
        ("2121234567/2", "[removed]"),
        ("3 25.05.2024/1", "[removed]"),
        // Letters that look like digits.
        ("53212lOIOl", "[removed]"),
        ("5321lOIOlO", "5321lOIOlO"),
        ("1234567⅒O", "1234567⅒O"),
    ] {
        assert_eq!(scrub(text), clean, "{text}");
    }
}

fn separator() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(" "), Just("."), Just("-"), Just(" - "), Just("\u{a0}"), Just("")]
}

/// A note, and the same note without personal data.
fn note() -> impl Strategy<Value = (String, String)> {
    let harmless = harmless_text().prop_map(|word| (word.clone(), word));
    let removed = prop_oneof![national_id(), telephone()].prop_map(|number| (number, REMOVED.to_owned()));
    let sentence = (0..HARMLESS.len()).prop_map(|index| (HARMLESS[index].to_owned(), HARMLESS[index].to_owned()));
    let part = prop_oneof![
        harmless,
        removed,
        sentence,
        "[a-zçğıöşü]{1,8}".prop_map(|word| (word.clone(), word))
    ];
    let between = prop_oneof![
        Just(" | "),
        Just("; "),
        Just(" / "),
        Just(" ve "),
        Just(", sahibi "),
        // A line break alone may be inside of a number.
        Just(" ve\n")
    ];
    vec((part, between), 1..6).prop_map(|parts| {
        let (mut note, mut clean) = (String::new(), String::new());
        for ((part, remains), between) in parts {
            note = note + &part + between;
            clean = clean + &remains + between;
        }
        (note, clean)
    })
}

proptest! {
    #![proptest_config(fixed_seed())]

    /// A text with fewer digits in a row than the shortest number has nothing to remove.
    #[test]
    fn the_quick_check_rejects_no_text_with_a_number(text in "[0-9Ol|ıia ./()+,\\-\n\u{a0}５²⑫㏾\u{200b}ç]{0,40}") {
        let has_number = !removed(&text).is_empty();
        prop_assert!(!has_number || most_digits_in_a_row(&text) >= SHORTEST_NUMBER, "{}", text);
    }

    #[test]
    fn an_id_in_any_grouping_is_removed(
        digits in "[1-9][0-9]{10}",
        sizes in prop_oneof![
            Just(vec![11]), Just(vec![3, 3, 3, 2]), Just(vec![5, 6]), Just(vec![3, 4, 4]),
            Just(vec![2, 3, 3, 3]), Just(vec![1; 11]), Just(vec![4, 4, 3]),
        ],
        separator in separator(),
        before in "[a-zçğıöşü]{0,8} ",
        after in "[ ,;!?][a-zçğıöşü ]{0,8}",
    ) {
        let number = grouped(&digits, &sizes, separator);
        prop_assert_eq!(
            scrub(&format!("{before}{number}{after}")).into_owned(), format!("{before}{REMOVED}{after}"));
    }

    #[test]
    fn a_telephone_number_in_any_format_is_removed(
        prefix in prop_oneof![Just("+90"), Just("0"), Just("90"), Just("0090"), Just("")],
        area in "[2-5][0-9]{2}",
        rest in "[0-9]{7}",
        sizes in prop_oneof![Just(vec![3, 2, 2]), Just(vec![3, 4]), Just(vec![7]), Just(vec![1; 7])],
        parentheses in any::<bool>(),
        separator in separator(),
        after in "[ ,;!?][a-zçğıöşü ]{0,8}",
    ) {
        // 20yy-nnnnnnn is the format of a report number, and area codes do not begin with 20.
        prop_assume!(!area.starts_with("20"));
        let area = if parentheses { format!("({area})") } else { area };
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}{separator}") };
        let number = format!("{prefix}{area}{separator}{}", grouped(&rest, &sizes, separator));
        prop_assert_eq!(scrub(&format!("ara: {number}{after}")).into_owned(), format!("ara: {REMOVED}{after}"));
    }

    #[test]
    fn digits_with_any_separators_between_them_are_removed(
        digits in "[1-9][0-9]{10}",
        separators in vec(separator(), 10),
    ) {
        let mut number = String::new();
        for (index, digit) in digits.chars().enumerate() {
            number.push(digit);
            number.push_str(separators.get(index).copied().unwrap_or_default());
        }
        let clean = scrub(&number);
        prop_assert!(!clean.chars().any(|c| c.is_ascii_digit()), "{number} became {clean}");
    }

    /// PII-2
    #[test]
    fn only_ids_and_numbers_are_removed_from_a_note((note, clean) in note()) {
        prop_assert_eq!(scrub(&note), clean.as_str());
    }

    #[test]
    fn scrubbing_is_idempotent_for_digits_and_separators(
        text in "([0-9]{1,4}[ .()\\-–]{0,2}|[a-zŞ:,/]{1,2}| km| TL){0,16}",
    ) {
        let once = scrub(&text).into_owned();
        let again = scrub(&once).into_owned();
        prop_assert_eq!(once, again);
    }

    #[test]
    fn harmless_text_beside_a_removed_number_is_kept(index in 1..HARMLESS.len()) {
        let text = HARMLESS[index];
        prop_assert_eq!(scrub(&format!("{text} | 0532 123 45 67")).into_owned(), format!("{text} | {REMOVED}"));
    }
}

#[test]
fn the_quick_check_misses_no_invisible_character() {
    for character in ('\0'..=char::MAX).map(String::from) {
        assert!(
            may_have_invisible(&character) || !INVISIBLE.is_match(&character),
            "{character:?}"
        );
    }
    assert!(!may_have_invisible("Ön çamurluk değişmiş, çok iyi"));
}
