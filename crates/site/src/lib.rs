//! The documentation site, built into the program.
//!
//! `build.rs` builds it with `site-builder` from the document, the contract's rules, the kits, the changelog and the snapshots. The
//! builder is not linked into the program.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
        let start = format!(" {name}=\"");
        html.split(&start)
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect()
    }

    /// Files outside the site's folder, which the service serves.
    const OUTSIDE: [&str; 2] = ["../openapi.yaml", "../openapi.json"];

    #[test]
    fn no_page_has_a_broken_link() {
        let pages: BTreeMap<&str, &str> = FILES
            .iter()
            .filter(|file| file.path.ends_with(".html"))
            .map(|file| (file.path, std::str::from_utf8(file.bytes).unwrap()))
            .collect();
        let paths: BTreeSet<&str> = FILES.iter().map(|file| file.path).collect();
        assert!(pages.len() > 15, "{paths:?}");
        let mut broken = Vec::new();
        for (name, html) in &pages {
            for link in attributes(html, "href").into_iter().chain(attributes(html, "src")) {
                if link.starts_with("https://") || link.starts_with("mailto:") || OUTSIDE.contains(&link) {
                    continue;
                }
                let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                let path = if path.is_empty() { name } else { path };
                let has_anchor =
                    anchor.is_empty() || attributes(pages.get(path).unwrap_or(&""), "id").contains(&anchor);
                if !paths.contains(path) || !has_anchor {
                    broken.push(format!("{name}: {link}"));
                }
            }
        }
        assert_eq!(broken, [""; 0]);
    }

    /// SVC-7. The commands themselves are run by script/site.
    #[test]
    fn the_page_of_the_scenarios_needs_nothing_that_only_the_operator_has() {
        let page = FILES.iter().find(|file| file.path == "scenarios.html").unwrap();
        let html = std::str::from_utf8(page.bytes).unwrap();
        for of_the_operator in ["samples/", "service.log", "partner-api ", "until "] {
            assert!(!html.contains(of_the_operator), "{of_the_operator}");
        }
        for status in [201, 200, 404, 401, 400] {
            assert!(html.contains(&format!("send # {status}, ")), "{status}");
        }
        assert!(html.contains("partner certify --branch"));
    }

    #[test]
    fn the_list_of_reports_shows_how_to_read_all_pages_in_each_language() {
        let page = |path: &str| {
            let file = FILES.iter().find(|file| file.path == path).unwrap();
            std::str::from_utf8(file.bytes).unwrap()
        };
        let (_, section) = page("list_inspections.html").split_once("id=\"all-pages\"").unwrap();
        let section = section.split("</section></div>").next().unwrap_or_default();
        for kit in [
            "curl",
            "Python",
            "Node.js",
            "PHP",
            "Java",
            "C#",
            "Go",
            "C",
            "PowerShell",
        ] {
            assert!(section.contains(&format!("data-tab=\"{kit}\"")), "{kit}");
        }
        assert!(
            section.contains("published_from=") && section.contains("next_cursor"),
            "{section}"
        );
        assert!(!page("list_organizations.html").contains("id=\"all-pages\""));
        assert!(page("get_inspection_photos.html").contains("id=\"all-photos\""));
    }

    fn text(path: &str) -> &'static str {
        let file = FILES.iter().find(|file| file.path == path);
        std::str::from_utf8(file.unwrap_or_else(|| panic!("{path}")).bytes).unwrap()
    }

    #[test]
    fn no_page_mentions_the_inspectors_api() {
        for file in FILES.iter().filter(|file| file.path.ends_with(".html")) {
            assert!(!text(file.path).contains("/inspector/"), "{}", file.path);
        }
    }

    #[test]
    fn every_heading_links_to_itself_and_is_listed_on_its_page() {
        let html = text("errors.html");
        for anchor in ["rate_limited", "invalid_request"] {
            assert!(html.contains(&format!(
                "<a class=\"permalink\" href=\"#{anchor}\" aria-label=\"Link to "
            )));
        }
        let (_, listed) = html.split_once("<nav aria-label=\"On this page\">").unwrap();
        assert!(
            listed
                .split("</nav>")
                .next()
                .unwrap()
                .contains("href=\"#rate_limited\"")
        );
        // A page with few headings needs no list.
        assert!(!text("limits.html").contains("On this page"));
    }

    #[test]
    fn the_chapter_on_keeping_in_sync_has_a_page_in_the_menu_and_mentions_of_it_are_links() {
        assert!(text("signing.html").contains("<a href=\"sync.html\">Keeping in sync</a>"));
        assert!(text("index.html").contains("<a href=\"sync.html\">&quot;Keeping in sync&quot;</a>"));
        assert!(!text("guide.html").contains("id=\"keeping-in-sync\""));
    }

    #[test]
    fn the_tool_the_packages_and_the_contact_are_on_the_site() {
        let html = text("tools.html");
        for words in [
            "partner certify",
            "npm install",
            "pip install",
            "partner-api-client = { path",
            "$env:PARTNER_BASE_URL",
            "id=\"downloads\"",
        ] {
            assert!(html.contains(words), "{words}");
        }
        // Each chapter of the program's README, except the one for developers, and the links between them.
        let readme = include_str!("../../partner/README.md");
        let titles: Vec<_> = readme.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert!(titles.len() > 5, "{titles:?}");
        for title in titles {
            let anchor = title.to_lowercase().replace(' ', "-");
            let is_shown = html.contains(&format!("<h3 id=\"partner-{anchor}\">{title}"));
            assert_eq!(is_shown, title != "Development", "{title}");
        }
        assert!(html.contains("<a href=\"#partner-submit-an-export\">submit each record"));
        assert!(!html.contains("script/"), "a partner does not have the repository");
        assert!(text("start.html").contains("$env:PARTNER_SECRET = '…'"));
        assert!(text("index.html").contains("href=\"mailto:partner-api@inspection.example\""));
    }

    #[test]
    fn the_feed_has_an_entry_for_each_version() {
        let feed = roxmltree::Document::parse(text("changes.xml")).unwrap();
        let entries = feed
            .descendants()
            .filter(|node| node.has_tag_name(("http://www.w3.org/2005/Atom", "entry")));
        let versions = text("CHANGELOG.md")
            .lines()
            .filter(|line| line.starts_with("## "))
            .count();
        assert_eq!(entries.count(), versions);
        let updated = feed
            .descendants()
            .find(|node| node.tag_name().name() == "updated")
            .unwrap();
        assert!(updated.text().unwrap().ends_with("-01T00:00:00Z"), "{updated:?}");
    }

    #[test]
    fn the_document_of_each_version_can_be_downloaded() {
        let (html, changelog) = (text("versions.html"), text("CHANGELOG.md"));
        let versions: Vec<_> = changelog
            .lines()
            .filter_map(|line| line.strip_prefix("## ")?.split(' ').next())
            .collect();
        assert!(versions.len() > 4, "{versions:?}");
        for (number, version) in versions.into_iter().enumerate() {
            let file = format!("released/partner-api-{version}.yaml");
            // The newest version is the served document.
            let link = if number == 0 { "../openapi.yaml" } else { &file };
            assert!(
                html.contains(&format!("<a href=\"{link}\" download>The document of this version</a>")),
                "{version}"
            );
            assert!(
                number == 0 || text(&file).contains(&format!("\n  version: {version}\n")),
                "{version}"
            );
        }
    }

    #[test]
    fn the_list_for_language_models_describes_every_page() {
        let list = text("llms.txt");
        for file in FILES
            .iter()
            .filter(|file| file.path.ends_with(".html") && file.path != "404.html")
        {
            let after = format!("](/docs/{}): ", file.path);
            let (_, rest) = list.split_once(&after).unwrap_or_else(|| panic!("{}", file.path));
            let summary = rest.lines().next().unwrap();
            assert!(summary.len() > 20 && summary.ends_with('.'), "{}: {summary}", file.path);
        }
        assert!(list.starts_with("# ") && list.contains("\n> "), "{list}");
    }

    #[test]
    fn no_page_violates_the_content_security_policy_or_repeats_an_id() {
        for file in FILES.iter().filter(|file| file.path.ends_with(".html")) {
            let html = std::str::from_utf8(file.bytes).unwrap();
            for forbidden in [
                " style=\"",
                "<style",
                " onclick",
                "javascript:",
                "<script>",
                "http-equiv",
            ] {
                assert!(!html.contains(forbidden), "{}: {forbidden}", file.path);
            }
            let ids = attributes(html, "id");
            let unique: BTreeSet<_> = ids.iter().collect();
            assert_eq!(ids.len(), unique.len(), "{}: {ids:?}", file.path);
        }
    }
}
