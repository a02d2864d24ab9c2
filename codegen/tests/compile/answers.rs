//! Bodies with every method, forms, websockets, and answers that are not JSON of one success.

use dropshot::{HttpResponse, RequestContext, WebsocketUpgrade};
use http::StatusCode;
use serde_json::json;

use crate::behaviour::query;
use crate::over_http::{REACHED, Served};
use crate::positive::{answers, forms, pages};

use answers::server::responses::*;
use answers::server::types::Selection;

#[tokio::test]
async fn a_get_and_a_delete_have_bodies() {
    let served = Served::new(answers::server::dispatch::description);
    for (method, path) in [("GET", "/search"), ("DELETE", "/whole")] {
        let send = async |body: &'static str| served.send(method.parse().unwrap(), path, body).await;
        assert_eq!(send(r#"{"ids":[1]}"#).await.0, REACHED.0);
        assert_eq!(
            send("{}").await,
            (400, "unable to parse JSON body: ids: is missing".into())
        );
    }
}

#[tokio::test]
async fn a_websocket_needs_an_upgrade() {
    let served = Served::new(answers::server::dispatch::description);
    let url = format!("http://{}/changes/7", served.server.local_addr());
    let plain = served.client.get(&url).send().await.unwrap();
    assert_eq!(plain.status().as_u16(), 400);
    let upgrade = served
        .client
        .get(&url)
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(upgrade.send().await.unwrap().status().as_u16(), REACHED.0);
}

/// What a handler of a websocket does.
#[allow(dead_code)]
fn opens(_: RequestContext<()>, upgrade: WebsocketUpgrade) -> Result<WatchResponse, dropshot::HttpError> {
    let upgraded = upgrade.handle(|_| async { Ok(()) })?;
    Ok(WatchResponse::SwitchingProtocols(upgraded))
}

#[test]
fn answers_have_the_status_headers_and_media_types_that_they_are_declared_with() {
    let moved = GetOldResponse::Status302 {
        location: "/new".into(),
    };
    assert_eq!(moved.status_code(), StatusCode::FOUND);
    let moved = moved.to_result().unwrap();
    assert_eq!(
        (moved.status(), &moved.headers()["location"]),
        (StatusCode::FOUND, &"/new".parse().unwrap())
    );
    let found = SearchResponse::Ok(Selection { ids: vec![1] }).to_result().unwrap();
    assert_eq!(found.headers()["content-type"], "application/vnd.pets+json");
    let teapot = http::Response::builder()
        .status(StatusCode::IM_A_TEAPOT)
        .body(dropshot::Body::empty())
        .unwrap();
    let whole = GetWholeResponse::Whole(teapot);
    assert_eq!(whole.status_code(), StatusCode::IM_A_TEAPOT);
    assert_eq!(whole.to_result().unwrap().status(), StatusCode::IM_A_TEAPOT);
}

#[tokio::test]
async fn a_form_is_read_as_parameters_are() {
    use forms::server::types::{LoginForm, SetSizeForm};
    let login: LoginForm = query("name=Ada&since=2026-05-01").unwrap();
    assert_eq!((login.name.as_str(), login.remember), ("Ada", false));
    for (form, message) in [
        ("", "missing field `name`"),
        ("name=", "name: must not be empty"),
        ("name=a&remember=1", "remember: must be true or false, is \"1\""),
        ("name=a&name=b", "duplicate field `name`"),
    ] {
        assert_eq!(query::<LoginForm>(form).unwrap_err(), message);
    }
    assert_eq!(query::<LoginForm>("name=a&other=b").unwrap().name, "a");
    assert_eq!(query::<SetSizeForm>("size=2").unwrap().unit.as_str(), "m");
    assert_eq!(
        query::<SetSizeForm>("size=2&other=b").unwrap_err(),
        "unknown field `other`, expected `size` or `unit`"
    );
    let served = Served::new(forms::server::dispatch::description);
    let url = format!("http://{}/sizes", served.server.local_addr());
    for (form, status) in [("size=2&unit=km", REACHED.0), ("size=0", 400), ("size=2&unit=x", 400)] {
        let request = served.client.post(&url).body(form);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        assert_eq!(request.send().await.unwrap().status().as_u16(), status, "{form}");
    }
    assert_eq!(
        served.send(reqwest::Method::POST, "/sizes", r#"{"size":2}"#).await.0,
        400
    );
}

#[test]
fn pages_and_external_documents_are_emitted_as_declared() {
    let description = pages::server::dispatch::description().unwrap();
    let emitted = description
        .openapi("pages", semver::Version::new(1, 0, 0))
        .json()
        .unwrap();
    let operation = &emitted["paths"]["/pets"]["get"];
    assert_eq!(operation["x-dropshot-pagination"], json!({ "required": ["kind"] }));
    assert_eq!(
        emitted["tags"],
        json!([
            { "name": "others", "externalDocs": { "url": "https://example.org/others" } },
            { "name": "pets", "description": "All of them.", "externalDocs": { "description": "More", "url": "https://example.org/pets" } },
        ])
    );
}
