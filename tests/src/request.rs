//! Requests that a test controls to the byte, for what the generated client would never send.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderName, HeaderValue, Method};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Frame;
use partner_api_signing::{
    Canonical, HEADER_KEY_ID, HEADER_NONCE, HEADER_SIGNATURE, HEADER_TIMESTAMP, body_sha256, canonical_query,
    nonce_from, sign, split_target,
};
use tokio::sync::Notify;

use crate::fixture::TestKey;

/// A request's body.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

#[derive(Clone, Debug)]
enum Sending {
    /// No body.
    None,
    /// A body with `Content-Length`.
    Whole(Bytes),
    /// A body in chunks, without a length.
    Chunks(Vec<Bytes>),
    /// A body that consists of these bytes and never ends.
    Stalled(Bytes),
    /// A body whose second half is sent after the notification.
    Held(Bytes, Arc<Notify>),
}

/// A request to be sent with [`Service::send`](crate::Service::send).
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) from: Option<IpAddr>,
    headers: Vec<(HeaderName, HeaderValue)>,
    removed: Vec<&'static str>,
    body: Sending,
    key: Option<TestKey>,
    clock_offset: i64,
    nonce: Option<String>,
}

impl Request {
    /// Creates an unsigned request without a body. `target` is sent unchanged.
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: Method::from_bytes(method.as_bytes()).unwrap(),
            target: target.to_owned(),
            from: None,
            headers: Vec::new(),
            removed: Vec::new(),
            body: Sending::None,
            key: None,
            clock_offset: 0,
            nonce: None,
        }
    }

    /// Creates an unsigned GET.
    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    /// Creates an unsigned POST of JSON.
    pub fn post(target: &str, body: impl Into<Bytes>) -> Self {
        Self::new("POST", target)
            .body(body)
            .header("content-type", "application/json")
    }

    /// Sets the method.
    #[must_use]
    pub fn with_method(mut self, method: &str) -> Self {
        self.method = Method::from_bytes(method.as_bytes()).unwrap();
        self
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn with_query(mut self, query: &str) -> Self {
        self.target.push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(query);
        self
    }

    /// Sets a body with its `Content-Length`.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Sending::Whole(body.into());
        self
    }

    /// Sends the body in chunks of at most `size` bytes, without a length.
    #[must_use]
    pub fn chunked(mut self, size: usize) -> Self {
        let body = self.sent();
        self.body = Sending::Chunks(body.chunks(size).map(|chunk| body.slice_ref(chunk)).collect());
        self
    }

    /// Sends the body, and then never ends it.
    #[must_use]
    pub fn stalled(mut self) -> Self {
        self.body = Sending::Stalled(self.sent());
        self
    }

    /// Sends the second half of the body only when `release` is notified.
    #[must_use]
    pub fn held_until(mut self, release: &Arc<Notify>) -> Self {
        self.body = Sending::Held(self.sent(), release.clone());
        self
    }

    /// Signs the request with this key.
    #[must_use]
    pub fn signed_by(mut self, key: &TestKey) -> Self {
        self.key = Some(*key);
        self
    }

    /// Signs the request by a clock that is ahead by this many seconds.
    #[must_use]
    pub fn clock_ahead_by(mut self, seconds: i64) -> Self {
        self.clock_offset = seconds;
        self
    }

    /// Uses this nonce instead of a new one.
    #[must_use]
    pub fn nonce(mut self, nonce: &str) -> Self {
        self.nonce = Some(nonce.to_owned());
        self
    }

    /// Adds a header, even if there is a signature header of the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((
            name.parse().unwrap(),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        ));
        self
    }

    /// Removes this signature header, or `host`.
    #[must_use]
    pub fn without(mut self, name: &'static str) -> Self {
        self.removed.push(name);
        self
    }

    /// Replaces the value of a signature header.
    #[must_use]
    pub fn with(self, name: &'static str, value: &str) -> Self {
        self.without(name).header(name, value)
    }

    /// Sends the request from this address of the machine.
    #[must_use]
    pub fn from(mut self, address: &str) -> Self {
        self.from = Some(address.parse().unwrap());
        self
    }

    /// Returns the body's bytes.
    pub(crate) fn sent(&self) -> Bytes {
        match &self.body {
            Sending::None => Bytes::new(),
            Sending::Whole(bytes) | Sending::Stalled(bytes) | Sending::Held(bytes, _) => bytes.clone(),
            Sending::Chunks(chunks) => chunks.concat().into(),
        }
    }

    /// Returns the canonical string, with the values of the other signature headers.
    fn canonical(&self, timestamp: &str, nonce: &str) -> String {
        let (path, query) = split_target(&self.target);
        Canonical {
            method: self.method.as_str(),
            path,
            // A query without a canonical form is rejected before its signature is checked.
            canonical_query: &canonical_query(query.as_bytes()).unwrap_or_default(),
            timestamp,
            nonce,
            body_sha256: &body_sha256(&self.sent()),
        }
        .render()
    }

    /// Builds the request that hyper sends, signed with the current time.
    pub fn build(&self, host: &str) -> hyper::Request<Body> {
        let mut request = hyper::Request::new(self.hyper_body());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self
            .target
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", self.target));
        let headers = request.headers_mut();
        if !self.removed.contains(&"host") {
            headers.append("host", host.parse().unwrap());
        }
        if let Some(key) = &self.key {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            let timestamp = now.saturating_add_signed(self.clock_offset).to_string();
            let nonce = self.nonce.clone().unwrap_or_else(|| nonce_from(&rand::random()));
            let signature = sign(&key.secret.parse().unwrap(), &self.canonical(&timestamp, &nonce));
            let values = [
                (HEADER_KEY_ID, key.id),
                (HEADER_TIMESTAMP, &timestamp),
                (HEADER_NONCE, &nonce),
                (HEADER_SIGNATURE, &signature),
            ];
            for (name, value) in values {
                if !self.removed.contains(&name) {
                    headers.append(name, value.parse().unwrap());
                }
            }
        }
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        let without_length = matches!(self.body, Sending::Chunks(_) | Sending::Stalled(_) | Sending::Held(..));
        if without_length && !headers.contains_key("content-length") {
            // Explicit, because hyper otherwise omits the body of a GET.
            headers.insert("transfer-encoding", HeaderValue::from_static("chunked"));
        }
        request
    }

    fn hyper_body(&self) -> Body {
        match self.body.clone() {
            Sending::None => Empty::new().boxed_unsync(),
            Sending::Whole(bytes) => Full::new(bytes).boxed_unsync(),
            Sending::Chunks(chunks) => StreamBody::new(stream::iter(chunks).map(frame)).boxed_unsync(),
            Sending::Stalled(bytes) => {
                let stream = stream::iter([bytes]).map(frame).chain(stream::pending());
                StreamBody::new(stream).boxed_unsync()
            }
            Sending::Held(mut bytes, release) => {
                let rest = bytes.split_off(bytes.len() / 2);
                let rest = stream::once(async move {
                    release.notified().await;
                    frame(rest)
                });
                let stream = stream::iter([bytes]).map(frame).chain(rest);
                StreamBody::new(stream).boxed_unsync()
            }
        }
    }
}

fn frame(bytes: Bytes) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(bytes))
}
