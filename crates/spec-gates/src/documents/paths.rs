//! Files and folders in documents.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::{Document, pattern};

/// A word that can only be a path: relative, with a slash or a known extension.
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^[\w.<][^\s/:()'`|]*(/[^\s/:()'`|]*)+$|^[\w.-]*\.(json|lock|md|mjs|py|rs|sh|sql|toml|yaml)$")
});

/// A media type, which looks like a path.
static MEDIA_TYPE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(application|image|multipart|text)/[^/.]+$"));

/// A placeholder such as `<tag>`, an ellipsis, or a star.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| pattern(r"<[^<>/]*>|…|\*+"));

/// How the paths of a document are resolved.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathRules<'a> {
    /// Folders, relative to the project's root, from which the document's paths may start; `""` is the root.
    pub roots: &'a [&'a str],
    /// Words that only look like paths, or that name files that a reader creates. Each must still occur.
    pub exceptions: &'a [&'a str],
}

/// The results of checking a document.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The number of existing paths.
    pub present: usize,
    /// The exceptions that occurred.
    pub excepted: BTreeSet<String>,
    /// A message for each path that does not exist.
    pub missing: Vec<String>,
}

/// Checks every path in the document's inline code, links and trees of folders. A tree is a code block whose lines begin with a
/// path; an indented path is below the last one with less indentation.
pub fn missing_paths(root: &Path, document: &Document, rules: PathRules<'_>) -> Findings {
    let links = document
        .links
        .iter()
        .filter(|link| !link.contains(':') && !link.starts_with('#'));
    let files = links.map(|link| link.split('#').next().unwrap_or_default().to_owned());
    // In a command, only words that cannot be anything else count as paths.
    let is_file = |word: &&str| word.contains('/') && word.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let spans = document.spans.iter().flat_map(|span| {
        let is_command = span.contains(' ');
        span.split(' ')
            .filter(move |word| PATH.is_match(word) && !MEDIA_TYPE.is_match(word) && (!is_command || is_file(word)))
            .map(str::to_owned)
    });
    let trees = document.blocks.iter().flat_map(|block| tree(block));

    let mut findings = Findings::default();
    for word in files.chain(spans).chain(trees).collect::<BTreeSet<_>>() {
        if rules.exceptions.contains(&word.as_str()) {
            findings.excepted.insert(word);
        } else if alternatives(&word)
            .iter()
            .all(|path| rules.roots.iter().any(|from| exists(&root.join(from), path)))
        {
            findings.present += 1;
        } else {
            findings.missing.push(format!(
                "{}: `{word}` does not exist (searched in {}). Correct the document, or create the file.",
                document.name,
                rules
                    .roots
                    .iter()
                    .map(|from| format!("./{from}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
    }
    findings
}

/// Returns the paths of a block that lists folders and files: the first word of each line, and further words that end with a slash
/// or contain a placeholder. A block of commands has none.
fn tree(block: &str) -> Vec<String> {
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut paths = Vec::new();
    for line in block.lines() {
        let indent = line.len() - line.trim_start().len();
        let mut words = line.split_whitespace();
        let Some(word) = words
            .next()
            .filter(|word| PATH.is_match(word) && !word.starts_with("script/"))
        else {
            continue;
        };
        above.retain(|(other, _)| *other < indent);
        let path = above
            .last()
            .map_or_else(|| word.to_owned(), |(_, folder)| format!("{folder}{word}"));
        if word.ends_with('/') {
            above.push((indent, path.clone()));
        }
        paths.push(path);
        let named = words.map(|word| word.trim_end_matches([',', ';', '.']));
        let named = named.filter(|word| PATH.is_match(word) && (word.ends_with('/') || word.contains("/<")));
        paths.extend(named.map(str::to_owned));
    }
    paths
}

/// Expands `a/{b,c}` to `a/b` and `a/c`.
fn alternatives(word: &str) -> Vec<String> {
    let parts = word
        .split_once('{')
        .and_then(|(before, rest)| rest.split_once('}').map(|(list, after)| (before, list, after)));
    match parts {
        Some((before, list, after)) if list.contains(',') => {
            list.split(',').map(|item| format!("{before}{item}{after}")).collect()
        }
        _ => vec![word.to_owned()],
    }
}

/// Returns whether the path exists, or a Rust module of that name, or a path that matches its placeholders.
fn exists(from: &Path, path: &str) -> bool {
    if !PLACEHOLDER.is_match(path) {
        let found = from.join(path);
        if path.ends_with('/') {
            return found.is_dir();
        }
        return found.exists() || (found.extension().is_none() && found.with_extension("rs").exists());
    }
    let pattern = from.join(PLACEHOLDER.replace_all(path, "*").as_ref());
    let hits = glob::glob(&pattern.to_string_lossy());
    hits.is_ok_and(|mut hits| hits.any(|hit| hit.is_ok_and(|hit| !path.ends_with('/') || hit.is_dir())))
}
