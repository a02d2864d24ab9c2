//! Conditional and range requests for reports, forms, PDFs and linked files.

use partner_api_tests::fixture::inspections::PUBLISHED;
use partner_api_tests::{ALPHA, Request, Service, TestResponse};

fn path(part: &str) -> String {
    format!("/api/v1/partner/inspections/{PUBLISHED}{part}")
}

async fn get_if_none_match(service: &Service, target: &str, if_none_match: &str) -> TestResponse {
    let request = Request::get(target).header("If-None-Match", if_none_match);
    service.send(request.signed_by(&ALPHA)).await
}

/// REP-16
#[tokio::test]
async fn an_unchanged_resource_returns_304_until_it_changes() {
    let service = Service::start().await;
    for (part, change) in [
        // The PDF was rendered from another text, so it is rendered again.
        ("/pdf", "UPDATE inspections SET recommendation = 'y'"),
        ("", "UPDATE inspections SET summary = 'x'"),
        ("/forms", "UPDATE inspection_form_answers SET note = 'x'"),
    ] {
        let whole = service.get(&ALPHA, &path(part)).await;
        let tag = whole.assert_status(200).header("etag").unwrap().to_owned();
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            let same = get_if_none_match(&service, &path(part), &known).await;
            assert_eq!(same.assert_status(304).header("etag"), Some(tag.as_str()));
            assert!(same.body.is_empty() && same.header("content-type").is_none(), "{known}");
        }
        get_if_none_match(&service, &path(part), "\"x\"")
            .await
            .assert_status(200);
        service.db.batch_execute(change).await.unwrap();
        let changed = get_if_none_match(&service, &path(part), &tag).await;
        assert_ne!(changed.status, 304, "{part}");
        assert_ne!(changed.header("etag"), Some(tag.as_str()), "{part}");
    }
}

/// REP-16
#[tokio::test]
async fn a_304_is_as_declared() {
    let service = Service::start().await;
    for (part, case) in [
        ("", "an_unchanged_report_is_not_sent_again"),
        ("/forms", "unchanged_forms_are_not_sent_again"),
        ("/pdf", "an_unchanged_pdf_is_not_sent_again"),
    ] {
        get_if_none_match(&service, &path(part), "*")
            .await
            .assert_status(304)
            .snapshot(case);
    }
}

/// REP-16
#[tokio::test]
async fn an_etag_reveals_nothing_about_a_hidden_report() {
    let service = Service::start().await;
    let request = Request::get(&path("")).header("If-None-Match", "*");
    let response = service.send(request.signed_by(&partner_api_tests::GAMMA)).await;
    response.assert_rejected(404, "not_found");
}

/// REP-16
#[tokio::test]
async fn the_file_name_of_a_pdf_is_the_report_number() {
    let service = Service::start().await;
    let pdf = service.get(&ALPHA, &path("/pdf")).await;
    assert_eq!(
        pdf.header("content-disposition"),
        Some("attachment; filename=\"IZM-2026-000201.pdf\"")
    );
}

/// The link to the picture of a scratch, without the base URL.
async fn link(service: &Service) -> String {
    let photos = service.get(&ALPHA, &path("/photos")).await.json();
    let mut urls = photos["photos"]
        .as_array()
        .unwrap()
        .iter()
        .map(|photo| photo["url"].as_str().unwrap());
    let url = urls.find(|url| url.contains("photos/20101")).unwrap();
    url.strip_prefix(&service.base_url).unwrap().to_owned()
}

/// REP-17
#[tokio::test]
async fn a_requested_range_of_a_file_is_sent() {
    let service = Service::start().await;
    let link = link(&service).await;
    let get = async |headers: &[(&str, &str)]| {
        let request = Request::get(&link);
        let request = headers
            .iter()
            .fold(request, |request, (name, value)| request.header(name, value));
        service.send(request).await
    };
    let whole = get(&[]).await;
    assert_eq!(whole.assert_status(200).body, "a picture of a scratch");
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    let tag = whole.header("etag").unwrap().to_owned();
    for (range, body, content_range) in [
        ("bytes=0-8", "a picture", "bytes 0-8/22"),
        ("bytes=15-", "scratch", "bytes 15-21/22"),
        ("bytes=-7", "scratch", "bytes 15-21/22"),
        ("bytes=15-900", "scratch", "bytes 15-21/22"),
        ("bytes=0-", "a picture of a scratch", "bytes 0-21/22"),
    ] {
        let part = get(&[("Range", range)]).await;
        assert_eq!(part.assert_status(206).body, body, "{range}");
        assert_eq!(part.header("content-range"), Some(content_range), "{range}");
        assert_eq!(part.header("content-length"), Some(body.len().to_string().as_str()));
        assert_eq!(part.header("etag"), Some(tag.as_str()));
    }
    // An invalid range or several ranges return the whole file.
    for range in ["bytes=8-0", "bytes=0-1,3-4", "lines=1-2"] {
        let response = get(&[("Range", range)]).await;
        assert_eq!(response.assert_status(200).body, "a picture of a scratch", "{range}");
    }
    let outside = get(&[("Range", "bytes=22-")]).await;
    assert_eq!(outside.assert_status(416).header("content-range"), Some("bytes */22"));
    // The rest of a different file must not be appended to the part that the client has.
    let rest = [("Range", "bytes=15-"), ("If-Range", tag.as_str())];
    assert_eq!(get(&rest).await.assert_status(206).body, "scratch");
    let rest = [("Range", "bytes=15-"), ("If-Range", "\"x\"")];
    assert_eq!(get(&rest).await.assert_status(200).body, "a picture of a scratch");
    let rest = [("Range", "bytes=99-"), ("If-Range", "\"x\"")];
    assert_eq!(get(&rest).await.assert_status(200).body, "a picture of a scratch");
    get(&[("If-None-Match", &tag)]).await.assert_status(304);
}

/// REP-17
#[tokio::test]
async fn a_head_request_describes_a_file_without_its_bytes() {
    let service = Service::start().await;
    let request = Request::get(&link(&service).await)
        .with_method("HEAD")
        .header("Range", "bytes=0-3");
    let head = service.send(request).await;
    head.assert_status(200);
    assert_eq!(head.header("content-length"), Some("22"));
    assert_eq!(head.header("content-type"), Some("image/jpeg"));
    assert!(head.body.is_empty());
}
