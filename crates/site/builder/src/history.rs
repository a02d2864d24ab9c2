//! Versions: the document's words on them, the changelog, and for each version what its document has that the one before had not.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use crate::document::{Chapter, chapters, strings, text};
use crate::markdown::{Links, anchor, render};
use crate::{BuildError, Document, Page, Sources, guide};

/// The versions' page.
///
/// # Errors
/// When the document has no chapter on them, or the changelog none for the document's version.
pub fn page(sources: &Sources, links: &Links) -> Result<Page, BuildError> {
    let of_document = sources.document.chapters();
    let policy = guide::chapter(&of_document, "Versions")?;
    let changes = chapters(&sources.changelog);
    let of_changelog = |version: &str| changes.iter().find(|chapter| is_of(chapter, version));
    if of_changelog(sources.document.version()).is_none() {
        let version = sources.document.version();
        return Err(BuildError::Missing(format!(
            "CHANGELOG.md has no chapter for {version}"
        )));
    }
    // Newest first, each with the one before it where that is known.
    let mut documents: Vec<&Document> = sources.released.iter().chain([&sources.document]).collect();
    documents.reverse();
    documents.dedup_by_key(|document| document.version().to_owned());
    let body = html! {
        (render(&policy.markdown, -1, links))
        p { "The changelog as a file: " a href="CHANGELOG.md" { "CHANGELOG.md" } "." }
        @for chapter in changes.iter().filter(|chapter| !chapter.title.is_empty()) {
            section {
                h2 id=(anchor(&chapter.title)) { (chapter.title) }
                (render(&chapter.markdown, 0, links))
                @for pair in documents.windows(2).filter(|pair| is_of(chapter, pair[0].version())) {
                    (difference(pair[1], pair[0]))
                }
            }
        }
    };
    Ok(Page::new("versions.html", "Versions and changes", body))
}

fn is_of(chapter: &Chapter, version: &str) -> bool {
    chapter.title.split_whitespace().next() == Some(version)
}

fn difference(before: &Document, after: &Document) -> Markup {
    let added = added(&facts(before), &facts(after));
    let gone = self::added(&facts(after), &facts(before));
    html! {
        @if !added.is_empty() || !gone.is_empty() {
            details {
                summary { "What the document has that " (before.version()) " had not" }
                ul { @for fact in &added { li { (render(fact, 0, &Links::default())) } } }
                @if !gone.is_empty() {
                    p { "And has no longer:" }
                    ul { @for fact in &gone { li { (render(fact, 0, &Links::default())) } } }
                }
            }
        }
    }
}

/// What a document declares: by a key, whose beginning up to the last `/` is the key of what it belongs to, in words.
type Facts = BTreeMap<String, String>;

/// What is in the second alone, but for what belongs to something that is there alone as well.
fn added(before: &Facts, after: &Facts) -> Vec<String> {
    after
        .iter()
        .filter(|(key, _)| !before.contains_key(*key))
        .filter(|(key, _)| match key.rsplit_once('/') {
            Some((parent, _)) => before.contains_key(parent) || !after.contains_key(parent),
            None => true,
        })
        .map(|(_, words)| words.clone())
        .collect()
}

fn facts(document: &Document) -> Facts {
    let mut facts = Facts::new();
    for operation in document.operations() {
        let name = format!("`{} {}`", operation.method, operation.path);
        let key = format!("operation {}", operation.id);
        for parameter in document.parameters(operation) {
            let parameter = text(parameter.get("name"));
            facts.insert(
                format!("{key}/{parameter}"),
                format!("the parameter `{parameter}` of {name}"),
            );
        }
        for (status, response) in document.responses(operation) {
            facts.insert(format!("{key}/{status}"), format!("the answer {status} of {name}"));
            for code in strings(response.get("x-error-codes")) {
                facts.insert(
                    format!("{key}/{status}/{code}"),
                    format!("the error `{code}` of {name}"),
                );
            }
            for header in response
                .get("headers")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(name, _)| name)
            {
                facts.insert(
                    format!("{key}/{status}/{header}"),
                    format!("the header `{header}` in the answer {status} of {name}"),
                );
            }
        }
        facts.insert(key, format!("the operation {name}"));
    }
    let schemas = document
        .root()
        .pointer("/components/schemas")
        .and_then(Value::as_object);
    for (schema, value) in schemas.into_iter().flatten() {
        let key = format!("schema {schema}");
        values(&mut facts, &key, schema, value);
        for (member, value) in value.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let of = format!("{schema}.{member}");
            facts.insert(
                format!("{key}/{member}"),
                format!("the member `{member}` of `{schema}`"),
            );
            values(&mut facts, &format!("{key}/{member}"), &of, value);
        }
        facts.insert(key, format!("the schema `{schema}`"));
    }
    facts
}

fn values(facts: &mut Facts, key: &str, of: &str, schema: &Value) {
    for value in strings(schema.get("enum")).chain(strings(schema.get("x-known-values"))) {
        facts.insert(format!("{key}/{value}"), format!("the value `{value}` of `{of}`"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_addition_is_told_once_by_its_outermost_part() {
        let before =
            Document::parse("openapi: 3.0.3\npaths: {}\ncomponents: {schemas: {A: {properties: {x: {}}}}}").unwrap();
        let after = Document::parse(
            "openapi: 3.0.3\npaths: {/b: {get: {operationId: b, parameters: [{name: p}], responses: {}}}}\n\
             components: {schemas: {A: {properties: {x: {enum: [one]}, y: {enum: [two]}}}}}",
        )
        .unwrap();
        assert_eq!(
            added(&facts(&before), &facts(&after)),
            [
                "the operation `GET /b`",
                "the value `one` of `A.x`",
                "the member `y` of `A`"
            ]
        );
        assert_eq!(added(&facts(&after), &facts(&before)), [""; 0]);
    }
}
