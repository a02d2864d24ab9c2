//! The folded form of a text, in which numbers are found, with the position of each folded character in the original.
//!
//! Folding shows a number as a reader sees it. It applies NFKC, so that full-width and circled digits become ASCII. It replaces
//! the digits of other scripts, every dash, every space and every line break by one character each. It drops characters that are invisible
//! or that only decorate others.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

/// The letters that count as the digits that they resemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookalikes {
    /// None.
    Letters,
    /// Those in a row of digits and such letters.
    InRows,
    /// Those directly beside a digit, as in `AliO532`.
    BesideDigits,
}

/// A folded text.
#[derive(Debug)]
pub(super) struct Folded {
    /// The text. Every digit in it is ASCII.
    pub text: String,
    /// The position in the original of each byte of `text`, and at the end the length of the original.
    origins: Vec<usize>,
    /// The positions in `text` of letters that were replaced by digits.
    pub replaced: Vec<usize>,
}

static DROPPED: LazyLock<Regex> =
    LazyLock::new(|| super::compile(r"^[\p{Cf}\p{M}\p{Cc}\p{Default_Ignorable_Code_Point}]$"));
static DASH: LazyLock<Regex> = LazyLock::new(|| super::compile(r"^[\p{Pd}\u{2212}\u{02d7}\u{2043}]$"));
static DIGIT: LazyLock<Regex> = LazyLock::new(|| super::compile(r"^\p{Nd}$"));

impl Folded {
    /// Folds a text.
    pub fn of(text: &str, lookalikes: Lookalikes) -> Self {
        let mut characters: Vec<(char, usize)> = Vec::with_capacity(text.len());
        for (origin, character) in text.char_indices() {
            if character.is_ascii() {
                characters.extend(fold_character(character).map(|folded| (folded, origin)));
            } else if is_turkish(character) {
                characters.push((character, origin));
            } else {
                let parts = std::iter::once(character).nfkc().filter_map(fold_character);
                characters.extend(parts.map(|folded| (folded, origin)));
            }
        }
        let digits = match lookalikes {
            Lookalikes::Letters => Vec::new(),
            Lookalikes::InRows => in_rows(&characters),
            Lookalikes::BesideDigits => beside_digits(&characters),
        };
        for (index, digit) in &digits {
            characters[*index].0 = *digit;
        }
        let mut folded = Folded {
            text: String::with_capacity(text.len()),
            origins: Vec::with_capacity(text.len() + 1),
            replaced: Vec::new(),
        };
        let mut digits = digits.into_iter().peekable();
        for (index, (character, origin)) in characters.into_iter().enumerate() {
            if digits.next_if(|(replaced, _)| *replaced == index).is_some() {
                folded.replaced.push(folded.text.len());
            }
            folded.text.push(character);
            folded.origins.resize(folded.text.len(), origin);
        }
        folded.origins.push(text.len());
        folded
    }

    /// Returns the part of the original that a part of the folded text stands for, including the dropped characters after it.
    pub fn original(&self, span: &Range<usize>) -> Range<usize> {
        let last = self.origins[span.end - 1];
        let next = self.origins[span.end..].iter().find(|origin| **origin != last);
        self.origins[span.start]..next.copied().unwrap_or(last)
    }
}

/// Returns at least the number of digits that the folded text has without a letter between them, whichever letters count as digits.
/// Takes a tenth of the time of folding.
pub(super) fn most_digits_in_a_row(text: &str) -> usize {
    let (mut row, mut most) = (0_usize, 0);
    for character in text.chars() {
        if character.is_ascii_digit() || lookalike(character).is_some() {
            row += 1;
        } else if character.is_ascii_alphabetic() || is_turkish(character) {
            row = 0;
        } else if !character.is_ascii() {
            // NFKC replaces a character by at most three digits, as in `⅒`.
            row += 3;
        }
        most = most.max(row);
    }
    most
}

/// A quick check for the most frequent characters outside ASCII, which fold to themselves.
fn is_turkish(character: char) -> bool {
    matches!(
        character,
        'ç' | 'Ç'
            | 'ğ'
            | 'Ğ'
            | 'ı'
            | 'İ'
            | 'ö'
            | 'Ö'
            | 'ş'
            | 'Ş'
            | 'ü'
            | 'Ü'
            | 'â'
            | 'Â'
            | 'î'
            | 'Î'
            | 'û'
            | 'Û'
    )
}

/// Returns the folded form of a character after NFKC; `None` if it is dropped.
fn fold_character(character: char) -> Option<char> {
    if matches!(
        character,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    ) {
        return Some('\n');
    }
    if character.is_whitespace() || character == '\u{2800}' {
        return Some(' ');
    }
    if character.is_ascii_graphic() {
        return Some(character);
    }
    let text = character.encode_utf8(&mut [0; 4]).to_owned();
    if DROPPED.is_match(&text) {
        None
    } else if DASH.is_match(&text) {
        Some('-')
    } else if matches!(character, '\u{2044}' | '\u{2215}') {
        Some('/')
    } else {
        Some(ascii_digit(character).unwrap_or(character))
    }
}

