//! The address of a report's public page, on which a published report can be verified (REP-20).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

/// The placeholder for a report's public slug in the address.
pub const SLUG: &str = "{slug}";
/// The maximum length of an address, up to which its QR code can be read from paper.
const MAX_LENGTH: usize = 200;
/// The characters of a slug that are percent-encoded.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Returns the problem with an address template, or `None` if it is valid.
pub fn problem(address: &str) -> Option<String> {
    let expected = |what: &str| Some(format!("expected {what}, like https://reports.example/{SLUG}"));
    if address.matches(SLUG).count() != 1 {
        return expected(&format!("{SLUG} in it once"));
    }
    if address.len() > MAX_LENGTH || !address.bytes().all(|byte| byte.is_ascii_graphic()) {
        return expected(&format!("at most {MAX_LENGTH} visible ASCII characters"));
    }
    let Ok(url) = of(address, "slug").parse::<Url>() else {
        return expected("an address");
    };
    let is_plain = matches!(url.scheme(), "http" | "https") && url.host().is_some() && url.username().is_empty();
    // The slug must not be in the host, or in the fragment, which is not sent to the server.
    let behind_host = address
        .split_once("://")
        .and_then(|(_, rest)| rest.find(['/', '?', '#']).map(|end| &rest[end..]));
    if !is_plain || !behind_host.is_some_and(|rest| rest.contains(SLUG)) || url.fragment().is_some() {
        return expected(&format!("an http or https address with {SLUG} in its path or query"));
    }
    None
}

/// Returns the address of the report with this slug.
pub fn of(address: &str, slug: &str) -> String {
    address.replacen(SLUG, &utf8_percent_encode(slug, ESCAPED).to_string(), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REP-20
    #[test]
    fn an_address_is_a_url_with_one_placeholder_in_its_path_or_query() {
        let of_length = |length| format!("{:x<1$}{SLUG}", "https://reports.example/", length - SLUG.len());
        for valid in [
            "https://reports.example/{slug}",
            "http://127.0.0.1:8080/r/{slug}/",
            "https://example.org/report?of={slug}",
            &of_length(200),
        ] {
            assert_eq!(problem(valid), None, "{valid}");
        }
        for invalid in [
            "",
            "{slug}",
            "https://reports.example/",
            "https://reports.example/{slug}/{slug}",
            "https://{slug}.reports.example/",
            "https://user@reports.example/{slug}",
            "https://reports.example/#{slug}",
            "https://reports.example/{slug}#top",
            "ftp://reports.example/{slug}",
            "javascript:alert('{slug}')",
            "https://reports.example/ü/{slug}",
            "https://reports.example/{slug} ",
            &of_length(201),
        ] {
            let problem = problem(invalid).unwrap_or_default();
            assert!(
                problem.contains("https://reports.example/{slug}"),
                "{invalid}: {problem}"
            );
        }
    }

    /// REP-20
    #[test]
    fn special_characters_in_a_slug_are_escaped() {
        let address = "https://reports.example/{slug}";
        assert_eq!(of(address, "7f3kq2m9"), "https://reports.example/7f3kq2m9");
        assert_eq!(
            of(address, "a/../b?c#d é"),
            "https://reports.example/a%2F..%2Fb%3Fc%23d%20%C3%A9"
        );
    }
}
