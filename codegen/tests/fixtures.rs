//! Committed output and error messages.
//!
//! `CODEGEN_UPDATE=1` updates both.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod support;

use std::collections::BTreeMap;
use std::path::Path;

use codegen::emit::{Dispatch, Root, server};
use codegen::{load, output};
use support::{documents, folder, name};

/// The generated code of the other documents is compiled by `codegen-fixtures` and not committed.
#[test]
fn the_committed_server_is_up_to_date() {
    let folder = folder("round_trip");
    let versions = ["everything.json", "everything/older/1.0.0.json"];
    let versions = versions.map(|version| load::from_file(&folder.join(version)).unwrap());
    let api = codegen::model_of(&versions).unwrap();
    let root = Root::new("crate::round_trip::everything").unwrap();
    let files = server(&api, &root, Dispatch::Dropshot).unwrap();
    let committed = folder.join("everything/server");
    if std::env::var_os("CODEGEN_UPDATE").is_some() {
        output::write(&committed, &files).unwrap();
    }
    let found = output::differences(&committed, &files).unwrap();
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(
        found.is_empty(),
        "run again with CODEGEN_UPDATE=1, and look at the change:\n{}",
        found.join("\n")
    );
}

#[test]
fn calls_are_generated_for_every_fixture_without_websockets_and_multipart() {
    let mut refused = Vec::new();
    for path in documents("positive", "yaml") {
        let document = load::from_file(&path).unwrap();
        let api = codegen::model(&document).unwrap();
        match server(&api, &Root::default(), Dispatch::Calls) {
            Ok(files) => assert!(files.iter().any(|file| file.name == "calls.rs")),
            Err(problem) => refused.push(format!("{}: {problem}", name(&path))),
        }
    }
    let websocket = "websockets require Dropshot's server";
    let parts = "multipart bodies require Dropshot's server";
    let expected = [
        ("answers: #/paths/~1changes~1{id}/get", websocket),
        ("names_of_generated_code: #/paths/~1upgrade/get", websocket),
        ("parts: #/paths/~1photos/post", parts),
        ("parts_beside_parameters: #/paths/~1a~1{content-type}/post", parts),
    ];
    assert_eq!(
        refused,
        expected.map(|(place, reason)| format!("{place}: {reason}; generate without `--dispatch calls`"))
    );
}

/// Checks that each document with a message beside it is refused with that message.
fn refused(kind: &str) -> usize {
    let mut paths = [documents(kind, "yaml"), documents(kind, "json")].concat();
    paths.retain(|path| kind == "negative" || path.with_extension("txt").exists());
    let mut kept = BTreeMap::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        let file = Path::new(path.file_name().unwrap());
        let outcome = load::from_text(file, &text).and_then(|document| codegen::model(&document));
        let Err(problem) = outcome else {
            panic!("{} was not refused", path.display())
        };
        let message = format!("{problem}\n");
        let beside = path.with_extension("txt");
        if std::env::var_os("CODEGEN_UPDATE").is_some() {
            std::fs::write(&beside, &message).unwrap();
        }
        let expected = std::fs::read_to_string(&beside).unwrap_or_default();
        assert_eq!(message, expected, "{}", path.display());
        assert!(
            kept.insert(message.clone(), file).is_none(),
            "two fixtures have one message: {message}"
        );
    }
    for message in documents(kind, "txt") {
        assert!(
            message.with_extension("yaml").exists() || message.with_extension("json").exists(),
            "no document for {}",
            message.display()
        );
    }
    paths.len()
}

#[test]
fn negative_fixtures_are_refused_with_their_messages() {
    assert!(refused("negative") >= 15);
}

#[test]
fn refused_defects_are_refused_with_their_messages() {
    assert!(refused("defects") >= 5);
}
