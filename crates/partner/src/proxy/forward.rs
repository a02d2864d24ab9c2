//! Forwards requests to the service, signed or as they arrived.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self as client, Client};
use hyper_util::rt::TokioExecutor;
use partner_api_client::{KeyId, Secret, signed_path};
use partner_api_signing::{
    HEADER_KEY_ID, HEADER_NONCE, HEADER_SIGNATURE, HEADER_TIMESTAMP, Headers, UnsignedRequest, nonce_from,
};
use serde_json::json;
use thiserror::Error;
use url::Url;

use crate::failure::Failure;
use crate::profile::Account;
use crate::sign;

/// The maximum size of a body in bytes. It exceeds the service's limit, so that clients see the service's own error.
const BODY_LIMIT: usize = 8 * 1024 * 1024;
/// The prefix of the paths that are signed.
const SIGNED_PREFIX: &str = "/api/v1/partner";

/// Headers that concern one connection (RFC 9110, 7.6.1) or that the proxy sets itself.
const HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
];

/// The body of a response.
pub(crate) type Body = BoxBody<Bytes, hyper::Error>;

/// Forwards requests to the service.
pub(crate) struct Forward {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    scheme: Scheme,
    authority: Authority,
    /// The path of the base URL; it is not signed.
    prefix: String,
    key_id: KeyId,
    secret: Secret,
}

impl Forward {
    pub(crate) fn new(account: &Account) -> Result<Self, Failure> {
        let invalid = |error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", account.base_url));
        let base = Url::parse(&account.base_url).map_err(|error| invalid(&error))?;
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_platform_verifier()
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self {
            http: Client::builder(TokioExecutor::new()).build(https),
            scheme: base.scheme().parse().map_err(|error| invalid(&error))?,
            authority: base.authority().parse().map_err(|error| invalid(&error))?,
            prefix: base.path().trim_end_matches('/').to_owned(),
            key_id: account.key_id.clone(),
            secret: account.secret.clone(),
        })
    }

    /// Signs a request, forwards it, and returns the response as soon as its head has arrived.
    pub(super) async fn send(&self, request: Request<Incoming>) -> Response<Body> {
        let mut request = match read(request).await {
            Ok(request) => request,
            Err(response) => return response,
        };
        if let Err(message) = self.sign(&mut request) {
            return error_response(StatusCode::BAD_REQUEST, &message);
        }
        match self.relay(request).await {
            Ok(response) => response,
            Err(NotRelayed::Target(error)) => {
                error_response(StatusCode::BAD_REQUEST, &format!("invalid request target: {error}"))
            }
            Err(NotRelayed::Service(error)) => {
                let mut text = error.to_string();
                let mut cause = std::error::Error::source(&error);
                while let Some(error) = cause {
                    text = format!("{text}: {error}");
                    cause = error.source();
                }
                error_response(StatusCode::BAD_GATEWAY, &format!("failed to reach the service: {text}"))
            }
        }
    }

    /// Replaces the signature of a request to the API.
    fn sign(&self, request: &mut Request<Bytes>) -> Result<(), String> {
        let (path, query) = (request.uri().path(), request.uri().query());
        let signed = path.starts_with(SIGNED_PREFIX).then(|| {
            let unsigned = UnsignedRequest {
                method: request.method().as_str(),
                path: signed_path(path),
                raw_query: query.unwrap_or_default().as_bytes(),
                body: request.body(),
            };
            Headers::sign(
                &self.key_id,
                &self.secret,
                unsigned,
                sign::now(),
                &nonce_from(&rand::random()),
            )
        });
        let signed = signed
            .transpose()
            .map_err(|error| format!("failed to sign the request: {error}"))?;
        let headers = request.headers_mut();
        for name in [HEADER_KEY_ID, HEADER_TIMESTAMP, HEADER_NONCE, HEADER_SIGNATURE] {
            headers.remove(name);
        }
        for (name, value) in signed.iter().flat_map(Headers::iter) {
            // Key IDs, digits and hex are always valid header values.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        Ok(())
    }

    /// Forwards a request and returns the response as soon as its head has arrived.
    pub(crate) async fn relay(&self, request: Request<Bytes>) -> Result<Response<Body>, NotRelayed> {
        let (head, body) = request.into_parts();
        let mut forwarded = Request::new(Full::new(body));
        *forwarded.uri_mut() = self.address(head.uri.path(), head.uri.query())?;
        *forwarded.method_mut() = head.method;
        *forwarded.headers_mut() = without_hop_by_hop(&head.headers);
        forwarded.headers_mut().remove(header::HOST);
        forwarded.headers_mut().remove(header::CONTENT_LENGTH);
        let (mut head, body) = self.http.request(forwarded).await?.into_parts();
        head.headers = without_hop_by_hop(&head.headers);
        Ok(Response::from_parts(head, body.boxed()))
    }

    /// Returns the service's URL with this path and query, unchanged byte for byte.
    fn address(&self, path: &str, query: Option<&str>) -> Result<Uri, http::Error> {
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let target = PathAndQuery::try_from(format!("{}{path}{query}", self.prefix))?;
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(target)
            .build()
    }
}

/// The reason why a request got no response.
#[derive(Debug, Error)]
pub(crate) enum NotRelayed {
    /// The target cannot be sent.
    #[error(transparent)]
    Target(#[from] http::Error),
    /// The service could not be reached, or closed the connection.
    #[error(transparent)]
    Service(#[from] client::Error),
}

/// Reads the body of a request, which the signature covers.
///
/// # Errors
/// The response to a body that is too large or incomplete.
pub(crate) async fn read(request: Request<Incoming>) -> Result<Request<Bytes>, Response<Body>> {
    let (head, body) = request.into_parts();
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => Ok(Request::from_parts(head, body.to_bytes())),
        Err(error) => {
            let message = format!("failed to read the body (at most {BODY_LIMIT} bytes): {error}");
            Err(error_response(StatusCode::BAD_REQUEST, &message))
        }
    }
}

fn without_hop_by_hop(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<_> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let mut kept = headers.clone();
    for name in HOP_BY_HOP
        .iter()
        .map(HeaderName::as_str)
        .chain(named.iter().map(String::as_str))
    {
        kept.remove(name);
    }
    kept
}

/// Returns an error of the proxy itself, in the format of the service's errors.
pub(crate) fn error_response(status: StatusCode, message: &str) -> Response<Body> {
    let body = json!({ "error": { "code": "partner_proxy", "message": message, "request_id": null } }).to_string();
    let mut response = Response::new(Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Returns an empty body.
pub(super) fn empty() -> Body {
    Full::new(Bytes::new()).map_err(|never| match never {}).boxed()
}
