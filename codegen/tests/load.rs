//! Reading JSON and YAML, including malformed and hostile texts: places, the forms to which schemas are reduced, and versions.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use dropshot_codegen::Problem;
use dropshot_codegen::load::{Document, from_text};
use dropshot_codegen::positions::Positions;
use serde_json::{Value, json};

fn read(text: &str) -> Result<Document, String> {
    from_text(Path::new("a"), text).map_err(|problem| problem.to_string())
}

fn rejected(text: &str) -> String {
    read(text).unwrap_err()
}

#[test]
fn json_is_parsed_as_json() {
    let key = "k".repeat(2000);
    let text = format!(
        "{{\n\t\"openapi\": \"3.0.3\",\n\t\"info\": {{\"title\": \"\\ud83d\\ude00\", \"version\": \"1\"}},\n\t\"{key}\": {{}}\n}}"
    );
    let document = read(&text).unwrap();
    assert_eq!(document.value["info"]["title"], "\u{1f600}");
    assert!(document.value[&key].is_object());
}

#[test]
fn errors_in_json_have_line_and_column() {
    assert_eq!(
        rejected("{\"openapi\": \"3.0.3\",\n \"a\": [1, {\"b\": \"}\\\"{\", \"b\": 2}]}"),
        "a:2:25: #/a/1/b: `b` occurs twice; the first is on line 2"
    );
    assert!(rejected("{\"openapi\": \"3.0.3\",\n \"a\": [1 2}").starts_with("a:2:"));
    assert_eq!(
        rejected("{\"openapi\": \"3.2.0\"}"),
        "a:1:2: #/openapi: must be OpenAPI 3.0.x or 3.1.x, is 3.2.0"
    );
}

#[test]
fn flow_style_yaml_is_parsed_as_yaml() {
    assert!(read("{openapi: 3.0.3, info: {title: T}}").is_ok());
}

#[test]
fn merge_keys_are_resolved() {
    let document = read("openapi: 3.0.3\na: &a {b: 1, c: 2}\nd: {<<: *a, c: 3}\n").unwrap();
    assert_eq!(document.value["d"], serde_json::json!({ "c": 3, "b": 1 }));
}

#[test]
fn documents_that_are_nested_too_deep_are_rejected() {
    let json = format!("{{\"openapi\": {}", "[".repeat(100_000));
    let flow = format!("a: {}", "[".repeat(100_000));
    let block: String = (0..2000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    for (text, depth) in [(json, 1000), (flow, 128), (block, 128)] {
        let problem = rejected(&text);
        let is_said = problem.contains(&format!("must not be nested deeper than {depth} levels"));
        assert!(is_said || problem.contains("recursion limit"), "{problem}");
        assert!(problem.starts_with("a:1"), "{problem}");
    }
}

#[test]
fn json_may_be_nested_deeper_than_yaml() {
    let nested = |depth: usize| {
        let head = r#"{"openapi": "3.0.3", "info": {"title": "[\"{", "version": "1"}, "paths": {}, "x-deep": "#;
        format!("{head}{}{}}}", "[".repeat(depth), "]".repeat(depth))
    };
    let read = move || {
        let document = from_text(Path::new("a"), &nested(999)).unwrap();
        dropshot_codegen::model(&document).unwrap();
        let problem = from_text(Path::new("a"), &nested(1000)).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "a:1:1087: not a YAML or JSON document: must not be nested deeper than 1000 levels"
        );
    };
    std::thread::Builder::new()
        .stack_size(dropshot_codegen::STACK)
        .spawn(read)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn exponentially_growing_aliases_are_rejected() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_string();
    for level in 1..12 {
        let previous = format!("*a{}", level - 1);
        text += &format!("a{level}: &a{level} [{}]\n", vec![previous; 9].join(", "));
    }
    assert!(rejected(&text).contains("repetition limit"), "{}", rejected(&text));
}

/// The message names the other file, but the pointer is that of the whole document.
#[test]
fn an_error_names_the_file_in_which_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "api.yaml",
        "openapi: 3.0.3\ninfo: {title: T, version: '1'}\npaths:\n  /a: {$ref: 'a.yaml'}\n",
    );
    write(
        "a.yaml",
        "get:\n  operationId: a\n  responses:\n    '200':\n      description: ok\n      content:\n        \
         application/json: {schema: {$ref: 'b.yaml#/Pet'}}\n",
    );
    write(
        "b.yaml",
        "Pet:\n  type: object\n  properties:\n    photo: {type: string, not: {type: string}}\n",
    );
    let document = dropshot_codegen::load::from_file(&folder.path().join("api.yaml")).unwrap();
    let problem = dropshot_codegen::model(&document).unwrap_err().to_string();
    let file = folder.path().join("b.yaml");
    let expected = format!(
        "{}:4:27: #/components/schemas/Pet/properties/photo/not: ",
        file.display()
    );
    assert!(problem.starts_with(&expected), "{problem}");
    write("a.yaml", "get: {trace: 1}\ntrace: {operationId: a, responses: {}}\n");
    let document = dropshot_codegen::load::from_file(&folder.path().join("api.yaml")).unwrap();
    let problems: Vec<String> = dropshot_codegen::rejections::all(&document)
        .iter()
        .map(ToString::to_string)
        .collect();
    let file = folder.path().join("a.yaml").display().to_string();
    assert!(
        problems.iter().all(|problem| problem.starts_with(&file)),
        "{problems:#?}"
    );
    // Cyclic references between files are rejected.
    write("a.yaml", "$ref: 'a.yaml'\n");
    let problem = dropshot_codegen::load::from_file(&folder.path().join("api.yaml"))
        .unwrap_err()
        .to_string();
    assert!(problem.contains("reference cycle"), "{problem}");
}

