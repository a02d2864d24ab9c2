//! Static pages that are served next to an API.

use std::collections::BTreeMap;

use bytes::Bytes;
use dropshot::Body;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use partner_api_domain::etag::ETag;

/// The folder of the published contract.
pub const FOLDER: &str = "/docs/";

/// What pages may load (`Content-Security-Policy`): their own style sheets, scripts and images, and nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// How long a page may be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Forever: its path changes with its content.
    ForEver,
    /// Until the next request, which revalidates it by its tag.
    UntilAskedAgain,
    /// Not at all: it contains a secret.
    Never,
}

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// For `Content-Type`.
    pub content_type: &'static str,
    /// How long it may be cached.
    pub keep: Keep,
    /// Its content.
    pub body: Bytes,
    /// The content compressed with gzip, if it is to be sent so.
    pub gzip: Option<Bytes>,
}

/// Pages by their paths.
#[derive(Clone, Debug, Default)]
pub struct Pages(BTreeMap<String, (Page, ETag)>);

impl Pages {
    /// Adds a page at a path. An `index.html` is also served at the path of its folder.
    pub fn add(&mut self, path: &str, page: Page) {
        let tag = ETag::of_bytes(&page.body);
        if let Some(folder) = path.strip_suffix("index.html") {
            self.0.insert(folder.to_owned(), (page.clone(), tag.clone()));
        }
        self.0.insert(path.to_owned(), (page, tag));
    }

    /// Whether there is a page at a path.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path) || self.is_folder_without_slash(path)
    }

    fn is_folder_without_slash(&self, path: &str) -> bool {
        !path.ends_with('/') && self.0.contains_key(&format!("{path}/"))
    }

    /// The response to a request with these headers for a path; `None` if there is no page.
    #[must_use]
    pub fn answer(&self, path: &str, asked: &HeaderMap) -> Option<Response<Body>> {
        let Some((page, tag)) = self.0.get(path) else {
            return self.is_folder_without_slash(path).then(|| to_folder(path));
        };
        let mut response = Response::new(Body::empty());
        let known = asked.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
        if page.keep != Keep::Never && tag.is_known(known) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            let gzip = page.gzip.as_ref().filter(|_| takes_gzip(asked));
            *response.body_mut() = Body::from(gzip.unwrap_or(&page.body).clone());
            if gzip.is_some() {
                let encoding = HeaderValue::from_static("gzip");
                response.headers_mut().insert(header::CONTENT_ENCODING, encoding);
            }
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(page.content_type));
        let keep = match page.keep {
            Keep::ForEver => "public, max-age=31536000, immutable",
            Keep::UntilAskedAgain => "public, no-cache",
            Keep::Never => "no-store",
        };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
        // Weak, because it is the same with and without compression.
        let tag = HeaderValue::from_str(&format!("W/{}", tag.clone().into_header()));
        if let Ok(tag) = tag
            && page.keep != Keep::Never
        {
            headers.insert(header::ETAG, tag);
        }
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        Some(response)
    }
}

/// Redirects to the path with a slash at its end, to which the page's links are relative.
fn to_folder(path: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    // Relative, because a proxy may have put a prefix before the path.
    let name = path.rsplit('/').next().unwrap_or(path);
    if let Ok(name) = HeaderValue::from_str(&format!("{name}/")) {
        response.headers_mut().insert(header::LOCATION, name);
    }
    response
}

fn takes_gzip(asked: &HeaderMap) -> bool {
    let values = asked
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|q| q.trim_matches(['0', '.']).is_empty());
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn a_coding_that_is_refused_is_not_taken() {
        for (value, takes) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("deflate", false),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("x-gzip", false),
        ] {
            assert_eq!(takes_gzip(&headers(header::ACCEPT_ENCODING, value)), takes, "{value}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
