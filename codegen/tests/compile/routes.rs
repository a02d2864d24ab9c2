//! Dropshot takes the routes of every fixture and writes a document that names the same operations.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{defects, positive};

/// `METHOD path operationId` of every operation of a document.
fn operations(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap();
    let mut all = BTreeSet::new();
    for (path, item) in paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
        for (method, operation) in item.as_object().unwrap() {
            if codegen::read::METHODS.contains(&method.as_str()) {
                let id = operation.get("operationId").and_then(Value::as_str);
                let id = id.map_or_else(|| codegen::read::unnamed(method, path), str::to_string);
                // Dropshot passes over a slash at the end.
                let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
                all.insert(format!("{method} {path} {id}"));
            }
        }
    }
    all
}

#[test]
fn dropshot_serves_every_fixture_and_emits_the_same_operations() {
    assert!(positive::ALL.len() >= 25);
    let all = positive::ALL.iter().map(|it| ("positive", it));
    for (kind, (name, description)) in all.chain(defects::ALL.iter().map(|it| ("defects", it))) {
        let description = description().unwrap_or_else(|error| panic!("{name}: {error}"));
        let emitted = description
            .openapi(*name, semver::Version::new(1, 0, 0))
            .json()
            .unwrap();
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/{kind}/{name}.yaml"));
        let path = match path.exists() {
            true => path,
            false => path.with_extension("json"),
        };
        let source = codegen::load::from_file(&path).unwrap().value;
        assert_eq!(operations(&emitted), operations(&source), "{name}");
        // Every reference leads somewhere.
        let text = emitted.to_string();
        for part in text.split("\"$ref\":\"#").skip(1) {
            let pointer = part.split('"').next().unwrap();
            assert!(emitted.pointer(pointer).is_some(), "{name}: {pointer} leads nowhere");
        }
    }
}