/// The `line:column` of a pointer in a text.
fn place(text: &str, pointer: &str) -> String {
    let path = Path::new("a.yaml");
    let positions = match Positions::of(path, text) {
        Ok(positions) => positions,
        Err(problem) => return problem.to_string(),
    };
    let located = positions.locate(Problem::rejected(pointer, "no")).to_string();
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

/// A schema after loading.
fn reduced(version: &str, schema: &str) -> Value {
    let text = format!(
        "openapi: {version}\ninfo: {{title: T, version: '1'}}\npaths: {{}}\ncomponents: {{schemas: {{A: {schema}}}}}\n"
    );
    let document = from_text(Path::new("a.yaml"), &text).unwrap();
    assert!(dropshot_codegen::model(&document).is_ok(), "{schema}");
    document.value["components"]["schemas"]["A"].clone()
}

#[test]
fn rules_beside_alternatives_are_moved_to_those_of_their_type() {
    let size = "{anyOf: [{type: integer}, {type: string, minLength: 1}], pattern: '^[0-9]+$', minimum: 2}";
    let expected = json!({ "anyOf": [
        { "type": "integer", "minimum": 2 },
        { "type": "string", "minLength": 1, "pattern": "^[0-9]+$" },
    ] });
    assert_eq!(reduced("3.0.3", size), expected);
}

#[test]
fn several_types_are_alternatives_with_the_rules_of_their_type() {
    let several = "{type: [string, integer, object, null], minLength: 2, exclusiveMinimum: 0, properties: {a: {type: string}}, \
                   required: [a]}";
    let expected = json!({
        "nullable": true,
        "oneOf": [
            { "type": "string", "minLength": 2 },
            { "type": "integer", "minimum": 0, "exclusiveMinimum": true },
            { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
        ],
    });
    assert_eq!(reduced("3.1.0", several), expected);
}

#[test]
fn a_format_implies_its_type_and_an_unknown_one_restricts_nothing() {
    assert_eq!(
        reduced("3.0.3", "{format: date}"),
        json!({ "format": "date", "type": "string" })
    );
    assert_eq!(
        reduced("3.0.3", "{format: int32}"),
        json!({ "format": "int32", "type": "integer" })
    );
    assert_eq!(reduced("3.0.3", "{format: x-event}"), json!({ "format": "x-event" }));
    assert_eq!(
        reduced("3.0.3", "{type: string, format: binary}"),
        json!({ "type": "string", "format": "binary" })
    );
}

fn document(name: &str, version: &str, more: &str) -> Document {
    let text = format!("openapi: 3.0.3\ninfo: {{title: T, version: '{version}'}}\npaths:\n{more}");
    from_text(Path::new(name), &text).unwrap()
}

const PETS: &str = "  /pets: {get: {operationId: list_pets, responses: {'204': {description: none}}}}\n";

fn rejected_versions(documents: &[Document]) -> String {
    dropshot_codegen::model_of(documents).unwrap_err().to_string()
}

#[test]
fn each_document_must_have_its_own_version() {
    assert_eq!(
        rejected_versions(&[document("a.yaml", "1.0.0", PETS), document("b.yaml", "1.0.0", PETS)]),
        "b.yaml:2:18: #/info/version: a.yaml has the same version; each document must have its own"
    );
    assert_eq!(
        rejected_versions(&[document("a.yaml", "1.0.0", PETS), document("b.yaml", "2", PETS)]),
        "b.yaml:2:18: #/info/version: `2` is not a semantic version; write it as `1.0.0`"
    );
}

#[test]
fn a_document_with_an_error_is_rejected_among_others() {
    let bad = "  /pets: {trace: {operationId: list_pets, responses: {'204': {description: none}}}}\n";
    let message = rejected_versions(&[document("a.yaml", "1.0.0", PETS), document("b.yaml", "2.0.0", bad)]);
    assert!(message.starts_with("b.yaml:4:11: #/paths/~1pets/trace: "), "{message}");
}

#[test]
fn an_operation_that_is_unchanged_in_consecutive_versions_occurs_once() {
    let without = "  /dogs: {get: {operationId: list_dogs, responses: {'204': {description: none}}}}\n";
    let all = ["3.0.0", "1.1.0", "1.0.0", "2.0.0"].map(|version| match version {
        "2.0.0" => document("c.yaml", version, without),
        _ => document(version, version, PETS),
    });
    let api = dropshot_codegen::model_of(&all).unwrap();
    let mut found: Vec<String> = api
        .operations
        .iter()
        .map(|it| format!("{} {} {:?} {:?}", it.id, it.ident, it.versions.from, it.versions.until))
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            r#"list_dogs list_dogs Some("2.0.0") Some("3.0.0")"#,
            r#"list_pets list_pets Some("3.0.0") None"#,
            r#"list_pets list_pets_v1_1 None Some("2.0.0")"#,
        ]
    );
}
