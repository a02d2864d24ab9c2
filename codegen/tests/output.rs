//! Comparing and replacing generated files: stale, missing and orphaned ones are each found and mended.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use codegen::emit::File;
use codegen::output::{Difference, differences, write};

fn file(name: &str, text: &str) -> File {
    File {
        name: name.into(),
        text: text.into(),
    }
}

fn files() -> Vec<File> {
    vec![file("a.rs", "one\ntwo\nthree\n"), file("b.rs", "b\n")]
}

/// A folder that holds exactly [`files`].
fn fresh() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &files()).unwrap();
    folder
}

fn found(folder: &Path) -> Vec<String> {
    let all = differences(folder, &files()).unwrap();
    let prefix = format!("{}/", folder.display());
    all.iter()
        .map(|difference| difference.to_string().replace(&prefix, ""))
        .collect()
}

#[test]
fn what_was_written_does_not_differ() {
    assert!(found(fresh().path()).is_empty());
}

#[test]
fn a_stale_file_is_named_with_its_first_differing_line() {
    let folder = fresh();
    std::fs::write(folder.path().join("a.rs"), "one\nTWO\nthree\n").unwrap();
    assert_eq!(found(folder.path()), ["stale: a.rs:2"]);
    std::fs::write(folder.path().join("a.rs"), "one\ntwo\n").unwrap();
    assert_eq!(found(folder.path()), ["stale: a.rs:3"]);
}

#[test]
fn a_missing_file_and_a_missing_folder_are_found() {
    let folder = fresh();
    std::fs::remove_file(folder.path().join("b.rs")).unwrap();
    assert_eq!(found(folder.path()), ["missing: b.rs"]);
    let nowhere = folder.path().join("nowhere");
    assert_eq!(
        differences(&nowhere, &files()).unwrap(),
        [
            Difference::Missing(nowhere.join("a.rs")),
            Difference::Missing(nowhere.join("b.rs"))
        ]
    );
}

#[test]
fn a_file_that_nothing_generates_is_orphaned() {
    let folder = fresh();
    std::fs::write(folder.path().join("c.rs"), "c\n").unwrap();
    assert_eq!(found(folder.path()), ["orphaned: c.rs"]);
}

#[test]
fn writing_mends_everything_and_touches_nothing_else() {
    let folder = fresh();
    let path = |name: &str| folder.path().join(name);
    assert!(write(folder.path(), &files()).unwrap().is_empty());
    std::fs::write(path("a.rs"), "other\n").unwrap();
    std::fs::remove_file(path("b.rs")).unwrap();
    std::fs::write(path("c.rs"), "c\n").unwrap();
    let mut changed = write(folder.path(), &files()).unwrap();
    changed.sort();
    assert_eq!(changed, [path("a.rs"), path("b.rs"), path("c.rs")]);
    assert!(found(folder.path()).is_empty());
}

#[test]
fn a_folder_that_is_a_file_is_an_error_that_names_it() {
    let folder = fresh();
    let path = folder.path().join("a.rs");
    let problem = write(&path, &files()).unwrap_err().to_string();
    assert!(problem.starts_with(&path.display().to_string()), "{problem}");
}
