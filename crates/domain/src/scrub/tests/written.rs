//! Numbers in every form that people write, at any place of a note.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::{REMOVED, scrub};

/// Every dash of Unicode (`\p{Pd}`), and the minus sign.
const DASHES: &str = "-֊־᐀᠆‐‑‒–—―⸗⸚⸺⸻⹀⹝〜〰゠︱︲﹘﹣－𐺭−";

/// Signs that people write between groups.
const SIGNS: &str = "/,._*·'’\u{2022}";

/// White space other than a plain space.
const BLANKS: &str = "\n\t\u{a0}\u{2009}\u{202f}\u{3000}\u{2028}\u{85}";

/// Characters that a reader does not see.
const INVISIBLE: &str = "\u{200b}\u{2060}\u{ad}\u{feff}\u{200e}\u{202e}\u{fe0f}\u{34f}\u{180e}";

/// The zeros of several scripts.
const ZEROS: &str = "0０٠۰०০๐𝟎𝟘";

fn one_of(characters: &'static str) -> impl Strategy<Value = String> {
    select(characters.chars().collect::<Vec<_>>()).prop_map(String::from)
}

fn separator() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(" ".to_owned()),
        Just("     ".to_owned()),
        Just("\r\n".to_owned()),
        one_of(DASHES),
        one_of(DASHES).prop_map(|dash| format!(" {dash} ")),
        one_of(SIGNS),
        one_of(BLANKS),
    ]
}

/// A number in usual groups: its groups, and whether it is certainly a number of a person, whatever is around it.
fn groups() -> impl Strategy<Value = Vec<String>> {
    let prefix = select(vec!["0", "+90", "90", "0090", "(0)", "+90 0"]);
    let area = prop_oneof![Just("5"), Just("2"), Just("3"), Just("4")];
    let telephone = (
        prefix,
        area,
        "[0-9]{2}",
        "[0-9]{3}",
        "[0-9]{2}",
        "[0-9]{2}",
        any::<bool>(),
    )
        .prop_map(|(prefix, first, area, three, two, last, is_bracketed)| {
            let area = if is_bracketed {
                format!("({first}{area})")
            } else {
                format!("{first}{area}")
            };
            vec![prefix.to_owned(), area, three, two, last]
        });
    let mobile = ("5[0-9]{2}", "[0-9]{3}", "[0-9]{2}", "[0-9]{2}").prop_map(|(a, b, c, d)| vec![a, b, c, d]);
    prop_oneof![telephone, mobile]
}

fn in_script(number: &str, zero: char) -> String {
    let digit = |c: char| c.to_digit(10).and_then(|value| char::from_u32(u32::from(zero) + value));
    number.chars().map(|c| digit(c).unwrap_or(c)).collect()
}

fn with_invisible(number: &str, invisible: &[(usize, String)]) -> String {
    let mut characters: Vec<String> = number.chars().map(String::from).collect();
    let last = characters.len() - 1;
    for (at, character) in invisible {
        characters[at % last].push_str(character);
    }
    characters.concat()
}

fn digits_of(text: &str) -> String {
    text.chars().filter(|c| c.is_numeric()).collect()
}

proptest! {
    #![proptest_config(crate::strategies::fixed_seed())]

    /// PII-2
    #[test]
    fn a_number_is_removed_wherever_and_however_it_is_written(
        groups in groups(),
        separators in vec(separator(), 4),
        zero in one_of(ZEROS),
        invisible in vec((any::<usize>(), one_of(INVISIBLE)), 0..4),
        before in "([A-ZÇĞİÖŞÜa-zçğıöşü,.:;!?(]{0,8}[ \n]){0,3}[A-ZÇĞİÖŞÜ]?[a-zçğıöşü:]{0,8}",
        after in "([a-zçğıöşü]{1,8}|[ \n][A-ZÇĞİÖŞÜa-zçğıöşü,.:;!?)]{0,8}){0,3}",
    ) {
        let mut number = groups[0].clone();
        for (group, separator) in groups[1..].iter().zip(&separators) {
            number += separator;
            number += group;
        }
        let number = with_invisible(&in_script(&number, zero.chars().next().unwrap()), &invisible);
        let text = format!("{before}{number}{after}");
        let clean = scrub(&text);
        prop_assert_eq!(digits_of(&clean), "", "{:?} became {:?}", text, clean);
        prop_assert!(clean.contains(REMOVED));
    }

    /// PII-2
    #[test]
    fn an_id_is_removed_wherever_and_however_it_is_written(
        digits in "[1-9][0-9]{10}",
        sizes in select(vec![vec![11], vec![3, 3, 3, 2], vec![5, 6], vec![3, 4, 4]]),
        separator in separator().prop_filter("a list", |separator| separator != ", "),
        zero in one_of(ZEROS),
        invisible in vec((any::<usize>(), one_of(INVISIBLE)), 0..4),
        before in "([A-ZÇĞİÖŞÜa-zçğıöşü,.:;!?(]{0,8}[ \n]){0,3}([a-zçğıöşü:]{0,8}|TC|TCNO)",
        after in "([a-zçğıöşü]{5,8}|[ \n][A-ZÇĞİÖŞÜa-zçğıöşü,.:;!?)]{5,8}){0,3}",
    ) {
        let number = super::grouped(&digits, &sizes, &separator);
        let number = with_invisible(&in_script(&number, zero.chars().next().unwrap()), &invisible);
        let text = format!("{before}{number}{after}");
        let clean = scrub(&text);
        prop_assert_eq!(digits_of(&clean), "", "{:?} became {:?}", text, clean);
    }

    #[test]
    fn letters_that_look_like_digits_do_not_hide_a_number(
        groups in ("0", "5[0-9]{2}", "[0-9]{3}", "[0-9]{2}", "[0-9]{2}"),
        separator in select(vec!["", " ", "-", "."]),
        chosen in vec(any::<bool>(), 11),
    ) {
        let (prefix, area, three, two, last) = groups;
        let mut number = [prefix + &area, three, two, last].join(separator);
        let mut chosen = chosen.into_iter();
        // Each group keeps a digit, because a word of letters alone is a word.
        let mut is_first = true;
        number = number.chars().map(|c| {
            let is_kept = is_first || !chosen.next().unwrap_or_default();
            is_first = !c.is_ascii_digit();
            match c { '0' if !is_kept => 'O', '1' if !is_kept => 'l', c => c }
        }).collect();
        let text = format!("Tel {number} arandı");
        prop_assert_eq!(scrub(&text), "Tel [removed] arandı", "{}", text);
    }
}

// Each run has new seeds.
proptest! {
    #[test]
    fn any_text_is_scrubbed_without_a_panic(text in any::<String>(), digits in "[0-9Ol \\-.,/\u{200b}٣]{0,40}", more in any::<String>()) {
        let text = format!("{text}{digits}{more}");
        let clean = scrub(&text);
        let visible = super::super::INVISIBLE.replace_all(&text, "");
        prop_assert!(clean == visible || clean.contains(REMOVED), "{:?}", clean);
    }
}
