//! Where a published report is verified: the address of its public page (REP-20).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

/// What stands in an address in the place of a report's public slug.
pub const SLUG: &str = "{slug}";
/// The longest address: a QR code of it can be read from paper.
const LONGEST: usize = 200;
/// What a slug may have in it as it is.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Why an address cannot be one of reports, if it cannot.
pub fn unfit(address: &str) -> Option<String> {
    let expected = |what: &str| Some(format!("expected {what}, like https://reports.example/{SLUG}"));
    if address.matches(SLUG).count() != 1 {
        return expected(&format!("{SLUG} in it once"));
    }
    if address.len() > LONGEST || !address.bytes().all(|byte| byte.is_ascii_graphic()) {
        return expected(&format!("at most {LONGEST} visible ASCII characters"));
    }
    let Ok(url) = of(address, "slug").parse::<Url>() else {
        return expected("an address");
    };
    let is_plain = matches!(url.scheme(), "http" | "https") && url.host().is_some() && url.username().is_empty();
    // Neither the host nor a fragment, which no server sees, can tell one report from the other.
    let behind_host = address
        .split_once("://")
        .and_then(|(_, rest)| rest.find(['/', '?', '#']).map(|end| &rest[end..]));
    if !is_plain || !behind_host.is_some_and(|rest| rest.contains(SLUG)) || url.fragment().is_some() {
        return expected(&format!("an http or https address with {SLUG} in its path or query"));
    }
    None
}

/// The address of the report with this slug.
pub fn of(address: &str, slug: &str) -> String {
    address.replacen(SLUG, &utf8_percent_encode(slug, KEPT).to_string(), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REP-20
    #[test]
    fn an_address_has_a_place_for_the_slug_and_leads_somewhere() {
        for fit in [
            "https://reports.example/{slug}",
            "http://127.0.0.1:8080/r/{slug}/",
            "https://example.org/report?of={slug}",
        ] {
            assert_eq!(unfit(fit), None, "{fit}");
        }
        let long = format!("https://reports.example/{}/{SLUG}", "x".repeat(200));
        for wrong in [
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
            long.as_str(),
        ] {
            let why = unfit(wrong).unwrap_or_default();
            assert!(why.contains("https://reports.example/{slug}"), "{wrong}: {why}");
        }
    }

    /// REP-20
    #[test]
    fn a_slug_stays_a_part_of_the_path() {
        let address = "https://reports.example/{slug}";
        assert_eq!(of(address, "7f3kq2m9"), "https://reports.example/7f3kq2m9");
        assert_eq!(
            of(address, "a/../b?c#d é"),
            "https://reports.example/a%2F..%2Fb%3Fc%23d%20%C3%A9"
        );
    }
}