/// Returns the ASCII digit for a decimal digit of any script. Unicode encodes the digits of each script in ascending order,
/// without gaps.
fn ascii_digit(character: char) -> Option<char> {
    let is_digit = |character: char| DIGIT.is_match(character.encode_utf8(&mut [0; 4]));
    if !is_digit(character) {
        return None;
    }
    let before = (1..).map_while(|step| char::from_u32(u32::from(character) - step).filter(|c| is_digit(*c)));
    char::from_digit(u32::try_from(before.count()).ok()? % 10, 10)
}

/// Returns the digit that a letter looks like.
fn lookalike(character: char) -> Option<char> {
    match character {
        'O' | 'o' | 'Ο' | 'ο' | 'О' | 'о' | 'Օ' | 'օ' => Some('0'),
        'l' | 'I' | 'i' | 'ı' | 'İ' | 'Ι' | 'ι' | 'І' | 'і' | '|' | 'ǀ' => Some('1'),
        _ => None,
    }
}

fn in_rows(characters: &[(char, usize)]) -> Vec<(usize, char)> {
    let mut found = Vec::new();
    let mut start = 0;
    let is_in_row = |(c, _): &(char, usize)| c.is_ascii_digit() || lookalike(*c).is_some();
    for row in characters.chunk_by(|a, b| is_in_row(a) && is_in_row(b)) {
        if row.iter().any(|(c, _)| c.is_ascii_digit()) {
            let letters = row
                .iter()
                .enumerate()
                .filter_map(|(index, (c, _))| Some((start + index, lookalike(*c)?)));
            found.extend(letters);
        }
        start += row.len();
    }
    found
}

fn beside_digits(characters: &[(char, usize)]) -> Vec<(usize, char)> {
    let is_digit = |index: Option<usize>| {
        index
            .and_then(|index| characters.get(index))
            .is_some_and(|(c, _)| c.is_ascii_digit())
    };
    let letters = characters.iter().enumerate();
    letters
        .filter(|(index, _)| is_digit(index.checked_sub(1)) || is_digit(Some(index + 1)))
        .filter_map(|(index, (c, _))| Some((index, lookalike(*c)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        Folded::of(text, Lookalikes::Letters).text
    }

    #[test]
    fn digits_dashes_and_spaces_of_every_kind_become_ascii() {
        assert_eq!(folded("０５３２①٣۴५𝟙𝟡⁷₈"), "053213451978");
        assert_eq!(folded("1‐2‑3‒4–5—6―7−8－9﹣0⁃1"), "1-2-3-4-5-6-7-8-9-0-1");
        assert_eq!(
            folded("1\u{a0}2\u{2009}3\u{3000}4\t5\r\n6\u{2028}7\u{85}8"),
            "1 2 3 4 5\n\n6\n7\n8"
        );
    }

    #[test]
    fn invisible_and_combining_characters_are_dropped() {
        assert_eq!(
            folded("0\u{200b}5\u{2060}3\u{ad}2\u{feff}1\u{202e}2\u{fe0f}\u{20e3}3\u{336}4\u{0}5\u{3164}6"),
            "0532123456"
        );
    }

    #[test]
    fn a_span_maps_to_the_original_with_the_dropped_characters_after_it() {
        let text = "ş\u{200b}⑫½\u{200b}x";
        let folded = Folded::of(text, Lookalikes::Letters);
        assert_eq!(folded.text, "ş121⁄2x".replace('⁄', "/"));
        let original = |span: Range<usize>| &text[folded.original(&span)];
        assert_eq!(original(2..4), "⑫");
        assert_eq!(original(3..5), "⑫½\u{200b}");
        assert_eq!(original(0..folded.text.len()), text);
    }

    #[test]
    fn letters_count_as_digits_in_a_row_or_beside_a_digit() {
        let with = |text, lookalikes| Folded::of(text, lookalikes).text;
        assert_eq!(with("Ol 5l2 lO", Lookalikes::InRows), "Ol 512 lO");
        assert_eq!(with("AloO532", Lookalikes::InRows), "A100532");
        assert_eq!(with("AloO532", Lookalikes::BesideDigits), "Alo0532");
        assert_eq!(Folded::of("şO5", Lookalikes::InRows).replaced, [2]);
    }

    #[test]
    fn no_character_folds_to_more_than_three_digits() {
        for character in ('\u{80}'..=char::MAX).filter(|character| !is_turkish(*character)) {
            let folded = std::iter::once(character).nfkc().filter_map(fold_character);
            let digits = folded.filter(|c| c.is_ascii_digit() || lookalike(*c).is_some());
            assert!(digits.count() <= 3, "{character}");
        }
    }

    #[test]
    fn turkish_letters_fold_to_themselves() {
        for letter in ('\u{80}'..'\u{250}').filter(|letter| is_turkish(*letter)) {
            let slowly: Vec<_> = std::iter::once(letter).nfkc().filter_map(fold_character).collect();
            assert_eq!(slowly, [letter]);
        }
    }

    /// [`ascii_digit`] relies on it.
    #[test]
    fn every_decimal_digit_of_unicode_has_the_value_of_its_position() {
        for (zero, nine) in [('٠', '٩'), ('۰', '۹'), ('०', '९'), ('๐', '๙'), ('𞥐', '𞥙'), ('᪐', '᪙')]
        {
            assert_eq!((ascii_digit(zero), ascii_digit(nine)), (Some('0'), Some('9')), "{zero}");
        }
    }
}
