//! The forms to which schemas are reduced before they are read.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use dropshot_codegen::load::from_text;
use serde_json::{Value, json};

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
