//! The page of error codes, with the document's explanation of each code and real messages from the tests' snapshots.

use maud::{Markup, html};
use serde_json::Value;

use crate::document::{Chapter, text};
use crate::markdown::{Links, Row, render, table_rows};
use crate::sources::Snapshot;
use crate::{BuildError, Page, Sources, frame, guide};

/// Builds the page.
///
/// # Errors
/// The document does not explain an error code.
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
                let message = format!("a table of the document must have a `{column}` for the error code {code}");
                return Err(BuildError::Missing(message));
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
                (message_tables(sources, code))
                (snapshots(sources, code))
            }
        }
    };
    Ok(Page::new(
        "errors.html",
        "Errors",
        "The cause, the remedy and real messages of each error code, and which errors to retry.",
        body,
    ))
}

/// The columns that every code must have.
const COLUMNS: [&str; 3] = ["Meaning", "What to do", "Retry"];

/// The columns that the headings of the sections already show.
const HEADINGS: [&str; 2] = ["Status", "`code`"];

/// Returns the distinct cells of a code's rows, each with its column's heading.
fn facts<'a>(rows: &'a [Row], code: &str) -> Vec<(&'a str, &'a str)> {
    let wanted = format!("`{code}`");
    let contains_code = |cell: &str| cell.split(", ").any(|name| name == wanted);
    let of_code = rows
        .iter()
        .filter(|row| row.iter().any(|(name, cell)| name == "`code`" && contains_code(cell)));
    let mut facts: Vec<(&str, &str)> = Vec::new();
    for (name, cell) in of_code.flatten() {
        if !cell.is_empty() && !HEADINGS.contains(&name.as_str()) && !facts.iter().any(|(_, known)| known == cell) {
            facts.push((name, cell));
        }
    }
    facts
}

/// Returns the chapter without its table of all codes, because each code's section shows its row.
fn without_table_of_codes(chapter: &Chapter) -> String {
    let mut rest = String::new();
    let mut in_table = false;
    for line in chapter.markdown.lines() {
        in_table = line.starts_with('|') && (in_table || line.contains("`code`"));
        if !in_table {
            rest.push_str(line);
            rest.push('\n');
        }
    }
    rest
}

/// Returns the document's example of a response with this code.
fn example<'a>(sources: &'a Sources, code: &str) -> Option<&'a Value> {
    let document = &sources.document;
    document.operations().into_iter().find_map(|operation| {
        document.responses(operation).into_iter().find_map(|(_, response)| {
            let content = response.pointer("/content/application~1json")?;
            let examples = document.examples(content);
            let fits = |value: &Value| text(value.pointer("/error/code")) == code;
            examples.into_iter().map(|(_, value)| value).find(|value| fits(value))
        })
    })
}

/// The snapshots with this code: the request and the message, without repeated messages.
fn snapshots(sources: &Sources, code: &str) -> Markup {
    let mut snapshots: Vec<&Snapshot> = Vec::new();
    for snapshot in sources.snapshots.iter().filter(|snapshot| snapshot.code == code) {
        if !snapshots.iter().any(|known| known.message == snapshot.message) {
            snapshots.push(snapshot);
        }
    }
    let title = match snapshots.len() {
        1 => "A response from the tests".to_owned(),
        many => format!("{many} responses from the tests"),
    };
    html! {
        @if !snapshots.is_empty() {
            details.recorded {
                summary { (title) }
                ul {
                    @for snapshot in snapshots {
                        li {
                            p { (sentence(&snapshot.description)) }
                            (frame::code("Sent", &first_requests(&snapshot.request)))
                            (frame::code("Message", &snapshot.message))
                        }
                    }
                }
            }
        }
    }
}

/// The tables of values that were sent and their messages, for this code.
fn message_tables(sources: &Sources, code: &str) -> Markup {
    html! {
        @for table in sources.message_tables.iter().filter(|table| table.code == code) {
            details.recorded {
                summary { (sentence(&table.description)) }
                div.scroll role="group" aria-label=(table.description) tabindex="0" {
                    table {
                        thead { tr { th scope="col" { "Sent" } th scope="col" { "Message" } } }
                        tbody { @for (sent, message) in &table.lines { tr { td { (sent) } td { (message) } } } }
                    }
                }
            }
        }
    }
}

/// Shortens a list of requests to all operations to the first one.
fn first_requests(request: &str) -> String {
    let mut lines = request.lines();
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(second) if second.contains(" /api/") => format!("{first}\n… and the same for every other operation"),
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
