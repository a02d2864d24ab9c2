//! The response to a request, as it was received.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

/// A response, with the essential parts of its request.
#[derive(Clone, Debug)]
pub struct TestResponse {
    /// The request's method.
    pub method: Method,
    /// The request's target as sent: path and query.
    pub target: String,
    /// The request's body, empty when it had none.
    pub sent: Bytes,
    /// The base URL of the service, for example `http://127.0.0.1:40123`.
    pub base_url: String,
    /// The ID of the operation at the target's path in the document.
    pub operation: Option<String>,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl TestResponse {
    /// Returns the single value of a header; `None` if it is missing.
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next()?.to_str().unwrap();
        assert!(values.next().is_none(), "{name} was sent twice: {:?}", self.headers);
        Some(value)
    }

    /// Returns the body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", String::from_utf8_lossy(&self.body)))
    }

    /// Returns the error code; `None` for a success.
    #[track_caller]
    pub fn code(&self) -> Option<String> {
        if self.status.is_success() || self.body.is_empty() {
            return None;
        }
        Some(
            self.json()["error"]["code"]
                .as_str()
                .expect("an error has a code")
                .to_owned(),
        )
    }

    /// Returns the message of an error.
    #[track_caller]
    pub fn message(&self) -> String {
        self.json()["error"]["message"]
            .as_str()
            .expect("an error has a message")
            .to_owned()
    }

    /// Asserts the status and the error code, for example `(404, "not_found")`.
    #[track_caller]
    pub fn assert_rejected(&self, status: u16, code: &str) -> &Self {
        let got = (self.status.as_u16(), self.code().unwrap_or_default());
        assert_eq!(
            got,
            (status, code.to_owned()),
            "{} {}: {:?}",
            self.method,
            self.target,
            self.body
        );
        self
    }

    /// Asserts the status of a success.
    #[track_caller]
    pub fn assert_status(&self, status: u16) -> &Self {
        assert_eq!(
            self.status.as_u16(),
            status,
            "{} {}: {:?}",
            self.method,
            self.target,
            self.body
        );
        self
    }

    /// Returns the text `member` of each item of `data`.
    #[track_caller]
    pub fn data(&self, member: &str) -> Vec<String> {
        let json = self.json();
        let items = json["data"].as_array().expect("a list has data");
        items
            .iter()
            .map(|item| item[member].as_str().expect("a text").to_owned())
            .collect()
    }
}
