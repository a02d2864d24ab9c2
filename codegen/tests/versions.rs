//! Errors in documents that are passed as versions of one API.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use dropshot_codegen::load::{Document, from_text};

fn document(name: &str, version: &str, more: &str) -> Document {
    let text = format!("openapi: 3.0.3\ninfo: {{title: T, version: '{version}'}}\npaths:\n{more}");
    from_text(Path::new(name), &text).unwrap()
}

const PETS: &str = "  /pets: {get: {operationId: list_pets, responses: {'204': {description: none}}}}\n";

fn rejected(documents: &[Document]) -> String {
    dropshot_codegen::model_of(documents).unwrap_err().to_string()
}

#[test]
fn each_document_must_have_its_own_version() {
    assert_eq!(
        rejected(&[document("a.yaml", "1.0.0", PETS), document("b.yaml", "1.0.0", PETS)]),
        "b.yaml:2:18: #/info/version: a.yaml has the same version; each document must have its own"
    );
    assert_eq!(
        rejected(&[document("a.yaml", "1.0.0", PETS), document("b.yaml", "2", PETS)]),
        "b.yaml:2:18: #/info/version: `2` is not a semantic version; write it as `1.0.0`"
    );
}

#[test]
fn a_document_with_an_error_is_rejected_among_others() {
    let bad = "  /pets: {trace: {operationId: list_pets, responses: {'204': {description: none}}}}\n";
    let message = rejected(&[document("a.yaml", "1.0.0", PETS), document("b.yaml", "2.0.0", bad)]);
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
