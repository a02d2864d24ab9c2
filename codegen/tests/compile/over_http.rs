//! Generated servers, asked over HTTP.

use dropshot::{
    ApiDescription, ApiDescriptionBuildErrors, ConfigDropshot, ConfigLogging, ConfigLoggingLevel, HttpServer,
};

use crate::positive;
use crate::stub::context::Context;

/// What a handler of a fixture answers: the request has come through.
pub const REACHED: (u16, &str) = (404, "Not Found");

/// A fixture as it serves.
pub struct Served {
    pub server: HttpServer<Context>,
    pub client: reqwest::Client,
}

impl Served {
    pub fn new(description: fn() -> Result<ApiDescription<Context>, ApiDescriptionBuildErrors>) -> Self {
        let log = ConfigLogging::StderrTerminal {
            level: ConfigLoggingLevel::Critical,
        };
        let config = ConfigDropshot {
            bind_address: ([127, 0, 0, 1], 0).into(),
            default_request_body_max_bytes: 1 << 20,
            ..ConfigDropshot::default()
        };
        let server = dropshot::ServerBuilder::new(description().unwrap(), Context, log.to_logger("fixture").unwrap())
            .config(config)
            .start()
            .unwrap();
        Served {
            server,
            client: reqwest::Client::new(),
        }
    }

    /// The answer's status and message to a body of JSON.
    pub async fn send(&self, method: reqwest::Method, path: &str, body: impl Into<Vec<u8>>) -> (u16, String) {
        let url = format!("http://{}{path}", self.server.local_addr());
        let request = self
            .client
            .request(method, url)
            .header("content-type", "application/json");
        let answer = request.body(body.into()).send().await.unwrap();
        let status = answer.status().as_u16();
        let body: serde_json::Value = answer.json().await.unwrap();
        (status, body["message"].as_str().unwrap().to_string())
    }
}

