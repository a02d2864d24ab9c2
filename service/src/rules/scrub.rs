//! Removing Turkish national ids and telephone numbers from inspectors' free texts.
//!
//! A national id has 11 digits, the first of them not 0. A telephone number has 10 digits that begin with 5 (mobile) or
//! 2 to 4 (landline), written bare or behind `0`, `90` or `+90`. Both may be cut by spaces, dots, dashes and parentheses
//! anywhere. Numbers of that length also arise where a date, a price or a mileage stands beside another number
//! (`2018 123.456 km`), so what is surely one of those is left out of the doubtful patterns. What stays doubtful is
//! removed: a lost number harms less than a person's.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use regex::Regex;

/// What stands in the place of removed text.
pub const REMOVED: &str = "[removed]";

/// One way to write an id or a number, tried after those before it.
struct Pattern {
    regex: Regex,
    /// How sure it is of what it finds.
    certain: Certainty,
}

/// How sure a pattern is of what it found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// Nothing else is written so.
    Sure,
    /// A usual grouping, though report numbers may have it behind letters and a dash.
    Usual,
    /// Only the count of digits speaks for it.
    Doubtful,
}

/// A separator between two digits: blanks, dots, dashes, parentheses, at most four of them.
const SEPARATOR: &str = r"[\p{Zs}\t.()\-‐‑–—]{0,4}";

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and every test compiles them"
)]
fn compile(pattern: &str) -> Regex {
    Regex::new(&pattern.replace('~', SEPARATOR)).expect("a constant pattern")
}

static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    [
        // A number with its prefix, and an id in one piece.
        (r"\(?(?:\+~|0~0~)?(?:9~0|0)~[2-5](?:~[0-9]){9}", Certainty::Sure),
        (r"[1-9][0-9]{10}", Certainty::Sure),
        // The usual groupings: 532 123 45 67, 532 123 4567, 532 1234567; 123 456 789 01, 12345 678901, 123 4567 8901.
        (r"\(?[2-5][0-9]{2}~[0-9]{3}~[0-9]{2}~[0-9]{2}", Certainty::Usual),
        (r"[1-9][0-9]{2}~[0-9]{3}~[0-9]{3}~[0-9]{2}", Certainty::Usual),
        (r"[1-9][0-9]{4}~[0-9]{6}", Certainty::Usual),
        (r"[1-9][0-9]{2}~[0-9]{4}~[0-9]{4}", Certainty::Usual),
        // Any grouping.
        (r"[1-9](?:~[0-9]){10}", Certainty::Doubtful),
        (r"\(?[2-5](?:~[0-9]){9}", Certainty::Doubtful),
    ]
    .into_iter()
    .map(|(pattern, certain)| Pattern {
        regex: compile(pattern),
        certain,
    })
    .collect()
});

/// A date: day first, or ISO 8601. All digits are asked for: `1.1.1900` may as well be the end of a number.
const DATE: &str = concat!(
    r"(?:0[1-9]|[12][0-9]|3[01])[./-](?:0[1-9]|1[0-2])[./-](?:19|20)[0-9]{2}",
    r"|(?:19|20)[0-9]{2}[./-](?:0[1-9]|1[0-2])[./-](?:0[1-9]|[12][0-9]|3[01])",
);

/// Dates, and numbers that begin with a year and a dash, as report numbers do.
static DATES: LazyLock<Regex> = LazyLock::new(|| compile(&format!("{DATE}|20[0-9]{{2}}[-/][0-9]{{4,7}}")));
static DATE_BEFORE: LazyLock<Regex> = LazyLock::new(|| compile(&format!("(?:{DATE})-$")));
static DATE_AFTER: LazyLock<Regex> = LazyLock::new(|| compile(&format!("^-(?:{DATE})")));

/// Amounts with their unit, and ranges of them: `1.250.000,00 TL`, `25.000-30.000 km`, `123456 km`.
static AMOUNTS: LazyLock<Regex> = LazyLock::new(|| {
    let amount = r"(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]{5,9})(?:,[0-9]{1,2})?";
    compile(&format!(
        r"(?:{amount}[\p{{Zs}}]?[-–][\p{{Zs}}]?)?{amount}[\p{{Zs}}]?(?:₺|€|\$|(?i:tl|try|usd|eur|lira|km|kilometre)\b)"
    ))
});

