//! Hooks of the generated calls: they add the session's cookie and CSRF token, and notify the observer.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use progenitor_client::{ClientHooks, ClientInfo, Error, OperationInfo};
use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use reqwest::{Method, Request, Response, ResponseBuilderExt, StatusCode, Url};

use crate::generated::Client;

/// The state that the calls of a [`Client`] share. `Debug` shows no secret.
#[derive(Clone, Default)]
pub struct Hooks {
    session: Arc<Mutex<Session>>,
    observer: Option<Arc<dyn Observer>>,
}

#[derive(Default)]
struct Session {
    cookie: Option<HeaderValue>,
    csrf_token: Option<HeaderValue>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

/// A call and its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The operation's `operationId`.
    pub operation_id: &'static str,
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

/// Observes every call that has a response, except streams.
pub trait Observer: Send + Sync + 'static {
    /// Called once per response.
    fn observe(&self, exchange: &Exchange);
}

impl<F: Fn(&Exchange) + Send + Sync + 'static> Observer for F {
    fn observe(&self, exchange: &Exchange) {
        self(exchange);
    }
}

impl Hooks {
    pub(crate) fn observed_by(observer: impl Observer) -> Self {
        Hooks {
            observer: Some(Arc::new(observer)),
            ..Hooks::default()
        }
    }

    /// Sends this CSRF token with every call from now on.
    pub(crate) fn set_csrf_token(&self, csrf_token: &str) {
        self.session().csrf_token = HeaderValue::from_str(csrf_token).ok();
    }

    fn session(&self) -> std::sync::MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the cookie of a response, without its attributes.
    fn store_cookie(&self, response: &Response) {
        let set = response.headers().get(SET_COOKIE).and_then(|line| line.to_str().ok());
        let pair = set.and_then(|line| line.split(';').next());
        if let Some(Ok(cookie)) = pair.map(HeaderValue::from_str) {
            self.session().cookie = Some(cookie);
        }
    }

    async fn observed(
        &self,
        operation_id: &'static str,
        request: (Method, Url, Bytes),
        response: Response,
    ) -> reqwest::Result<Response> {
        let is_stream = response.headers().get(CONTENT_TYPE) == Some(&HeaderValue::from_static("text/event-stream"));
        let Some(observer) = self.observer.as_ref().filter(|_| !is_stream) else {
            return Ok(response);
        };
        let (status, version, headers) = (response.status(), response.version(), response.headers().clone());
        let (method, url, request_body) = request;
        let body = response.bytes().await?;
        observer.observe(&Exchange {
            operation_id,
            method,
            url: url.clone(),
            request_body,
            status,
            headers: headers.clone(),
            body: body.clone(),
        });
        let mut rebuilt = http::Response::new(body);
        *rebuilt.status_mut() = status;
        *rebuilt.version_mut() = version;
        *rebuilt.headers_mut() = headers;
        // reqwest reads the URL from an extension, which only this builder can set.
        if let Ok(addressed) = http::Response::builder().url(url).body(()) {
            *rebuilt.extensions_mut() = addressed.into_parts().0.extensions;
        }
        Ok(rebuilt.into())
    }
}

impl ClientHooks<Hooks> for Client {
    async fn pre<E>(&self, request: &mut Request, _: &OperationInfo) -> Result<(), Error<E>> {
        let session = self.inner().session();
        for (name, value) in [
            (COOKIE.as_str(), &session.cookie),
            ("x-csrf-token", &session.csrf_token),
        ] {
            if let (Some(value), Ok(name)) = (value, reqwest::header::HeaderName::try_from(name)) {
                request.headers_mut().insert(name, value.clone());
            }
        }
        Ok(())
    }

    async fn exec(&self, request: Request, info: &OperationInfo) -> reqwest::Result<Response> {
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let observed = (
            request.method().clone(),
            request.url().clone(),
            Bytes::copy_from_slice(body),
        );
        let response = self.client().execute(request).await?;
        self.inner().store_cookie(&response);
        self.inner().observed(info.operation_id, observed, response).await
    }
}
