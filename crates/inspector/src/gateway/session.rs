//! The session of a request's cookie, and its CSRF token.

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

/// The inspector of a request, if its operation requires a session.
///
/// # Errors
/// 403 for what another site made a browser send; 401 without a session.
pub(super) async fn inspector(
    context: &Context,
    operation: &Operation,
    head: &Parts,
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
    let client = context.connections().take(Deadline::begin()).await?;
    // What the page reads by itself has no such token and does not keep a session alive (INS-4).
    let session = sessions::find(&client, &cookie.digest(), is_own).await?;
    let inspector = Inspector::of(session.ok_or_else(error::signed_out)?, cookie);
    if asks_for("CsrfToken") && !is_own {
        return Err(forged(
            "X-CSRF-Token is missing or is not this session's; read the session again, and send its csrf_token",
        ));
    }
    Ok(Some(inspector))
}

/// Rejects what a browser sends for another site. Clients other than browsers send no `Origin`.
fn same_origin(head: &Parts) -> Result<(), ApiError> {
    if !head.headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    // HTTP/2 has it in the target.
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
            "this request came from the page of another origin; open /inspector/ at this address, and see that a proxy in front \
             passes on Host with its port",
        )),
    }
}

/// Whether the browser uses TLS, as its `Origin` says.
pub(super) fn is_secure(headers: &HeaderMap) -> bool {
    origin(headers).is_some_and(|origin| origin.scheme() == "https")
}

fn origin(headers: &HeaderMap) -> Option<Url> {
    single(headers, header::ORIGIN)?.parse().ok()
}

/// The value of a header that was sent once, as text.
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
    fn a_page_writes_to_its_own_origin_alone_by_either_version_of_http() {
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
            (true, "127.0.0.1:9464", "http://127.0.0.1:9464"),
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
