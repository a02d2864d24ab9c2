//! Makes any text printable. A character without a glyph in the embedded fonts would fail the PDF/UA check. Control and
//! bidi-override characters could garble a line. A very long word would overflow its table cell.

use serde_json::Value;

/// Replaces a character that cannot be printed.
const REPLACEMENT: char = '\u{fffd}';
/// A longer word gets break opportunities after this many characters.
const LONG_WORD: usize = 24;

/// Cleans every text in `value` at any depth, except the members named `href`, which are validated elsewhere.
pub(crate) fn clean_all(value: &mut Value, has_glyph: &dyn Fn(char) -> bool) {
    match value {
        Value::String(text) => *text = clean(text, has_glyph),
        Value::Array(items) => items.iter_mut().for_each(|item| clean_all(item, has_glyph)),
        Value::Object(members) => members
            .iter_mut()
            .filter(|(name, _)| *name != "href")
            .for_each(|(_, member)| clean_all(member, has_glyph)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn clean(text: &str, has_glyph: &dyn Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut run = 0;
    for character in text.trim().chars() {
        let character = match character {
            '\n' | ' ' | '\u{a0}' => character,
            '\t' | '\u{2028}' | '\u{2029}' | '\u{85}' => ' ',
            // Joiners and directional controls have no glyph.
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}' => {
                continue;
            }
            '\u{fe00}'..='\u{fe0f}' => continue,
            c if c.is_control() => continue,
            c if is_private(c) || !has_glyph(c) => REPLACEMENT,
            c => c,
        };
        if character == '\n' || character == ' ' {
            run = 0;
        } else {
            run += 1;
            if run > LONG_WORD {
                out.push('\u{200b}');
                run = 1;
            }
        }
        out.push(character);
    }
    out
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
        assert_eq!(clean(text, &|_| true), text);
    }

    #[test]
    fn characters_without_a_glyph_are_replaced_and_controls_are_removed() {
        assert_eq!(clean("a\u{0}b\u{202e}c\td", &|_| true), "abc d");
        assert_eq!(clean("x😀y\u{e123}", &|c| c != '😀'), "x\u{fffd}y\u{fffd}");
    }

    #[test]
    fn a_very_long_word_gets_break_opportunities() {
        let cleaned = clean(&"x".repeat(60), &|_| true);
        assert_eq!(cleaned.matches('\u{200b}').count(), 2);
    }

    #[test]
    fn links_are_not_changed() {
        let mut value = serde_json::json!({"href": "a\tb", "text": ["a\tb"]});
        clean_all(&mut value, &|_| true);
        assert_eq!(value, serde_json::json!({"href": "a\tb", "text": ["a b"]}));
    }
}
