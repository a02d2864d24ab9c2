use chrono::{DateTime, Utc};
use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, Request, Service};
use serde_json::json;

fn path(id: &str) -> String {
    format!("/api/v1/partner/inspections/{id}/photos")
}

/// REP-7
#[tokio::test]
async fn visible_photos_are_listed_in_order() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .get_inspection_photos()
        .id(inspections::PUBLISHED)
        .send()
        .await
        .unwrap();
    service.last().snapshot("visible_photos_are_listed_in_order");
}

#[tokio::test]
async fn a_caption_is_plain_where_personal_data_is_shown() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .get_inspection_photos()
        .id(inspections::FULL_PUBLISHED)
        .send()
        .await
        .unwrap();
    service
        .last()
        .snapshot("a_caption_is_plain_where_personal_data_is_shown");
}

/// REP-7, REQ-2
#[tokio::test]
async fn a_link_works_for_900_seconds_without_a_signature() {
    let service = Service::start().await;
    let requested_at = Utc::now();
    let photo = service.get(&ALPHA, &path(inspections::PUBLISHED)).await.json()["photos"][0].clone();
    let expires: DateTime<Utc> = photo["expires_at"].as_str().unwrap().parse().unwrap();
    let lifetime = (expires - requested_at).num_seconds();
    assert!((898..=905).contains(&lifetime), "{lifetime} s");
    let target = photo["url"]
        .as_str()
        .unwrap()
        .strip_prefix(&service.base_url)
        .unwrap()
        .to_owned();
    let response = service.send(Request::get(&target)).await;
    response.assert_status(200);
    assert_eq!(response.header("content-type"), Some("image/jpeg"));
    assert_eq!(&response.body[..], b"a picture of a car");
}

#[tokio::test]
async fn an_altered_link_is_not_found() {
    let service = Service::start().await;
    let photo = service.get(&ALPHA, &path(inspections::PUBLISHED)).await.json()["photos"][0].clone();
    let target = photo["url"]
        .as_str()
        .unwrap()
        .strip_prefix(&service.base_url)
        .unwrap()
        .to_owned();
    let (file, signature) = target.split_once("&signature=").unwrap();
    let (path, expires) = file.split_once("?expires=").unwrap();
    let later = expires.parse::<i64>().unwrap() + 3600;
    for altered in [
        path.to_owned(),
        format!("{path}?expires={later}&signature={signature}"),
        format!("{path}?expires={expires}"),
        format!(
            "{path}?expires={expires}&signature={}",
            signature.chars().rev().collect::<String>()
        ),
        format!("/files/photos/20103.jpg?expires={expires}&signature={signature}"),
    ] {
        service
            .send(Request::get(&altered))
            .await
            .assert_rejected(404, "not_found");
    }
}

/// REP-6
#[tokio::test]
async fn a_report_without_photos_gives_an_empty_array() {
    let service = Service::start().await;
    let response = service.get(&ALPHA, &path(inspections::ARCHIVED)).await;
    assert_eq!(
        response.assert_status(200).json(),
        json!({ "inspection_id": inspections::ARCHIVED, "photos": [] })
    );
}

/// REP-6. `rules::reports` shows that photos are hidden exactly as their report is.
#[tokio::test]
async fn photos_of_an_unknown_report_are_not_found() {
    let service = Service::start().await;
    let response = service.get(&ALPHA, &path(inspections::UNKNOWN)).await;
    response
        .assert_rejected(404, "not_found")
        .snapshot("photos_of_an_unknown_report_are_not_found");
}
