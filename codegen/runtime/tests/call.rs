//! Reading arguments from a request, and matching its path with a template.

use std::pin::pin;
use std::task::{Context, Waker};

use bytes::Bytes;
use codegen_runtime::call::{self, Query, Request};
use codegen_runtime::param::variables;
use codegen_runtime::validation::{ValidationError, ValidationErrors};
use codegen_runtime::{NumberRules, StringRules, json, param};
use http::header;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Pets {
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u8>,
    #[serde(default, deserialize_with = "alive")]
    alive: Option<bool>,
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    param::string(deserializer, "name", StringRules::NONE)
}

fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    param::integer(deserializer, "limit", NumberRules::NONE).map(Some)
}

fn alive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    param::boolean(deserializer, "alive").map(Some)
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Named {
    name: String,
}

fn request(query: &[(&str, &str)]) -> Request {
    let pairs = query.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    Request {
        query: Query {
            pairs: pairs.collect(),
            errors: vec![],
        },
        ..Request::default()
    }
}

fn sent(body: &'static [u8]) -> Request {
    Request {
        body: Bytes::from_static(body),
        ..Request::default()
    }
}

fn messages(errors: ValidationErrors) -> Vec<String> {
    errors
        .iter()
        .map(|error| format!("{} → {error}", error.field))
        .collect()
}

#[test]
fn parameters_are_read_as_the_requested_types() {
    let pets: Pets = call::query(&request(&[("name", "7"), ("limit", "5"), ("alive", "true")])).unwrap();
    let expected = Pets {
        name: "7".into(),
        limit: Some(5),
        alive: Some(true),
    };
    assert_eq!(pets, expected);
}

#[test]
fn all_errors_in_a_query_are_reported_at_once() {
    let mut request = request(&[("alive", "yes"), ("limit", "many")]);
    request
        .query
        .errors
        .push(ValidationError::of_parameter("limits", "is unknown"));
    let rejected = call::query::<Pets>(&request).unwrap_err();
    assert_eq!(
        messages(rejected),
        [
            "limits → limits: is unknown",
            "alive → alive: must be true or false, is \"yes\"",
            "limit → limit: must be a whole number of at most 8 bits, is \"many\"",
            "name → name: is missing",
        ]
    );
    // Errors from decoding are sufficient.
    request.query.pairs = vec![("name".into(), "a".into())];
    let rejected = call::query::<Pets>(&request).unwrap_err();
    assert_eq!(messages(rejected), ["limits → limits: is unknown"]);
}

#[tokio::test]
async fn a_body_with_another_content_type_is_rejected() {
    let mut request = sent(b"{\"name\":\"a\"}");
    for accepted in [
        None,
        Some("application/json"),
        Some("Application/JSON; charset=utf-8"),
        Some("application/vnd.pets+json"),
    ] {
        request.headers.clear();
        if let Some(value) = accepted {
            request.headers.insert(header::CONTENT_TYPE, value.parse().unwrap());
        }
        let read = call::body::<Named>(&request).await.map(|read| read.name);
        assert_eq!(read, Ok("a".into()), "{accepted:?}");
    }
    for (value, message) in [
        ("text/plain", "must be application/json, is text/plain"),
        ("; charset=utf-8", "must be application/json, is empty"),
        ("", "must be application/json, is empty"),
    ] {
        request.headers.insert(header::CONTENT_TYPE, value.parse().unwrap());
        let rejected = call::body::<Named>(&request).await.unwrap_err();
        assert_eq!(messages(rejected), [format!("Content-Type → Content-Type: {message}")]);
    }
}

#[tokio::test]
async fn a_compressed_body_is_rejected() {
    let mut request = sent(b"\x1f\x8b\x08\x00");
    request
        .headers
        .insert(header::CONTENT_ENCODING, "gzip".parse().unwrap());
    let rejected = call::body::<Named>(&request).await.unwrap_err();
    assert_eq!(rejected.first().field, "Content-Encoding");
    request
        .headers
        .insert(header::CONTENT_ENCODING, "identity".parse().unwrap());
    let rejected = call::body::<Named>(&request).await.unwrap_err();
    assert_eq!(
        rejected.first().to_string(),
        "body: is compressed (gzip); compressed bodies are not accepted, send the JSON itself"
    );
}

/// KEY-10
#[tokio::test]
async fn a_large_body_is_not_read_on_an_async_thread() {
    let name = "a".repeat(2 * json::MAX_DIAGNOSED);
    let large = |name: &str, other: &str| Request {
        body: format!("{{\"name\":{name},\"other\":\"{other}\"}}").into(),
        ..Request::default()
    };
    let is_done_at_once = |request: &Request| {
        let mut reading = pin!(call::body::<Named>(request));
        reading
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    };
    let valid = large(&format!("\"{name}\""), "");
    assert!(!is_done_at_once(&valid) && is_done_at_once(&large("\"a\"", "")));
    assert_eq!(call::body::<Named>(&valid).await.unwrap().name, name);
    let rejected = call::body::<Named>(&large("5", &name)).await.unwrap_err();
    assert_eq!(rejected.first().field, "/name");
}

