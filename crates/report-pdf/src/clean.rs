//! Makes any text printable. A character without a glyph in the embedded fonts would fail the PDF/UA check. Control and
//! bidi-override characters could garble a line. A very long word would overflow its table cell.
//!
//! Break opportunities are characters of the text, so a search for a divided word fails. Report numbers and addresses, which readers
//! search and copy, have none.

use serde_json::Value;
use unicode_normalization::char::is_combining_mark;

/// Replaces characters that cannot be printed.
const REPLACEMENT: char = '\u{fffd}';
/// A longer word gets break opportunities after this many characters.
const LONG_WORD: usize = 24;
/// Of the combining marks of a character, those after this many are left out. The layout of hundreds of them takes seconds, and no
/// language needs them.
const MAX_MARKS: usize = 4;
/// The members whose words are not divided: the report's number, and the lines of its verification address.
const UNDIVIDED: [&str; 2] = ["report_number", "lines"];

/// Cleans every text in `value` at any depth, except the members named `href`, which are validated elsewhere.
pub(crate) fn clean_all(value: &mut Value, has_glyph: &dyn Fn(char) -> bool) {
    clean_within(value, LONG_WORD, has_glyph);
}

fn clean_within(value: &mut Value, long_word: usize, has_glyph: &dyn Fn(char) -> bool) {
    match value {
        Value::String(text) => *text = clean(text, long_word, has_glyph),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| clean_within(item, long_word, has_glyph)),
        Value::Object(members) => {
            for (name, member) in members.iter_mut().filter(|(name, _)| *name != "href") {
                let long_word = if UNDIVIDED.contains(&name.as_str()) {
                    usize::MAX
                } else {
                    long_word
                };
                clean_within(member, long_word, has_glyph);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Cleans a text, whose words longer than `long_word` get break opportunities. Pictographs without a glyph are left out, and a run of
/// other characters without one gets a single mark, because several would not tell the reader more.
fn clean(text: &str, long_word: usize, has_glyph: &dyn Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut run = 0;
    let mut marks = 0;
    let mut is_left_out = false;
    for character in text.trim().chars() {
        if is_combining_mark(character) {
            marks += 1;
            if marks > MAX_MARKS {
                continue;
            }
        }
        let character = match character {
            '\n' | ' ' | '\u{a0}' => character,
            '\t' | '\u{2028}' | '\u{2029}' | '\u{85}' => ' ',
            // Joiners and directional controls have no glyph.
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}' => {
                continue;
            }
            '\u{fe00}'..='\u{fe0f}' => continue,
            c if c.is_control() => continue,
            c if is_pictograph(c) && !has_glyph(c) => {
                is_left_out = true;
                continue;
            }
            c if is_private(c) || !has_glyph(c) => {
                if out.ends_with(REPLACEMENT) {
                    continue;
                }
                REPLACEMENT
            }
            c => c,
        };
        if !is_combining_mark(character) {
            marks = 0;
        }
        // The space on one side of a pictograph is left out with it.
        if std::mem::take(&mut is_left_out) && character == ' ' && (out.is_empty() || out.ends_with([' ', '\n'])) {
            continue;
        }
        if character == '\n' || character == ' ' {
            run = 0;
        } else {
            run += 1;
            if run > long_word {
                out.push('\u{200b}');
                run = 1;
            }
        }
        out.push(character);
    }
    out.truncate(out.trim_end().len());
    out
}

/// Emoji and other pictographs, and their skin tones.
fn is_pictograph(character: char) -> bool {
    matches!(character, '\u{1f000}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}')
}

/// Private-use characters have no meaning for a reader or a screen reader.
fn is_private(character: char) -> bool {
    matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_text_stays_as_it_is() {
        let text = "İşçi ığdır âşık #let *x* $y$ \\z\nikinci satır";
        assert_eq!(clean(text, LONG_WORD, &|_| true), text);
    }

    #[test]
    fn characters_without_a_glyph_are_replaced_and_controls_are_removed() {
        let cleaned = |text| clean(text, LONG_WORD, &|c: char| c.is_ascii());
        assert_eq!(cleaned("a\u{0}b\u{202e}c\td"), "abc d");
        assert_eq!(cleaned("x漢字y\u{e123}"), "x\u{fffd}y\u{fffd}");
    }

    #[test]
    fn pictographs_without_a_glyph_are_left_out() {
        let cleaned = |text| clean(text, LONG_WORD, &|c: char| c.is_ascii());
        for (text, expected) in [
            ("Boya 👍🏽 iyi", "Boya iyi"),
            ("👨‍👩‍👧 Aile", "Aile"),
            ("Bitti 🚗🚗", "Bitti"),
            ("a😀b", "ab"),
        ] {
            assert_eq!(cleaned(text), expected);
        }
    }

    #[test]
    fn a_character_keeps_at_most_four_combining_marks() {
        let cleaned = |text: &str| clean(text, LONG_WORD, &|_| true);
        let many = format!("g{}b{}", "\u{301}".repeat(1_000), "\u{301}\u{200d}".repeat(1_000));
        assert_eq!(
            cleaned(&many),
            "g\u{301}\u{301}\u{301}\u{301}b\u{301}\u{301}\u{301}\u{301}"
        );
        assert_eq!(cleaned("ệ g\u{306}a\u{302}\u{323}"), "ệ g\u{306}a\u{302}\u{323}");
    }

    #[test]
    fn a_very_long_word_gets_break_opportunities() {
        let cleaned = clean(&"x".repeat(60), LONG_WORD, &|_| true);
        assert_eq!(cleaned.matches('\u{200b}').count(), 2);
    }

    #[test]
    fn report_numbers_and_addresses_are_not_divided() {
        let long = "x".repeat(60);
        let mut value = serde_json::json!({"report_number": long, "verification": {"lines": [long]}, "summary": long});
        clean_all(&mut value, &|_| true);
        let is_divided = |pointer: &str| value.pointer(pointer).and_then(Value::as_str) != Some(long.as_str());
        assert!(!is_divided("/report_number") && !is_divided("/verification/lines/0"));
        assert!(is_divided("/summary"));
    }

    #[test]
    fn links_are_not_changed() {
        let mut value = serde_json::json!({"href": "a\tb", "text": ["a\tb"]});
        clean_all(&mut value, &|_| true);
        assert_eq!(value, serde_json::json!({"href": "a\tb", "text": ["a b"]}));
    }
}
