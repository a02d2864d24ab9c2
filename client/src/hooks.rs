//! What happens around every generated call: signing, retries, observation.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use partner_api_signing::{Headers, KeyId, Secret, SigningError, UnsignedRequest, nonce_from};
use progenitor_client::{ClientHooks, ClientInfo, OperationInfo};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, Request, Response, ResponseBuilderExt, StatusCode};
use tokio::time::Instant;
use url::Url;

use crate::clock::Clock;
use crate::code::Code;
use crate::generated::{Client, Error, types};
use crate::retry::RetryPolicy;
use crate::seen;

/// The start of every signed path. What a base address has in front of it is not signed.
const SIGNED_FROM: &str = "/api/v1/partner";

/// The part of a path that is signed: from `/api/v1/partner`, whatever a gateway has in front of it.
pub fn signed_path(path: &str) -> &str {
    path.find(SIGNED_FROM).map_or(path, |at| &path[at..])
}

/// What every call of a [`Client`] shares: the key, the retry policy and the observer. `Debug` shows no secret.
#[derive(Clone)]
pub struct Hooks {
    key_id: KeyId,
    secret: Secret,
    retry: RetryPolicy,
    observer: Option<Arc<dyn Observer>>,
    clock: Clock,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("key_id", &self.key_id)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// One attempt that was answered. Of the request it has all but the signature headers.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The operation's `operationId`.
    pub operation_id: &'static str,
    /// Which attempt at the call it was, from 1.
    pub attempt: u32,
    /// The request's method.
    pub method: Method,
    /// The request's address.
    pub url: Url,
    /// The request's body, empty when it has none.
    pub request_body: Bytes,
    /// The answer's status.
    pub status: StatusCode,
    /// The answer's headers.
    pub headers: HeaderMap,
    /// The answer's body, whole.
    pub body: Bytes,
}

/// Is told of every attempt that was answered, before the answer is used or retried. For logs and for tests.
///
/// With an observer every body is read whole before the call returns, the PDF's too.
pub trait Observer: Send + Sync + 'static {
    /// Called once per answered attempt, in order.
    fn observe(&self, exchange: &Exchange);
}

impl<F: Fn(&Exchange) + Send + Sync + 'static> Observer for F {
    fn observe(&self, exchange: &Exchange) {
        self(exchange);
    }
}

impl Hooks {
    /// Signs with this key; the default [`RetryPolicy`], no observer.
    pub fn new(key_id: KeyId, secret: Secret) -> Self {
        Self {
            key_id,
            secret,
            retry: RetryPolicy::default(),
            observer: None,
            clock: Clock::default(),
        }
    }

    /// With another retry policy.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// With an observer, in place of the one before.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Observer) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// By how many seconds the service's clock was found to be ahead of this machine's; negative when it is behind, 0 as long
    /// as no request was refused for its timestamp. Requests are signed with the service's time.
    pub fn seconds_ahead(&self) -> i64 {
        self.clock.ahead()
    }

    /// The four headers for sending `request` now, with a nonce that was never used.
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

    /// A copy of `request`, signed; `None` when it cannot be copied or signed.
    fn signed_copy(&self, request: &Request) -> Option<Request> {
        let headers = self.sign(request).ok()?;
        let mut copy = request.try_clone()?;
        for (name, value) in headers.iter() {
            copy.headers_mut().insert(name, HeaderValue::from_str(value).ok()?);
        }
        Some(copy)
    }

    /// Shows the answer to the observer, if there is one.
    async fn observed(
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

    /// Whether an answer says that this machine's clock is off, and the service's time could be taken from it. The answer is
    /// given back as it was.
    async fn learns_time(&self, response: Response) -> reqwest::Result<(Response, bool)> {
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok((response, false));
        }
        let (head, body) = read(response).await?;
        let code = serde_json::from_slice::<types::Error>(&body).map(|answer| Code::from(answer.error.code));
        let is_learnt = code.is_ok_and(|code| code == Code::ExpiredTimestamp)
            && self.clock.learn(&head.headers, chrono::Utc::now());
        Ok((head.with(body), is_learnt))
    }
}

