//! The reference: a page for each operation and an index.

use maud::{Markup, html};
use serde_json::Value;

use crate::document::{Operation, strings, text};
use crate::markdown::{Links, render};
use crate::schema::{bounds, kind, members};
use crate::search::plain;
use crate::{Document, Page, Sources, frame};

/// Builds the index of all operations by tag.
pub fn index(document: &Document, links: &Links) -> Page {
    let body = html! {
        @for (name, description, operations) in document.tags() {
            @if !operations.is_empty() {
                section {
                    h2 id=(name) { (name) }
                    (render(description, 2, links))
                    ul.operations {
                        @for operation in operations {
                            li { a href=(operation.page()) { (line(operation)) span.summary { (operation.summary()) } } }
                        }
                    }
                }
            }
        }
    };
    Page::new("reference.html", "All operations", "The operations by subject.", body)
}

/// Builds a page for each operation.
pub fn pages<'a>(sources: &'a Sources, links: &'a Links) -> impl Iterator<Item = Page> + 'a {
    let document = &sources.document;
    let operations = document.operations().into_iter();
    operations.map(move |operation| {
        let summary = format!("{} {}. {}", operation.method, operation.path, first_sentence(operation));
        Page::new(
            &operation.page(),
            operation.summary(),
            &summary,
            page(sources, operation, links),
        )
    })
}

/// Returns the first sentence of an operation's description.
fn first_sentence(operation: Operation<'_>) -> String {
    let description = render(text(operation.value.get("description")), 0, &Links::default());
    let description = plain(&description.into_string());
    let end = description.find(". ").map_or(description.len(), |at| at + 1);
    description[..end].to_owned()
}

fn line(operation: Operation<'_>) -> Markup {
    html! {
        span.method data-method=(operation.method) { (operation.method) } " " code.path { (operation.path) }
    }
}

fn page(sources: &Sources, operation: Operation<'_>, links: &Links) -> Markup {
    let document = &sources.document;
    let scope = text(operation.value.get("x-required-scope"));
    let body = operation.value.get("requestBody").map(|body| document.resolve(body));
    let mut parameters_of_operation = document.parameters(operation).into_iter();
    let has_pages = parameters_of_operation.any(|parameter| text(parameter.get("name")) == "cursor");
    html! {
        p.line { (line(operation)) }
        p.facts {
            "Operation " code { (operation.id) }
            @if !scope.is_empty() { " · scope " code { (scope) } }
        }
        (render(text(operation.value.get("description")), 1, links))
        @for place in PLACES {
            (parameters(document, operation, place, links))
        }
        @if let Some(body) = body {
            section {
                h2 #body { "Body" }
                (render(text(body.get("description")), 2, links))
                (content(document, body, true, links))
            }
        }
        section {
            h2 #samples { "Code" }
            (frame::tabs("Code", &samples(sources, operation)))
            p { "The samples use the " a href="kits.html" { "signing kits" } ", one file for each language." }
        }
        @if has_pages {
            section {
                h2 #all-pages { "All pages" }
                p {
                    "The samples read all reports that match the filters, page by page. The kits retry each request, for example after 429, "
                    "when the quota is used up."
                }
                (frame::tabs("All pages", &page_samples(sources, operation)))
            }
        }
        @if operation.id == PHOTOS {
            section {
                h2 #all-photos { "All photos" }
                p { "The samples download each photo of a report into the current folder." }
                (frame::tabs("All photos", &photo_samples(sources, operation)))
            }
        }
        section {
            h2 #responses { "Responses" }
            @for (status, response) in document.responses(operation) {
                (response_section(document, status, response, links))
            }
        }
    }
}

/// The locations of parameters.
const PLACES: [&str; 3] = ["path", "query", "header"];

fn heading(place: &str) -> &'static str {
    match place {
        "path" => "Path",
        "query" => "Query parameters",
        _ => "Headers",
    }
}

