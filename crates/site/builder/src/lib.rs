//! The published contract as a site.
//!
//! Nothing is said here that is not said elsewhere: pages are made from the document, the rules of `docs/contract`, the kits of
//! `samples`, the changelog and the snapshots. What is written here is what makes pages of them: headings, labels, and the
//! calculator for signatures. The pages are plain HTML with a style sheet and three scripts; they load nothing from elsewhere, work
//! from a folder without a server, and without scripts lack search and calculator alone.

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

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use maud::Markup;
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

/// Why there is no site.
#[derive(Debug, Error)]
pub enum BuildError {
    /// A source cannot be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        reason: std::io::Error,
    },
    /// A source is not what it should be.
    #[error("{what}: {reason}")]
    Malformed {
        /// Which.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A page wants what no source has.
    #[error("{0}")]
    Missing(String),
}

/// A file of the site.
#[derive(Clone, Debug)]
pub struct File {
    /// From the site's folder, such as `signing.html`.
    pub path: String,
    /// For `Content-Type`.
    pub content_type: &'static str,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether its name changes with its content.
    pub immutable: bool,
}

/// A page before it has its frame.
struct Page {
    file: String,
    title: String,
    body: Markup,
}

impl Page {
    fn new(file: &str, title: &str, body: Markup) -> Self {
        Self {
            file: file.to_owned(),
            title: title.to_owned(),
            body,
        }
    }
}

/// A file that pages load, named after its content.
struct Asset {
    name: &'static str,
    extension: &'static str,
    content_type: &'static str,
    text: &'static str,
}

const ASSETS: [Asset; 5] = [
    Asset {
        name: "site",
        extension: "css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("../assets/site.css"),
    },
    // Before anything is drawn, so that a page does not change its colours before the reader's eyes.
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
        name: "signing",
        extension: "js",
        content_type: SCRIPT,
        text: include_str!("../assets/signing.js"),
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

/// The file's name with a mark of its content: `site.1f2e3d4c.css`.
fn marked(name: &str, extension: &str, bytes: &[u8]) -> String {
    let digest = HEXLOWER.encode(&Sha256::digest(bytes)[..4]);
    format!("{name}.{digest}.{extension}")
}

/// Where an asset is.
fn asset(name: &str, extension: &str) -> String {
    ASSETS
        .iter()
        .find(|asset| (asset.name, asset.extension) == (name, extension))
        .map(|asset| marked(name, extension, asset.text.as_bytes()))
        .unwrap_or_default()
}

/// Makes all files of the site.
///
/// # Errors
/// When the sources lack what a page is made of.
pub fn build(sources: &Sources) -> Result<Vec<File>, BuildError> {
    let document = &sources.document;
    let links = links(document);
    let mut pages = guide::pages(sources, &links)?;
    pages.push(operations::index(document, &links));
    pages.extend(operations::pages(sources, &links));
    pages.push(errors::page(sources, &links)?);
    pages.push(kits::page(sources, &links)?);
    pages.push(history::page(sources, &links)?);

    let search = search::index(&pages);
    let search_name = marked("search", "js", search.as_bytes());
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
        path: marked(asset.name, asset.extension, asset.text.as_bytes()),
        content_type: asset.content_type,
        bytes: asset.text.into(),
        immutable: true,
    }));
    files.extend(sources.published());
    Ok(files)
}

/// Names that lead somewhere wherever they stand in code.
fn links(document: &Document) -> Links {
    let mut links = BTreeMap::new();
    for operation in document.operations() {
        links.insert(format!("{} {}", operation.method, operation.path), operation.page());
    }
    for (code, _) in document.error_codes() {
        let target = format!("errors.html#{code}");
        links.insert(code, target);
    }
    links.insert("PartnerSignature".to_owned(), "signing.html".to_owned());
    links.insert("/openapi.yaml".to_owned(), "../openapi.yaml".to_owned());
    links.insert("/openapi.json".to_owned(), "../openapi.json".to_owned());
    Links(links)
}
