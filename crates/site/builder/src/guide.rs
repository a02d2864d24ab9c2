//! The pages that are read from beginning to end.

use maud::{Markup, html};
use regex::Regex;

use crate::document::{Chapter, chapters};
use crate::markdown::{Links, anchor, render};
use crate::{BuildError, Page, Sources, asset, frame, kits, operations, sources};

/// Chapters of the document that have a page of their own, or stand on one of these.
const ELSEWHERE: [&str; 8] = [
    "",
    "At a glance",
    "Environments",
    "Signing",
    "Getting started",
    "Errors",
    "Limits",
    "Versions",
];

/// The chapter of this title.
///
/// # Errors
/// When there is none.
pub fn chapter<'a>(chapters: &'a [Chapter], title: &str) -> Result<&'a Chapter, BuildError> {
    let found = chapters.iter().find(|chapter| chapter.title == title);
    found.ok_or_else(|| BuildError::Missing(format!("the document's description has no chapter `{title}`")))
}

/// Overview, first steps, signing, scenarios, conventions and limits.
///
/// # Errors
/// When the document or another source lacks a chapter.
pub fn pages(sources: &Sources, links: &Links) -> Result<Vec<Page>, BuildError> {
    let of_document = sources.document.chapters();
    let limits = chapter(&of_document, "Limits")?;
    Ok(vec![
        overview(sources, &of_document, links)?,
        start(sources, &of_document, links)?,
        signing(sources, &of_document, links)?,
        scenarios(sources, links)?,
        conventions(&of_document, links),
        Page::new("limits.html", "Limits", render(&limits.markdown, -1, links)),
    ])
}

fn section(chapter: &Chapter, links: &Links) -> Markup {
    html! {
        section { h2 id=(anchor(&chapter.title)) { (chapter.title) } (render(&chapter.markdown, 0, links)) }
    }
}

fn overview(sources: &Sources, of_document: &[Chapter], links: &Links) -> Result<Page, BuildError> {
    let body = html! {
        (render(&chapter(of_document, "")?.markdown, -1, links))
        ul.cards {
            li { a href="start.html" { "Getting started" } p { "From a key to the first answer." } }
            li { a href="signing.html#calculator" { "Calculator" } p { "Each line of a request's signature, in your browser." } }
            li { a href="kits.html" { "Signing kits" } p { (frame::joined(sources.kits.iter().map(|kit| html! { (kit.name) }), ", ")) "." } }
            li { a href="reference.html" { "Reference" } p { (sources.document.operations().len()) " operations." } }
            li { a href="errors.html" { "Errors" } p { "Cause and remedy of each code." } }
            li { a href="scenarios.html" { "Acceptance scenarios" } p { "What decides on going live." } }
        }
        (section(chapter(of_document, "At a glance")?, links))
        (section(chapter(of_document, "Environments")?, links))
    };
    Ok(Page::new("index.html", "Overview", body))
}

fn start(sources: &Sources, of_document: &[Chapter], links: &Links) -> Result<Page, BuildError> {
    let document = &sources.document;
    // The first request is the one that asks for nothing, the second one the one that writes.
    let operations = document.operations();
    let first = operations
        .iter()
        .find(|operation| document.parameters(**operation).is_empty());
    let write = operations.iter().find(|operation| operation.method == "POST");
    let missing = || BuildError::Missing("the document has no operation to begin with".to_owned());
    let (first, write) = (*first.ok_or_else(missing)?, *write.ok_or_else(missing)?);
    let samples = |operation| -> Vec<(String, String)> {
        let kits = sources.kits.iter();
        kits.map(|kit| (kit.name.clone(), kit.sample(document, operation)))
            .collect()
    };
    let body = html! {
        (render(&chapter(of_document, "Getting started")?.markdown, -1, links))
        section {
            h2 #first-request { "The first request" }
            p { "Take " a href="kits.html" { "the kit of your language" } ", tell it your key, and call " a href=(first.page()) { (first.summary()) } ":" }
            (frame::code("Key", "export PARTNER_BASE_URL=… PARTNER_KEY_ID=… PARTNER_SECRET=…"))
            (frame::tabs("First request", &samples(first)))
            p {
                "In another language: " a href="signing.html" { "how a request is signed" } ", "
                a href="signing.html#calculator" { "the calculator" } " to compare with, and "
                a href=(sources::VECTORS) { "the signing vectors" } " to test against."
            }
        }
        section {
            h2 #first-write { "The first measurement" }
            (frame::tabs("First measurement", &samples(write)))
            p { "Its members and answers: " a href=(write.page()) { (write.summary()) } "." }
        }
    };
    Ok(Page::new("start.html", "Getting started", body))
}

