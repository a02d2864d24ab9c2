//! Hooks of the generated calls: signing, retries and observation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use partner_api_signing::{Headers, KeyId, Secret, SigningError, UnsignedRequest, nonce_from};
use progenitor_client::{ClientHooks, ClientInfo, OperationInfo};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, Request, Response, ResponseBuilderExt, StatusCode};
use tokio::time::Instant;
use url::Url;

use crate::call;
use crate::clock::Clock;
use crate::code::Code;
use crate::generated::{Client, Error, types};

use crate::retry::{Pause, PauseReason, RetryPolicy};

/// The start of every signed path. A prefix before it, from the base URL, is not signed.
pub(crate) const SIGNED_PREFIX: &str = "/api/v1/partner";

/// Returns the signed part of a path, which starts with `/api/v1/partner`. A gateway's prefix is removed.
pub fn signed_path(path: &str) -> &str {
    path.find(SIGNED_PREFIX).map_or(path, |at| &path[at..])
}

/// The state that all calls of a [`Client`] share: the key, the retry policy and the observer. `Debug` omits the secret.
#[derive(Clone)]
pub struct Hooks {
    key_id: KeyId,
    secret: Secret,
    retry: RetryPolicy,
    observer: Option<Arc<dyn Observer>>,
    on_pause: Option<PauseCallback>,
    clock: Clock,
}

/// A function that is called before each pause.
type PauseCallback = Arc<dyn Fn(&Pause) + Send + Sync>;

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("key_id", &self.key_id)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// An attempt and its response, without the signature headers of the request.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The operation's `operationId`.
    pub operation_id: &'static str,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The request's method.
    pub method: Method,
    /// The request's URL.
    pub url: Url,
    /// The request's body; empty if it has none.
    pub request_body: Bytes,
    /// The response's status.
    pub status: StatusCode,
    /// The response's headers.
    pub headers: HeaderMap,
    /// The response's complete body.
    pub body: Bytes,
}

/// Receives every attempt that got a response, for logs and tests.
///
/// With an observer, every body is read completely before the call returns, including PDFs.
pub trait Observer: Send + Sync + 'static {
    /// Called once for each response, in order, before the response is used or the request is retried.
    fn observe(&self, exchange: &Exchange);
}

impl<F: Fn(&Exchange) + Send + Sync + 'static> Observer for F {
    fn observe(&self, exchange: &Exchange) {
        self(exchange);
    }
}

impl Hooks {
    /// Creates hooks that sign with this key, with the default [`RetryPolicy`] and without an observer.
    pub fn new(key_id: KeyId, secret: Secret) -> Self {
        Self {
            key_id,
            secret,
            retry: RetryPolicy::default(),
            observer: None,
            on_pause: None,
            clock: Clock::default(),
        }
    }

    /// Replaces the retry policy.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Replaces the observer.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Observer) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Replaces the function that is called before each pause.
    #[must_use]
    pub fn with_pause_callback(mut self, callback: impl Fn(&Pause) + Send + Sync + 'static) -> Self {
        self.on_pause = Some(Arc::new(callback));
        self
    }

    /// Waits, after calling the function that was set for pauses.
    pub(crate) async fn pause(&self, duration: Duration, reason: PauseReason) {
        if let Some(callback) = &self.on_pause {
            callback(&Pause { duration, reason });
        }
        tokio::time::sleep(duration).await;
    }

    /// Returns the number of seconds by which the service's clock is ahead of this machine's; negative if it is behind. The value is 0
    /// until the service rejects a timestamp. Later requests are signed with the service's time.
    pub fn seconds_ahead(&self) -> i64 {
        self.clock.ahead()
    }

    /// Signs `request` with the current time and a new nonce. Returns the four headers.
    fn sign(&self, request: &Request) -> Result<Headers, SigningError> {
        let now = self.clock.now();
        let signed = UnsignedRequest {
            method: request.method().as_str(),
            path: signed_path(request.url().path()),
            raw_query: request.url().query().unwrap_or_default().as_bytes(),
            body: body_bytes(request).unwrap_or_default(),
        };
        Headers::sign(&self.key_id, &self.secret, signed, now, &nonce_from(&rand::random()))
    }

