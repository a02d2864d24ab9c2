//! Renders Markdown as HTML, with anchors for headings, scrollable tables and code, and links from names of the API to their explanation.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped};
use pulldown_cmark::{Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// The link targets of names in code, such as `not_found` or `GET /api/v1/partner/health`, and of quoted titles of chapters.
#[derive(Default)]
pub struct Links(pub BTreeMap<String, String>);

/// Renders a text. `demote` is added to the level of each heading, so that the page skips no level.
pub fn render(markdown: &str, demote: isize, links: &Links) -> Markup {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let events: Vec<Event<'_>> = Parser::new_ext(markdown, options).collect();
    let mut out = Vec::with_capacity(events.len());
    let (mut in_heading, mut in_link) = (false, false);
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                in_heading = true;
                let title = plain(&events[at + 1..]);
                let id = anchor(&title);
                let level = demoted(*level, demote);
                out.push(raw(format!("<{level} id=\"{id}\">")));
            }
            Event::End(TagEnd::Heading(level)) => {
                in_heading = false;
                out.push(raw(format!("</{}>", demoted(*level, demote))));
            }
            Event::Start(Tag::Table(alignments)) => {
                out.push(raw(
                    "<div class=\"scroll\" role=\"group\" aria-label=\"Table\" tabindex=\"0\">".to_owned(),
                ));
                // Alignment would be an inline style, which the content security policy forbids.
                out.push(Event::Start(Tag::Table(vec![Alignment::None; alignments.len()])));
            }
            Event::End(TagEnd::Table) => {
                out.push(event.clone());
                out.push(raw("</div>".to_owned()));
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.as_ref(),
                    CodeBlockKind::Indented => "",
                };
                let label = if language.is_empty() {
                    "Code".to_owned()
                } else {
                    format!("{language} code")
                };
                out.push(raw(format!(
                    "<pre tabindex=\"0\" role=\"group\" aria-label=\"{0}\"><code>",
                    escaped(&label)
                )));
            }
            Event::End(TagEnd::CodeBlock) => out.push(raw("</code></pre>\n".to_owned())),
            Event::Start(Tag::Link { .. }) => {
                in_link = true;
                out.push(event.clone());
            }
            Event::End(TagEnd::Link) => {
                in_link = false;
                out.push(event.clone());
            }
            Event::Code(code) if !in_heading && !in_link => match links.0.get(code.as_ref()) {
                Some(target) => {
                    out.push(raw(format!("<a href=\"{target}\"><code>{}</code></a>", escaped(code))));
                }
                None => out.push(event.clone()),
            },
            Event::Text(text) if !in_heading && !in_link => {
                let quoted = text.match_indices('"').map(|(at, _)| at).collect::<Vec<_>>();
                let mut done = 0;
                for pair in quoted.windows(2) {
                    let title = &text[pair[0]..=pair[1]];
                    let Some(target) = links.0.get(title).filter(|_| pair[0] >= done) else {
                        continue;
                    };
                    out.push(Event::Text(text[done..pair[0]].to_owned().into()));
                    out.push(raw(format!("<a href=\"{target}\">{}</a>", escaped(title))));
                    done = pair[1] + 1;
                }
                out.push(Event::Text(text[done..].to_owned().into()));
            }
            // HTML in a text is shown as text.
            Event::Html(text) | Event::InlineHtml(text) => out.push(Event::Text(text.clone())),
            other => out.push(other.clone()),
        }
    }
    let mut rendered = String::new();
    html::push_html(&mut rendered, out.into_iter());
    PreEscaped(rendered)
}

/// Returns the text of the heading that begins here.
fn plain(events: &[Event<'_>]) -> String {
    events
        .iter()
        .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))))
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect()
}

/// Returns the anchor of a heading: `The canonical string` becomes `the-canonical-string`.
pub fn anchor(title: &str) -> String {
    let words: Vec<String> = title
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("-")
}

fn demoted(level: HeadingLevel, demote: isize) -> HeadingLevel {
    HeadingLevel::try_from((level as usize).saturating_add_signed(demote)).unwrap_or(HeadingLevel::H6)
}

fn raw(text: String) -> Event<'static> {
    Event::Html(CowStr::from(text))
}

fn escaped(text: &str) -> String {
    maud::html! { (text) }.into_string()
}

/// A row of a table: each cell with its column's heading.
pub type Row = Vec<(String, String)>;

/// Returns the rows of all tables in a Markdown text.
pub fn table_rows(markdown: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut headings: Option<Vec<String>> = None;
    for line in markdown.lines() {
        let Some(cells) = cells(line) else {
            headings = None;
            continue;
        };
        match &headings {
            None => headings = Some(cells),
            Some(_) if cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':'))) => {}
            Some(headings) => rows.push(headings.iter().cloned().zip(cells).collect()),
        }
    }
    rows
}

/// Returns the cells of a line `| a | b |`. An escaped `\|` is part of a cell.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let unescaped = inner.replace("\\|", "\u{1}");
    Some(
        unescaped
            .split('|')
            .map(|cell| cell.trim().replace('\u{1}', "|"))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_code_are_links_except_in_headings() {
        let links = Links(BTreeMap::from([(
            "not_found".to_owned(),
            "errors.html#not_found".to_owned(),
        )]));
        let found = render("# The `not_found`\n\n`not_found` and `other`", 1, &links).into_string();
        assert_eq!(
            found,
            "<h2 id=\"the-not_found\">The <code>not_found</code></h2>\n<p><a href=\"errors.html#not_found\"><code>not_found</code></a> \
             and <code>other</code></p>\n"
        );
    }

    #[test]
    fn a_quoted_title_of_a_chapter_is_a_link() {
        let links = Links(BTreeMap::from([("\"Signing\"".to_owned(), "signing.html".to_owned())]));
        let found = render("the \"nonce\" of the chapter \"Signing\", \"Signing\"!", 0, &links).into_string();
        let link = "<a href=\"signing.html\">&quot;Signing&quot;</a>";
        assert_eq!(found, format!("<p>the \"nonce\" of the chapter {link}, {link}!</p>\n"));
    }

    #[test]
    fn html_in_a_text_is_escaped() {
        let found = render("a <script>alert(1)</script>\n\n<div onclick=x>", 0, &Links::default()).into_string();
        assert!(!found.contains("<script") && !found.contains("<div"), "{found}");
    }

    #[test]
    fn the_rows_of_a_table_are_read_with_their_headings() {
        let rows = table_rows("| Code | What |\n|---|---|\n| `a` | x \\| y |\n\ntext\n");
        assert_eq!(
            rows,
            [[
                ("Code".to_owned(), "`a`".to_owned()),
                ("What".to_owned(), "x | y".to_owned())
            ]]
        );
    }
}
