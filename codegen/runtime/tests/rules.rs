//! Messages of each rule, at and beyond its bounds, and patterns in ECMAScript's dialect.

#![allow(clippy::unwrap_used)]

use codegen_runtime::{ArrayRules, Format, MapRules, NumberRules, Pattern, StringRules};
use serde_json::json;

static LETTERS: Pattern = Pattern::new("^[a-z]+$");
static BROKEN: Pattern = Pattern::new("(");

fn problem(result: Result<(), String>) -> String {
    result.err().unwrap_or_default()
}

#[test]
fn lengths_of_strings_are_in_characters() {
    let rules: StringRules = StringRules {
        min_length: Some(2),
        max_length: Some(3),
        ..StringRules::NONE
    };
    assert_eq!(problem(rules.check("ı")), "must have 2 to 3 characters, has 1");
    assert_eq!(problem(rules.check("çığ")), "");
    assert_eq!(problem(rules.check("abcd")), "must have 2 to 3 characters, has 4");
    let not_empty: StringRules = StringRules {
        min_length: Some(1),
        ..StringRules::NONE
    };
    assert_eq!(problem(not_empty.check("")), "must not be empty");
}

#[test]
fn strings_must_match_their_pattern_and_invalid_patterns_match_nothing() {
    let rules = |pattern| StringRules {
        pattern: Some(pattern),
        ..StringRules::NONE
    };
    assert_eq!(problem(rules(&LETTERS).check("abc")), "");
    assert_eq!(problem(rules(&LETTERS).check("Abc")), "must match ^[a-z]+$");
    assert_eq!(problem(rules(&BROKEN).check("")), "must match (");
}

#[test]
fn errors_of_numbers_contain_their_bounds() {
    let rules = |minimum, maximum| NumberRules {
        minimum,
        maximum,
        ..NumberRules::NONE
    };
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
    assert!(NumberRules::<f64>::NONE.has_no_bounds());
}

#[test]
fn sizes_of_arrays_and_maps_are_checked() {
    let rules = ArrayRules {
        min_items: Some(1),
        max_items: Some(2),
        unique_items: false,
    };
    assert_eq!(problem(rules.check(0)), "must have 1 to 2 items, has 0");
    assert_eq!(problem(rules.check(2)), "");
    assert_eq!(problem(rules.check(3)), "must have 1 to 2 items, has 3");
    let rules = MapRules {
        min_properties: Some(1),
        max_properties: Some(2),
        key_pattern: Some(&LETTERS),
    };
    assert_eq!(problem(rules.check(0)), "must have 1 to 2 members, has 0");
    assert_eq!(problem(rules.check(3)), "must have 1 to 2 members, has 3");
    assert_eq!(problem(rules.check_key("a")), "");
    assert_eq!(problem(rules.check_key("A")), "the name \"A\" must match ^[a-z]+$");
}

#[test]
fn quoted_names_are_short_and_on_one_line() {
    let rules = MapRules {
        key_pattern: Some(&LETTERS),
        ..MapRules::NONE
    };
    let message = problem(rules.check_key(&format!("\n{}", "A".repeat(1000))));
    assert_eq!(
        message,
        format!("the name \"\\n{}…\" must match ^[a-z]+$", "A".repeat(63))
    );
}

#[test]
fn zero_can_be_excluded() {
    let rules = NumberRules {
        not_zero: true,
        ..NumberRules::NONE
    };
    assert_eq!(
        (problem(rules.check(1i16)), problem(rules.check(-1))),
        (String::new(), String::new())
    );
    assert_eq!(problem(rules.check(0)), "must not be 0");
}

#[test]
fn multiples_are_decimal() {
    let whole = |unit: i64, value| {
        let rules = NumberRules {
            multiple_of: Some(unit),
            ..NumberRules::NONE
        };
        problem(rules.check(value))
    };
    assert_eq!((whole(5, 0), whole(5, -15)), (String::new(), String::new()));
    assert_eq!(whole(5, 12), "must be a multiple of 5, is 12");
    assert_eq!(whole(-1, i64::MIN), "");
    let float = |unit: f64, value| {
        let rules = NumberRules {
            multiple_of: Some(unit),
            ..NumberRules::NONE
        };
        problem(rules.check(value))
    };
    for (unit, value) in [(0.1, 0.3), (0.01, 19.99), (2.5, -7.5), (1.0, 0.0), (1e300, 3e300)] {
        assert_eq!(float(unit, value), "", "{value} of {unit}");
    }
    assert_eq!(float(0.1, 0.35), "must be a multiple of 0.1, is 0.35");
    assert_eq!(float(0.01, 1e-9), "must be a multiple of 0.01, is 0.000000001");
}

#[test]
fn equal_items_are_found_regardless_of_their_form() {
    let rules = ArrayRules {
        unique_items: true,
        ..ArrayRules::NONE
    };
    let check = |items: serde_json::Value| problem(rules.check_items(items.as_array().unwrap()));
    assert_eq!(check(json!([])), "");
    assert_eq!(check(json!([1, "1", [1], null, false, 0, {}])), "");
    assert_eq!(check(json!([{ "a": 1 }, { "a": 2 }, { "b": 1 }])), "");
    let twice = "must not have equal items; items 0 and 2 are equal";
    for items in [
        json!(["a", "b", "a"]),
        json!([1, 2, 1.0]),
        json!([{ "a": 1, "b": [2] }, {}, { "b": [2.0], "a": 1 }]),
    ] {
        assert_eq!(check(items), twice);
    }
    assert_eq!(problem(ArrayRules::NONE.check_items(&["a", "a"])), "");
}

