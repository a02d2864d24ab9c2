//! What is generated from the fixtures is what is kept; what is refused is refused with the message that is kept.
//!
//! `CODEGEN_UPDATE=1` keeps what was generated.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use codegen::emit::File;
use codegen::load;
use support::{compare, documents, folder, generate, name};

/// Folders of fixtures without a document.
fn strays(kind: &str, names: &[String]) -> Vec<String> {
    std::fs::read_dir(folder(kind))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir() && !names.contains(&name(path)))
        .map(|path| format!("no document for {}", path.display()))
        .collect()
}

/// The module of all fixtures, with what each serves.
fn list(names: &[String]) -> File {
    let mut text = "//! Written by the tests: every fixture.\n\n".to_string();
    for name in names {
        text += &format!("#[path = \"{name}/stubs/mod.rs\"]\npub mod {name};\n");
    }
    text += "\n/// What a fixture's API is described with.\n";
    text += "pub type Describe =\n    fn() -> Result<dropshot::ApiDescription<crate::stub::context::Context>, ";
    text += "dropshot::ApiDescriptionBuildErrors>;\n\n";
    text += "/// Every fixture's name and API.\npub const ALL: &[(&str, Describe)] = &[\n";
    for name in names {
        text += &format!("    (\"{name}\", {name}::server::dispatch::description),\n");
    }
    text += "];\n";
    File {
        name: "mod.rs".into(),
        text,
    }
}

/// Everything kept of a kind of fixtures against everything generated.
fn differences(kind: &str, extension: &str) -> Vec<String> {
    let paths = documents(kind, extension);
    let names: Vec<String> = paths.iter().map(|path| name(path)).collect();
    let mut found = strays(kind, &names);
    for path in &paths {
        for (folder, files) in generate(kind, path) {
            found.extend(compare(&folder, &files));
        }
    }
    let listed = list(&names);
    let path = folder(kind).join("mod.rs");
    if std::env::var_os("CODEGEN_UPDATE").is_some() {
        std::fs::write(&path, &listed.text).unwrap();
    }
    if std::fs::read_to_string(&path).unwrap_or_default() != listed.text {
        found.push(format!("stale: {}", path.display()));
    }
    found
}

#[test]
fn positive_fixtures_generate_what_is_kept() {
    assert!(documents("positive", "yaml").len() >= 25);
    let found = differences("positive", "yaml");
    assert!(found.is_empty(), "run again with CODEGEN_UPDATE=1, and look at the change:\n{}", found.join("\n"));
}

#[test]
fn round_trip_fixtures_generate_what_is_kept() {
    assert!(documents("round_trip", "json").len() >= 3);
    let found = differences("round_trip", "json");
    assert!(found.is_empty(), "run again with CODEGEN_UPDATE=1, and look at the change:\n{}", found.join("\n"));
}

#[test]
fn negative_fixtures_are_refused_with_place_and_reason() {
    let paths = documents("negative", "yaml");
    assert!(paths.len() >= 15);
    let mut kept = BTreeMap::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        let file = Path::new(path.file_name().unwrap());
        let outcome = load::from_text(file, &text).and_then(|document| codegen::model(&document));
        let Err(problem) = outcome else { panic!("{} was not refused", path.display()) };
        let message = format!("{problem}\n");
        let beside = path.with_extension("txt");
        if std::env::var_os("CODEGEN_UPDATE").is_some() {
            std::fs::write(&beside, &message).unwrap();
        }
        let expected = std::fs::read_to_string(&beside).unwrap_or_default();
        assert_eq!(message, expected, "{}", path.display());
        assert!(kept.insert(message.clone(), file).is_none(), "two fixtures have one message: {message}");
    }
    for message in documents("negative", "txt") {
        assert!(message.with_extension("yaml").exists(), "no document for {}", message.display());
    }
}