    /// Returns a signed copy of `request`, or `None` if it cannot be copied or signed.
    fn signed_copy(&self, request: &Request) -> Option<Request> {
        let headers = self.sign(request).ok()?;
        let mut copy = request.try_clone()?;
        for (name, value) in headers.iter() {
            copy.headers_mut().insert(name, HeaderValue::from_str(value).ok()?);
        }
        Some(copy)
    }

    /// Passes the response to the observer, if there is one.
    async fn observe(
        &self,
        request: &Request,
        operation_id: &'static str,
        attempt: u32,
        response: Response,
    ) -> reqwest::Result<Response> {
        let Some(observer) = &self.observer else {
            return Ok(response);
        };
        let (head, body) = read(response).await?;
        observer.observe(&Exchange {
            operation_id,
            attempt,
            method: request.method().clone(),
            url: head.url.clone(),
            request_body: Bytes::copy_from_slice(body_bytes(request).unwrap_or_default()),
            status: head.status,
            headers: head.headers.clone(),
            body: body.clone(),
        });
        Ok(head.with(body))
    }

    /// Corrects the clock if the response is `expired_timestamp` and has a valid `Date`. Returns the unchanged response and whether
    /// the clock was corrected.
    async fn correct_clock(&self, response: Response) -> reqwest::Result<(Response, bool)> {
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok((response, false));
        }
        let (head, body) = read(response).await?;
        let code = serde_json::from_slice::<types::Error>(&body).map(|body| Code::from(body.error.code));
        let is_corrected = code.is_ok_and(|code| code == Code::ExpiredTimestamp)
            && self.clock.correct(&head.headers, chrono::Utc::now());
        Ok((head.with(body), is_corrected))
    }
}

/// A response without its body.
struct Head {
    status: StatusCode,
    version: reqwest::Version,
    url: Url,
    headers: HeaderMap,
}

/// Reads a complete response.
async fn read(response: Response) -> reqwest::Result<(Head, Bytes)> {
    let head = Head {
        status: response.status(),
        version: response.version(),
        url: response.url().clone(),
        headers: response.headers().clone(),
    };
    Ok((head, response.bytes().await?))
}

impl Head {
    /// Rebuilds the response with its body.
    fn with(self, body: Bytes) -> Response {
        let mut rebuilt = http::Response::new(body);
        *rebuilt.status_mut() = self.status;
        *rebuilt.version_mut() = self.version;
        *rebuilt.headers_mut() = self.headers;
        // The URL is an extension that only reqwest's builder can set.
        if let Ok(with_url) = http::Response::builder().url(self.url).body(()) {
            *rebuilt.extensions_mut() = with_url.into_parts().0.extensions;
        }
        rebuilt.into()
    }
}

impl ClientHooks<Hooks> for Client {
    /// Rejects requests that cannot be signed. The generated calls do not make any.
    async fn pre<E>(&self, request: &mut Request, _: &OperationInfo) -> Result<(), Error<E>> {
        if request.body().is_some() && body_bytes(request).is_none() {
            return Err(Error::InvalidRequest("a streamed body cannot be signed".to_owned()));
        }
        self.inner()
            .sign(request)
            .map(drop)
            .map_err(|error| Error::InvalidRequest(error.to_string()))
    }

    /// Sends the request and retries it. Each attempt has a new signature and the same body. If the timestamp is rejected, the request
    /// is signed once more with the service's time.
    async fn exec(&self, request: Request, info: &OperationInfo) -> reqwest::Result<Response> {
        let hooks = self.inner();
        let repeatable = is_repeatable(&request);
        let started = Instant::now();
        let mut attempt = 1;
        let mut was_corrected = false;
        loop {
            let left = hooks.retry.total.saturating_sub(started.elapsed());
            let Some(mut signed) = hooks.signed_copy(&request) else {
                // `pre` rejects these requests. Unsigned, the service rejects it with an explanation.
                return self.client().execute(request).await;
            };
            if let Some(limit) = hooks.retry.attempt {
                *signed.timeout_mut() = Some(limit.min(left));
            }
            let outcome = match self.client().execute(signed).await {
                Ok(response) => hooks.observe(&request, info.operation_id, attempt, response).await,
                Err(error) => Err(error),
            };
            let outcome = match outcome {
                Ok(response) => {
                    call::record(&response);
                    let (response, is_corrected) = hooks.correct_clock(response).await?;
                    if is_corrected && !was_corrected && attempt < hooks.retry.attempts {
                        was_corrected = true;
                        attempt += 1;
                        continue;
                    }
                    Ok(response)
                }
                Err(error) => Err(error),
            };
            let left = hooks.retry.total.saturating_sub(started.elapsed());
            let Some(pause) = hooks.retry.pause(&outcome, attempt, repeatable, left) else {
                return outcome;
            };
            hooks.pause(pause, PauseReason::of(&outcome)).await;
            attempt += 1;
        }
    }
}