fn conventions(of_document: &[Chapter], links: &Links) -> Page {
    let rest: Vec<&Chapter> = of_document
        .iter()
        .filter(|chapter| !ELSEWHERE.contains(&chapter.title.as_str()))
        .collect();
    let body = html! {
        @if rest.len() > 1 {
            nav aria-label="Chapters" { ul { @for chapter in &rest { li { a href={ "#" (anchor(&chapter.title)) } { (chapter.title) } } } } }
        }
        @for chapter in &rest { (section(chapter, links)) }
    };
    Page::new("guide.html", "Conventions", body)
}

/// The document's chapter on signing, the calculator, and what goes wrong.
fn signing(sources: &Sources, of_document: &[Chapter], links: &Links) -> Result<Page, BuildError> {
    let body = html! {
        p { a href="#calculator" { "To the calculator" } }
        (render(&chapter(of_document, "Signing")?.markdown, -1, links))
        (section(&kits::pitfalls(sources)?, links))
        (calculator())
        script src=(asset("signing", "js")) defer {}
    };
    Ok(Page::new("signing.html", "Signing", body))
}

/// The calculator's form; what it does is in `assets/signing.js`.
fn calculator() -> Markup {
    html! {
        section #calculator-section {
            h2 #calculator { "Calculator" }
            p { "It computes in this page, and sends nothing anywhere." }
            noscript { p { "It needs scripts, which are off." } }
            form #calculator-form autocomplete="off" {
                details {
                    summary { "Paste a request" }
                    p #raw-help { "As it is sent: the request line, headers, an empty line, the body." }
                    label for="raw" { "Request" }
                    textarea #raw rows="6" spellcheck="false" aria-describedby="raw-help" {}
                    button #take type="button" { "Take over" }
                }
                div.fields {
                    div { label for="method" { "Method" } input #method value="GET" spellcheck="false"; }
                    div.wide { label for="target" { "Path and query, as sent" } input #target value="/api/v1/partner/health" spellcheck="false"; }
                    div { label for="timestamp" { "Timestamp" } input #timestamp value="1780000000" inputmode="numeric"; button #now type="button" { "Now" } }
                    div.wide { label for="nonce" { "Nonce" } input #nonce value="0123456789abcdef" spellcheck="false"; button #fresh type="button" { "New" } }
                    div.wide { label for="secret" { "Secret" } input #secret value="ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" spellcheck="false"; }
                    div { label for="encoding" { "Body is" } select #encoding { option value="text" { "text (UTF-8)" } option value="base64" { "base64 of the bytes" } } }
                    div.full { label for="body-text" { "Body" } textarea #body-text rows="4" spellcheck="false" {} }
                }
                details #compare {
                    summary { "Compare with yours" }
                    label for="yours" { "The signature that your code made" }
                    input #yours spellcheck="false" placeholder="sha256=…";
                    label for="theirs" { "A canonical string: your code's, or that of the service's message" }
                    textarea #theirs rows="6" spellcheck="false" {}
                }
            }
            div #outcome role="status" {
                p #problem hidden {}
                div #results hidden {
                    h3 { "Canonical string" }
                    ol #lines {}
                    h3 { "Signature" }
                    pre tabindex="0" role="group" aria-label="Headers" { code #headers {} }
                    p #verdict hidden {}
                    ul #differences hidden {}
                }
            }
        }
    }
}

/// What decides on acceptance, from the rules, and how it goes, from the recorded session.
fn scenarios(sources: &Sources, links: &Links) -> Result<Page, BuildError> {
    let missing = |what: &str| BuildError::Missing(what.to_owned());
    let rule = sources
        .service_rules
        .split("- **SVC-")
        .find_map(|rule| rule.strip_prefix("7** "));
    let rule = rule.ok_or_else(|| missing("docs/contract/service.md has no SVC-7"))?;
    let rule = rule.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = Regex::new(r"(?:^| )\d\. ").map_err(|error| missing(&error.to_string()))?;
    let mut parts = number.split(rule.trim_end_matches('.'));
    let intro = parts.next().unwrap_or_default().trim_end_matches(':').to_owned();
    let session = chapters(&sources.onboarding);
    let session = session.iter().find(|chapter| chapter.title.contains("six scenarios"));
    let session = session.ok_or_else(|| missing("docs/onboarding.md has no chapter on the six scenarios"))?;
    let (sent_by_partner, _) = session
        .markdown
        .split_once("The operator sees")
        .unwrap_or((&session.markdown, ""));
    let session = sent_by_partner.replace("](../samples/README.md)", "](kits.html)");
    let write = sources
        .document
        .operations()
        .into_iter()
        .find(|operation| operation.method == "POST");
    let body = html! {
        p { (intro) "." }
        ol { @for scenario in parts { li { (render(scenario.trim_end_matches(';').trim(), 0, links)) } } }
        @if let Some(write) = write {
            p { "All are requests to " a href=(write.page()) { code { (write.method) " " (operations::target(&sources.document, write)) } } ". A sandbox's " code { "sandbox.json" } " names the plates and branch codes to try." }
        }
        section {
            h2 #a-session { "A session" }
            (render(&session, 0, links))
        }
    };
    Ok(Page::new("scenarios.html", "Acceptance scenarios", body))
}
