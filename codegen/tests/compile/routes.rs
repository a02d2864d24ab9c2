//! Dropshot takes the routes of every fixture and writes a document that names the same operations.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::positive;

/// `METHOD path operationId` of every operation of a document.
fn operations(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap();
    let mut all = BTreeSet::new();
    for (path, item) in paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
        for (method, operation) in item.as_object().unwrap() {
            if let Some(id) = operation.get("operationId") {
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
    for (name, description) in positive::ALL {
        let description = description().unwrap_or_else(|error| panic!("{name}: {error}"));
        let emitted = description
            .openapi(*name, semver::Version::new(1, 0, 0))
            .json()
            .unwrap();
        let path = format!("{}/fixtures/positive/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let source: Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(operations(&emitted), operations(&source), "{name}");
        // Every reference leads somewhere.
        let text = emitted.to_string();
        for part in text.split("\"$ref\":\"#").skip(1) {
            let pointer = part.split('"').next().unwrap();
            assert!(emitted.pointer(pointer).is_some(), "{name}: {pointer} leads nowhere");
        }
    }
}
