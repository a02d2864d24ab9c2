//! Access control of the proxy: programs on this machine and pages of allowed origins may use it.
//!
//! Without it, a page of any site could make a visitor's browser send signed requests.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use url::Url;

use super::forward::{Body, empty};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The status and message of a rejected request.
pub(super) type Rejection = (StatusCode, &'static str);

/// Decides which requests are forwarded.
pub(super) struct Guard {
    port: u16,
    origins: Vec<String>,
}

impl Guard {
    pub(super) fn new(port: u16, origins: Vec<String>) -> Self {
        let origins = origins
            .into_iter()
            .map(|origin| origin.trim_end_matches('/').to_owned());
        Self {
            port,
            origins: origins.collect(),
        }
    }

    /// Checks whether a request may be forwarded.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Rejection> {
        if request.uri().authority().is_some() {
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                "this is not a forward proxy: use its URL in place of the service's",
            ));
        }
        let headers = request.headers();
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        if hosts.next().is_some() || !host.is_some_and(|host| self.is_own(&format!("http://{host}"))) {
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                "the Host header must be 127.0.0.1 or localhost with this proxy's port",
            ));
        }
        let cross_site = headers
            .get(FETCH_SITE)
            .is_some_and(|site| !matches!(site.as_bytes(), b"none" | b"same-origin"));
        let foreign = headers
            .get(header::ORIGIN)
            .is_some_and(|origin| !origin.to_str().is_ok_and(|origin| self.is_own(origin)));
        if (cross_site || foreign) && self.allowed_origin(headers).is_none() {
            return Err((
                StatusCode::FORBIDDEN,
                "the request comes from a page of another origin; to allow it, pass --allow-origin",
            ));
        }
        Ok(())
    }

    /// Returns the origin of a request if it is allowed.
    pub(super) fn allowed_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        let text = origin.to_str().ok()?;
        self.origins
            .iter()
            .any(|allowed| allowed == text)
            .then(|| origin.clone())
    }

    /// Returns whether an address is this proxy's: a loopback name with its port, and nothing else.
    fn is_own(&self, address: &str) -> bool {
        let Ok(url) = Url::parse(address) else { return false };
        let is_bare =
            url.username().is_empty() && url.password().is_none() && url.path() == "/" && url.query().is_none();
        is_bare
            && url.scheme() == "http"
            && url.port_or_known_default() == Some(self.port)
            && matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"))
    }
}

/// Adds the CORS headers with which a page of this origin can read a response.
pub(super) fn add_cors_headers(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

/// Responds to a CORS preflight request and allows the requested method and headers.
pub(super) fn preflight(request_headers: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    for (requested, allowed) in [
        (
            header::ACCESS_CONTROL_REQUEST_METHOD,
            header::ACCESS_CONTROL_ALLOW_METHODS,
        ),
        (
            header::ACCESS_CONTROL_REQUEST_HEADERS,
            header::ACCESS_CONTROL_ALLOW_HEADERS,
        ),
    ] {
        if let Some(value) = request_headers.get(requested) {
            headers.insert(allowed, value.clone());
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&str, &str)]) -> Result<(), Rejection> {
        check_at("/api/v1/partner/health", headers)
    }

    fn check_at(target: &str, headers: &[(&str, &str)]) -> Result<(), Rejection> {
        let mut request = Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Guard::new(8099, vec!["https://tools.example.org/".to_owned()]).check(&request.body(()).unwrap())
    }

    #[test]
    fn local_programs_and_allowed_pages_pass() {
        for headers in [
            &[("host", "127.0.0.1:8099")][..],
            &[("host", "LOCALHOST:8099")],
            &[("host", "[::1]:8099")],
            &[("host", "localhost:8099"), ("sec-fetch-site", "none")],
            &[
                ("host", "localhost:8099"),
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://localhost:8099"),
            ],
            &[
                ("host", "localhost:8099"),
                ("sec-fetch-site", "cross-site"),
                ("origin", "https://tools.example.org"),
            ],
        ] {
            assert_eq!(check(headers), Ok(()), "{headers:?}");
        }
    }

    #[test]
    fn a_request_with_another_host_name_is_rejected() {
        for host in [
            "evil.example:8099",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:8099",
            "me@127.0.0.1:8099",
            "127.0.0.1:8099/",
            "",
        ] {
            let result = check(&[("host", host)]).map_err(|rejection| rejection.0);
            // The URL parser accepts a trailing slash, which a Host header never has.
            if host != "127.0.0.1:8099/" {
                assert_eq!(result, Err(StatusCode::MISDIRECTED_REQUEST), "{host}");
            }
        }
        let two = [("host", "127.0.0.1:8099"), ("host", "evil.example")];
        assert!(check(&two).is_err());
        assert!(check(&[]).is_err());
        assert!(check_at("http://evil.example/", &[("host", "127.0.0.1:8099")]).is_err());
    }

    #[test]
    fn a_request_from_a_page_of_another_origin_is_rejected() {
        for (name, value) in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost:3000"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let result = check(&[("host", "127.0.0.1:8099"), (name, value)]).map_err(|rejection| rejection.0);
            assert_eq!(result, Err(StatusCode::FORBIDDEN), "{name}: {value}");
        }
    }
}
