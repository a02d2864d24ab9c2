//! The frame of every page: head, navigation and search.

use std::sync::LazyLock;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use regex::{Captures, Regex};

use crate::search::{pattern, plain};
use crate::{Document, asset, history};

/// The headings that get a link and a line in "On this page". Headings in tabs have no ID.
static HEADING: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?s)<h([2-4]) id="([^"]+)">(.*?)</h[2-4]>"#));
/// The fewest headings for which a page gets "On this page".
const FEWEST_HEADINGS: usize = 3;

/// The frame of pages.
pub struct Frame {
    title: String,
    version: String,
    sections: Vec<Section>,
    /// The prefix of the addresses of pages and assets.
    base: &'static str,
    search: Option<String>,
}

/// A section of the navigation.
pub struct Section {
    /// Its heading.
    pub title: String,
    /// The address and title of each page.
    pub pages: Vec<(String, String)>,
}

impl Frame {
    /// Creates the frame of the site's pages. `search` is the file name of the search index.
    pub(crate) fn of_site(document: &Document, search: &str) -> Self {
        Self {
            search: Some(search.to_owned()),
            ..Self::new(document, "")
        }
    }

    /// Creates the frame of a page beside the site's folder `docs/`.
    pub fn beside_site(document: &Document) -> Self {
        Self::new(document, "docs/")
    }

    fn new(document: &Document, base: &'static str) -> Self {
        let page = |file: &str, title: &str| (format!("{base}{file}"), title.to_owned());
        let up = if base.is_empty() { "../" } else { "" };
        let mut sections = vec![Section {
            title: "Guide".to_owned(),
            pages: vec![
                page("index.html", "Overview"),
                page("start.html", "Getting started"),
                page("signing.html", "Signing"),
                page("tools.html", "Tool and packages"),
                page("kits.html", "Signing kits"),
                page("try.html", "Try a request"),
                page("scenarios.html", "Acceptance scenarios"),
                page("guide.html", "Conventions"),
                page("sync.html", "Keeping in sync"),
                page("errors.html", "Errors"),
                page("limits.html", "Limits"),
                page("versions.html", "Versions and changes"),
            ],
        }];
        let operations = document.operations();
        let mut reference = vec![page("reference.html", "All operations")];
        reference.extend(
            operations
                .iter()
                .map(|operation| page(&operation.page(), operation.summary())),
        );
        sections.push(Section {
            title: "Reference".to_owned(),
            pages: reference,
        });
        sections.push(Section {
            title: "Files".to_owned(),
            pages: vec![
                (format!("{up}openapi.yaml"), "OpenAPI (YAML)".to_owned()),
                (format!("{up}openapi.json"), "OpenAPI (JSON)".to_owned()),
                page(crate::sources::VECTORS, "Signing vectors"),
                page(crate::sources::POSTMAN, "Postman collection"),
                page(history::FEED, "Changes (Atom)"),
            ],
        });
        Self {
            title: document.title().to_owned(),
            version: document.version().to_owned(),
            sections,
            base,
            search: None,
        }
    }

    /// Renders a complete page. `file` is its address, as in the navigation.
    pub fn page(&self, file: &str, title: &str, body: &Markup) -> Markup {
        let at = |name: &str, extension: &str| format!("{}{}", self.base, asset(name, extension));
        let (body, headings) = with_permalinks(body);
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) " · Partner API" }
                    link rel="alternate" type="application/atom+xml" title="Changes" href={ (self.base) (history::FEED) };
                    link rel="icon" type="image/svg+xml" href=(at("icon", "svg"));
                    link rel="stylesheet" href=(at("site", "css"));
                    script src=(at("theme", "js")) {}
                    script src=(at("site", "js")) defer {}
                }
                body {
                    a.skip href="#content" { "Skip to content" }
                    header.top {
                        a.home href={ (self.base) "index.html" } title=(self.title) { "Partner API " span { (self.version) } }
                        @if let Some(search) = &self.search {
                            div.search role="search" {
                                label.hidden for="search" { "Search" }
                                input #search type="search" placeholder="Search  /" autocomplete="off" data-index=(search) disabled;
                                div #found role="region" aria-label="Search results" aria-live="polite" hidden {}
                            }
                        }
                        button.theme type="button" hidden { "Dark" }
                    }
                    div.page {
                        details.menu open {
                            summary { "Menu" }
                            nav aria-label="Pages" {
                                @for section in &self.sections {
                                    p.section { (section.title) }
                                    ul {
                                        @for (address, name) in &section.pages {
                                            li {
                                                @if *address == file { a href=(address) aria-current="page" { (name) } }
                                                @else { a href=(address) { (name) } }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                        @if headings.len() >= FEWEST_HEADINGS {
                            details.contents open {
                                summary { "On this page" }
                                nav aria-label="On this page" {
                                    ul {
                                        @for heading in &headings {
                                            li data-level=(heading.level) { a href={ "#" (heading.id) } { (PreEscaped(&heading.title)) } }
                                        }
                                    }
                                }
                            }
                        }
                        main #content {
                            h1 { (title) }
                            (body)
                        }
                    }
                }
            }
        }
    }
}

/// A heading in "On this page".
struct Heading {
    level: String,
    id: String,
    /// Its text as HTML, without tags.
    title: String,
}

/// Adds a link to itself to each heading. Returns the page and its headings of the second and third level.
fn with_permalinks(body: &Markup) -> (Markup, Vec<Heading>) {
    let mut headings = Vec::new();
    let text = HEADING.replace_all(&body.0, |found: &Captures<'_>| {
        let (level, id, title) = (&found[1], &found[2], &found[3]);
        let name = plain(title);
        if level != "4" {
            headings.push(Heading {
                level: level.to_owned(),
                id: id.to_owned(),
                title: html! { (name) }.into_string(),
            });
        }
        let link = html! { a.permalink href={ "#" (id) } aria-label={ "Link to " (name) } { "#" } };
        format!("<h{level} id=\"{id}\">{title} {}</h{level}>", link.into_string())
    });
    (PreEscaped(text.into_owned()), headings)
}

/// Renders a code block with a label.
pub(crate) fn code(label: &str, text: &str) -> Markup {
    html! {
        pre tabindex="0" role="group" aria-label=(label) { code { (text.trim_end()) } }
    }
}

/// Renders code in several languages as tabs, or one below the other without scripts.
pub(crate) fn tabs(what: &str, parts: &[(String, String)]) -> Markup {
    let parts = parts
        .iter()
        .map(|(name, text)| (name.as_str(), code(&format!("{what}, {name}"), text)));
    tabs_of(what, parts)
}

/// Renders parts with a name each as tabs, or one below the other without scripts.
pub(crate) fn tabs_of<'a>(what: &str, parts: impl IntoIterator<Item = (&'a str, Markup)>) -> Markup {
    html! {
        div.tabs data-what=(what) {
            @for (name, part) in parts {
                section data-tab=(name) {
                    p.tab-title { (name) }
                    (part)
                }
            }
        }
    }
}

/// Renders a JSON value.
pub(crate) fn json(label: &str, value: &serde_json::Value) -> Markup {
    code(label, &serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Joins parts with a separator.
pub(crate) fn joined(parts: impl IntoIterator<Item = Markup>, between: &str) -> Markup {
    let parts: Vec<String> = parts.into_iter().map(Markup::into_string).collect();
    PreEscaped(parts.join(between))
}
