//! Guards: the signs by which a candidate is something other than a national ID or a telephone number.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::compile;
use super::numbers::{Candidate, Certainty, Kind};

/// A date: day first, or ISO 8601. Two-digit days and months are required, because `1.1.1900` may be the end of a number.
const DATE: &str = concat!(
    r"(?:0[1-9]|[12][0-9]|3[01])[./-](?:0[1-9]|1[0-2])[./-](?:19|20)[0-9]{2}",
    r"|(?:0[1-9]|[12][0-9]|3[01])[./](?:0[1-9]|1[0-2])[./][0-9]{2}",
    r"|(?:19|20)[0-9]{2}[./-](?:0[1-9]|1[0-2])[./-](?:0[1-9]|[12][0-9]|3[01])",
);

/// Dates, and numbers that begin with a year and a dash, as report numbers do.
static DATES: LazyLock<Regex> = LazyLock::new(|| compile(&format!("{DATE}|20[0-9]{{2}}[-/][0-9]{{4,7}}")));
static DATE_BEFORE: LazyLock<Regex> = LazyLock::new(|| compile(&format!("(?:{DATE})-$")));
static DATE_AFTER: LazyLock<Regex> = LazyLock::new(|| compile(&format!("^-(?:{DATE})")));

/// Amounts with their unit, and ranges of them: `1.250.000,00 TL`, `25.000-30.000 km`, `123456 km`.
static AMOUNTS: LazyLock<Regex> = LazyLock::new(|| {
    let amount = r"(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]{5,10})(?:,[0-9]{1,2})?";
    compile(&format!(
        r"(?:{amount} ?- ?)?{amount} ?(?:₺|€|\$|(?i:tl|try|usd|eur|lira|km|kilometre|kilometer)\b)"
    ))
});

/// Numbers with points between thousands.
static THOUSANDS: LazyLock<Regex> = LazyLock::new(|| compile(r"[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]{1,2})?"));

/// Sizes of tires: `205/55/16`.
static TIRES: LazyLock<Regex> = LazyLock::new(|| compile(r"[12][0-9]5/[3-8][05][/ ](?:1[2-9]|2[0-2])"));

/// The unit after a list of measured values.
static UNIT: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"^ ?(?i:mikron|micron|µm|μm|um|mm|cm|kn|dan|bar|psi|cc|hp|bg|kw|nm|volt|amper|adet|lt|litre|dev|devir|rpm|ppm|derece|kg|mv)\b",
    )
});

/// A value of three digits before a space.
static VALUE_BEFORE: LazyLock<Regex> = LazyLock::new(|| compile(r"(?:^|[^0-9.,])[0-9]{3} $"));

/// A value with decimals.
static DECIMAL: LazyLock<Regex> = LazyLock::new(|| compile(r"^[0-9]{1,3}(?:\.[0-9]{3})*,[0-9]{1,2}$"));

/// A value with decimals that begins a list.
static FIRST_DECIMAL: LazyLock<Regex> =
    LazyLock::new(|| compile(r"^(?:[0-9]{1,3}(?:\.[0-9]{3})*,[0-9]{1,2}|0\.[0-9]{1,2})[ /+-]"));

/// Words that introduce an ID or a number. Digits after them are not part of an identifier.
const ANNOUNCING: &[&str] = &[
    "tel", "telefon", "gsm", "cep", "mobil", "phone", "fax", "faks", "tc", "tckn", "tcno", "telno", "kimlik", "id",
    "no", "wp",
];

/// Words of [`ANNOUNCING`] that are also used before other numbers.
const AMBIGUOUS: &[&str] = &["id", "no"];

/// The spans of a text that are not numbers of persons.
pub(super) struct Guards<'t> {
    text: &'t str,
    dates: Vec<Range<usize>>,
    amounts: Vec<Range<usize>>,
    thousands: Vec<Range<usize>>,
    tires: Vec<Range<usize>>,
}

impl<'t> Guards<'t> {
    pub fn of(text: &'t str) -> Self {
        let starts_number = |span: &Range<usize>| !ends_with_digit(&text[..span.start]);
        Guards {
            text,
            dates: spans(&DATES, text, |span| is_whole_date(text, span)),
            amounts: spans(&AMOUNTS, text, starts_number),
            thousands: spans(&THOUSANDS, text, |span| {
                let (before, after) = (&text[..span.start], &text[span.end..]);
                starts_number(span)
                    && !before.strip_suffix('.').is_some_and(ends_with_digit)
                    && !starts_with_digit(after)
                    && !after.strip_prefix('.').is_some_and(starts_with_digit)
            }),
            tires: spans(&TIRES, text, starts_number),
        }
    }

