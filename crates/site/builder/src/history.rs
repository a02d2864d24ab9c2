//! The page of versions: the document's chapter, the changelog, and the differences between the documents of successive versions.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use crate::document::{Chapter, chapters, strings, text};
use crate::markdown::{Links, anchor, render};
use crate::{BuildError, Document, Page, Sources, guide, sources};

/// Builds the page.
///
/// # Errors
/// The document has no chapter on versions, or the changelog has no chapter for the document's version.
pub fn page(sources: &Sources, links: &Links) -> Result<Page, BuildError> {
    let document_chapters = sources.document.chapters();
    let policy = guide::chapter(&document_chapters, "Versions")?;
    let changes = chapters(&sources.changelog);
    let of_changelog = |version: &str| changes.iter().find(|chapter| is_of(chapter, version));
    if of_changelog(sources.document.version()).is_none() {
        let version = sources.document.version();
        return Err(BuildError::Missing(format!(
            "CHANGELOG.md must have a chapter for {version}"
        )));
    }
    // Newest first.
    let mut documents: Vec<&Document> = sources.released.iter().chain([&sources.document]).collect();
    documents.reverse();
    documents.dedup_by_key(|document| document.version().to_owned());
    let body = html! {
        (render(&policy.markdown, -1, links))
        p { "The changelog as a file: " a href="CHANGELOG.md" { "CHANGELOG.md" } ". New versions as an Atom feed: " a href=(FEED) { (FEED) } "." }
        @for chapter in changes.iter().filter(|chapter| !chapter.title.is_empty()) {
            section {
                h2 id=(anchor(&chapter.title)) { (chapter.title) }
                (render(&chapter.markdown, 0, links))
                @for document in documents.iter().filter(|document| is_of(chapter, document.version())) {
                    @let is_served = document.version() == sources.document.version();
                    @let file = if is_served { "../openapi.yaml".to_owned() } else { sources::released_file(document.version()) };
                    p { a href=(file) download { "The document of this version" } }
                }
                @for pair in documents.windows(2).filter(|pair| is_of(chapter, pair[0].version())) {
                    (difference(pair[1], pair[0]))
                }
            }
        }
    };
    Ok(Page::new(
        "versions.html",
        "Versions and changes",
        "The versioning policy, and the changes and the document of each version.",
        body,
    ))
}

/// The file name of the feed.
pub const FEED: &str = "changes.xml";

/// Builds the Atom feed of the versions. Their dates are months.
pub fn feed(sources: &Sources) -> String {
    let escaped = |text: &str| html! { (text) }.into_string();
    let document = &sources.document;
    let host = text(document.root().pointer("/info/contact/url")).trim_start_matches("https://");
    let mut entries = String::new();
    let mut latest = String::new();
    for chapter in chapters(&sources.changelog) {
        let Some((version, month)) = chapter.title.split_once(" (") else {
            continue;
        };
        let updated = format!("{}-01T00:00:00Z", month.trim_end_matches(')'));
        latest = latest.max(updated.clone());
        let content = escaped(&render(&chapter.markdown, 0, &Links::default()).into_string());
        entries.push_str(&format!(
            "<entry><id>tag:{host},2026:{version}</id><title>{}</title><updated>{updated}</updated>\
             <link href=\"versions.html#{}\"/><content type=\"html\">{content}</content></entry>\n",
            escaped(&format!("Version {version}")),
            anchor(&chapter.title),
        ));
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>tag:{host},2026:changes</id>\
         <title>{}</title><updated>{latest}</updated><author><name>{}</name></author><link rel=\"self\" href=\"{FEED}\"/>\n{entries}</feed>\n",
        escaped(&format!("Changes of the {}", document.title())),
        escaped(text(document.root().pointer("/info/contact/name"))),
    )
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
                summary { "Changes of the document since " (before.version()) }
                ul { @for fact in &added { li { (render(fact, 0, &Links::default())) } } }
                @if !gone.is_empty() {
                    p { "Removed:" }
                    ul { @for fact in &gone { li { (render(fact, 0, &Links::default())) } } }
                }
            }
        }
    }
}

/// The declarations of a document, as descriptions by key. The part of a key before its last `/` is the key of the parent.
type Facts = BTreeMap<String, String>;

/// Returns the descriptions of declarations that only `after` has. Parts of a new declaration are not listed.
fn added(before: &Facts, after: &Facts) -> Vec<String> {
    after
        .iter()
        .filter(|(key, _)| !before.contains_key(*key))
        .filter(|(key, _)| match key.rsplit_once('/') {
            Some((parent, _)) => before.contains_key(parent) || !after.contains_key(parent),
            None => true,
        })
        .map(|(_, description)| description.clone())
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
            facts.insert(format!("{key}/{status}"), format!("the response {status} of {name}"));
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
                    format!("the header `{header}` in the response {status} of {name}"),
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
    fn an_addition_is_listed_once_without_its_parts() {
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
