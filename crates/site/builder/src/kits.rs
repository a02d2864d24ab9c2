//! The page of the signing kits.

use maud::html;

use crate::document::chapters;
use crate::markdown::{Links, anchor, render};
use crate::{BuildError, Page, Sources, frame, sources};

/// The chapters of `samples/README.md` that are written for partners.
const CHAPTERS: [&str; 2] = ["Retries", "Check your own implementation"];

/// Builds the page of the kits.
pub fn page(sources: &Sources, links: &Links) -> Result<Page, BuildError> {
    let readme = chapters(&sources.kits_text);
    let mut texts = Vec::new();
    for title in CHAPTERS {
        texts.push(chapter(&readme, title)?);
    }
    let listings: Vec<_> = sources
        .kits
        .iter()
        .map(|kit| (kit.name.clone(), kit.text.clone()))
        .collect();
    let body = html! {
        p {
            "Each kit is one file without dependencies. It signs requests, sends them, retries, and checks itself. All kits are tested with "
            a href=(sources::VECTORS) { "the signing vectors" } " and a sandbox."
        }
        div.scroll role="group" aria-label="Kits" tabindex="0" {
            table {
                thead { tr { th scope="col" { "Kit" } th scope="col" { "Needs" } th scope="col" { "Build" } th scope="col" { "Run" } } }
                tbody {
                    @for kit in &sources.kits {
                        tr {
                            th scope="row" { a href=(kit.path()) download=(kit.file) { (kit.name) } }
                            td { (kit.needs) }
                            td { @if !kit.build.is_empty() { code { (kit.build.join(" ")) } } }
                            td { code { (kit.run.join(" ")) } }
                        }
                    }
                }
            }
        }
        p {
            "All kits have the same arguments, " code { "METHOD TARGET [BODY-FILE]" } ", where " code { "-" } " is standard input. "
            "The base URL and the key are read from the environment variables " code { "PARTNER_BASE_URL" } ", " code { "PARTNER_KEY_ID" }
            " and " code { "PARTNER_SECRET" } ". For Postman there is "
            a href=(sources::POSTMAN) download { "a collection with a signing script" } "."
        }
        @for text in &texts {
            section { h2 id=(anchor(&text.title)) { (text.title) } (render(&linked(&text.markdown), 0, links)) }
        }
        section {
            h2 #listings { "The files" }
            (frame::tabs("Kit", &listings))
        }
    };
    Ok(Page::new("kits.html", "Signing kits", body))
}

/// Returns the chapter on common mistakes of `samples/README.md`.
///
/// # Errors
/// The chapter does not exist.
pub fn pitfalls(sources: &Sources) -> Result<crate::document::Chapter, BuildError> {
    chapter(&chapters(&sources.kits_text), "Common mistakes")
}

fn chapter(of: &[crate::document::Chapter], title: &str) -> Result<crate::document::Chapter, BuildError> {
    let found = of.iter().find(|chapter| chapter.title == title).cloned();
    found.ok_or_else(|| BuildError::Missing(format!("samples/README.md must have a chapter `{title}`")))
}

/// Adapts links and paths to the site.
fn linked(markdown: &str) -> String {
    markdown
        .replace("](../spec/signing-vectors.json)", "](signing-vectors.json)")
        .replace("`spec/signing-vectors.json`", "`signing-vectors.json`")
        .replace("samples/python/partner.py --check spec/", "partner.py --check ")
}
