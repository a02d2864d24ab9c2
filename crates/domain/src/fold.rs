//! Case folding for text that is typed on Turkish keyboards.
//!
//! A Turkish keyboard has four letters where an English one has two: `i`, `ı`, `I` and `İ`. People and devices confuse them, so
//! in codes and plates all four are the letter `I`. All other letters are converted to upper case by Unicode (`ş` → `Ş`).

/// The combining dot that remains when software without support for Turkish converts `İ` to lower case (`i` and this mark).
const COMBINING_DOT_ABOVE: char = '\u{307}';

/// Converts `text` to upper case, and `i`, `ı` and `İ` to `I`.
///
/// The function removes nothing except a combining dot above an `I`. It is idempotent, so a folded text can be stored and
/// compared.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            'i' | 'ı' | 'İ' => folded.push('I'),
            COMBINING_DOT_ABOVE if folded.ends_with('I') => {}
            other => folded.extend(other.to_uppercase()),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::fold;

    #[test]
    fn all_four_variants_of_i_become_one_letter() {
        let table = [
            ("i", "I"),
            ("ı", "I"),
            ("I", "I"),
            ("İ", "I"),
            ("i\u{307}", "I"),
            ("I\u{307}", "I"),
            ("izmir", "IZMIR"),
            ("İzmir", "IZMIR"),
            ("IZMIR", "IZMIR"),
            ("ızmır", "IZMIR"),
        ];
        for (text, folded) in table {
            assert_eq!(fold(text), folded, "{text:?}");
        }
    }

    #[test]
    fn other_turkish_letters_remain_distinct_in_upper_case() {
        assert_eq!(fold("çğöşü"), "ÇĞÖŞÜ");
        assert_eq!(fold("ÇĞÖŞÜ"), "ÇĞÖŞÜ");
        assert_ne!(fold("ş"), fold("s"));
    }

    #[test]
    fn spaces_and_dots_above_other_letters_are_kept() {
        assert_eq!(fold(" ank-01 \t"), " ANK-01 \t");
        assert_eq!(fold("a\u{307}"), "A\u{307}");
        assert_eq!(fold(""), "");
    }

    proptest! {
        #[test]
        fn folding_is_idempotent(text in any::<String>()) {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once);
        }

        #[test]
        fn ascii_is_converted_to_upper_case(text in "[ -~]*") {
            prop_assert_eq!(fold(&text), text.to_ascii_uppercase());
        }

        #[test]
        fn a_text_and_its_lower_case_fold_to_the_same(text in "[0-9A-ZÇĞİÖŞÜa-zçğıöşü ._-]*") {
            prop_assert_eq!(fold(&text.to_lowercase()), fold(&text));
        }
    }
}
