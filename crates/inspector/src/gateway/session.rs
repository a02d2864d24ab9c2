//! Checks the session cookie, the CSRF token and the origin of a request.

use http::request::Parts;
use http::{HeaderMap, header};
use partner_api_store::deadline::Deadline;
use subtle::ConstantTimeEq;
use url::Url;

use crate::caller::{Cookie, Inspector};
use crate::context::Context;
use crate::db::sessions;
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::operations::Operation;

const CSRF_HEADER: &str = "x-csrf-token";

/// Returns the inspector of a request, if its operation requires a session.
///
/// # Errors
/// 403 for a request from another origin or without the CSRF token; 401 without a session.
pub(super) async fn inspector(
    context: &Context,
    operation: &Operation,
    head: &Parts,
    deadline: Deadline,
) -> Result<Option<Inspector>, ApiError> {
    let headers = &head.headers;
    if operation.method != "GET" {
        same_origin(head)?;
    }
    let asks_for = |scheme: &str| {
        operation
            .security
            .iter()
            .any(|all| all.iter().any(|requirement| requirement.scheme == scheme))
    };
    if !asks_for("InspectorSession") {
        return Ok(None);
    }
    let cookie = Cookie::of(headers).ok_or_else(error::signed_out)?;
    let sent = single(headers, CSRF_HEADER).unwrap_or_default();
    let is_own = bool::from(sent.as_bytes().ct_eq(cookie.csrf_token().as_bytes()));
    let digest = cookie.digest();
    let _permit = context.cookie_lookups().permit(&digest, deadline).await?;
    let client = context.connections().take(deadline).await?;
    // Background reads of the page carry no token, so they do not keep the session alive (INS-4).
    let session = sessions::find(&client, &digest, is_own).await?;
    context.cookie_lookups().learn(digest, session.is_some());
    let inspector = Inspector::of(session.ok_or_else(error::signed_out)?, cookie);
    if asks_for("CsrfToken") && !is_own {
        return Err(forged(
            "X-CSRF-Token is missing or does not match the session; read the session again and send its csrf_token",
        ));
    }
    Ok(Some(inspector))
}

/// Rejects a browser's request from another origin. Other clients send no `Origin`.
fn same_origin(head: &Parts) -> Result<(), ApiError> {
    if !head.headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    // In HTTP/2 the host is in the request target.
    let target = head.uri.authority().map(http::uri::Authority::as_str);
    let host = target.or_else(|| single(&head.headers, header::HOST));
    let from = origin(&head.headers).and_then(|origin| {
        let host = origin.host_str()?.to_owned();
        Some(match origin.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        })
    });
    match (from, host) {
        (Some(from), Some(host)) if from.eq_ignore_ascii_case(host) => Ok(()),
        _ => Err(forged(
            "the request came from a page of another origin; open /inspector/ at this address, and make sure that a proxy \
             forwards Host with its port",
        )),
    }
}

/// Whether the browser uses TLS, according to its `Origin`.
pub(super) fn is_secure(headers: &HeaderMap) -> bool {
    origin(headers).is_some_and(|origin| origin.scheme() == "https")
}

fn origin(headers: &HeaderMap) -> Option<Url> {
    single(headers, header::ORIGIN)?.parse().ok()
}

/// The value of a header that was sent exactly once, as text.
fn single(headers: &HeaderMap, name: impl http::header::AsHeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn forged(message: &str) -> ApiError {
    ApiError::new(ErrorCode::ForgedRequest, message)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    /// INS-11
    #[test]
    fn a_page_can_only_write_to_its_own_origin_over_http_1_and_http_2() {
        let is_own = |target: &str, host: Option<&str>, origin: &str| {
            let mut request = Request::put(target).header(header::ORIGIN, origin);
            if let Some(host) = host {
                request = request.header(header::HOST, host);
            }
            same_origin(&request.body(()).unwrap().into_parts().0).is_ok()
        };
        for (own, host, origin) in [
            (true, "desk.example", "https://desk.example"),
            (true, "desk.example", "https://DESK.example"),
            (true, "127.0.0.1:9466", "http://127.0.0.1:9466"),
            (false, "desk.example", "https://desk.example:8443"),
            (false, "desk.example", "https://evil.example"),
            (false, "desk.example", "https://desk.example.evil.example"),
            (false, "desk.example", "null"),
        ] {
            assert_eq!(is_own("/", Some(host), origin), own, "{host} {origin}");
            assert_eq!(
                is_own(&format!("http://{host}/"), None, origin),
                own,
                "{host} {origin}, HTTP/2"
            );
        }
        assert!(!is_own("/", None, "https://desk.example"));
    }
}
