//! Patterns in ECMAScript's dialect.

#![allow(clippy::unwrap_used)]

use codegen_runtime::Pattern;

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
