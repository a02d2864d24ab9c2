//! Parameters and forms that are lists, bodies that may be left out, parts, and headers of responses.

use dropshot::HttpResponse;
use serde_json::{Value, json};

use crate::over_http::{REACHED, Served};
use crate::positive::{lists, optional_bodies, parts, response_headers};

fn emitted(
    description: fn() -> Result<
        dropshot::ApiDescription<crate::stub::context::Context>,
        dropshot::ApiDescriptionBuildErrors,
    >,
) -> Value {
    let description = description().unwrap();
    description.openapi("a", semver::Version::new(1, 0, 0)).json().unwrap()
}

#[tokio::test]
async fn a_lists_name_occurs_once_for_each_item() {
    let served = Served::new(lists::server::dispatch::description);
    let get = async |query: &str| {
        served
            .send(reqwest::Method::GET, &format!("/pets/1,2{query}"), "")
            .await
    };
    for query in [
        "",
        "?kind=cat&kind=dog&tag=ab&limit=3&tag=cd",
        "?kind=dog",
        "?since=2026-05-01&since=2026-05-02",
    ] {
        assert_eq!(get(query).await, (REACHED.0, REACHED.1.into()), "{query}");
    }
    for (query, message) in [
        ("?kind=cow", "kind: [0]: must be one of cat, dog, is \"cow\""),
        ("?kind=cat&kind=cat", "kind: [1]: must not be there twice, is \"cat\""),
        ("?kind=cat&kind=dog&kind=cat", "kind: must have at most 2 items"),
        ("?tag=ab&tag=c", "tag: [1]: must have at least 2 characters"),
        (
            "?since=2026-05-32",
            "since: [0]: must be a day such as 2026-05-01; is \"2026-05-32\"",
        ),
        ("?limit=3&limit=4", ""),
    ] {
        let (status, said) = get(query).await;
        assert_eq!(status, 400, "{query}");
        assert!(said.contains(message), "{query}: {said}");
    }
    let (status, said) = served.send(reqwest::Method::GET, "/pets/1,0", "").await;
    assert_eq!(status, 400);
    assert!(said.contains("ids: [1]: must be a whole number at least 1"), "{said}");
}

#[tokio::test]
async fn a_list_may_stand_in_one_text() {
    let served = Served::new(lists::server::dispatch::description);
    let put = async |query: &str| served.send(reqwest::Method::PUT, &format!("/pets/a{query}"), "").await;
    for query in [
        "?sizes=1,2.5",
        "?sizes=1&words=ab%20cd&marks=true%7Cfalse",
        "?sizes=1&words=ab+cd&words=",
    ] {
        let expected = if query.ends_with("words=") { 400 } else { REACHED.0 };
        assert_eq!(put(query).await.0, expected, "{query}");
    }
    for (query, message) in [
        ("", "missing field `sizes`"),
        ("?sizes=", "sizes: must have at least 1 item"),
        ("?sizes=1,2.6", "sizes: [1]: must be a multiple of 0.5"),
        ("?sizes=1,1.0", "sizes: [1]: must not be there twice"),
        ("?sizes=1&marks=true%7Cyes", "marks: [1]: must be true or false"),
        ("?sizes=1&words=ab%20c", "words: [1]: must have at least 2 characters"),
    ] {
        let (status, said) = put(query).await;
        assert_eq!(status, 400, "{query}");
        assert!(said.contains(message), "{query}: {said}");
    }
}

#[tokio::test]
async fn headers_and_forms_have_lists() {
    let served = Served::new(lists::server::dispatch::description);
    let url = format!("http://{}", served.server.local_addr());
    for (marks, status) in [
        ("red,blue", REACHED.0),
        ("red", REACHED.0),
        ("red, blue", 400),
        ("green", 400),
    ] {
        let request = served.client.get(format!("{url}/pets/1")).header("x-marks", marks);
        assert_eq!(request.send().await.unwrap().status().as_u16(), status, "{marks}");
    }
    for (form, status) in [
        ("name=a&tag=x&tag=y", REACHED.0),
        ("name=a", REACHED.0),
        ("name=a&tag=", 400),
        ("name=a&tag=x&tag=y&tag=z", 400),
        ("name=a&name=b", 400),
    ] {
        let request = served.client.post(format!("{url}/forms")).body(form);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        assert_eq!(request.send().await.unwrap().status().as_u16(), status, "{form}");
    }
    assert_eq!(served.send(reqwest::Method::POST, "/forms", "name=a").await.0, 400);
}

