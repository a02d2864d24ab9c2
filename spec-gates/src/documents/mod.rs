//! Documents that cannot rot: the files, folders, commands and rules that they name exist.

mod commands;
mod markdown;
mod paths;
mod rules;

pub use commands::{missing_commands, stages_of_usage};
pub use markdown::Document;
pub use paths::{Findings, PathRules, missing_paths};
pub use rules::wrong_ids;

/// A pattern that stands in this code.
#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and the tests use every one"
)]
fn pattern(text: &str) -> regex::Regex {
    regex::Regex::new(text).expect("a constant pattern is valid")
}