#[test]
fn a_form_is_read_like_parameters() {
    let mut request = sent(b"name=a+b%26&limit=5");
    let rejected = |request: &Request| messages(call::form::<Pets>(request).unwrap_err());
    let form_type = "application/x-www-form-urlencoded";
    assert_eq!(
        rejected(&request),
        [format!("Content-Type → Content-Type: must be {form_type}, is missing")]
    );
    request.headers.insert(header::CONTENT_TYPE, form_type.parse().unwrap());
    let pets: Pets = call::form(&request).unwrap();
    assert_eq!((pets.name.as_str(), pets.limit), ("a b&", Some(5)));
    for (body, message) in [
        ("name=a&name=b", "name → name: was sent more than once; send it once"),
        ("limit=5", "name → name: is missing"),
        (
            "name=a&limit=x",
            "limit → limit: must be a whole number of at most 8 bits, is \"x\"",
        ),
    ] {
        request.body = Bytes::from_static(body.as_bytes());
        assert_eq!(rejected(&request), [message]);
    }
}

#[tokio::test]
async fn further_errors_are_added_to_those_of_a_rejected_body() {
    let further = |document: &serde_json::Value| {
        assert_eq!(document["name"], 5);
        vec![
            ValidationError::of_member("name", "is reported already"),
            ValidationError::of_member("other", "is reported, too"),
        ]
    };
    let rejected = call::body_and::<Named>(&sent(b"{\"name\":5}"), further)
        .await
        .unwrap_err();
    assert_eq!(
        messages(rejected),
        [
            "/name → name: must be a string, is a number; put it in quotes",
            "/other → other: is reported, too"
        ]
    );
    // A valid body is checked by the handler, and one that is not JSON cannot be checked further.
    let never = |_: &serde_json::Value| unreachable!();
    assert!(call::body_and::<Named>(&sent(b"{\"name\":\"a\"}"), never).await.is_ok());
    assert!(call::body_and::<Named>(&sent(b"{\"name\""), never).await.is_err());
}

#[test]
fn header_names_are_case_insensitive() {
    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Conditions {
        #[serde(rename = "If-None-Match")]
        if_none_match: String,
        #[serde(rename = "X-Retry-Count", default, deserialize_with = "retries")]
        x_retry_count: Option<u8>,
    }
    fn retries<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
        param::integer(deserializer, "X-Retry-Count", NumberRules::NONE).map(Some)
    }
    let mut request = Request::default();
    for (name, value) in [("if-none-match", "\"a\""), ("x-retry-count", "2"), ("host", "pets")] {
        request.headers.append(name, value.parse().unwrap());
    }
    request.headers.append("if-none-match", "\"b\"".parse().unwrap());
    let not_text = header::HeaderValue::from_bytes(b"\xff").unwrap();
    request.headers.append("if-none-match", not_text);
    let expected = Conditions {
        if_none_match: "\"a\", \"b\"".into(),
        x_retry_count: Some(2),
    };
    assert_eq!(call::headers::<Conditions>(&request).unwrap(), expected);
    request.headers.clear();
    request.headers.insert("x-retry-count", "many".parse().unwrap());
    let rejected = messages(call::headers::<Conditions>(&request).unwrap_err());
    assert!(rejected[0].starts_with("X-Retry-Count → "), "{rejected:?}");
    assert!(rejected[1].starts_with("If-None-Match → "), "{rejected:?}");
}

/// The values of the variables, separated by commas.
fn values(template: &str, path: &str) -> Option<String> {
    let found = variables(template, path)?;
    Some(found.into_iter().map(|(_, value)| value).collect::<Vec<_>>().join(","))
}

#[test]
fn variables_may_be_parts_of_a_segment() {
    for (template, path, expected) in [
        ("/a/{id}/b", "/a/1/b", "1"),
        ("/a", "/a", ""),
        ("/{page}.{format}", "/4.png", "4,png"),
        ("/{page}.{format}", "/4.tar.gz", "4,tar.gz"),
        ("/{page}t.{format}", "/4t.png", "4,png"),
        ("/cover.{format}", "/cover.png", "png"),
        ("/{name}:cancel", "/job:1:cancel", "job:1"),
        ("/{id}-{of}!", "/a-b-c!", "a,b-c"),
    ] {
        assert_eq!(values(template, path).as_deref(), Some(expected), "{template} {path}");
    }
    assert_eq!(variables("/{page}.{format}", "/4.png").unwrap()[1].0, "format");
}

#[test]
fn a_path_must_match_its_template_byte_for_byte() {
    for (template, path) in [
        ("/a/{id}/b", "/a/1/b/"),
        ("/a/{id}/b", "/a//b"),
        ("/a/{id}/b", "//a/1/b"),
        ("/a/{id}/b", "/a/1/%62"),
        ("/a/{id}/b", "/a/%31/b"),
        ("/a/{id}/b", "/a/1"),
        ("/a/{id}/b", "/A/1/b"),
        ("/a/{id}/b", "/a/1/b/c"),
        ("/{page}.{format}", "/.png"),
        ("/{page}.{format}", "/4."),
        ("/{page}.{format}", "/4png"),
        ("/{name}:cancel", "/:cancel"),
        ("/{name}:cancel", "/1:cancel2"),
    ] {
        assert_eq!(values(template, path), None, "{template} {path}");
    }
}
