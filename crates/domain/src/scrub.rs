//! Removing Turkish national ids and telephone numbers from inspectors' free texts.
//!
//! A national id has 11 digits, the first of them not 0. A telephone number has 10 digits that begin with 5 (mobile) or
//! 2 to 4 (landline), written bare or behind `0`, `90` or `+90`. Both may be cut by spaces, dots, dashes and parentheses
//! anywhere. Numbers of that length also arise where a date, a price or a mileage stands beside another number
//! (`2018 123.456 km`), so what is surely one of those is left out of the doubtful patterns. What stays doubtful is
//! removed: a lost number harms less than a person's.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use regex::Regex;

/// What stands in the place of removed text in an answer.
pub const REMOVED: &str = "[removed]";
/// The same on the pages of a report, in the language of the reports.
pub const REMOVED_ON_PAPER: &str = "[gizlendi]";

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
    scrub_with(text, REMOVED)
}

/// [`scrub`], with another mark in the place of what is removed.
pub fn scrub_with<'t>(text: &'t str, mark: &str) -> Cow<'t, str> {
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
        clean.push_str(mark);
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
mod tests;
