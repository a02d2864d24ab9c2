//! Line and column of values.

use std::path::Path;

use dropshot_codegen::Problem;
use dropshot_codegen::positions::Positions;

/// The `line:column` of a pointer in a text.
fn place(text: &str, pointer: &str) -> String {
    let path = Path::new("a.yaml");
    let positions = match Positions::of(path, text) {
        Ok(positions) => positions,
        Err(problem) => return problem.to_string(),
    };
    let located = positions.locate(path, Problem::rejected(pointer, "no")).to_string();
    let place = located.strip_prefix("a.yaml:").unwrap_or(&located);
    place.split(": ").next().unwrap_or_default().to_string()
}

#[test]
fn members_are_located_at_their_names_and_items_at_their_start() {
    let text = "a:\n  b: 1\n  c:\n    - x\n    - d: 2\n      e: [3, {f: 4}]\n";
    for (pointer, expected) in [
        ("#", "1:1"),
        ("#/a", "1:1"),
        ("#/a/b", "2:3"),
        ("#/a/c/0", "4:7"),
        ("#/a/c/1", "5:7"),
        ("#/a/c/1/e", "6:7"),
        ("#/a/c/1/e/0", "6:11"),
        ("#/a/c/1/e/1/f", "6:15"),
    ] {
        assert_eq!(place(text, pointer), expected, "{pointer}");
    }
}

#[test]
fn names_with_slashes_and_tildes_are_located() {
    assert_eq!(
        place("paths:\n  /pets/~me:\n    get: {}\n", "#/paths/~1pets~1~0me/get"),
        "3:5"
    );
}

#[test]
fn a_missing_place_is_located_at_the_nearest_enclosing_value() {
    assert_eq!(place("a:\n  b: 1\n", "#/a/b/c/d"), "2:3");
    assert_eq!(place("base: &base\n  b: 1\nuse: *base\n", "#/use/b"), "3:1");
}

#[test]
fn values_in_json_are_located() {
    let text = "{\n  \"a\": {\n    \"b\": [1,\n      2]\n  }\n}\n";
    assert_eq!(place(text, "#/a/b/1"), "4:7");
}

#[test]
fn columns_count_characters() {
    assert_eq!(place("{ ğ: 1, ü: { b: 2 } }", "#/ü/b"), "1:14");
}

#[test]
fn repeated_members_and_syntax_errors_are_located() {
    assert_eq!(
        place("a: 1\nb: 2\na: 3\n", "#"),
        "a.yaml:3:1: #/a: `a` occurs twice; the first is on line 1"
    );
    assert!(place("a: [1\nb: 2\n", "#").starts_with("a.yaml:2:"));
}