#[test]
fn formats_are_checked() {
    let cases: [(Format, &[&str], &[&str]); 8] = [
        (
            Format::Ipv4,
            &["192.0.2.1"],
            &["192.0.2", "192.0.2.256", "01.2.3.4", "::1", ""],
        ),
        (
            Format::Ipv6,
            &["::1", "2001:DB8::1"],
            &["1.2.3.4", "fe80::1%eth0", ":1"],
        ),
        (Format::Ip, &["::1", "1.2.3.4"], &["1", "x"]),
        (
            Format::Hostname,
            &["localhost", "a-1.example"],
            &["-a", "a..b", "a_b", "", "a b", "é"],
        ),
        (
            Format::Email,
            &["a.b+c@example.org", "a@[192.0.2.1]", "a@[IPv6:::1]", "é@example.org"],
            &["a", "@b", "a@", "a b@c", "a@b@c", ".a@b", "a@-b"],
        ),
        (
            Format::Uri,
            &["https://example.org/a?b#c", "urn:isbn:1"],
            &["/a", "example.org", "http://a b", ""],
        ),
        (
            Format::Time,
            &["09:30:00Z", "23:59:59.5+03:00"],
            &["09:30", "09:30:00", "25:00:00Z", "09:30:00 03:00"],
        ),
        (
            Format::PartialDateTime,
            &[
                "2026-05-01T09:30:00",
                "2026-05-01T09:30:00.5",
                "09:30:00",
                "09:30:00.25",
            ],
            &["2026-05-01", "2026-05-01T09:30:00Z", "09:30:00+03:00", "25:00:00", ""],
        ),
    ];
    for (format, inside, outside) in cases {
        let rules: StringRules = StringRules {
            format: Some(format),
            ..StringRules::NONE
        };
        for text in inside {
            assert_eq!(problem(rules.check(text)), "", "{text}");
        }
        for text in outside {
            let message = format!("must be {}, is {text:?}", format.expected());
            assert_eq!(problem(rules.check(text)), message);
        }
    }
    assert_eq!(Format::named("password"), None);
}

fn matches(pattern: &str, value: &str) -> bool {
    Pattern::compiled(pattern).unwrap().is_match(value)
}

#[test]
fn character_classes_match_only_ascii() {
    assert!(matches(r"^\d+$", "123") && !matches(r"^\d+$", "١٢٣"));
    assert!(matches(r"^[\d-]+$", "1-2") && !matches(r"^[\d-]+$", "١"));
    assert!(matches(r"^[^\D]$", "1") && !matches(r"^[^\D]$", "x"));
    assert!(matches(r"^\D$", "١") && !matches(r"^\D$", "1"));
    assert!(matches(r"^\w+$", "aZ_9") && !matches(r"^\w+$", "é"));
    assert!(matches(r"^[\W]$", "é") && !matches(r"^[\W]$", "e"));
    assert!(matches(r"^caf\b", "café") && !matches(r"^caf\b", "cafe"));
    assert!(matches(r"^.$", "é") && !matches(r"^.$", "\r") && !matches(r"^.$", "\u{2028}"));
}

#[test]
fn brackets_contain_literal_characters() {
    assert!(matches(r"^[[]$", "[") && matches(r"^[a&&b]+$", "a&b") && matches(r"^[a~~b]$", "~"));
    assert!(
        matches(r"^[+--]+$", "+,-")
            && matches(r"^[--0]+$", "-./0")
            && matches(r"^[^[]$", "x")
            && !matches(r"^[^[]$", "[")
    );
    assert!(matches(r"^[.]$", ".") && !matches(r"^[.]$", "x"));
    assert!(matches(r"^\/\[\]\u00e9[\u00e8]$", "/[]éè"));
}

#[test]
fn look_around_and_back_references_are_supported() {
    let name = r"^(?![0-9a-f]{8}-)[a-z0-9][a-z0-9-]*$";
    assert!(matches(name, "web-1") && !matches(name, "01974d1a-7c00"));
    assert!(matches(r"^(a|b)\1$", "bb") && !matches(r"^(a|b)\1$", "ba"));
    assert!(matches(r"(?<=x)y", "xy") && !matches(r"(?<=x)y", "zy"));
}

#[test]
fn a_pattern_that_backtracks_too_much_does_not_match() {
    // Each further character doubles the number of possibilities.
    assert!(!matches(r"^(?=(a+)+$)(?!b)(a|aa)+\1$", &("a".repeat(200) + "!")));
}

#[test]
fn invalid_patterns_are_rejected_with_the_reason() {
    let problem = |text: &str| Pattern::compiled(text).unwrap_err();
    for text in ["(", "[a", "*", "\\"] {
        assert!(!problem(text).is_empty(), "{text}");
    }
    assert!(!Pattern::new("(").is_match("("));
}