/// Words that announce an id or a number, and so never make it part of an identifier.
const ANNOUNCING: &[&str] = &[
    "tel", "telefon", "gsm", "cep", "mobil", "phone", "fax", "faks", "tc", "tckn", "kimlik", "id", "no", "wp",
];

/// `text` without national ids and telephone numbers; each becomes [`REMOVED`].
///
/// Vehicle numbers, VINs, prices, mileages, dates and report numbers stay.
pub fn scrub(text: &str) -> Cow<'_, str> {
    if !may_hold_a_number(text) {
        return Cow::Borrowed(text);
    }
    let dates = spans(&DATES, text, whole_date);
    let amounts = spans(&AMOUNTS, text, |text, span| !ends_with_digit(&text[..span.start]));
    let mut removed: Vec<Range<usize>> = Vec::new();
    for Pattern { regex, certain } in PATTERNS.iter() {
        let found = spans(regex, text, |text, span| {
            stands_alone(text, span, *certain)
                && !overlaps(&removed, span)
                && !overlaps(&dates, span)
                && (*certain != Certainty::Doubtful || !overlaps(&amounts, span))
        });
        removed.extend(found);
    }
    if removed.is_empty() {
        return Cow::Borrowed(text);
    }
    removed.sort_by_key(|span| span.start);
    let mut clean = String::with_capacity(text.len());
    let mut copied = 0;
    for span in removed {
        clean.push_str(&text[copied..span.start]);
        clean.push_str(REMOVED);
        copied = span.end;
    }
    clean.push_str(&text[copied..]);
    Cow::Owned(clean)
}

/// Whether there are ten digits with nothing between them that no pattern takes, a quick look that spares most texts the
/// patterns.
fn may_hold_a_number(text: &str) -> bool {
    text.as_bytes()
        .split(|byte| byte.is_ascii() && !matches!(byte, b'0'..=b'9' | b'+' | b' ' | b'\t' | b'.' | b'(' | b')' | b'-'))
        .any(|piece| piece.iter().filter(|byte| byte.is_ascii_digit()).count() >= 10)
}

/// The matches that `accepts` takes; after a refused one the search goes on one character later.
fn spans(regex: &Regex, text: &str, accepts: impl Fn(&str, &Range<usize>) -> bool) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(found) = regex.find_at(text, from) {
        let span = found.range();
        if accepts(text, &span) {
            from = span.end;
            spans.push(span);
        } else {
            from = span.start + text[span.start..].chars().next().map_or(1, char::len_utf8);
        }
    }
    spans
}

fn overlaps(spans: &[Range<usize>], span: &Range<usize>) -> bool {
    spans
        .iter()
        .any(|other| other.start < span.end && span.start < other.end)
}

fn ends_with_digit(text: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_digit())
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a date is not a piece of a longer chain of digits.
fn whole_date(text: &str, span: &Range<usize>) -> bool {
    let (before, after) = (&text[..span.start], &text[span.end..]);
    if ends_with_digit(before) || starts_with_digit(after) {
        return false;
    }
    // Only a range of dates goes on after a dash: `25.05.2024-30.05.2024`.
    let free_before = !before.strip_suffix(['.', '/', '-']).is_some_and(ends_with_digit);
    let free_after = !after.strip_prefix(['.', '/', '-']).is_some_and(starts_with_digit);
    (free_before || DATE_BEFORE.is_match(before)) && (free_after || DATE_AFTER.is_match(after))
}

/// Whether the digits are a number of their own, not a piece of a longer one or of an identifier with letters.
fn stands_alone(text: &str, span: &Range<usize>, certain: Certainty) -> bool {
    let (before, after) = (&text[..span.start], &text[span.end..]);
    if ends_with_digit(before) || starts_with_digit(after) {
        return false;
    }
    if part_of_identifier(word_before(before)) || part_of_identifier(word_after(after)) {
        return false;
    }
    if certain == Certainty::Sure {
        return true;
    }
    let by_dash = before.strip_suffix(['-', '_', '/']).map_or("", word_before);
    if by_dash.chars().any(char::is_alphabetic) && !announces(by_dash) {
        return false;
    }
    // A decimal comma makes it an amount, a colon a time.
    !(after.strip_prefix([',', ':']).is_some_and(starts_with_digit) && certain == Certainty::Doubtful)
}

