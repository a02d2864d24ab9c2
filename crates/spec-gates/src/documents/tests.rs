//! Names of tests in documents.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::{Document, pattern, texts};

/// A name of five or more words.
static SENTENCE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[a-z]+(_[a-z0-9]+){4,}$"));
/// A test, from its attribute to its name.
static TEST: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^ *#\[(?:\w+::)*test\b.*\n(?: *(?:#|//).*\n)* *(?:async )?fn (\w+)\("));

/// Returns a message for each test in the document's inline code that no Rust file below `root` contains. A name of five or more
/// words is taken for a test.
///
/// # Errors
///
/// If a file or a folder cannot be read.
pub fn missing_tests(root: &Path, document: &Document) -> std::io::Result<Vec<String>> {
    let texts = texts(root)?;
    let sources = texts.iter().filter(|(path, _)| path.ends_with(".rs"));
    let tests: BTreeSet<&str> = sources
        .flat_map(|(_, text)| TEST.captures_iter(text))
        .filter_map(|found| Some(found.get(1)?.as_str()))
        .collect();
    let named = document.spans.iter().filter(|span| SENTENCE.is_match(span));
    let missing = named.filter(|name| !tests.contains(name.as_str()));
    Ok(missing
        .map(|name| format!("{}: there is no test `{name}`", document.name))
        .collect())
}