/// All of an answer but its body.
struct Head {
    status: StatusCode,
    version: reqwest::Version,
    url: Url,
    headers: HeaderMap,
}

/// Reads an answer whole.
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
    /// The answer again.
    fn with(self, body: Bytes) -> Response {
        let mut rebuilt = http::Response::new(body);
        *rebuilt.status_mut() = self.status;
        *rebuilt.version_mut() = self.version;
        *rebuilt.headers_mut() = self.headers;
        // The address travels as an extension, which only the builder sets.
        if let Ok(addressed) = http::Response::builder().url(self.url).body(()) {
            *rebuilt.extensions_mut() = addressed.into_parts().0.extensions;
        }
        rebuilt.into()
    }
}

impl ClientHooks<Hooks> for Client {
    /// Refuses what could not be signed: the generated calls make no such request.
    async fn pre<E>(&self, request: &mut Request, _: &OperationInfo) -> Result<(), Error<E>> {
        if request.body().is_some() && body_bytes(request).is_none() {
            return Err(Error::InvalidRequest("a streamed body cannot be signed".to_owned()));
        }
        self.inner()
            .sign(request)
            .map(drop)
            .map_err(|error| Error::InvalidRequest(error.to_string()))
    }

    /// Sends the request, each attempt signed anew, the body byte for byte the same. One refused for its timestamp is signed
    /// once more with the service's time.
    async fn exec(&self, request: Request, info: &OperationInfo) -> reqwest::Result<Response> {
        let hooks = self.inner();
        let repeatable = is_repeatable(&request);
        let began = Instant::now();
        let mut attempt = 1;
        let mut is_corrected = false;
        loop {
            let left = hooks.retry.total.saturating_sub(began.elapsed());
            let Some(mut signed) = hooks.signed_copy(&request) else {
                // `pre` lets no such request through; unsigned it is refused with an explanation.
                return self.client().execute(request).await;
            };
            if let Some(limit) = hooks.retry.attempt {
                *signed.timeout_mut() = Some(limit.min(left));
            }
            let outcome = match self.client().execute(signed).await {
                Ok(response) => hooks.observed(&request, info.operation_id, attempt, response).await,
                Err(error) => Err(error),
            };
            let outcome = match outcome {
                Ok(response) => {
                    seen::note(&response);
                    let (response, is_learnt) = hooks.learns_time(response).await?;
                    if is_learnt && !is_corrected && attempt < hooks.retry.attempts {
                        is_corrected = true;
                        attempt += 1;
                        continue;
                    }
                    Ok(response)
                }
                Err(error) => Err(error),
            };
            let left = hooks.retry.total.saturating_sub(began.elapsed());
            let Some(pause) = hooks.retry.pause(&outcome, attempt, repeatable, left) else {
                return outcome;
            };
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }
}

/// The body's bytes; `None` without a body and with one that is streamed.
fn body_bytes(request: &Request) -> Option<&[u8]> {
    request.body().and_then(reqwest::Body::as_bytes)
}

/// Whether sending the request twice has the effect of sending it once: it changes nothing, or its body has an
/// `external_id`, by which the service recognises it.
fn is_repeatable(request: &Request) -> bool {
    /// The one member that matters here.
    #[derive(serde::Deserialize)]
    struct Identified {
        external_id: Option<String>,
    }
    request.method().is_safe()
        || body_bytes(request)
            .and_then(|body| serde_json::from_slice::<Identified>(body).ok())
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
    fn a_get_and_a_package_with_an_external_id_are_repeatable() {
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
    fn a_path_in_front_of_the_apis_own_is_not_signed() {
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
    fn every_query_of_the_signing_vectors_is_signed_over_the_canonical_form_it_names() {
        let secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let hooks = Hooks::new(
            "vip_test_ABCDEFGHIJKLMNOPQRSTUV".parse().unwrap(),
            secret.parse().unwrap(),
        );
        let vectors: serde_json::Value = serde_json::from_str(include_str!("../../spec/signing-vectors.json")).unwrap();
        // A URL is text: a query whose raw bytes are not (`raw_base64`) cannot be asked for through this client.
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
