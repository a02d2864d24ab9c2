//! Checks that the files, folders, commands, rules and tests that documents name exist.

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

/// Returns the text files below `root` that git does not ignore, each with its relative path.
fn texts(root: &Path) -> std::io::Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for entry in WalkBuilder::new(root)
        .require_git(false)
        .sort_by_file_path(Ord::cmp)
        .build()
    {
        let entry = entry.map_err(std::io::Error::other)?;
        if entry.file_type().is_some_and(|found| found.is_file()) {
            // Binary files, such as pictures, are skipped.
            if let Ok(text) = String::from_utf8(std::fs::read(entry.path())?) {
                let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
                texts.push((path.to_string_lossy().into_owned(), text));
            }
        }
    }
    Ok(texts)
}

/// Compiles a constant pattern.
#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and the tests use each of them"
)]
fn pattern(text: &str) -> regex::Regex {
    regex::Regex::new(text).expect("a constant pattern is valid")
}
