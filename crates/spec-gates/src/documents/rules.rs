//! Rules of the contract, and their IDs in comments and tests; and names of tests in documents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::{Document, pattern, texts};

/// The folder of the rules.
const RULES_FOLDER: &str = "docs/contract";

/// A rule is a list item that begins with its ID. The ID of a removed rule is struck through.
static DEFINITION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^- (~~)?\*\*(([A-Z]+)-[1-9][0-9]*)\*\*"));
static ID: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b([A-Z]+)-[0-9]+\b"));
/// A word in prose that can only be a rule's ID, even of a group that does not exist.
static LIKE_ID: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b([A-Z]{3})-[1-9][0-9]?\b"));
/// Letters of words that look like IDs, such as `UTF-8`.
const NO_GROUPS: [&str; 1] = ["UTF"];
/// The attribute of a test.
static TEST: LazyLock<Regex> = LazyLock::new(|| pattern(r"^#\[(\w+::)*test\b"));

/// The rules of `docs/contract`.
#[derive(Debug, Default)]
struct Rules {
    /// Each ID with the file that defines it.
    defined: BTreeMap<String, String>,
    /// The IDs of removed rules.
    removed: BTreeSet<String>,
    /// The letters before the number, such as `KEY` in `KEY-6`.
    groups: BTreeSet<String>,
}

/// Returns a sorted list of messages about IDs: cited but not defined, cited although removed, defined twice, or not cited by any
/// test.
///
/// All files below `root` that git does not ignore are searched for citations; IDs of groups that do not exist only count in
/// prose. A test cites an ID in its doc comment, or in that of its file if that is a file of tests. `exceptions` are the rules
/// that no test can show, each with the reason. Each must still be needed.
///
/// # Errors
///
/// If a file or a folder cannot be read.
pub fn wrong_ids(root: &Path, exceptions: &[(&str, &str)]) -> std::io::Result<Vec<String>> {
    let texts = texts(root)?;
    let mut problems = BTreeSet::new();
    let rules = rules(&texts, &mut problems);
    let mut tested = BTreeSet::new();
    for (path, text) in &texts {
        for (number, line) in (1..).zip(text.lines()) {
            let of_no_group = LIKE_ID
                .captures_iter(line)
                .filter(|found| {
                    is_prose(path, line) && !rules.groups.contains(&found[1]) && !NO_GROUPS.contains(&&found[1])
                })
                .map(|found| found.get_match().as_str());
            let cited = ids(line, &rules.groups).chain(of_no_group);
            for id in cited.filter(|id| !rules.defined.contains_key(*id)) {
                if !rules.removed.contains(id) {
                    problems.insert(format!(
                        "{path}:{number}: {RULES_FOLDER} has no rule {id}. Correct the id, or add the rule at the end of its group."
                    ));
                } else if !path.starts_with(RULES_FOLDER) {
                    problems.insert(format!(
                        "{path}:{number}: the rule {id} was removed. Cite its replacement."
                    ));
                }
            }
        }
        if path.ends_with(".rs") {
            tested.extend(cited_by_tests(path, text, &rules.groups));
        }
    }
    let exempt: BTreeSet<&str> = exceptions.iter().map(|(id, _)| *id).collect();
    for (id, home) in &rules.defined {
        if !tested.contains(id.as_str()) && !exempt.contains(id.as_str()) {
            problems.insert(format!(
                "{home}: no test cites {id}. Cite it in the doc comment of a test that shows the rule, or write one."
            ));
        }
    }
    for id in exempt {
        if !rules.defined.contains_key(id) || tested.contains(id) {
            problems.insert(format!("the exception {id} is no longer needed; remove it"));
        }
    }
    Ok(problems.into_iter().collect())
}

/// Reads the rules. Adds a message to `problems` for each that is defined twice.
fn rules(texts: &[(String, String)], problems: &mut BTreeSet<String>) -> Rules {
    let mut rules = Rules::default();
    let homes = texts.iter().filter(|(path, _)| path.starts_with(RULES_FOLDER));
    for (path, line) in homes.flat_map(|(path, text)| text.lines().map(move |line| (path, line))) {
        let Some(found) = DEFINITION.captures(line) else {
            continue;
        };
        let id = found[2].to_owned();
        rules.groups.insert(found[3].to_owned());
        let twice = if found.get(1).is_some() {
            rules.defined.contains_key(&id) || !rules.removed.insert(id.clone())
        } else {
            rules.removed.contains(&id) || rules.defined.insert(id.clone(), path.clone()).is_some()
        };
        if twice {
            problems.insert(format!(
                "{path}: {id} is defined twice. An id must never be reused for another rule."
            ));
        }
    }
    rules
}

/// Returns whether a line is prose: part of a Markdown document, or a comment in Rust.
fn is_prose(path: &str, line: &str) -> bool {
    path.ends_with(".md") || path.ends_with(".rs") && line.trim_start().starts_with("//")
}

/// Returns the IDs of these groups in a text.
fn ids<'t>(text: &'t str, groups: &BTreeSet<String>) -> impl Iterator<Item = &'t str> {
    ID.captures_iter(text)
        .filter(|found| groups.contains(&found[1]))
        .map(|found| found.get_match().as_str())
}

/// Returns the IDs that the tests of a Rust file cite.
fn cited_by_tests<'t>(path: &str, text: &'t str, groups: &BTreeSet<String>) -> BTreeSet<&'t str> {
    let is_file_of_tests = path.split('/').any(|part| part == "tests" || part == "tests.rs");
    let (mut cited, mut of_the_file) = (BTreeSet::new(), BTreeSet::new());
    let (mut of_the_item, mut is_test, mut has_tests) = (BTreeSet::new(), false, false);
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("//!") {
            of_the_file.extend(ids(line, groups));
        } else if line.starts_with("///") {
            of_the_item.extend(ids(line, groups));
        } else if line.starts_with("#[") {
            is_test |= TEST.is_match(line);
        } else if !line.starts_with("//") {
            if is_test {
                cited.append(&mut of_the_item);
                has_tests = true;
            }
            of_the_item.clear();
            is_test = false;
        }
    }
    if is_file_of_tests && has_tests {
        cited.append(&mut of_the_file);
    }
    cited
}

/// A name of five or more words.
static SENTENCE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[a-z]+(_[a-z0-9]+){4,}$"));
/// A test, from its attribute to its name.
static TEST_FUNCTION: LazyLock<Regex> =
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
        .flat_map(|(_, text)| TEST_FUNCTION.captures_iter(text))
        .filter_map(|found| Some(found.get(1)?.as_str()))
        .collect();
    let named = document.spans.iter().filter(|span| SENTENCE.is_match(span));
    let missing = named.filter(|name| !tests.contains(name.as_str()));
    Ok(missing
        .map(|name| format!("{}: there is no test `{name}`", document.name))
        .collect())
}
