//! Upper-casing as Turkish keyboards mean it.
//!
//! A Turkish keyboard has four letters where an English one has two: `i`, `ı`, `I` and `İ`. People and devices mix them, so
//! for codes and plates all four are one letter, `I`. Every other letter is upper-cased as Unicode does it (`ş` → `Ş`).

/// The dot that `İ` leaves behind when software that knows no Turkish lower-cases it (`i` followed by this mark).
const COMBINING_DOT_ABOVE: char = '\u{307}';

/// Upper-cases `text`, with `i`, `ı` and `İ` all becoming `I`.
///
/// Nothing is trimmed or removed but a combining dot over an `I`. Folding twice gives what folding once gives, so a folded
/// text can be stored and compared.
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
    fn the_four_letters_i_become_one() {
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
    fn other_turkish_letters_are_upper_cased_and_stay_themselves() {
        assert_eq!(fold("çğöşü"), "ÇĞÖŞÜ");
        assert_eq!(fold("ÇĞÖŞÜ"), "ÇĞÖŞÜ");
        assert_ne!(fold("ş"), fold("s"));
    }

    #[test]
    fn nothing_is_trimmed_and_a_dot_over_another_letter_stays() {
        assert_eq!(fold(" ank-01 \t"), " ANK-01 \t");
        assert_eq!(fold("a\u{307}"), "A\u{307}");
        assert_eq!(fold(""), "");
    }

    proptest! {
        #[test]
        fn folding_twice_is_folding_once(text in any::<String>()) {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once);
        }

        #[test]
        fn ascii_is_upper_cased_as_ever(text in "[ -~]*") {
            prop_assert_eq!(fold(&text), text.to_ascii_uppercase());
        }

        #[test]
        fn a_text_and_its_lower_case_fold_alike(text in "[0-9A-ZÇĞİÖŞÜa-zçğıöşü ._-]*") {
            prop_assert_eq!(fold(&text.to_lowercase()), fold(&text));
        }
    }
}