    /// Returns whether a candidate is taken for an ID or a telephone number.
    pub fn accept(&self, candidate: &Candidate) -> bool {
        let span = &candidate.span;
        if overlaps(&self.dates, span) || self.is_vin_like(candidate) || self.is_report_number(candidate) {
            return false;
        }
        // A separate 90 directly after other digits belongs to those: `123 456 789 90 / 0532 123 45 67`. So do the minutes of a
        // time: `14:00 90 …`.
        let before = &self.text[..span.start];
        let continues = |signs: &[char]| before.strip_suffix(signs).is_some_and(ends_with_digit);
        let (first, digits) = (candidate.cuts.first(), candidate.digits.as_str());
        if (digits.starts_with("90") && first == Some(&2) && continues(&[' ', '.', '-']))
            || (digits.starts_with("00") && first == Some(&2) && continues(&[':']))
        {
            return false;
        }
        if self.amounts.contains(&self.with_unit(span)) {
            return false;
        }
        let certainty = candidate.certainty;
        // A list of numbers has these signs; a number of a person does not.
        let is_list = [" | ", "; "]
            .iter()
            .any(|between| self.text[span.clone()].contains(between));
        if is_list || certainty == Certainty::Sure {
            return !is_list;
        }
        if certainty == Certainty::Mobile {
            return !self.cuts_amount(span);
        }
        if candidate.has_valid_check_digits() {
            return true;
        }
        !self.is_part_of_identifier(candidate)
            && !self.is_part_of_longer_number(candidate)
            && (self.is_announced(span) || !self.is_amount_or_list(candidate))
    }

    /// Returns the amount that begins with `span`, or `span` itself.
    fn with_unit(&self, span: &Range<usize>) -> Range<usize> {
        let amount = self
            .amounts
            .iter()
            .find(|amount| amount.start == span.start && amount.end > span.end);
        amount.unwrap_or(span).clone()
    }

    /// Upper-case letters and further digits in the same word indicate a VIN, a plate, or a part number.
    fn is_vin_like(&self, candidate: &Candidate) -> bool {
        let (before, after) = self.words_around(&candidate.span);
        let mut rest = before.chars().chain(after.chars());
        let is_capital = rest.all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
        if !is_capital || announces(before) || before.len() + after.len() == 0 {
            return false;
        }
        let has_digit = before.contains(|c: char| c.is_ascii_digit()) || after.contains(|c: char| c.is_ascii_digit());
        let is_vin = before.len() + candidate.digits.len() + after.len() == 17
            && candidate.cuts.is_empty()
            && !candidate.digits.starts_with('0')
            && !before.contains(['I', 'O', 'Q'])
            && !after.contains(['I', 'O', 'Q']);
        has_digit || is_vin
    }

    /// A number after capitals and a separator that begins with a year: `RPT_20260001234`.
    fn is_report_number(&self, candidate: &Candidate) -> bool {
        candidate.kind == Kind::Id
            && candidate.cuts.is_empty()
            && candidate.digits.starts_with("20")
            && self.code_before(&candidate.span).is_some_and(is_capitals)
    }

    fn is_part_of_identifier(&self, candidate: &Candidate) -> bool {
        let (before, after) = self.words_around(&candidate.span);
        let doubtful = candidate.certainty == Certainty::Doubtful;
        // Capitals beside the digits: `A2048302018`, `ABC123 45 …`.
        let beside = [before, after].into_iter().any(|word| {
            !announces(word)
                && if doubtful {
                    word.contains(char::is_uppercase)
                } else {
                    is_capitals(word) && word.len() <= 3
                }
        });
        if beside {
            return true;
        }
        let text = &self.text[..candidate.span.start];
        // `A 204 830 20 18` is a part number.
        if candidate.kind == Kind::Telephone && text.ends_with("A ") && word_before(text.trim_end()) == "A" {
            return true;
        }
        self.code_before(&candidate.span)
            .is_some_and(|code| is_capitals(code) || (doubtful && text.ends_with('/')))
    }

