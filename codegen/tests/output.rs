//! Comparing and replacing generated files.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use dropshot_codegen::output::{self, Difference, File, GENERATED, differences, write};

fn file(name: &str, text: &str) -> File {
    File {
        name: name.into(),
        text: text.into(),
    }
}

fn files() -> Vec<File> {
    vec![file("a.rs", "one\ntwo\nthree\n"), file("b.rs", "b\n")]
}

/// A folder that contains exactly [`files`].
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
fn written_files_do_not_differ() {
    assert!(found(fresh().path()).is_empty());
}

#[test]
fn a_stale_file_is_reported_with_its_first_different_line() {
    let folder = fresh();
    std::fs::write(folder.path().join("a.rs"), "one\nTWO\nthree\n").unwrap();
    assert_eq!(found(folder.path()), ["stale: a.rs:2"]);
    std::fs::write(folder.path().join("a.rs"), "one\ntwo\n").unwrap();
    assert_eq!(found(folder.path()), ["stale: a.rs:3"]);
}

#[test]
fn missing_files_and_folders_are_reported() {
    let folder = fresh();
    std::fs::remove_file(folder.path().join("b.rs")).unwrap();
    assert_eq!(found(folder.path()), ["missing: b.rs"]);
    let nowhere = folder.path().join("nowhere");
    assert_eq!(
        differences(&nowhere, &files()).unwrap(),
        [
            Difference::Missing(nowhere.join("a.rs")),
            Difference::Missing(nowhere.join("b.rs")),
            Difference::Missing(nowhere.join(output::MARKER))
        ]
    );
}

#[test]
fn files_that_are_no_longer_generated_are_orphaned() {
    let folder = fresh();
    let before = [files(), vec![file("c.rs", "listed\n")]].concat();
    write(folder.path(), &before).unwrap();
    std::fs::write(folder.path().join("d.rs"), format!("//! d\n//!\n{GENERATED}\n")).unwrap();
    assert_eq!(
        found(folder.path()),
        ["stale: .codegen:4", "orphaned: c.rs", "orphaned: d.rs"]
    );
}

#[test]
fn writing_replaces_all_different_files_and_no_others() {
    let folder = fresh();
    let path = |name: &str| folder.path().join(name);
    assert!(write(folder.path(), &files()).unwrap().is_empty());
    std::fs::write(path("a.rs"), "other\n").unwrap();
    std::fs::remove_file(path("b.rs")).unwrap();
    std::fs::write(path("c.rs"), format!("{GENERATED}\n")).unwrap();
    let mut changed = write(folder.path(), &files()).unwrap();
    changed.sort();
    assert_eq!(changed, [path("a.rs"), path("b.rs"), path("c.rs")]);
    assert!(found(folder.path()).is_empty());
}

/// Every file in a folder, with its content.
fn everything(folder: &Path) -> Vec<(String, String)> {
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn a_folder_that_was_not_generated_is_rejected_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.rs"), "fn main() {}\n").unwrap();
    std::fs::write(folder.path().join("lib.rs"), "pub mod pets;\n").unwrap();
    let before = everything(folder.path());
    for problem in [
        write(folder.path(), &files()).unwrap_err().to_string(),
        differences(folder.path(), &files()).unwrap_err().to_string(),
    ] {
        assert!(
            problem.contains("contains `lib.rs` and 1 more but no `.codegen` file"),
            "{problem}"
        );
        assert!(problem.contains("use a new or empty folder"), "{problem}");
    }
    assert_eq!(everything(folder.path()), before);
}

#[test]
fn a_folder_with_a_foreign_marker_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".codegen"), "my notes\n").unwrap();
    let problem = write(folder.path(), &files()).unwrap_err().to_string();
    assert!(problem.contains("that codegen did not write"), "{problem}");
}

#[test]
fn a_foreign_file_in_a_generated_folder_is_reported_and_kept() {
    let folder = fresh();
    let mine = folder.path().join("mine.rs");
    std::fs::write(&mine, "fn mine() {}\n").unwrap();
    std::fs::create_dir(folder.path().join("more")).unwrap();
    let named = [
        "foreign: mine.rs: not generated; move it elsewhere",
        "foreign: more: not generated; move it elsewhere",
    ];
    assert_eq!(found(folder.path()), named);
    std::fs::write(folder.path().join("a.rs"), "stale\n").unwrap();
    write(folder.path(), &files()).unwrap();
    assert_eq!(found(folder.path()), named);
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "fn mine() {}\n");
}

#[test]
fn a_foreign_file_with_the_name_of_a_generated_one_is_not_replaced() {
    let folder = fresh();
    std::fs::write(folder.path().join("c.rs"), "fn mine() {}\n").unwrap();
    let before = everything(folder.path());
    let more = [files(), vec![file("c.rs", "generated\n")]].concat();
    let problem = write(folder.path(), &more).unwrap_err().to_string();
    assert!(
        problem.contains("contains `c.rs`, which was not generated"),
        "{problem}"
    );
    assert_eq!(everything(folder.path()), before);
}

/// Simulates an interruption before each of the renames.
#[test]
fn the_next_run_repairs_an_interrupted_one() {
    let old = [files(), vec![file("old.rs", "old\n")]].concat();
    let new = vec![file("a.rs", "one\n"), file("new.rs", "new\n")];
    for done in 0..=2 {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &old).unwrap();
        let marker = folder.path().join(output::MARKER);
        let before = std::fs::read_to_string(&marker).unwrap();
        std::fs::write(&marker, before + "new.rs\n").unwrap();
        for (index, file) in new.iter().enumerate() {
            let unfinished = folder.path().join(format!("{}.codegen-unfinished", file.name));
            let whole = if index < done { &file.text[..] } else { &file.text[..1] };
            std::fs::write(&unfinished, whole).unwrap();
            if index < done {
                std::fs::rename(&unfinished, folder.path().join(&file.name)).unwrap();
            }
        }
        write(folder.path(), &new).unwrap();
        assert!(differences(folder.path(), &new).unwrap().is_empty());
        assert_eq!(everything(folder.path()).len(), 3, "two files and the marker");
    }
}

#[test]
fn server_and_client_must_have_different_folders() {
    let folder = tempfile::tempdir().unwrap();
    let same_folder = folder.path().join(".");
    assert!(output::apart(Some(folder.path()), Some(&same_folder)).is_err());
    assert!(output::apart(Some(folder.path()), Some(&folder.path().join("client"))).is_ok());
    assert!(output::apart(Some(folder.path()), None).is_ok());
}

#[test]
fn a_file_instead_of_a_folder_is_an_error_with_its_path() {
    let folder = fresh();
    let path = folder.path().join("a.rs");
    let problem = write(&path, &files()).unwrap_err().to_string();
    assert!(problem.starts_with(&path.display().to_string()), "{problem}");
}