#[tokio::test]
async fn a_body_is_one_document_of_objects_where_objects_are_declared() {
    let served = Served::new(positive::nested_objects::server::dispatch::description);
    let send = async |body: &[u8]| {
        let (status, message) = served.send(reqwest::Method::POST, "/pets", body).await;
        let reason = message.strip_prefix("unable to parse JSON body: ").unwrap_or(&message);
        (status, reason.to_string())
    };
    let owner = r#""owner":{"name":"Ada","address":{"city":"Ankara","kind":"home"}}"#;
    let whole = format!(r#"{{{owner},"visits":[{{"at":"2026-05-01T09:30:00Z"}}],"marks":{{"a":{{}}}}}}"#);
    assert_eq!(send(whole.as_bytes()).await, (REACHED.0, REACHED.1.into()));
    assert_eq!(
        send(format!("{whole} \n").as_bytes()).await,
        (REACHED.0, REACHED.1.into())
    );
    for after in [whole.as_bytes(), b" x", b"\0"] {
        let (status, message) = send(&[whole.as_bytes(), after].concat()).await;
        assert_eq!(status, 400);
        assert!(
            message.starts_with("body: must be one JSON document; something follows it (line 1, column 1"),
            "{message}"
        );
    }
    assert_eq!(
        send(&[whole.as_bytes(), b"\xff"].concat()).await,
        (
            400,
            "body: is not UTF-8 (ISO-8859-9 or Windows-1254?); send UTF-8 (line 1, column 125)".into()
        )
    );
    let unknown = b"{\"owner\":{\"name\":\"Ada\",\"address\":{\"city\":\"a\"}},\"unknown\":\"\xff\"}";
    assert_eq!(send(unknown).await.0, 400);
    for (body, reason) in [
        (r#"[{"name":"Ada"}]"#.into(), "body: must be a JSON object, is an array"),
        (
            r#"{"owner":["Ada",{"city":"Ankara"}]}"#.into(),
            "owner: must be a JSON object, is an array",
        ),
        (
            r#"{"owner":{"name":"Ada","address":["Ankara"]}}"#.into(),
            "owner.address: must be a JSON object, is an array",
        ),
        (
            format!(r#"{{{owner},"visits":[["2026-05-01T09:30:00Z"]]}}"#),
            "visits[0]: must be a JSON object, is an array",
        ),
        (
            format!(r#"{{{owner},"marks":{{"a":["red"]}}}}"#),
            "marks.a: must be a JSON object, is an array",
        ),
        (
            r#"{"owner":{"name":"Ada","address":{"city":"a","kind":{"home":null}}}}"#.into(),
            "owner.address.kind: must be one of home, work, is an object",
        ),
        (
            r#"{"owner":{"name":"Ada","address":{"city":"a","kind":"moon"}}}"#.into(),
            "owner.address.kind: must be one of home, work, is \"moon\"",
        ),
    ] {
        let (status, message) = send(body.as_bytes()).await;
        assert_eq!(status, 400, "{body}");
        assert_eq!(message, reason, "{body}");
    }
}

#[tokio::test]
async fn what_is_wrong_inside_an_alternative_has_its_path() {
    let served = Served::new(positive::one_of::server::dispatch::description);
    let body = r#"{"type":"circle","radius":-1}"#;
    let (status, message) = served.send(reqwest::Method::POST, "/shapes", body).await;
    assert_eq!(status, 400);
    assert!(message.contains(": radius: must be at least 0, is -1"), "{message}");
}

#[tokio::test]
async fn deep_documents_are_refused_and_the_deepest_read() {
    let served = Served::new(positive::recursion::server::dispatch::description);
    let nested = |depth: usize| {
        let tree = r#"{"named":{},"children":["#.repeat(depth) + &"]}".repeat(depth);
        tree.into_bytes()
    };
    // Each tree is an object with an array.
    assert_eq!(
        served.send(reqwest::Method::PUT, "/values", nested(63)).await.0,
        REACHED.0
    );
    for depth in [64, 10_000] {
        let (status, message) = served.send(reqwest::Method::PUT, "/values", nested(depth)).await;
        assert_eq!(status, 400);
        assert!(
            message.contains("must not be nested deeper than 127 levels (line 1, column "),
            "{message}"
        );
    }
}

#[tokio::test]
async fn another_content_type_is_refused_as_dropshot_does() {
    let served = Served::new(positive::bodies::server::dispatch::description);
    let url = format!("http://{}/pets", served.server.local_addr());
    for (content_type, status, part) in [
        ("application/json; charset=utf-8", 404, "Not Found"),
        ("Application/JSON", 404, "Not Found"),
        ("application/x-pet+json", 404, "Not Found"),
        ("text/plain", 400, "unsupported content-type: text/plain"),
        (
            "application/x-www-form-urlencoded",
            400,
            "expected content type \"application/json\", got \"application/x-www-form-urlencoded\"",
        ),
    ] {
        let request = served.client.post(&url).header("content-type", content_type);
        let answer = request.body(r#"{"name":"Minka"}"#).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{content_type}");
        let body: serde_json::Value = answer.json().await.unwrap();
        assert_eq!(body["message"], part);
    }
    // None at all is JSON.
    let answer = served
        .client
        .post(&url)
        .body(r#"{"name":"Minka"}"#)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status().as_u16(), REACHED.0);
    let body = format!("{{\"name\":\"Minka\",\"x\":\"{}\"}}", "x".repeat(1 << 20));
    let (status, message) = served.send(reqwest::Method::POST, "/pets", body).await;
    assert_eq!(
        (status, message.as_str()),
        (400, "request body exceeded maximum size of 1048576 bytes")
    );
}

#[tokio::test]
async fn each_version_is_served_its_own_operations() {
    use dropshot::{ClientSpecifiesVersionInHeader, VersionPolicy};
    let name = http::HeaderName::from_static("api-version");
    let newest = semver::Version::new(2, 1, 0);
    let policy = VersionPolicy::Dynamic(Box::new(ClientSpecifiesVersionInHeader::new(name, newest)));
    let log = ConfigLogging::StderrTerminal {
        level: ConfigLoggingLevel::Critical,
    };
    let description = crate::round_trip::versions::server::dispatch::description().unwrap();
    let server = dropshot::ServerBuilder::new(description, Context, log.to_logger("fixture").unwrap())
        .config(ConfigDropshot {
            bind_address: ([127, 0, 0, 1], 0).into(),
            ..ConfigDropshot::default()
        })
        .version_policy(policy)
        .start()
        .unwrap();
    let client = reqwest::Client::new();
    for (path, version, reached) in [
        ("/pets?limit=3", "1.0.0", true),
        // Only the first version knows the parameter, and checks it.
        ("/pets?limit=x", "1.0.0", false),
        ("/pets?limit=x", "2.0.0", true),
        ("/houses", "1.0.0", false),
        ("/houses", "2.0.0", true),
        ("/houses", "2.1.0", false),
        ("/owners/ada", "1.0.0", true),
        ("/owners/ada", "2.1.0", true),
    ] {
        let url = format!("http://{}{path}", server.local_addr());
        let answer = client.get(url).header("api-version", version).send().await.unwrap();
        let body: serde_json::Value = answer.json().await.unwrap();
        // The handlers' answer has no id of the request in its body, unlike the router's.
        let is_handlers = body["message"] == REACHED.1 && body["request_id"] == "";
        assert_eq!(is_handlers, reached, "{path} {version}: {body}");
    }
}