fn parameters(document: &Document, operation: Operation<'_>, place: &str, links: &Links) -> Markup {
    let parameters: Vec<&Value> = document
        .parameters(operation)
        .into_iter()
        .filter(|parameter| text(parameter.get("in")) == place)
        .collect();
    let title = heading(place);
    html! {
        @if !parameters.is_empty() {
            section {
                h2 id=(place) { (title) }
                ul.members {
                    @for parameter in parameters {
                        @let schema = parameter.get("schema").map_or(&Value::Null, |schema| document.resolve(schema));
                        @let is_required = parameter.get("required").and_then(Value::as_bool) == Some(true);
                        @let presence = if is_required { "required" } else { "optional" };
                        li {
                            p.member {
                                code.name { (text(parameter.get("name"))) } " " span.type { (kind(document, schema)) }
                                " " span.presence data-presence=(presence) { (presence) }
                            }
                            (render(text(parameter.get("description")), 3, links))
                            (bounds(schema))
                        }
                    }
                }
            }
        }
    }
}

fn content(document: &Document, of: &Value, sent: bool, links: &Links) -> Markup {
    let contents = of.get("content").and_then(Value::as_object);
    html! {
        @for (media_type, content) in contents.into_iter().flatten() {
            @let schema = content.get("schema").unwrap_or(&Value::Null);
            p.facts { code { (media_type) } " · " (kind(document, schema)) }
            (members(document, schema, sent, links))
            @for (name, example) in document.examples(content) { (frame::json(&name, example)) }
        }
    }
}

fn response_section(document: &Document, status: &str, response: &Value, links: &Links) -> Markup {
    let is_success = status.starts_with('2');
    let codes: Vec<&str> = strings(response.get("x-error-codes")).collect();
    let headers = response.get("headers").and_then(Value::as_object);
    html! {
        details.response #{ "status-" (status) } open[is_success] {
            summary {
                span.status data-class=(&status[..1]) { (status) } " "
                @if codes.is_empty() { "Success" } @else { (frame::joined(codes.iter().map(|code| html! { code { (code) } }), " ")) }
            }
            (render(text(response.get("description")), 3, links))
            @if is_success { (content(document, response, false, links)) }
            @else {
                @for code in &codes { p { a href={ "errors.html#" (code) } { "What to do about " code { (code) } } } }
            }
            @if let Some(headers) = headers {
                p.label { "Headers" }
                ul.members {
                    @for (name, header) in headers {
                        @let header = document.resolve(header);
                        li {
                            p.member { code.name { (name) } " " span.type { (header.get("schema").map(|schema| kind(document, schema)).unwrap_or_default()) } }
                            (render(text(header.get("description")), 3, links))
                        }
                    }
                }
            }
        }
    }
}

/// The operation whose response has links to photos.
const PHOTOS: &str = "get_inspection_photos";

/// Returns code that downloads the photos of a report.
fn photo_samples(sources: &Sources, operation: Operation<'_>) -> Vec<(String, String)> {
    let target = sources.document.example_target(operation);
    let kits = sources.kits.iter();
    kits.map(|kit| (kit.name.clone(), kit.sample_of_photos(&target)))
        .collect()
}

/// Returns code that reads all pages of a list with filters.
fn page_samples(sources: &Sources, operation: Operation<'_>) -> Vec<(String, String)> {
    let target = format!(
        "{}?status=published&published_from=2026-06-01T00:00:00%2B03:00&limit=100",
        operation.path
    );
    let kits = sources.kits.iter();
    kits.map(|kit| (kit.name.clone(), kit.sample_of_pages(&target)))
        .collect()
}

/// Returns the document's code samples of an operation, or samples of the kits if it has none.
fn samples(sources: &Sources, operation: Operation<'_>) -> Vec<(String, String)> {
    let of_document = operation.value.get("x-codeSamples").and_then(Value::as_array);
    if let Some(samples) = of_document {
        let named = |sample: &Value| match text(sample.get("label")) {
            "" => text(sample.get("lang")).to_owned(),
            label => label.to_owned(),
        };
        return samples
            .iter()
            .map(|sample| (named(sample), text(sample.get("source")).to_owned()))
            .collect();
    }
    sources
        .kits
        .iter()
        .map(|kit| (kit.name.clone(), kit.sample(&sources.document, operation)))
        .collect()
}
