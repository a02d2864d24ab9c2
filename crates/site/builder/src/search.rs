//! Builds the search index: the text below each heading of each page.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use crate::Page;

/// A part of a page that can be found.
#[derive(Serialize)]
struct Entry<'a> {
    /// The address with the heading's anchor.
    #[serde(rename = "u")]
    address: String,
    /// The page's title.
    #[serde(rename = "p")]
    page: &'a str,
    /// The heading.
    #[serde(rename = "h")]
    heading: String,
    /// The text below it.
    #[serde(rename = "t")]
    text: String,
}

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and every build uses them"
)]
pub(crate) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern is valid")
}

static HEADING: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?s)<h[1-6] id="([^"]+)">(.*?)</h[1-6]>"#));
static TAG: LazyLock<Regex> = LazyLock::new(|| pattern("<[^>]*>"));
/// Code samples in several languages, which the search excludes.
static CODE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?s)<section data-tab=.*?</section>"#));
static SPACE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\s+"));

/// Returns a script that sets `window.searchIndex`. Pages in a folder cannot load JSON files, only scripts.
pub fn index(pages: &[Page]) -> String {
    let mut entries = Vec::new();
    for page in pages {
        let html = page.body.clone().into_string();
        let html = CODE.replace_all(&html, "");
        let mut entry = Entry {
            address: page.file.clone(),
            page: &page.title,
            heading: page.title.clone(),
            text: String::new(),
        };
        let mut at = 0;
        for heading in HEADING.captures_iter(&html) {
            let Some(whole) = heading.get(0) else { continue };
            let (name, title) = (&heading[1], &heading[2]);
            entry.text = plain(&html[at..whole.start()]);
            at = whole.end();
            let next = Entry {
                address: format!("{}#{name}", page.file),
                page: &page.title,
                heading: plain(title),
                text: String::new(),
            };
            entries.push(std::mem::replace(&mut entry, next));
        }
        entry.text = plain(&html[at..]);
        entries.push(entry);
    }
    let json = serde_json::to_string(&entries).unwrap_or_default();
    format!("window.searchIndex = {json};\n")
}

/// Returns the text of some HTML.
pub(crate) fn plain(html: &str) -> String {
    let text = TAG.replace_all(html, " ");
    let text = SPACE.replace_all(&text, " ");
    let text = text
        .trim()
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"");
    text.replace("&amp;", "&")
}
