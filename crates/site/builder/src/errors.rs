//! The catalogue of errors: each code of the document with all that is said about it, and the answers that tests hold.

use maud::{Markup, html};
use serde_json::Value;

use crate::document::{Chapter, text};
use crate::markdown::{Links, Row, render, table_rows};
use crate::sources::Snapshot;
use crate::{BuildError, Page, Sources, frame, guide, operations};

/// The catalogue.
///
/// # Errors
/// When the document says nothing about a code.
pub fn page(sources: &Sources, links: &Links) -> Result<Page, BuildError> {
    let document = &sources.document;
    let chapters = document.chapters();
    let general = guide::chapter(&chapters, "Errors")?;
    let texts = chapters.iter().map(|chapter| chapter.markdown.as_str()).chain(
        document
            .security_schemes()
            .into_iter()
            .map(|(_, description)| description),
    );
    let rows: Vec<Row> = texts.flat_map(table_rows).collect();
    let codes = document.error_codes();
    for (code, _) in &codes {
        for column in COLUMNS {
            if !facts(&rows, code).iter().any(|(name, _)| *name == column) {
                let words = format!("no table of the document says `{column}` of the error code {code}");
                return Err(BuildError::Missing(words));
            }
        }
    }
    let body = html! {
        (render(&without_table_of_codes(general), -1, links))
        nav aria-label="Error codes" { ul.codes { @for (code, statuses) in &codes {
            li { a href={ "#" (code) } { span.status data-class=(&statuses[0][..1]) { (statuses.join(", ")) } " " code { (code) } } }
        } } }
        @for (code, statuses) in &codes {
            section {
                h2 id=(code) { span.status data-class=(&statuses[0][..1]) { (statuses.join(", ")) } " " code { (code) } }
                dl.facts {
                    @for (name, value) in facts(&rows, code) { div { dt { (name) } dd { (render(value, 0, &Links::default())) } } }
                }
                @if let Some(example) = example(sources, code) { (frame::json(&format!("Example of {code}"), example)) }
                (said(sources, code))
                (recorded(sources, code))
            }
        }
    };
    Ok(Page::new("errors.html", "Errors", body))
}

/// What must be said of every code.
const COLUMNS: [&str; 3] = ["Meaning", "What to do", "Retry"];

/// The columns that stand elsewhere already.
const HEADINGS: [&str; 2] = ["Status", "`code`"];

/// What the tables' rows of a code say, each once, with the column's heading.
fn facts<'a>(rows: &'a [Row], code: &str) -> Vec<(&'a str, &'a str)> {
    let wanted = format!("`{code}`");
    let names_it = |cell: &str| cell.split(", ").any(|name| name == wanted);
    let of_code = rows
        .iter()
        .filter(|row| row.iter().any(|(name, cell)| name == "`code`" && names_it(cell)));
    let mut facts: Vec<(&str, &str)> = Vec::new();
    for (name, cell) in of_code.flatten() {
        if !cell.is_empty() && !HEADINGS.contains(&name.as_str()) && !facts.iter().any(|(_, known)| known == cell) {
            facts.push((name, cell));
        }
    }
    facts
}

/// The chapter without its table of all codes, whose rows stand with each.
fn without_table_of_codes(chapter: &Chapter) -> String {
    let mut kept = String::new();
    let mut in_table = false;
    for line in chapter.markdown.lines() {
        in_table = line.starts_with('|') && (in_table || line.contains("`code`"));
        if !in_table {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The document's example of an answer with this code.
fn example<'a>(sources: &'a Sources, code: &str) -> Option<&'a Value> {
    let document = &sources.document;
    document.operations().into_iter().find_map(|operation| {
        document.responses(operation).into_iter().find_map(|(_, response)| {
            let content = response.pointer("/content/application~1json")?;
            let examples = operations::examples(document, content);
            let fits = |value: &Value| text(value.pointer("/error/code")) == code;
            examples.into_iter().map(|(_, value)| value).find(|value| fits(value))
        })
    })
}

/// What was sent and what the message said, for each answer with this code that a test holds.
fn recorded(sources: &Sources, code: &str) -> Markup {
    let mut answers: Vec<&Snapshot> = Vec::new();
    for snapshot in sources.snapshots.iter().filter(|snapshot| snapshot.code == code) {
        if !answers.iter().any(|known| known.message == snapshot.message) {
            answers.push(snapshot);
        }
    }
    let title = match answers.len() {
        1 => "An answer that the tests hold".to_owned(),
        many => format!("{many} answers that the tests hold"),
    };
    html! {
        @if !answers.is_empty() {
            details.recorded {
                summary { (title) }
                ul {
                    @for answer in answers {
                        li {
                            p { (sentence(&answer.description)) }
                            (frame::code("Sent", &first_requests(&answer.request)))
                            (frame::code("Message", &answer.message))
                        }
                    }
                }
            }
        }
    }
}

/// Tables of what is sent and what is said of it.
fn said(sources: &Sources, code: &str) -> Markup {
    html! {
        @for said in sources.said.iter().filter(|said| said.code == code) {
            details.recorded {
                summary { (sentence(&said.description)) }
                div.scroll role="group" aria-label=(said.description) tabindex="0" {
                    table {
                        thead { tr { th scope="col" { "Sent" } th scope="col" { "Message" } } }
                        tbody { @for (sent, message) in &said.lines { tr { td { (sent) } td { (message) } } } }
                    }
                }
            }
        }
    }
}

/// Of a fault that was sent to all operations, one request.
fn first_requests(request: &str) -> String {
    let mut lines = request.lines();
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(second) if second.contains(" /api/") => format!("{first}\n… and every other operation"),
        _ => request.to_owned(),
    }
}

fn sentence(description: &str) -> String {
    let mut characters = description.chars();
    characters
        .next()
        .map(|first| first.to_uppercase().chain(characters).chain(['.']).collect())
        .unwrap_or_default()
}
