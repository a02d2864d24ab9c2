//! Builds the documentation site of the contract.
//!
//! The content comes from the document, the rules in `docs/contract`, the kits in `samples`, the changelog and the snapshots. This crate
//! adds headings, labels, the signature calculator, and a page that sends signed requests. The pages are plain HTML with a style sheet and
//! a few scripts. They load nothing from other hosts and work from a folder without a server, except for that page. Without scripts, it,
//! the search and the calculator are missing.

mod code_samples;
mod document;
mod embed;
mod errors;
mod frame;
mod guide;
mod history;
mod kits;
mod markdown;
mod operations;
mod postman;
mod schema;
mod search;
mod sources;
mod tools;

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use maud::{Markup, html};
use sha2::{Digest, Sha256};
use thiserror::Error;

pub use code_samples::with_code_samples;
pub use document::Document;
pub use embed::embed;
pub use frame::{Frame, Section};
pub use kits::Kit;
pub use markdown::Links;
pub use postman::collection;
pub use sources::{Snapshot, Sources};

/// The reason why the site could not be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// A source could not be read.
    #[error("failed to read {path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The cause.
        reason: std::io::Error,
    },
    /// A source has the wrong format.
    #[error("{what}: {reason}")]
    Malformed {
        /// The source.
        what: &'static str,
        /// The cause.
        reason: String,
    },
    /// The sources lack something that a page needs.
    #[error("{0}")]
    Missing(String),
}

/// A file of the site.
#[derive(Clone, Debug)]
pub struct File {
    /// The path relative to the site's folder, such as `signing.html`.
    pub path: String,
    /// The `Content-Type`.
    pub content_type: &'static str,
    /// The content.
    pub bytes: Vec<u8>,
    /// Whether the name contains a hash of the content.
    pub immutable: bool,
}

/// A page without its frame.
struct Page {
    file: String,
    title: String,
    /// A sentence about it, for `llms.txt`.
    summary: String,
    body: Markup,
}

impl Page {
    fn new(file: &str, title: &str, summary: &str, body: Markup) -> Self {
        Self {
            file: file.to_owned(),
            title: title.to_owned(),
            summary: summary.to_owned(),
            body,
        }
    }
}

/// A file that pages load. Its name contains a hash of its content.
struct Asset {
    name: &'static str,
    extension: &'static str,
    content_type: &'static str,
    text: &'static str,
}

const ASSETS: [Asset; 7] = [
    Asset {
        name: "site",
        extension: "css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("../assets/site.css"),
    },
    // A separate, blocking script, so that the theme is set before the first paint.
    Asset {
        name: "theme",
        extension: "js",
        content_type: SCRIPT,
        text: include_str!("../assets/theme.js"),
    },
    Asset {
        name: "site",
        extension: "js",
        content_type: SCRIPT,
        text: include_str!("../assets/site.js"),
    },
    Asset {
        name: "mistakes",
        extension: "js",
        content_type: SCRIPT,
        text: include_str!("../assets/mistakes.js"),
    },
    Asset {
        name: "signing",
        extension: "js",
        content_type: SCRIPT,
        text: include_str!("../assets/signing.js"),
    },
    Asset {
        name: "try",
        extension: "js",
        content_type: SCRIPT,
        text: include_str!("../assets/try.js"),
    },
    Asset {
        name: "icon",
        extension: "svg",
        content_type: "image/svg+xml",
        text: include_str!("../assets/icon.svg"),
    },
];

const SCRIPT: &str = "text/javascript; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Returns the file name with a hash of the content: `site.1f2e3d4c.css`.
fn hashed_name(name: &str, extension: &str, bytes: &[u8]) -> String {
    let digest = HEXLOWER.encode(&Sha256::digest(bytes)[..4]);
    format!("{name}.{digest}.{extension}")
}

/// Returns the path of an asset.
fn asset(name: &str, extension: &str) -> String {
    ASSETS
        .iter()
        .find(|asset| (asset.name, asset.extension) == (name, extension))
        .map(|asset| hashed_name(name, extension, asset.text.as_bytes()))
        .unwrap_or_default()
}

/// Builds all files of the site.
///
/// # Errors
/// The sources lack something that a page needs.
pub fn build(sources: &Sources) -> Result<Vec<File>, BuildError> {
    let document = &sources.document;
    let links = links(document);
    let mut pages = guide::pages(sources, &links)?;
    pages.push(operations::index(document, &links));
    pages.extend(operations::pages(sources, &links));
    pages.push(errors::page(sources, &links)?);
    pages.push(tools::page(sources)?);
    pages.push(kits::page(sources, &links)?);
    pages.push(history::page(sources, &links)?);

    let search = search::index(&pages);
    let list = tools::llms(sources, &pages);
    pages.push(not_found());
    let search_name = hashed_name("search", "js", search.as_bytes());
    let frame = Frame::of_site(document, &search_name);
    let mut files = vec![File {
        path: search_name.clone(),
        content_type: SCRIPT,
        bytes: search.into_bytes(),
        immutable: true,
    }];
    files.extend(pages.into_iter().map(|page| {
        File {
            bytes: frame
                .page(&page.file, &page.title, &page.body)
                .into_string()
                .into_bytes(),
            path: page.file,
            content_type: HTML,
            immutable: false,
        }
    }));
    files.extend(ASSETS.iter().map(|asset| File {
        path: hashed_name(asset.name, asset.extension, asset.text.as_bytes()),
        content_type: asset.content_type,
        bytes: asset.text.into(),
        immutable: true,
    }));
    let generated = |path: &str, content_type, text: String| File {
        path: path.to_owned(),
        content_type,
        bytes: text.into_bytes(),
        immutable: false,
    };
    files.push(generated("llms.txt", PLAIN, list));
    files.push(generated(
        history::FEED,
        "application/atom+xml; charset=utf-8",
        history::feed(sources),
    ));
    files.extend(sources.published());
    Ok(files)
}

/// Returns the page for unknown paths in the site's folder, which the service returns with the status 404.
fn not_found() -> Page {
    let body = html! {
        p { "There is nothing at this address. Search the documentation above, or start with one of these pages:" }
        ul {
            li { a href="index.html" { "Overview" } }
            li { a href="reference.html" { "All operations" } }
            li { a href="errors.html" { "Errors" } }
        }
    };
    Page::new("404.html", "Page not found", "", body)
}

/// Returns the names that become links wherever they appear as code.
fn links(document: &Document) -> Links {
    let mut links = BTreeMap::new();
    for operation in document.operations() {
        links.insert(format!("{} {}", operation.method, operation.path), operation.page());
    }
    for (code, _) in document.error_codes() {
        let target = format!("errors.html#{code}");
        links.insert(code, target);
    }
    for chapter in document.chapters() {
        if !chapter.title.is_empty() {
            links.insert(format!("\"{}\"", chapter.title), guide::address(&chapter.title));
        }
    }
    links.insert("PartnerSignature".to_owned(), "signing.html".to_owned());
    links.insert("/openapi.yaml".to_owned(), "../openapi.yaml".to_owned());
    links.insert("/openapi.json".to_owned(), "../openapi.json".to_owned());
    Links(links)
}
