//! Each rule's message, at and beyond its bounds.

use std::sync::LazyLock;

use codegen_runtime::rules::Pattern;
use codegen_runtime::{ArrayRules, MapRules, NumberRules, StringRules};

static LETTERS: Pattern = LazyLock::new(|| codegen_runtime::pattern("^[a-z]+$"));
static BROKEN: Pattern = LazyLock::new(|| codegen_runtime::pattern("("));

fn problem(result: Result<(), String>) -> String {
    result.err().unwrap_or_default()
}

#[test]
fn strings_count_characters() {
    let rules = StringRules {
        min_length: Some(2),
        max_length: Some(3),
        pattern: None,
    };
    assert_eq!(problem(rules.check("ı")), "must have at least 2 characters, has 1");
    assert_eq!(problem(rules.check("çığ")), "");
    assert_eq!(problem(rules.check("abcd")), "must have at most 3 characters, has 4");
    let not_empty = StringRules {
        min_length: Some(1),
        ..StringRules::default()
    };
    assert_eq!(problem(not_empty.check("")), "must not be empty");
}

#[test]
fn strings_match_their_pattern_and_a_pattern_that_does_not_compile_admits_nothing() {
    let rules = |pattern| StringRules {
        pattern: Some(pattern),
        ..StringRules::default()
    };
    assert_eq!(problem(rules(("^[a-z]+$", &LETTERS)).check("abc")), "");
    assert_eq!(
        problem(rules(("^[a-z]+$", &LETTERS)).check("Abc")),
        "must match ^[a-z]+$"
    );
    assert_eq!(problem(rules(("(", &BROKEN)).check("")), "must match (");
}

#[test]
fn numbers_say_their_bounds() {
    let rules = |minimum, maximum| NumberRules { minimum, maximum };
    let check = |minimum, maximum, value: i32| problem(rules(minimum, maximum).check(value));
    assert_eq!(check(None, None, 1), "");
    assert_eq!(check(Some((1, false)), Some((5, false)), 1), "");
    assert_eq!(
        check(Some((1, false)), Some((5, false)), 6),
        "must be from 1 to 5, is 6"
    );
    assert_eq!(check(Some((1, false)), None, 0), "must be at least 1, is 0");
    assert_eq!(check(Some((1, true)), None, 1), "must be more than 1, is 1");
    assert_eq!(check(None, Some((5, false)), 6), "must be at most 5, is 6");
    assert_eq!(check(None, Some((5, true)), 5), "must be less than 5, is 5");
    assert_eq!(
        check(Some((1, true)), Some((5, true)), 5),
        "must be more than 1 and less than 5, is 5"
    );
    assert_eq!(
        check(Some((1, false)), Some((5, true)), 5),
        "must be at least 1 and less than 5, is 5"
    );
    assert!(NumberRules::<f64>::default().is_empty());
}

#[test]
fn arrays_and_maps_count() {
    let rules = ArrayRules {
        min_items: Some(1),
        max_items: Some(2),
    };
    assert_eq!(problem(rules.check(0)), "must have at least 1 items, has 0");
    assert_eq!(problem(rules.check(2)), "");
    assert_eq!(problem(rules.check(3)), "must have at most 2 items, has 3");
    let rules = MapRules {
        min_properties: Some(1),
        max_properties: Some(2),
        key_pattern: Some(("^[a-z]+$", &LETTERS)),
    };
    assert_eq!(problem(rules.check(0)), "must have at least 1 members, has 0");
    assert_eq!(problem(rules.check(3)), "must have at most 2 members, has 3");
    assert_eq!(problem(rules.check_key("a")), "");
    assert_eq!(problem(rules.check_key("A")), "the name \"A\" must match ^[a-z]+$");
}

#[test]
fn a_quoted_name_is_short_and_on_one_line() {
    let rules = MapRules {
        key_pattern: Some(("^[a-z]+$", &LETTERS)),
        ..MapRules::default()
    };
    let message = problem(rules.check_key(&format!("\n{}", "A".repeat(1000))));
    assert_eq!(
        message,
        format!("the name \"\\n{}…\" must match ^[a-z]+$", "A".repeat(63))
    );
}
