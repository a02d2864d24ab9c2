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
                if link.starts_with("https://") || OUTSIDE.contains(&link) {
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
        for kit in ["curl", "Python", "Node.js", "PHP", "Java", "C#", "Go"] {
            assert!(section.contains(&format!("data-tab=\"{kit}\"")), "{kit}");
        }
        assert!(
            section.contains("published_from=") && section.contains("next_cursor"),
            "{section}"
        );
        assert!(!page("list_organizations.html").contains("id=\"all-pages\""));
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
