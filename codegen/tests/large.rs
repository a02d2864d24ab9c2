//! Large documents. README.md says how to measure the generator with them.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use dropshot_codegen::{emit, load, rejections};

#[allow(dead_code)]
#[path = "../examples/large_document.rs"]
mod large_document;

#[test]
fn a_large_document_is_generated() {
    let text = large_document::document(100).to_string();
    let document = load::from_text(Path::new("large.json"), &text).unwrap();
    let found: Vec<String> = rejections::all(&document).iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found:#?}");
    let api = dropshot_codegen::model(&document).unwrap();
    assert_eq!(api.operations.len(), 100);
    let root = emit::Root::default();
    let server = emit::server(&api, &root, emit::Dispatch::Dropshot).unwrap();
    let api_file = server.iter().find(|file| file.name == "api.rs").unwrap();
    assert_eq!(api_file.text.matches("#[endpoint").count(), 100);
    emit::client(&document, &api, &root).unwrap();
}

/// A document with an error in every operation.
#[test]
fn hundreds_of_errors_are_found_at_once() {
    let mut value = large_document::document(100);
    for (_, item) in value["paths"].as_object_mut().unwrap() {
        for (member, operation) in item.as_object_mut().unwrap() {
            if member != "parameters" {
                operation["responses"]["1XX"] = serde_json::json!({ "description": "Anything." });
            }
        }
    }
    let document = load::from_text(Path::new("large.json"), &value.to_string()).unwrap();
    let groups = rejections::groups(rejections::all(&document));
    let counts: Vec<usize> = groups.iter().map(|group| group.problems.len()).collect();
    assert_eq!(counts, [100]);
    let (rest, left) = rejections::skipping(&document).unwrap();
    assert_eq!((left.len(), dropshot_codegen::operations(&rest)), (100, 0));
}