fn word_before(text: &str) -> &str {
    let start = text.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_').len();
    &text[start..]
}

fn word_after(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').len();
    &text[..text.len() - rest]
}

fn announces(word: &str) -> bool {
    ANNOUNCING.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Upper-case letters that touch digits make a vehicle's number of them; lower-case ones are a suffix or a slip.
fn part_of_identifier(word: &str) -> bool {
    word.chars().any(|c| c.is_uppercase() || c == '_') && !announces(word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// PII-2
    #[test]
    fn ids_and_numbers_in_their_usual_forms_are_removed() {
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
    fn several_in_a_row_are_all_removed() {
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
    fn texts_without_personal_data_stay_as_they_are() {
        for text in HARMLESS {
            assert_eq!(scrub(text), *text);
        }
    }

    fn separator() -> impl Strategy<Value = &'static str> {
        prop_oneof![Just(" "), Just("."), Just("-"), Just(" - "), Just("\u{a0}"), Just("")]
    }

    /// The digits cut into pieces of the given sizes, joined by one separator.
    fn join(digits: &str, sizes: &[usize], separator: &str) -> String {
        let mut rest = digits;
        let mut pieces = Vec::new();
        for size in sizes {
            let (piece, tail) = rest.split_at(*size);
            pieces.push(piece);
            rest = tail;
        }
        pieces.join(separator)
    }

    proptest! {
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
            let planted = join(&digits, &sizes, separator);
            prop_assert_eq!(
                scrub(&format!("{before}{planted}{after}")).into_owned(), format!("{before}{REMOVED}{after}"));
        }

        #[test]
        fn a_number_in_any_style_is_removed(
            prefix in prop_oneof![Just("+90"), Just("0"), Just("90"), Just("0090"), Just("")],
            area in "[2-5][0-9]{2}",
            rest in "[0-9]{7}",
            sizes in prop_oneof![Just(vec![3, 2, 2]), Just(vec![3, 4]), Just(vec![7]), Just(vec![1; 7])],
            parentheses in any::<bool>(),
            separator in separator(),
            after in "[ ,;!?][a-zçğıöşü ]{0,8}",
        ) {
            // 20yy-nnnnnnn is a report number's form, and no area code begins with 20.
            prop_assume!(!area.starts_with("20"));
            let area = if parentheses { format!("({area})") } else { area };
            let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}{separator}") };
            let planted = format!("{prefix}{area}{separator}{}", join(&rest, &sizes, separator));
            prop_assert_eq!(scrub(&format!("ara: {planted}{after}")).into_owned(), format!("ara: {REMOVED}{after}"));
        }

        #[test]
        fn digits_with_any_separators_between_them_are_removed(
            digits in "[1-9][0-9]{10}",
            separators in proptest::collection::vec(separator(), 10),
        ) {
            let mut planted = String::new();
            for (place, digit) in digits.chars().enumerate() {
                planted.push(digit);
                planted.push_str(separators.get(place).copied().unwrap_or_default());
            }
            let clean = scrub(&planted);
            prop_assert!(!clean.chars().any(|c| c.is_ascii_digit()), "{planted} became {clean}");
        }

        #[test]
        fn any_text_is_survived_and_a_clean_one_stays_clean(text in any::<String>()) {
            let once = scrub(&text).into_owned();
            let again = scrub(&once).into_owned();
            prop_assert_eq!(once, again);
        }

        #[test]
        fn harmless_texts_stay_beside_a_removed_one(index in 1..HARMLESS.len()) {
            let text = HARMLESS[index];
            prop_assert_eq!(scrub(&format!("{text} | 0532 123 45 67")).into_owned(), format!("{text} | {REMOVED}"));
        }
    }
}
