//! The signing kits: the code that calls an operation with each, their page, and the page of the first request.

use maud::{Markup, html};
use serde::Deserialize;

use crate::document::{Chapter, Document, Operation, chapters};
use crate::markdown::{Links, anchor, render};
use crate::{BuildError, Page, Sources, frame, guide, sources};

/// The chapters of `samples/README.md` that are written for partners.
const CHAPTERS: [&str; 2] = ["Retries", "Check your own implementation"];

/// `samples/kits.toml`.
#[derive(Deserialize)]
pub struct Kits {
    /// The kits.
    pub kit: Vec<Kit>,
}

/// A signing kit.
#[derive(Clone, Debug, Deserialize)]
pub struct Kit {
    /// Its folder in `samples`.
    pub folder: String,
    /// Its only file.
    pub file: String,
    /// Its name.
    pub name: String,
    /// Its programming language.
    pub language: String,
    /// A description of its requirements.
    pub needs: String,
    /// The command that builds it; empty if it needs none.
    pub build: Vec<String>,
    /// The command that runs it.
    pub run: Vec<String>,
    /// The program of a first request; none if the sample itself is a command.
    pub program: Option<Program>,
    get: String,
    pages: String,
    photos: String,
    file_get: String,
    post: String,
    #[serde(default)]
    body_escape: Vec<(String, String)>,
    /// The file's content.
    #[serde(skip)]
    pub text: String,
}

/// How to run a sample of a kit.
#[derive(Clone, Debug, Deserialize)]
pub struct Program {
    /// The file to save it in.
    pub file: String,
    /// The commands that build and run it.
    pub commands: Vec<String>,
    /// The text around the sample; none if the sample is complete.
    around: Option<String>,
}

impl Program {
    /// Returns the complete program of a sample, with the sample indented like its place.
    pub fn of_sample(&self, sample: &str) -> String {
        let Some(around) = &self.around else {
            return sample.to_owned();
        };
        let mut program = String::new();
        for line in around.trim_matches('\n').lines() {
            let indentation = line.strip_suffix("{sample}");
            for line in indentation.map_or(line, |_| sample).lines() {
                let indentation = indentation.filter(|_| !line.is_empty()).unwrap_or_default();
                program.extend([indentation, line, "\n"]);
            }
        }
        program
    }
}

impl Kit {
    /// Returns the path of its file on the site.
    pub fn path(&self) -> String {
        format!("kits/{}/{}", self.folder, self.file)
    }

    /// Returns code that reads all pages of a list, from the path and query of the first one.
    pub fn sample_of_pages(&self, target: &str) -> String {
        self.pages.trim_matches('\n').replace("{target}", target)
    }

    /// Returns code that downloads the photos of a report.
    pub fn sample_of_photos(&self, target: &str) -> String {
        self.photos.trim_matches('\n').replace("{target}", target)
    }

    /// Returns code that calls an operation with the kit.
    pub fn sample(&self, document: &Document, operation: Operation<'_>) -> String {
        let target = document.example_target(operation);
        let body = document.example_body(operation);
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
        for (from, to) in &self.body_escape {
            body = body.replace(from, to);
        }
        template
            .trim_matches('\n')
            .replace("{target}", &target)
            .replace("{file}", "report.pdf")
            .replace("{body}", &body)
    }
}

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
    Ok(Page::new(
        "kits.html",
        "Signing kits",
        "One file for each language that signs, sends and retries requests.",
        body,
    ))
}

/// Builds the page of the first request and the first measurement.
///
/// # Errors
/// The document lacks a chapter or an operation.
pub fn start(sources: &Sources, document_chapters: &[Chapter], links: &Links) -> Result<Page, BuildError> {
    let document = &sources.document;
    // The first request is the operation without parameters, the second one is the POST.
    let operations = document.operations();
    let first = operations
        .iter()
        .find(|operation| document.parameters(**operation).is_empty());
    let write = operations.iter().find(|operation| operation.method == "POST");
    let missing =
        || BuildError::Missing("the document must have an operation without parameters and a POST".to_owned());
    let (first, write) = (*first.ok_or_else(missing)?, *write.ok_or_else(missing)?);
    let samples = |what: &str, operation| {
        let kits = sources.kits.iter();
        frame::tabs_of(
            what,
            kits.map(|kit| (kit.name.as_str(), program(what, kit, &kit.sample(document, operation)))),
        )
    };
    let body = html! {
        (render(&guide::chapter(document_chapters, "Getting started")?.markdown, -1, links))
        section {
            h2 #first-request { "The first request" }
            p { "Download " a href="kits.html" { "the kit for your language" } ", set your key, and call " a href=(first.page()) { (first.summary()) } ":" }
            (frame::tabs("Key", &key()))
            (samples("First request", first))
            p {
                "For another language, see " a href="signing.html" { "how to sign a request" } ". Compare your results with "
                a href="signing.html#calculator" { "the calculator" } " and "
                a href=(sources::VECTORS) { "the signing vectors" } "."
            }
        }
        section {
            h2 #first-write { "The first measurement" }
            p { "Use the code of a branch that " a href="list_branches.html" { "your key can access" } ", and an " code { "external_id" } " of your own:" }
            (samples("First measurement", write))
            p { "Its members and responses: " a href=(write.page()) { (write.summary()) } "." }
            p {
                "To get the status of a measurement later, send the same package again with its " code { "external_id" }
                ". The response has the current status, and nothing is recorded twice. There is no other operation for it."
            }
        }
    };
    Ok(Page::new(
        "start.html",
        "Getting started",
        "From a key to the first request and the first measurement, in each language.",
        body,
    ))
}

/// Renders a sample with the commands that run it.
fn program(what: &str, kit: &Kit, sample: &str) -> Markup {
    let label = format!("{what}, {}", kit.name);
    let Some(program) = &kit.program else {
        return frame::code(&label, sample);
    };
    html! {
        (frame::code(&label, &program.of_sample(sample)))
        p { "Save it as " code { (program.file) } " beside " code { (kit.file) } ", and run:" }
        (frame::code(&format!("Commands: {label}"), &program.commands.join("\n")))
    }
}

/// Returns the lines that set the base URL and the key, for each kind of shell.
fn key() -> Vec<(String, String)> {
    let lines = |before: &str, between: &str, after: &str| {
        let names = ["PARTNER_BASE_URL", "PARTNER_KEY_ID", "PARTNER_SECRET"];
        names.map(|name| format!("{before}{name}{between}…{after}")).join("\n")
    };
    vec![
        ("Linux, macOS".to_owned(), lines("export ", "=", "")),
        ("PowerShell".to_owned(), lines("$env:", " = '", "'")),
        ("Windows cmd".to_owned(), lines("set ", "=", "")),
    ]
}

/// Returns the chapter on common mistakes of `samples/README.md`.
///
/// # Errors
/// The chapter does not exist.
pub fn pitfalls(sources: &Sources) -> Result<Chapter, BuildError> {
    chapter(&chapters(&sources.kits_text), "Common mistakes")
}

fn chapter(of: &[Chapter], title: &str) -> Result<Chapter, BuildError> {
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