    /// Returns the word before a dash, an underscore or a slash before the span, if it does not introduce a number.
    fn code_before(&self, span: &Range<usize>) -> Option<&'t str> {
        let word = word_before(self.text[..span.start].strip_suffix(['-', '_', '/'])?);
        (word.contains(char::is_alphabetic) && !announces(word)).then_some(word)
    }

    /// Further digits follow or precede after one character other than a space, as in `2024/05/1234567890` or `14:30`.
    fn is_part_of_longer_number(&self, candidate: &Candidate) -> bool {
        const TIGHT: [char; 6] = ['.', '/', '-', '_', ',', ':'];
        let (before, after) = (&self.text[..candidate.span.start], &self.text[candidate.span.end..]);
        before.strip_suffix(TIGHT).is_some_and(ends_with_digit)
            || after.strip_prefix(TIGHT).is_some_and(starts_with_digit)
    }

    /// Returns whether the word before the candidate announces a number of a person.
    fn is_announced(&self, span: &Range<usize>) -> bool {
        let before = self.text[..span.start].trim_end_matches(|c: char| !c.is_alphanumeric());
        let word = word_before(before);
        announces(word) && !AMBIGUOUS.iter().any(|known| word.eq_ignore_ascii_case(known))
    }

    fn is_amount_or_list(&self, candidate: &Candidate) -> bool {
        let span = &candidate.span;
        // An amount that overlaps the candidate ends after it, with a unit, which is never inside of a candidate.
        if self.cuts_amount(span) {
            return true;
        }
        if candidate.certainty == Certainty::Usual && candidate.kind == Kind::Telephone {
            return false;
        }
        let inside = &self.text[span.clone()];
        // A year and a mileage: `2015 185.000`. No area code begins with 20.
        if candidate.kind == Kind::Telephone && candidate.digits.starts_with("20") && candidate.cuts.contains(&4) {
            return true;
        }
        // One of several values: `120 115 130 118 95`.
        if candidate.kind == Kind::Id && VALUE_BEFORE.is_match(&self.text[..span.start]) {
            return true;
        }
        let is_list = [", ", " / ", " | ", "; ", ": "]
            .iter()
            .any(|between| inside.contains(between));
        if is_list || UNIT.is_match(&self.text[span.end..]) {
            return true;
        }
        candidate.certainty == Certainty::Doubtful
            && (overlaps(&self.tires, span)
                || is_part_number(candidate, inside)
                || is_list_of_values(candidate, inside))
    }

    /// Returns whether only a part of an amount is in the span.
    fn cuts_amount(&self, span: &Range<usize>) -> bool {
        self.amounts.iter().chain(&self.thousands).any(|amount| {
            let is_inside = span.start <= amount.start && amount.end <= span.end;
            amount.start < span.end && span.start < amount.end && !is_inside
        })
    }

    fn words_around(&self, span: &Range<usize>) -> (&'t str, &'t str) {
        (
            word_before(&self.text[..span.start]),
            word_after(&self.text[span.end..]),
        )
    }
}

/// The usual groups of part numbers: BMW's `34 11 6 794 300`, Bosch's `3 397 118 979`, Toyota's `52119-02990`, Renault's
/// `40 20 638 805`.
fn is_part_number(candidate: &Candidate, inside: &str) -> bool {
    match candidate.cuts.as_slice() {
        [2, 4, 5, 8] | [1, 4, 7] => !inside.contains(|c: char| c != ' ' && !c.is_ascii_digit()),
        [2, 4, 7] => candidate.kind == Kind::Telephone && !inside.contains(|c: char| c != ' ' && !c.is_ascii_digit()),
        [5] => candidate.kind == Kind::Telephone && inside.contains('-'),
        _ => false,
    }
}

/// Several values: with decimals, or with points between thousands.
fn is_list_of_values(candidate: &Candidate, inside: &str) -> bool {
    let values: Vec<&str> = inside
        .split([' ', '-', '/'])
        .filter(|value| !value.is_empty())
        .collect();
    if FIRST_DECIMAL.is_match(inside) || values.iter().filter(|value| DECIMAL.is_match(value)).count() >= 2 {
        return true;
    }
    let are_thousands = values
        .iter()
        .all(|value| THOUSANDS.find(value).is_some_and(|found| found.len() == value.len()));
    are_thousands && (values.len() >= 2 || candidate.kind == Kind::Telephone || inside.contains(','))
}

/// Returns the matches that `accepts` accepts. After a rejected match, the search continues one character later.
fn spans(regex: &Regex, text: &str, accepts: impl Fn(&Range<usize>) -> bool) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(found) = regex.find_at(text, from) {
        let span = found.range();
        if accepts(&span) {
            from = span.end;
            spans.push(span);
        } else {
            from = span.start + text[span.start..].chars().next().map_or(1, char::len_utf8);
        }
    }
    spans
}

pub(super) fn overlaps(spans: &[Range<usize>], span: &Range<usize>) -> bool {
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

/// Returns whether a date is not part of a longer sequence of digits.
fn is_whole_date(text: &str, span: &Range<usize>) -> bool {
    let (before, after) = (&text[..span.start], &text[span.end..]);
    if ends_with_digit(before) || starts_with_digit(after) {
        return false;
    }
    // A date may be followed by a dash and digits only in a range of dates: `25.05.2024-30.05.2024`.
    let free_before = !before.strip_suffix(['.', '/', '-']).is_some_and(ends_with_digit);
    let free_after = !after.strip_prefix(['.', '/', '-']).is_some_and(starts_with_digit);
    (free_before || DATE_BEFORE.is_match(before)) && (free_after || DATE_AFTER.is_match(after))
}

fn word_before(text: &str) -> &str {
    &text[text.trim_end_matches(char::is_alphanumeric).len()..]
}

fn word_after(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches(char::is_alphanumeric).len()]
}

fn announces(word: &str) -> bool {
    ANNOUNCING.iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn is_capitals(word: &str) -> bool {
    !word.is_empty() && word.chars().all(char::is_uppercase)
}
