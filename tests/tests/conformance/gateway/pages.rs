use bytes::Bytes;
use partner_api_gateway::pages::{Caching, Page, Pages};

use partner_api_tests::{Options, Request, Service, TestResponse};

const PLAIN: &[u8] = b"<!doctype html><title>plain</title>";
const COMPRESSED: &[u8] = b"compressed";

fn page(caching: Caching, gzip: Option<&'static [u8]>) -> Page {
    Page {
        content_type: "text/html; charset=utf-8",
        caching,
        body: Bytes::from_static(PLAIN),
        gzip: gzip.map(Bytes::from_static),
    }
}

async fn service() -> Service {
    let mut pages = Pages::default();
    pages.add("/docs/index.html", page(Caching::Revalidate, Some(COMPRESSED)));
    pages.add("/docs/site.0a1b2c3d.css", page(Caching::Immutable, None));
    pages.add("/", page(Caching::NoStore, None));
    Service::start_with(Options {
        pages,
        ..Options::default()
    })
    .await
}

fn is_plain(response: &TestResponse) {
    assert_eq!(response.body, PLAIN);
    assert_eq!(response.header("content-encoding"), None);
}

/// REQ-2, SVC-9
#[tokio::test]
async fn pages_are_served_unsigned_under_a_restrictive_content_policy() {
    let service = service().await;
    for path in ["/", "/docs/", "/docs/index.html", "/docs/site.0a1b2c3d.css"] {
        let response = service.send(Request::get(path)).await;
        is_plain(response.assert_status(200));
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
        let policy = response.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with(
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
            ),
            "{policy}"
        );
        assert!(
            policy.contains("form-action 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
    }
    for path in ["/docs/other.html", "/docs/INDEX.html", "/docs//", "/index.html"] {
        service.send(Request::get(path)).await.assert_rejected(404, "not_found");
    }
}

#[tokio::test]
async fn a_browser_gets_a_page_for_an_unknown_path_of_the_documentation() {
    let mut pages = Pages::default();
    pages.add("/docs/404.html", page(Caching::Revalidate, Some(COMPRESSED)));
    let service = Service::start_with(Options {
        pages,
        ..Options::default()
    })
    .await;
    let accept = "text/html,application/xhtml+xml,*/*;q=0.8";
    let response = service
        .send(Request::get("/docs/other.html").header("accept", accept))
        .await;
    is_plain(response.assert_status(404));
    assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(response.header("etag"), None);
    // The links of the page are relative to the folder.
    for (path, accept) in [
        ("/docs/a/b.html", accept),
        ("/other", accept),
        ("/docs/other.html", "*/*"),
    ] {
        let response = service.send(Request::get(path).header("accept", accept)).await;
        response.assert_rejected(404, "not_found");
    }
}

#[tokio::test]
async fn a_folder_without_a_slash_redirects_to_the_folder() {
    let service = service().await;
    let response = service.send(Request::get("/docs")).await;
    assert_eq!(response.assert_status(308).header("location"), Some("docs/"));
    Service::start()
        .await
        .send(Request::get("/docs"))
        .await
        .assert_rejected(404, "not_found");
}

#[tokio::test]
async fn an_unchanged_page_is_not_sent_again() {
    let service = service().await;
    let response = service.send(Request::get("/docs/")).await;
    assert_eq!(response.header("cache-control"), Some("public, no-cache"));
    let tag = response.header("etag").unwrap().to_owned();
    let again = service
        .send(Request::get("/docs/index.html").header("if-none-match", &tag))
        .await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    assert_eq!(again.header("etag"), Some(tag.as_str()));
    let other = service
        .send(Request::get("/docs/").header("if-none-match", "W/\"other\""))
        .await;
    is_plain(other.assert_status(200));
}

#[tokio::test]
async fn versioned_files_are_cached_forever_and_secret_pages_never() {
    let service = service().await;
    let style = service.send(Request::get("/docs/site.0a1b2c3d.css")).await;
    assert_eq!(
        style.header("cache-control"),
        Some("public, max-age=31536000, immutable")
    );
    let secrets = service.send(Request::get("/").header("if-none-match", "*")).await;
    is_plain(secrets.assert_status(200));
    assert_eq!(
        (secrets.header("cache-control"), secrets.header("etag")),
        (Some("no-store"), None)
    );
}

#[tokio::test]
async fn a_client_that_accepts_gzip_gets_a_compressed_page_if_there_is_one() {
    let service = service().await;
    let compressed = service
        .send(Request::get("/docs/").header("accept-encoding", "br, gzip"))
        .await;
    assert_eq!(
        (&compressed.body[..], compressed.header("content-encoding")),
        (COMPRESSED, Some("gzip"))
    );
    assert_eq!(compressed.header("vary"), Some("accept-encoding"));
    is_plain(
        &service
            .send(Request::get("/docs/").header("accept-encoding", "gzip;q=0"))
            .await,
    );
    is_plain(&service.send(Request::get("/").header("accept-encoding", "gzip")).await);
}

/// REQ-4
#[tokio::test]
async fn pages_accept_only_get_and_head() {
    let service = service().await;
    let head = service.send(Request::new("HEAD", "/docs/")).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert!(head.header("etag").is_some());
    let response = service.send(Request::post("/docs/index.html", "x")).await;
    assert_eq!(
        response.assert_rejected(405, "method_not_allowed").header("allow"),
        Some("GET, HEAD")
    );
    service
        .send(Request::post("/docs/other.html", "x"))
        .await
        .assert_rejected(404, "not_found");
}
