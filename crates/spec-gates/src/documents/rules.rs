//! Rules and the ids by which comments and tests cite them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::{pattern, texts};

/// Where the rules stand, each with its id.
const HOME: &str = "docs/contract";

/// A rule: an item of a list that begins with its id. One that has gone has its id struck through.
static DEFINITION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^- (~~)?\*\*(([A-Z]+)-[1-9][0-9]*)\*\*"));
static ID: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b([A-Z]+)-[0-9]+\b"));
/// What can be nothing but a rule's id in prose, even if there is no such group.
static LIKE_ID: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b([A-Z]{3})-[1-9][0-9]?\b"));
/// Of what looks like one and is none, the letters: `UTF-8`.
const NO_GROUPS: [&str; 1] = ["UTF"];
/// What makes the function below it a test.
static TEST: LazyLock<Regex> = LazyLock::new(|| pattern(r"^#\[(\w+::)*test\b"));

/// The rules of `docs/contract`.
#[derive(Debug, Default)]
struct Rules {
    /// Each id with the file that defines it.
    defined: BTreeMap<String, String>,
    /// The ids of rules that have gone.
    gone: BTreeSet<String>,
    /// What stands before the number: `KEY` of `KEY-6`.
    groups: BTreeSet<String>,
}

/// A message for each id that is wrong, sorted: one that is cited and not defined, whose rule has gone, that is defined
/// twice, or that no test cites.
///
/// Everything below `root` that git does not ignore is searched for citations; of groups that do not exist, prose is. A test cites an id in the documentation of
/// its function, or in that of the file it stands in, if that is a file of tests. `exceptions` are the rules that no test
/// can show, each with the reason; each must still be needed.
///
/// # Errors
///
/// When a file or a folder cannot be read.
pub fn wrong_ids(root: &Path, exceptions: &[(&str, &str)]) -> std::io::Result<Vec<String>> {
    let texts = texts(root)?;
    let mut wrong = BTreeSet::new();
    let rules = rules(&texts, &mut wrong);
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
                if !rules.gone.contains(id) {
                    wrong.insert(format!(
                        "{path}:{number}: {HOME} has no rule {id}. Cite the one that is meant, or add it at the end of its group."
                    ));
                } else if !path.starts_with(HOME) {
                    wrong.insert(format!(
                        "{path}:{number}: the rule {id} has gone. Cite what holds instead."
                    ));
                }
            }
        }
        if path.ends_with(".rs") {
            tested.extend(cited_by_tests(path, text, &rules.groups));
        }
    }
    let excepted: BTreeSet<&str> = exceptions.iter().map(|(id, _)| *id).collect();
    for (id, home) in &rules.defined {
        if !tested.contains(id.as_str()) && !excepted.contains(id.as_str()) {
            wrong.insert(format!(
                "{home}: no test cites {id}. Cite it in the documentation of the test that shows the rule, or write that test."
            ));
        }
    }
    for id in excepted {
        if !rules.defined.contains_key(id) || tested.contains(id) {
            wrong.insert(format!("the exception {id} is not needed any more; remove it"));
        }
    }
    Ok(wrong.into_iter().collect())
}

/// Reads the rules; one that is defined twice is added to `wrong`.
fn rules(texts: &[(String, String)], wrong: &mut BTreeSet<String>) -> Rules {
    let mut rules = Rules::default();
    let homes = texts.iter().filter(|(path, _)| path.starts_with(HOME));
    for (path, line) in homes.flat_map(|(path, text)| text.lines().map(move |line| (path, line))) {
        let Some(found) = DEFINITION.captures(line) else {
            continue;
        };
        let id = found[2].to_owned();
        rules.groups.insert(found[3].to_owned());
        let twice = if found.get(1).is_some() {
            rules.defined.contains_key(&id) || !rules.gone.insert(id.clone())
        } else {
            rules.gone.contains(&id) || rules.defined.insert(id.clone(), path.clone()).is_some()
        };
        if twice {
            wrong.insert(format!(
                "{path}: {id} is defined twice. An id is never given to another rule."
            ));
        }
    }
    rules
}

/// Whether a line of a file is for people: of a document, or a comment in Rust.
fn is_prose(path: &str, line: &str) -> bool {
    path.ends_with(".md") || path.ends_with(".rs") && line.trim_start().starts_with("//")
}

/// The ids of these groups in a text.
fn ids<'t>(text: &'t str, groups: &BTreeSet<String>) -> impl Iterator<Item = &'t str> {
    ID.captures_iter(text)
        .filter(|found| groups.contains(&found[1]))
        .map(|found| found.get_match().as_str())
}

/// The ids that the tests of a Rust file cite.
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
