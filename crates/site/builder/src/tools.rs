//! The page of the program `partner` and the packages, and the list of pages for language models.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use maud::{Markup, html};
use regex::Captures;
use sha2::{Digest, Sha256};

use crate::document::{Chapter, chapters};
use crate::markdown::{Links, anchor, render};
use crate::search::pattern;
use crate::{BuildError, Page, Sources, frame, history, sources};

/// The chapters of a package's README that the page shows.
const CHAPTERS: [&str; 2] = ["Install", "First request"];
/// The chapter of the program's README that the page leaves out.
const DEVELOPMENT: &str = "Development";

/// Builds the page.
///
/// # Errors
/// A README lacks a chapter.
pub fn page(sources: &Sources) -> Result<Page, BuildError> {
    let tool = chapters(&sources.tool_text);
    // Without the title of the README.
    let intro = tool.first().map(|chapter| chapter.markdown.as_str());
    let intro: Vec<&str> = intro
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.starts_with("# "))
        .collect();
    let parts = tool.iter().skip(1).filter(|chapter| chapter.title != DEVELOPMENT);
    let mut packages = Vec::new();
    for (name, text) in &sources.package_texts {
        packages.push((*name, package(name, text)?));
    }
    let body = html! {
        p {
            "The program and the packages have the version of the API, " (sources.document.version()) ". For other languages, see the "
            a href="kits.html" { "signing kits" } "."
        }
        (downloads(sources))
        section {
            h2 #partner { "The program partner" }
            (render(&local(&intro.join("\n"), "partner"), 0, &Links::default()))
            @for chapter in parts { (section(chapter, "partner")) }
        }
        @for (name, package) in &packages {
            section { h2 id=(anchor(name)) { (name) } (package) }
        }
    };
    Ok(Page::new(
        "tools.html",
        "Tool and packages",
        "The program partner, and typed clients for TypeScript, Python and Rust.",
        body,
    ))
}

fn package(name: &str, text: &str) -> Result<Markup, BuildError> {
    let chapters = chapters(text);
    let of = anchor(name);
    let mut parts = Vec::new();
    for title in CHAPTERS {
        let chapter = chapters.iter().find(|chapter| chapter.title == title);
        let missing = || BuildError::Missing(format!("the README of {name} must have a chapter `{title}`"));
        parts.push(section(chapter.ok_or_else(missing)?, &of));
    }
    Ok(frame::joined(parts, ""))
}

/// Renders a chapter of a README under a heading whose ID begins with `of`.
fn section(chapter: &Chapter, of: &str) -> Markup {
    html! {
        h3 id={ (of) "-" (anchor(&chapter.title)) } { (chapter.title) }
        (render(&local(&chapter.markdown, of), 1, &Links::default()))
    }
}

/// Adapts the links of a README to the page. A link to a file of the repository becomes its text, because the site does not have the file.
fn local(markdown: &str, of: &str) -> String {
    let links = pattern(r"\[([^\]]+)\]\(([^)]+)\)").replace_all(markdown, |found: &Captures<'_>| {
        let (whole, name, target) = (&found[0], &found[1], &found[2]);
        match target.strip_prefix('#') {
            Some(heading) => format!("[{name}](#{of}-{heading})"),
            None if target.starts_with("https://") => whole.to_owned(),
            None => name.to_owned(),
        }
    });
    links.into_owned()
}

/// The archives and packages that the service offers.
fn downloads(sources: &Sources) -> Markup {
    html! {
        section {
            h2 #downloads { "Downloads" }
            @if sources.downloads.is_empty() {
                p {
                    "This build of the service contains no downloads. Ask the operator for the files of the release: the archive of "
                    code { "partner" } ", the npm package, the Python wheel, and the Rust crates."
                }
            } @else {
                div.scroll role="group" aria-label="Downloads" tabindex="0" {
                    table {
                        thead { tr { th scope="col" { "File" } th scope="col" { "Bytes" } th scope="col" { "SHA-256" } } }
                        tbody {
                            @for (name, bytes) in &sources.downloads {
                                tr {
                                    th scope="row" { a href={ (sources::DOWNLOADS) "/" (name) } download { (name) } }
                                    td { (bytes.len()) }
                                    td { code { (HEXLOWER.encode(&Sha256::digest(bytes))) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Builds `llms.txt`: the pages and files with a line about each, as llmstxt.org describes.
pub fn llms(sources: &Sources, pages: &[Page]) -> String {
    let document = &sources.document;
    let summary = document.chapters().into_iter().find(|chapter| chapter.title.is_empty());
    let summary = summary.map(|chapter| chapter.markdown).unwrap_or_default();
    let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = format!("# {}\n\n> {summary}\n\n## Pages\n\n", document.title());
    for page in pages {
        let _ = writeln!(text, "- [{}](/docs/{}): {}", page.title, page.file, page.summary);
    }
    text.push_str("\n## Files\n\n");
    for (path, what) in [
        ("/openapi.yaml", "the OpenAPI document, with all rules"),
        ("/openapi.json", "the same in JSON"),
        ("/docs/CHANGELOG.md", "the changes of each version"),
    ] {
        let _ = writeln!(text, "- [{}]({path}): {what}", path.rsplit('/').next().unwrap_or(path));
    }
    let _ = writeln!(text, "- [{0}](/docs/{0}): new versions as an Atom feed", history::FEED);
    let _ = writeln!(
        text,
        "- [{0}](/docs/{0}): test vectors of the signature",
        sources::VECTORS
    );
    for version in &sources.released {
        let _ = writeln!(
            text,
            "- [{0}](/docs/{0}): the document of version {1}",
            sources::released_file(version.version()),
            version.version()
        );
    }
    for kit in &sources.kits {
        let _ = writeln!(
            text,
            "- [{}](/docs/{}): the signing kit for {}",
            kit.file,
            kit.path(),
            kit.name
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_release_are_offered_with_their_digests() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut sources = Sources::read(&root).unwrap();
        assert!(downloads(&sources).into_string().contains("contains no downloads"));
        sources.downloads = vec![("partner-1.tar.gz".to_owned(), b"abc".to_vec())];
        let html = downloads(&sources).into_string();
        assert!(html.contains("href=\"downloads/partner-1.tar.gz\""), "{html}");
        assert!(
            html.contains("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            "{html}"
        );
        let files = sources.published();
        let file = files.iter().find(|file| file.path == "downloads/partner-1.tar.gz");
        assert_eq!(file.map(|file| file.bytes.as_slice()), Some(&b"abc"[..]));
    }
}
