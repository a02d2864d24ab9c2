//! Serves the inspectors' page, whose files are embedded in the program.

use std::sync::LazyLock;

use bytes::Bytes;
use dropshot::Body;
use http::request::Parts;
use http::{HeaderValue, Method, Response, header};
use partner_api::storage::{LINK_LIFETIME, Storage};
use partner_api_gateway::pages::{Caching, Page, Pages};
use tokio::sync::OnceCell;
use url::Url;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The path of the page.
const FOLDER: &str = "/inspector/";

/// The key of an example object, whose link shows the origin of photos.
const EXAMPLE_KEY: &str = "photo.jpg";

static PAGES: LazyLock<Pages> = LazyLock::new(|| {
    let mut pages = Pages::default();
    for file in FILES {
        let page = Page {
            content_type: file.content_type,
            caching: match file.immutable {
                true => Caching::Immutable,
                false => Caching::Revalidate,
            },
            body: Bytes::from_static(file.bytes),
            gzip: Some(Bytes::from_static(file.gzip)).filter(|gzip| !gzip.is_empty()),
        };
        pages.add(&format!("{FOLDER}{}", file.path), page);
    }
    pages
});

/// The page's `Content-Security-Policy`, cached after the first use. It allows photos from the origin of the storage's links.
#[derive(Debug, Default)]
pub(crate) struct Policy(OnceCell<HeaderValue>);

impl Policy {
    async fn get(&self, storage: &Storage) -> HeaderValue {
        let known = self.0.get_or_try_init(async || {
            let link = storage.presign(EXAMPLE_KEY, LINK_LIFETIME).await;
            let link = link.map_err(
                |error| tracing::warn!(%error, "failed to make a link to a photo; the page shows no photos"),
            )?;
            policy(&origin(&link.url)).ok_or(())
        });
        match known.await {
            Ok(policy) => policy.clone(),
            Err(()) => policy("").unwrap_or(HeaderValue::from_static("default-src 'none'")),
        }
    }
}

/// The scheme, host and port of a link; empty for an invalid link.
fn origin(link: &str) -> String {
    let origin = Url::parse(link).map(|url| url.origin());
    origin.map_or_else(|_| String::new(), |origin| origin.ascii_serialization())
}

fn policy(photos: &str) -> Option<HeaderValue> {
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' {photos}; connect-src 'self'; frame-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).ok()
}

/// The response for a path that is not an operation's; `None` if there is no page.
pub(crate) async fn answer(storage: &Storage, policy: &Policy, head: &Parts) -> Option<Response<Body>> {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return None;
    }
    let mut response = PAGES.respond(head.uri.path(), &head.headers)?;
    let policy = policy.get(storage).await;
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn photos_are_allowed_only_from_the_origin_of_the_storages_links() {
        for (link, expected) in [
            (
                "https://reports.example/files/a.jpg?expires=1",
                "https://reports.example",
            ),
            ("http://127.0.0.1:8080/files/a.jpg", "http://127.0.0.1:8080"),
            ("no link", ""),
        ] {
            assert_eq!(origin(link), expected, "{link}");
        }
        let policy = policy("https://photos.example").unwrap();
        let policy = policy.to_str().unwrap();
        assert!(policy.contains("; img-src 'self' https://photos.example; "), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn every_referenced_file_is_served_under_its_hashed_name() {
        let paths: Vec<&str> = FILES.iter().map(|file| file.path).collect();
        assert!(paths.contains(&"index.html") && paths.len() > 10, "{paths:?}");
        let mut references = 0;
        for file in FILES {
            let text = std::str::from_utf8(file.bytes).unwrap();
            assert_eq!(file.immutable, file.path.starts_with("assets/"), "{}", file.path);
            for quoted in text.split('"').skip(1).step_by(2) {
                let path = match (quoted.strip_prefix("./"), quoted.starts_with("assets/")) {
                    (Some(name), _) => format!("assets/{name}"),
                    (None, true) => quoted.to_owned(),
                    (None, false) => continue,
                };
                assert!(paths.contains(&path.as_str()), "{}: {quoted}", file.path);
                references += 1;
            }
        }
        assert!(references > 20, "{references}");
    }
}
