//! Finds the documents in `fixtures`.

use std::path::{Path, PathBuf};

use dropshot_codegen::archive;

/// A document and its file, which is only a name in an archive.
pub struct Fixture {
    pub file: PathBuf,
    pub text: String,
}

/// The path of a file or folder in `fixtures`.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The documents in a folder, sorted by name.
pub fn documents(folder: &str, extension: &str) -> Vec<Fixture> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(path(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    all.sort();
    all.iter()
        .map(|path| Fixture {
            file: path.clone(),
            text: std::fs::read_to_string(path).unwrap(),
        })
        .collect()
}

/// The documents from which code is generated.
pub fn positive() -> Vec<Fixture> {
    let archives = documents("positive", "txtar");
    let mut all: Vec<Fixture> = archives.iter().flat_map(|archive| unpacked(&archive.text)).collect();
    all.extend(documents("positive", "yaml"));
    all
}

/// The documents that Dropshot emits for the traits in `fixtures/round_trip`.
pub fn round_trips() -> Vec<Fixture> {
    archived("round_trip.txtar")
}

/// The documents of former defects, from which code is generated.
pub fn defects() -> Vec<Fixture> {
    archived("defects.txtar")
}

/// The rejected documents, each with its message.
pub fn negative() -> Vec<(Fixture, String)> {
    let mut all = Vec::new();
    let mut files = archived("negative.txtar").into_iter();
    while let (Some(document), Some(message)) = (files.next(), files.next()) {
        assert_eq!(
            document.file.with_extension("txt"),
            message.file,
            "its message must follow each document"
        );
        all.push((document, message.text));
    }
    all
}

fn archived(name: &str) -> Vec<Fixture> {
    unpacked(&std::fs::read_to_string(path(name)).unwrap())
}

fn unpacked(archive: &str) -> Vec<Fixture> {
    archive::files(archive)
        .into_iter()
        .map(|(name, text)| Fixture {
            file: name.into(),
            text,
        })
        .collect()
}
