//! Documents that cannot rot: the files, folders, commands, rules and tests that they name exist.

use std::path::Path;

use ignore::WalkBuilder;

mod commands;
mod markdown;
mod paths;
mod rules;
mod tests;

pub use commands::missing_commands;
pub use markdown::Document;
pub use paths::{Findings, PathRules, missing_paths};
pub use rules::wrong_ids;
pub use tests::missing_tests;

/// The texts below `root` that git does not ignore, each with its path from there.
fn texts(root: &Path) -> std::io::Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for entry in WalkBuilder::new(root)
        .require_git(false)
        .sort_by_file_path(Ord::cmp)
        .build()
    {
        let entry = entry.map_err(std::io::Error::other)?;
        if entry.file_type().is_some_and(|found| found.is_file()) {
            // What is no text, a picture for instance, cites nothing.
            if let Ok(text) = String::from_utf8(std::fs::read(entry.path())?) {
                let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
                texts.push((path.to_string_lossy().into_owned(), text));
            }
        }
    }
    Ok(texts)
}

/// A pattern that stands in this code.
#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and the tests use every one"
)]
fn pattern(text: &str) -> regex::Regex {
    regex::Regex::new(text).expect("a constant pattern is valid")
}
