//! What partners read is in one spelling: the document's, which is American. `cancelled` is a word of the API and stays.

use std::path::{Path, PathBuf};

use regex::Regex;

/// The beginnings of words as British spelling has them.
const BRITISH: &str = r"(?i)\b(synchronis|normalis|canonicalis|serialis|organis|authoris|recognis|initialis|summaris|behaviour|colour|favour|honour|licenc|catalogue|centre|labelled|travell|modell|grey)";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files that partners read, or that show what they are answered.
fn files() -> Vec<PathBuf> {
    let mut files = vec![
        root().join("spec/partner-api.yaml"),
        root().join("spec/inspector-api.yaml"),
        root().join("CHANGELOG.md"),
    ];
    let mut folders = vec![root().join("snapshots")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|it| it == "snap") => files.push(path),
                false => {}
            }
        }
    }
    files
}

#[test]
fn what_partners_read_is_in_one_spelling() {
    let british = Regex::new(BRITISH).unwrap();
    let files = files();
    assert!(files.len() > 50);
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            if british.is_match(line) {
                found.push(format!("{}:{}: {line}", file.display(), number + 1));
            }
        }
    }
    assert!(
        found.is_empty(),
        "British spelling in what partners read:\n{}",
        found.join("\n")
    );
}

#[test]
fn the_spellings_are_told_apart() {
    let british = Regex::new(BRITISH).unwrap();
    for wrong in ["synchronise", "Organisation", "the colour", "a licence", "behaviour"] {
        assert!(british.is_match(wrong), "{wrong}");
    }
    for right in [
        "synchronize",
        "organizations",
        "color",
        "license",
        "cancelled",
        "precise",
        "otherwise",
    ] {
        assert!(!british.is_match(right), "{right}");
    }
}
