//! What the document declares has its snapshot. Needs no database.

// A test says what is wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::fs;

use partner_api_tests::coverage::{Coverage, files, first_difference, folder};
use regex::Regex;
use serde_json::Value;

#[test]
fn every_declared_answer_has_a_snapshot_and_every_snapshot_is_declared() {
    let coverage = Coverage::read();
    // An empty document would be covered by nothing.
    assert!(coverage.declared.len() > 100, "{}", coverage.declared.len());
    let findings = coverage.findings();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn the_table_is_what_the_snapshots_say() {
    let kept = fs::read_to_string(folder().join("COVERAGE.md")).unwrap();
    if let Some(difference) = first_difference(&kept, &Coverage::read().table()) {
        panic!("stale: snapshots/COVERAGE.md, {difference}\nrun `cargo run --bin coverage`");
    }
}

#[test]
fn no_snapshot_is_pending_and_nothing_else_lies_between_them() {
    let strange: Vec<String> = files().into_iter().filter(|file| !file.ends_with(".snap")).collect();
    assert!(strange.is_empty(), "in snapshots/: {strange:?}");
    let beside = fs::read_dir(folder()).unwrap().map(Result::unwrap);
    for entry in beside.filter(|entry| !entry.file_type().unwrap().is_dir()) {
        let name = entry.file_name().into_string().unwrap();
        assert!(
            matches!(&*name, "COVERAGE.md" | "exceptions.toml"),
            "in snapshots/: {name}"
        );
    }
}

/// A message without what may differ between an example and an answer: numbers, times and addresses.
fn normal(message: &str) -> String {
    let differs = r"\[(time|unix time|seconds)\]|\d{4}-\d\d-\d\dT[0-9:.]+Z|\d+(\.\d+)*";
    Regex::new(differs).unwrap().replace_all(message, "#").into_owned()
}

/// All that the service was heard to say: messages of answers, and the lines of the tables `what_is_said_of_…`.
fn heard() -> BTreeSet<String> {
    let message = Regex::new(r#"^\s*"message": (".*?"),?$"#).unwrap();
    let said = Regex::new(r#"^(?:→ |  "[^"]*" )(.+)$"#).unwrap();
    let mut heard = BTreeSet::new();
    for file in files() {
        let text = fs::read_to_string(folder().join(file)).unwrap();
        for line in text.lines() {
            if let Some(found) = message.captures(line) {
                heard.insert(normal(&serde_json::from_str::<String>(&found[1]).unwrap()));
            }
            if let Some(found) = said.captures(line) {
                heard.insert(normal(&found[1]));
            }
        }
    }
    heard
}

/// The messages of the errors that a part of the document shows, and where.
fn shown(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                if name == "error" && inner["code"].is_string() && inner["request_id"].is_string() {
                    let details = inner["details"].as_array().into_iter().flatten();
                    for said in [inner].into_iter().chain(details) {
                        found.push((at.to_owned(), said["message"].as_str().unwrap().to_owned()));
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
fn every_error_that_the_document_shows_is_one_that_the_service_was_heard_to_say() {
    let document = include_str!("../../../spec/partner-api.yaml");
    let document: Value = serde_yaml::from_str(document).unwrap();
    let mut examples = Vec::new();
    shown(&document, "#", &mut examples);
    assert!(examples.len() > 12, "{}", examples.len());
    let heard = heard();
    let others: Vec<_> = examples
        .iter()
        .filter(|(_, message)| !heard.contains(&normal(message)))
        .map(|(at, message)| format!("{at}: {message}"))
        .collect();
    assert!(others.is_empty(), "no snapshot has these words:\n{}", others.join("\n"));
}
