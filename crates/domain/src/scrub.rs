//! Removal of Turkish national IDs and telephone numbers from inspectors' free texts (PII-2).
//!
//! A national ID has 11 digits and does not begin with 0. A telephone number has 10 digits that begin with 5 (mobile) or 2 to 4
//! (landline), optionally after `0`, `90` or `+90`. Numbers are found in the folded text ([`fold`]) and removed from the original.
//! Spaces, line breaks, dashes and other signs may separate the digits, and letters that look like digits count as such.
//!
//! A date, a price or a mileage next to another number can have the same number of digits (`2018 123.456 km`). So [`numbers`]
//! finds candidates, and [`guards`] rejects those that are something else. In case of doubt the digits are removed, because a
//! lost number does less harm than disclosed personal data.

mod fold;
mod guards;
mod numbers;

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use regex::Regex;

use self::fold::{Folded, Lookalikes, most_digits_in_a_row};
use self::guards::{Guards, overlaps};
use self::numbers::{Certainty, candidates};

/// The mark for removed text in a response.
pub const REMOVED: &str = "[removed]";
/// The mark on the pages of a report, in the language of the reports.
pub const REMOVED_IN_PDF: &str = "[gizlendi]";

/// The fewest digits, apart from letters that look like digits, of a text that is examined.
const FEWEST_DIGITS: usize = 5;

/// The digits of the shortest number: a telephone number without a prefix.
const SHORTEST_NUMBER: usize = 10;

/// Characters that a reader does not see (Cf), such as zero-width spaces, soft hyphens and directional overrides.
static INVISIBLE: LazyLock<Regex> = LazyLock::new(|| compile(r"\p{Cf}+"));

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and every test compiles them"
)]
fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// Replaces national IDs and telephone numbers in `text` by [`REMOVED`], and removes invisible characters.
///
/// Plates, VINs, prices, mileages, dates and report numbers are unchanged.
pub fn scrub(text: &str) -> Cow<'_, str> {
    scrub_with(text, REMOVED)
}

/// [`scrub`] with another mark for removed text.
pub fn scrub_with<'t>(text: &'t str, mark: &str) -> Cow<'t, str> {
    let visible = if may_have_invisible(text) {
        INVISIBLE.replace_all(text, "")
    } else {
        Cow::Borrowed(text)
    };
    match visible {
        Cow::Borrowed(text) => without_numbers(text, mark),
        Cow::Owned(text) => Cow::Owned(without_numbers(&text, mark).into_owned()),
    }
}

/// Returns whether a text may contain invisible characters. A text in Turkish does not: the first ones are U+00AD and U+0600. In
/// UTF-8, characters from U+0600 on begin with a byte of at least 0xD8.
fn may_have_invisible(text: &str) -> bool {
    text.bytes().any(|byte| byte >= 0xd8) || text.contains('\u{ad}')
}

fn without_numbers<'t>(text: &'t str, mark: &str) -> Cow<'t, str> {
    // Most texts cannot contain a number, and end here.
    if text.chars().filter(|c| c.is_numeric()).count() < FEWEST_DIGITS || most_digits_in_a_row(text) < SHORTEST_NUMBER {
        return Cow::Borrowed(text);
    }
    let removed = removed(text);
    if removed.is_empty() {
        return Cow::Borrowed(text);
    }
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

/// Returns the parts of the text to remove, in order.
fn removed(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    for lookalikes in [Lookalikes::Letters, Lookalikes::InRows, Lookalikes::BesideDigits] {
        let folded = Folded::of(text, lookalikes);
        if lookalikes == Lookalikes::Letters || !folded.replaced.is_empty() {
            spans.extend(found_in(&folded).iter().map(|span| folded.original(span)));
        }
    }
    spans.sort_by_key(|span| span.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

/// Returns the numbers in a folded text. If it has replaced letters, only certain numbers that contain one of them.
fn found_in(folded: &Folded) -> Vec<Range<usize>> {
    let text = folded.text.as_str();
    let candidates = candidates(text);
    if candidates.is_empty() {
        return Vec::new();
    }
    let guards = Guards::of(text);
    let mut found = Vec::new();
    for candidate in candidates {
        let is_relevant = folded.replaced.is_empty()
            || (candidate.certainty < Certainty::Doubtful
                && folded.replaced.iter().any(|at| candidate.span.contains(at)));
        if is_relevant && !overlaps(&found, &candidate.span) && guards.accept(&candidate) {
            found.push(candidate.span);
        }
    }
    found.into_iter().map(|span| with_opening(text, span)).collect()
}

/// Extends a number by its plus sign, and by a parenthesis that is closed in it.
fn with_opening(text: &str, mut span: Range<usize>) -> Range<usize> {
    let closes =
        |span: &Range<usize>| text[span.clone()].matches(')').count() > text[span.clone()].matches('(').count();
    loop {
        let before = text[..span.start].trim_end_matches(' ');
        let is_opening = before.ends_with('(') && closes(&span);
        let is_plus = before.ends_with('+') && text[span.start..].starts_with(['9', '(']);
        if !is_opening && !is_plus {
            return span;
        }
        span.start = before.len() - 1;
    }
}

#[cfg(test)]
mod tests;
