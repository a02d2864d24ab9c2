//! Every response that the document declares has a snapshot. Needs no database.

// Tests report failures by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::fs;

use partner_api_tests::coverage::{Coverage, files, first_difference, folder};
use regex::Regex;
use serde_json::Value;

#[test]
fn every_declared_response_has_a_snapshot_and_every_snapshot_is_declared() {
    let coverage = Coverage::read();
    // An empty document would be covered trivially.
    assert!(coverage.declared.len() > 100, "{}", coverage.declared.len());
    let findings = coverage.findings();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn the_coverage_table_matches_the_snapshots() {
    let recorded = fs::read_to_string(folder().join("COVERAGE.md")).unwrap();
    if let Some(difference) = first_difference(&recorded, &Coverage::read().table()) {
        panic!("stale: snapshots/COVERAGE.md, {difference}\nrun `cargo run --bin coverage`");
    }
}

#[test]
fn the_snapshot_folders_contain_only_accepted_snapshots() {
    let others: Vec<String> = files().into_iter().filter(|file| !file.ends_with(".snap")).collect();
    assert!(others.is_empty(), "in snapshots/: {others:?}");
    let beside = fs::read_dir(folder()).unwrap().map(Result::unwrap);
    for entry in beside.filter(|entry| !entry.file_type().unwrap().is_dir()) {
        let name = entry.file_name().into_string().unwrap();
        assert!(
            matches!(&*name, "COVERAGE.md" | "exceptions.toml"),
            "in snapshots/: {name}"
        );
    }
}

/// Removes the parts of a message that may differ between an example and a response: numbers, times and addresses.
fn normalized(message: &str) -> String {
    let differs = r"\[(time|unix time|seconds)\]|\d{4}-\d\d-\d\dT[0-9:.]+Z|\d+(\.\d+)*";
    Regex::new(differs).unwrap().replace_all(message, "#").into_owned()
}

/// Every message in the snapshots: of single responses, and in the tables `messages_about_…`.
fn snapshot_messages() -> BTreeSet<String> {
    let message = Regex::new(r#"^\s*"message": (".*?"),?$"#).unwrap();
    let row = Regex::new(r#"^(?:→ |  "[^"]*" )(.+)$"#).unwrap();
    let mut messages = BTreeSet::new();
    for file in files() {
        let text = fs::read_to_string(folder().join(file)).unwrap();
        for line in text.lines() {
            if let Some(found) = message.captures(line) {
                messages.insert(normalized(&serde_json::from_str::<String>(&found[1]).unwrap()));
            }
            if let Some(found) = row.captures(line) {
                messages.insert(normalized(&found[1]));
            }
        }
    }
    messages
}

/// The messages of the example errors in a part of the document, each with its position.
fn shown(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                if name == "error" && inner["code"].is_string() && inner["request_id"].is_string() {
                    let details = inner["details"].as_array().into_iter().flatten();
                    for error in [inner].into_iter().chain(details) {
                        found.push((at.to_owned(), error["message"].as_str().unwrap().to_owned()));
                    }
                }
                shown(inner, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| shown(item, at, found)),
        _ => {}
    }
}

/// ERR-1
#[test]
fn every_example_error_of_the_document_is_in_a_snapshot() {
    let document = include_str!("../../../spec/partner-api.yaml");
    let document: Value = serde_yaml::from_str(document).unwrap();
    let mut examples = Vec::new();
    shown(&document, "#", &mut examples);
    assert!(examples.len() > 12, "{}", examples.len());
    let known = snapshot_messages();
    let others: Vec<_> = examples
        .iter()
        .filter(|(_, message)| !known.contains(&normalized(message)))
        .map(|(at, message)| format!("{at}: {message}"))
        .collect();
    assert!(
        others.is_empty(),
        "no snapshot has these messages:\n{}",
        others.join("\n")
    );
}
