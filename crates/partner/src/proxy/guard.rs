//! Who may use the proxy: programs of this machine, and pages that are named. A page of any other site could otherwise have a
//! visitor's browser send signed requests.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use url::Url;

use super::forward::{Body, empty};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why a request is not passed on.
pub(super) type Refused = (StatusCode, &'static str);

/// See the module.
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

    /// Whether a request may be passed on.
    pub(super) fn judge<B>(&self, request: &Request<B>) -> Result<(), Refused> {
        if request.uri().authority().is_some() {
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                "this is the service's stand-in, no HTTP proxy: use its address in place of the service's",
            ));
        }
        let headers = request.headers();
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        if hosts.next().is_some() || !host.is_some_and(|host| self.is_own(&format!("http://{host}"))) {
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                "the Host is not this proxy's: use 127.0.0.1 or localhost, with its port",
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
                "a page of another origin asked for this; name the origin with --allow-origin, if it may",
            ));
        }
        Ok(())
    }

    /// The origin of a request, if it was named as one that may.
    pub(super) fn allowed_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        let text = origin.to_str().ok()?;
        self.origins
            .iter()
            .any(|allowed| allowed == text)
            .then(|| origin.clone())
    }

    /// Whether an address is this proxy's own: a loopback name with its port, and nothing else.
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

/// Lets a page of this origin read an answer.
pub(super) fn share(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

/// What a browser asks before it lets a page send.
pub(super) fn preflight(asked: &HeaderMap) -> Response<Body> {
    let mut answer = Response::new(empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    for (asked_for, allowed) in [
        (
            header::ACCESS_CONTROL_REQUEST_METHOD,
            header::ACCESS_CONTROL_ALLOW_METHODS,
        ),
        (
            header::ACCESS_CONTROL_REQUEST_HEADERS,
            header::ACCESS_CONTROL_ALLOW_HEADERS,
        ),
    ] {
        if let Some(value) = asked.get(asked_for) {
            headers.insert(allowed, value.clone());
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(headers: &[(&str, &str)]) -> Result<(), Refused> {
        judged_at("/api/v1/partner/health", headers)
    }

    fn judged_at(target: &str, headers: &[(&str, &str)]) -> Result<(), Refused> {
        let mut request = Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Guard::new(8099, vec!["https://tools.example.org/".to_owned()]).judge(&request.body(()).unwrap())
    }

    #[test]
    fn programs_of_this_machine_and_its_own_pages_pass() {
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
            assert_eq!(judged(headers), Ok(()), "{headers:?}");
        }
    }

    #[test]
    fn a_host_name_that_was_made_to_point_here_does_not() {
        for host in [
            "evil.example:8099",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:8099",
            "me@127.0.0.1:8099",
            "127.0.0.1:8099/",
            "",
        ] {
            let refused = judged(&[("host", host)]).map_err(|refused| refused.0);
            // What a URL cuts off at its end is not what a Host has.
            if host != "127.0.0.1:8099/" {
                assert_eq!(refused, Err(StatusCode::MISDIRECTED_REQUEST), "{host}");
            }
        }
        let two = [("host", "127.0.0.1:8099"), ("host", "evil.example")];
        assert!(judged(&two).is_err());
        assert!(judged(&[]).is_err());
        assert!(judged_at("http://evil.example/", &[("host", "127.0.0.1:8099")]).is_err());
    }

    #[test]
    fn a_page_of_another_origin_does_not() {
        for (name, value) in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost:3000"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let refused = judged(&[("host", "127.0.0.1:8099"), (name, value)]).map_err(|refused| refused.0);
            assert_eq!(refused, Err(StatusCode::FORBIDDEN), "{name}: {value}");
        }
    }
}
