//! What the tests of fixtures share: finding them, generating, comparing, and the stubs that let generated code compile.

pub mod stubs;

use std::path::{Path, PathBuf};

use codegen::emit::{self, Dispatch, File, Root};
use codegen::{load, output};

/// The folder of a kind of fixtures.
pub fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(kind)
}

/// The documents in a folder, by name, ordered.
pub fn documents(kind: &str, extension: &str) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder(kind))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    all.sort();
    all
}

/// The documents in a folder that are generated: those without a message beside them, by which they are refused.
pub fn generated(kind: &str) -> Vec<PathBuf> {
    let mut all = [documents(kind, "yaml"), documents(kind, "json")].concat();
    all.retain(|path| !path.with_extension("txt").exists());
    all.sort();
    all
}

/// A document's name, which is also its folder's and its module's.
pub fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// Generates everything that is kept of a document: its folder's subfolders with their files.
pub fn generate(kind: &str, path: &Path) -> Vec<(PathBuf, Vec<File>)> {
    let name = name(path);
    let document = load::from_file(path).unwrap();
    let mut all = vec![document.clone()];
    // Older versions of the same API.
    let older = folder(kind).join(&name).join("older");
    for entry in std::fs::read_dir(older).into_iter().flatten() {
        all.push(load::from_file(&entry.unwrap().path()).unwrap());
    }
    let api = codegen::model_of(&all).unwrap_or_else(|problem| panic!("{problem}"));
    let root = Root::new(&format!("crate::{kind}::{name}")).unwrap();
    let folder = folder(kind).join(&name);
    let mut all = vec![
        (
            folder.join("server"),
            emit::server(&api, &root, Dispatch::Dropshot).unwrap(),
        ),
        (folder.join("stubs"), stubs::files(&api, folder.join("client").exists())),
    ];
    if folder.join("client").exists() {
        all.push((folder.join("client"), emit::client(&document, &api, &root).unwrap()));
    }
    all
}

/// Compares with what is kept, or with `CODEGEN_UPDATE=1` keeps what was generated. Returns what differs.
pub fn compare(folder: &Path, files: &[File]) -> Vec<String> {
    if std::env::var_os("CODEGEN_UPDATE").is_some() {
        // The fixtures' folders are the tests' own, with a marker or without.
        if folder.exists() && !folder.join(output::MARKER).exists() {
            std::fs::remove_dir_all(folder).unwrap();
        }
        output::write(folder, files).unwrap();
    }
    output::differences(folder, files)
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect()
}
