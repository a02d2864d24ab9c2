//! A document of 300 operations is generated whole; what it takes is measured in release (README.md).

#![allow(clippy::unwrap_used)]

use std::path::Path;

use codegen::{emit, load, refusals};

#[allow(dead_code)]
#[path = "../examples/large_document.rs"]
mod large_document;

#[test]
fn three_hundred_operations_are_generated() {
    let text = large_document::document(300).to_string();
    let document = load::from_text(Path::new("large.json"), &text).unwrap();
    let found: Vec<String> = refusals::all(&document).iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found:#?}");
    let api = codegen::model(&document).unwrap();
    assert_eq!(api.operations.len(), 300);
    let root = emit::Root::default();
    let server = emit::server(&api, &root, emit::Dispatch::Dropshot).unwrap();
    let api_file = server.iter().find(|file| file.name == "api.rs").unwrap();
    assert_eq!(api_file.text.matches("#[endpoint").count(), 300);
    emit::client(&document, &api, &root).unwrap();
}

/// As many refusals as operations: all are found, and leaving them out leaves nothing.
#[test]
fn hundreds_of_refusals_are_found_at_once() {
    let mut value = large_document::document(300);
    for (_, item) in value["paths"].as_object_mut().unwrap() {
        for (member, operation) in item.as_object_mut().unwrap() {
            if member != "parameters" {
                operation["responses"]["2XX"] = serde_json::json!({ "description": "Anything." });
            }
        }
    }
    let document = load::from_text(Path::new("large.json"), &value.to_string()).unwrap();
    let groups = refusals::groups(refusals::all(&document));
    let counts: Vec<usize> = groups.iter().map(|group| group.problems.len()).collect();
    assert_eq!(counts, [300]);
    let (rest, left) = refusals::skipping(&document).unwrap();
    assert_eq!((left.len(), codegen::operations(&rest)), (300, 0));
}
