//! Static pages that are served next to an API.

use std::collections::BTreeMap;

use bytes::Bytes;
use dropshot::Body;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use partner_api_domain::etag::ETag;

/// The path of the documentation pages.
pub const FOLDER: &str = "/docs/";

/// The page for unknown paths in [`FOLDER`].
const NOT_FOUND: &str = "404.html";

/// The `Content-Security-Policy` of pages: style sheets, scripts, images and the API of the same origin, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// How long a page may be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Forever, because its path changes with its content.
    Immutable,
    /// The client revalidates it by its entity tag for each use.
    Revalidate,
    /// Not at all, because it contains a secret.
    NoStore,
}

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// How long it may be cached.
    pub caching: Caching,
    /// The content.
    pub body: Bytes,
    /// The content compressed with gzip, if the page may be sent compressed.
    pub gzip: Option<Bytes>,
}

/// Pages by path.
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

    /// Returns whether there is a page at a path.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path) || self.is_folder_without_slash(path)
    }

    fn is_folder_without_slash(&self, path: &str) -> bool {
        !path.ends_with('/') && self.0.contains_key(&format!("{path}/"))
    }

    /// Returns the response to a request with these headers for a path, or `None` if there is no page.
    #[must_use]
    pub fn respond(&self, path: &str, request: &HeaderMap) -> Option<Response<Body>> {
        let Some((page, tag)) = self.0.get(path) else {
            return self.is_folder_without_slash(path).then(|| to_folder(path));
        };
        let mut response = Response::new(Body::empty());
        let if_none_match = request.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
        if page.caching != Caching::NoStore && tag.matches(if_none_match) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            let gzip = page.gzip.as_ref().filter(|_| accepts_gzip(request));
            *response.body_mut() = Body::from(gzip.unwrap_or(&page.body).clone());
            if gzip.is_some() {
                let encoding = HeaderValue::from_static("gzip");
                response.headers_mut().insert(header::CONTENT_ENCODING, encoding);
            }
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(page.content_type));
        let cache_control = match page.caching {
            Caching::Immutable => "public, max-age=31536000, immutable",
            Caching::Revalidate => "public, no-cache",
            Caching::NoStore => "no-store",
        };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
        // Weak, because the compressed and the uncompressed page have the same tag.
        let tag = HeaderValue::from_str(&format!("W/{}", tag.clone().into_header()));
        if let Ok(tag) = tag
            && page.caching != Caching::NoStore
        {
            headers.insert(header::ETAG, tag);
        }
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        Some(response)
    }

    /// Returns a page with the status 404 for an unknown path directly in [`FOLDER`], if the client accepts HTML. The links of the page
    /// are relative to this folder.
    #[must_use]
    pub fn not_found(&self, path: &str, request: &HeaderMap) -> Option<Response<Body>> {
        let name = path.strip_prefix(FOLDER)?;
        let accept = request.get(header::ACCEPT)?.to_str().ok()?;
        if name.contains('/') || !accept.contains("text/html") {
            return None;
        }
        let mut response = self.respond(&format!("{FOLDER}{NOT_FOUND}"), &HeaderMap::new())?;
        *response.status_mut() = StatusCode::NOT_FOUND;
        response.headers_mut().remove(header::ETAG);
        Some(response)
    }
}

/// Redirects to the path with a trailing slash, to which the links of the page are relative.
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

fn accepts_gzip(request: &HeaderMap) -> bool {
    let values = request
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_excluded = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|q| q.trim_matches(['0', '.']).is_empty());
        name.trim().eq_ignore_ascii_case("gzip") && !is_excluded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn gzip_is_accepted_unless_its_weight_is_zero() {
        for (value, accepts) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("deflate", false),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("x-gzip", false),
        ] {
            assert_eq!(
                accepts_gzip(&headers(header::ACCEPT_ENCODING, value)),
                accepts,
                "{value}"
            );
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
