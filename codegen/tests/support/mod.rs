//! Finds the documents in `fixtures`.

use std::path::{Path, PathBuf};

/// The folder of a kind of fixtures.
pub fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(kind)
}

/// The documents in a folder, sorted by name.
pub fn documents(kind: &str, extension: &str) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder(kind))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    all.sort();
    all
}

/// The documents in a folder from which code is generated. Refused documents have a message beside them.
pub fn generated(kind: &str) -> Vec<PathBuf> {
    let mut all = [documents(kind, "yaml"), documents(kind, "json")].concat();
    all.retain(|path| !path.with_extension("txt").exists());
    all.sort();
    all
}

/// The name of a document, which is also that of its module.
pub fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}