/// Returns the bytes of the body, or `None` if there is no body or it is streamed.
fn body_bytes(request: &Request) -> Option<&[u8]> {
    request.body().and_then(reqwest::Body::as_bytes)
}

/// Returns whether the request is safe to repeat: it changes nothing, or its body has an `external_id`, by which the service
/// recognizes it.
fn is_repeatable(request: &Request) -> bool {
    #[derive(serde::Deserialize)]
    struct WithExternalId {
        external_id: Option<String>,
    }
    request.method().is_safe()
        || body_bytes(request)
            .and_then(|body| serde_json::from_slice::<WithExternalId>(body).ok())
            .is_some_and(|body| body.external_id.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, body: &'static str) -> Request {
        let mut request = Request::new(method, "http://127.0.0.1:1/api/v1/partner/health".parse().unwrap());
        *request.body_mut() = Some(body.into());
        request
    }

    #[test]
    fn only_a_get_and_a_package_with_an_external_id_are_repeatable() {
        for (method, body, repeatable) in [
            (Method::GET, "", true),
            (Method::POST, r#"{"external_id":"M-1"}"#, true),
            (Method::POST, r#"{"external_id":null}"#, false),
            (Method::POST, r#"{"plate":"34 ABC 123"}"#, false),
            (Method::POST, "not json", false),
        ] {
            assert_eq!(is_repeatable(&request(method, body)), repeatable, "{body}");
        }
    }

    #[test]
    fn a_path_prefix_of_the_base_url_is_not_signed() {
        let hooks = Hooks::new(
            "vip_test_ABCDEFGHIJKLMNOPQRSTUV".parse().unwrap(),
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".parse().unwrap(),
        );
        let request = Request::new(
            Method::GET,
            "https://gateway.example/inspection/api/v1/partner/inspections?limit=2&branch_id=b1"
                .parse()
                .unwrap(),
        );
        let headers = hooks.sign(&request).unwrap();
        let canonical = partner_api_signing::Canonical {
            method: "GET",
            path: "/api/v1/partner/inspections",
            canonical_query: "branch_id=b1&limit=2",
            timestamp: &headers.timestamp,
            nonce: &headers.nonce,
            body_sha256: partner_api_signing::EMPTY_BODY_SHA256,
        };
        assert!(partner_api_signing::verify(
            &hooks.secret,
            &canonical.render(),
            &headers.signature
        ));
    }

    /// SIG-6
    #[test]
    fn every_query_of_the_signing_vectors_is_signed_in_its_canonical_form() {
        let secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let hooks = Hooks::new(
            "vip_test_ABCDEFGHIJKLMNOPQRSTUV".parse().unwrap(),
            secret.parse().unwrap(),
        );
        let vectors: serde_json::Value = serde_json::from_str(include_str!("../../spec/signing-vectors.json")).unwrap();
        // A URL is text, so queries with invalid UTF-8 (`raw_base64`) cannot be sent through this client.
        let vectors: Vec<_> = vectors["query_vectors"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|vector| vector["raw"].is_string())
            .collect();
        assert!(vectors.len() > 20);
        for vector in vectors {
            let url = format!(
                "https://partner.example/api/v1/partner/inspections?{}",
                vector["raw"].as_str().unwrap()
            );
            let headers = hooks.sign(&Request::new(Method::GET, url.parse().unwrap())).unwrap();
            let canonical = partner_api_signing::Canonical {
                method: "GET",
                path: "/api/v1/partner/inspections",
                canonical_query: vector["canonical_query"].as_str().unwrap(),
                timestamp: &headers.timestamp,
                nonce: &headers.nonce,
                body_sha256: partner_api_signing::EMPTY_BODY_SHA256,
            };
            let expected = partner_api_signing::sign(&secret.parse().unwrap(), &canonical.render());
            assert_eq!(headers.signature, expected, "{}", vector["name"]);
        }
    }
}
