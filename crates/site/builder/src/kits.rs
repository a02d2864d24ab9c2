//! The signing kits: their table, their page, and code samples made with them.

use maud::html;
use serde::Deserialize;

use crate::document::{Operation, chapters};
use crate::markdown::{Links, anchor, render};
use crate::{BuildError, Document, Page, Sources, frame, operations, sources};

/// `samples/kits.toml`.
#[derive(Deserialize)]
pub struct Kits {
    /// Each language's.
    pub kit: Vec<Kit>,
}

/// A signing kit.
#[derive(Clone, Debug, Deserialize)]
pub struct Kit {
    /// Its folder in `samples`.
    pub folder: String,
    /// Its one file.
    pub file: String,
    /// What it is called.
    pub name: String,
    /// The language that it is written in.
    pub language: String,
    /// What it needs, in words.
    pub needs: String,
    /// How it is built; nothing where it runs as it is.
    pub build: Vec<String>,
    /// How it is run.
    pub run: Vec<String>,
    get: String,
    file_get: String,
    post: String,
    body_escape: Option<(String, String)>,
    /// The file's content.
    #[serde(skip)]
    pub text: String,
}

impl Kit {
    /// Where the site has its file.
    pub fn path(&self) -> String {
        format!("kits/{}/{}", self.folder, self.file)
    }

    /// How an operation is called with it.
    pub fn sample(&self, document: &Document, operation: Operation<'_>) -> String {
        let target = operations::target(document, operation);
        let body = operations::body(document, operation);
        let is_file = operation
            .value
            .pointer("/responses/200/content/application~1json")
            .is_none();
        let template = match (operation.method, is_file) {
            ("GET", true) => &self.file_get,
            ("GET", false) => &self.get,
            _ => &self.post,
        };
        let mut body = serde_json::to_string_pretty(body).unwrap_or_default();
        if let Some((from, to)) = &self.body_escape {
            body = body.replace(from, to);
        }
        template
            .trim_matches('\n')
            .replace("{target}", &target)
            .replace("{file}", "report.pdf")
            .replace("{body}", &body)
    }
}

/// The chapters of `samples/README.md` that are for partners.
const CHAPTERS: [&str; 2] = ["Retries", "Check your own implementation"];

/// The kits' page.
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
            "One file for each language, without dependencies: it signs, sends, tries again and checks itself. All are run against "
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
            "All take the same arguments, " code { "METHOD TARGET [BODY-FILE]" } ", where " code { "-" } " is standard input. "
            "Where the API is and the key come from the environment: " code { "PARTNER_BASE_URL" } ", " code { "PARTNER_KEY_ID" }
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

/// The chapter on common mistakes of `samples/README.md`.
///
/// # Errors
/// When it is not there.
pub fn pitfalls(sources: &Sources) -> Result<crate::document::Chapter, BuildError> {
    chapter(&chapters(&sources.kits_text), "Common mistakes")
}

fn chapter(of: &[crate::document::Chapter], title: &str) -> Result<crate::document::Chapter, BuildError> {
    let found = of.iter().find(|chapter| chapter.title == title).cloned();
    found.ok_or_else(|| BuildError::Missing(format!("samples/README.md has no chapter `{title}`")))
}

/// Links as they are on the site.
fn linked(markdown: &str) -> String {
    markdown
        .replace("](../spec/signing-vectors.json)", "](signing-vectors.json)")
        .replace("`spec/signing-vectors.json`", "`signing-vectors.json`")
        .replace("samples/python/partner.py --check spec/", "partner.py --check ")
}