#[test]
fn a_list_is_a_text_to_dropshot_but_in_headers() {
    let emitted = emitted(lists::server::dispatch::description);
    let parameters = emitted["paths"]["/pets/{ids}"]["get"]["parameters"].as_array().unwrap();
    let schema = |name: &str| &parameters.iter().find(|it| it["name"] == name).unwrap()["schema"];
    assert_eq!(schema("ids"), &json!({ "type": "string" }));
    assert_eq!(schema("kind"), &json!({ "type": "string" }));
    assert_eq!(schema("X-Marks")["items"]["enum"], json!(["red", "blue"]));
}

#[tokio::test]
async fn a_body_may_be_left_out_and_is_checked_where_it_is_not() {
    let served = Served::new(optional_bodies::server::dispatch::description);
    for method in ["POST", "PUT"] {
        let send = async |body: &'static str| served.send(method.parse().unwrap(), "/pets", body).await;
        assert_eq!(send("").await.0, REACHED.0);
        assert_eq!(send(r#"{"name":"Minka"}"#).await.0, REACHED.0);
        let (status, said) = send(r#"{"name":""}"#).await;
        assert_eq!(status, 400);
        assert!(said.contains("name: must not be empty"), "{said}");
        assert_eq!(send("null").await.0, 400);
    }
}

#[tokio::test]
async fn parts_are_the_handlers_to_read() {
    let served = Served::new(parts::server::dispatch::description);
    let url = format!("http://{}/photos", served.server.local_addr());
    let body = "--x\r\ncontent-disposition: form-data; name=\"photo\"\r\n\r\nabc\r\n--x--\r\n";
    let request = served.client.post(&url).body(body);
    let request = request.header("content-type", "multipart/form-data; boundary=x");
    assert_eq!(request.send().await.unwrap().status().as_u16(), REACHED.0);
    let (status, said) = served.send(reqwest::Method::POST, "/photos", "{}").await;
    assert_eq!(
        (status, said.as_str()),
        (400, "missing boundary in content-type header")
    );
    let emitted = emitted(parts::server::dispatch::description);
    let schema = &emitted["paths"]["/photos"]["put"]["requestBody"]["content"]["multipart/form-data"]["schema"];
    assert_eq!(*schema, json!({ "type": "string", "format": "binary" }));
}

#[test]
fn headers_of_responses_are_sent_and_emitted() {
    use response_headers::server::responses::{ListPetsResponse, SetPetsResponse};
    let answer = ListPetsResponse::Ok {
        body: Vec::new().into(),
        x_count: "0".into(),
        e_tag: None,
    };
    let answer = answer.to_result().unwrap();
    assert_eq!(answer.headers()["x-count"], "0");
    assert!(!answer.headers().contains_key("etag"));
    let done = SetPetsResponse::NoContent { e_tag: "abc".into() };
    assert_eq!(done.to_result().unwrap().headers()["etag"], "abc");
    let emitted = emitted(response_headers::server::dispatch::description);
    let headers =
        |method: &str, status: &str| emitted["paths"]["/pets"][method]["responses"][status]["headers"].clone();
    let all = headers("get", "200");
    assert_eq!(all["X-Count"]["required"], json!(true));
    assert_eq!(all["X-Count"]["schema"]["minimum"], json!(0));
    assert_eq!(all["ETag"]["schema"]["minLength"], json!(2));
    assert_eq!(all["X-Request-Id"]["schema"]["format"], json!("uuid"));
    assert_eq!(headers("put", "204")["ETag"]["schema"]["minLength"], json!(2));
    assert_eq!(headers("post", "303")["Location"]["required"], json!(true));
}
