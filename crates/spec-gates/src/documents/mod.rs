//! Checks that the files, folders, commands, rules and tests that documents name exist.

mod commands;
mod paths;
mod rules;

use std::path::Path;

use ignore::WalkBuilder;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

pub use commands::missing_commands;
pub use paths::{Findings, PathRules, missing_paths};
pub use rules::{missing_tests, wrong_ids};

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

/// The parts of a Markdown document that are checked.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Its path relative to the project's root, for messages.
    pub name: String,
    /// Inline code.
    pub spans: Vec<String>,
    /// Code blocks without a language: commands, or a tree of folders.
    pub blocks: Vec<String>,
    /// Targets of links and images.
    pub links: Vec<String>,
}

impl Document {
    /// Reads the document `name` below `root`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn read(root: &Path, name: &str) -> std::io::Result<Self> {
        Ok(Self::parse(name, &std::fs::read_to_string(root.join(name))?))
    }

    /// Parses Markdown, including tables.
    pub fn parse(name: &str, text: &str) -> Self {
        let mut document = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        let mut block: Option<String> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => block = Some(String::new()),
                // Blocks with a language are programs, which other tests run.
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) if language.is_empty() => {
                    block = Some(String::new());
                }
                Event::Text(text) => {
                    if let Some(block) = &mut block {
                        block.push_str(&text);
                    }
                }
                Event::End(TagEnd::CodeBlock) => document.blocks.extend(block.take()),
                Event::Code(code) => document.spans.push(code.into_string()),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                _ => {}
            }
        }
        document
    }
}
