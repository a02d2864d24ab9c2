//! Who calls: the session of a cookie, and the token against forged requests.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use http::request::Parts;
use http::{HeaderMap, header};
use partner_api::deadline::Deadline;
use rand::TryRngCore;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use url::Url;
use uuid::Uuid;

use super::single;
use crate::context::Context;
use crate::db::sessions::{self, Branch};
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::generated::operations::Operation;

/// The cookie's name.
const COOKIE: &str = "inspector_session";

const CSRF_HEADER: &str = "x-csrf-token";

/// An inspector who is signed in. Only a session makes one.
#[derive(Clone, Debug)]
pub struct Inspector {
    id: Uuid,
    organization_id: Uuid,
    name: String,
    branches: Vec<Branch>,
    ends_at: DateTime<Utc>,
    cookie: Cookie,
}

impl Inspector {
    /// Of a session's rows.
    pub(crate) fn of(session: sessions::Session, cookie: Cookie) -> Self {
        Inspector {
            id: session.inspector_id,
            organization_id: session.organization_id,
            name: session.name,
            branches: session.branches,
            ends_at: session.ends_at,
            cookie,
        }
    }

    /// The inspector's id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The organisation that the inspector works for.
    pub fn organization_id(&self) -> Uuid {
        self.organization_id
    }

    /// The name, which stands in reports and histories.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The branches that the token is bound to, as far as they are active.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// When the session ends at the latest.
    pub fn ends_at(&self) -> DateTime<Utc> {
        self.ends_at
    }

    /// The ids of the branches.
    pub fn branch_ids(&self) -> Vec<Uuid> {
        self.branches.iter().map(|branch| branch.id).collect()
    }

    /// What each write of the session carries.
    pub fn csrf_token(&self) -> String {
        self.cookie.csrf_token()
    }

    /// The session's cookie.
    pub(crate) fn cookie(&self) -> &Cookie {
        &self.cookie
    }
}

/// A session's secret, 256 random bits. The database keeps its digest, and the token against forged requests is another one.
#[derive(Clone)]
pub(crate) struct Cookie(String);

impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cookie")
    }
}

impl Cookie {
    /// A new one.
    pub fn new() -> Result<Self, ApiError> {
        let mut random = [0; 32];
        OsRng.try_fill_bytes(&mut random).map_err(|error| {
            tracing::error!(%error, "the operating system gives no random numbers");
            ApiError::internal()
        })?;
        Ok(Cookie(HEXLOWER.encode(&random)))
    }

    /// That of a request: more than one of its name is none, for which of them counts would be chance.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let lines = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok());
        let mut values = lines
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='));
        match (values.next(), values.next()) {
            (Some(value), None) if value.len() == 64 => Some(Cookie(value.to_owned())),
            _ => None,
        }
    }

    /// What the database knows it by.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(format!("inspector session {}", self.0)).into()
    }

    fn csrf_token(&self) -> String {
        BASE64URL_NOPAD.encode(&Sha256::digest(format!("inspector csrf {}", self.0)))
    }

    /// `Set-Cookie` for it: for scripts and other sites it is not there, and over TLS it does not go without.
    pub fn set(&self, is_secure: bool, seconds: i64) -> String {
        let secure = if is_secure { "; Secure" } else { "" };
        format!(
            "{COOKIE}={}; Path=/inspector; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}",
            self.0
        )
    }
}

/// Who called, and what of the call an endpoint may use.
#[derive(Clone, Debug)]
pub struct Caller {
    inspector: Option<Inspector>,
    deadline: Deadline,
    address: IpAddr,
    is_secure: bool,
}

impl Caller {
    pub(super) fn new(inspector: Option<Inspector>, deadline: Deadline, address: IpAddr, headers: &HeaderMap) -> Self {
        Caller {
            inspector,
            deadline,
            address,
            is_secure: origin(headers).is_some_and(|origin| origin.scheme() == "https"),
        }
    }

    /// The inspector, of whom the front door lets nobody in without a session where the document asks for one.
    ///
    /// # Errors
    /// 401 where nobody is signed in.
    pub fn inspector(&self) -> Result<&Inspector, ApiError> {
        self.inspector.as_ref().ok_or_else(ApiError::signed_out)
    }

    /// Until when the request waits for the database.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The same caller, whose request has waited for something else than the database, and waits for that anew.
    pub(crate) fn anew(&self) -> Self {
        Caller {
            deadline: Deadline::begin(),
            ..self.clone()
        }
    }

    /// The client's address.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether the browser speaks TLS, perhaps with a proxy in front.
    pub(crate) fn is_secure(&self) -> bool {
        self.is_secure
    }
}

/// Lets a request in by what its operation asks for.
///
/// # Errors
/// 403 for what another site made a browser send, 401 without a session.
pub(super) async fn admit(
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
    let cookie = Cookie::of(headers).ok_or_else(ApiError::signed_out)?;
    let sent = single(headers, CSRF_HEADER).unwrap_or_default();
    let is_own = bool::from(sent.as_bytes().ct_eq(cookie.csrf_token().as_bytes()));
    let client = context.connections().take(Deadline::begin()).await?;
    // What a page reads by itself has no such token, and keeps no session alive (INS-4).
    let session = sessions::find(&client, &cookie.digest(), is_own).await?;
    let inspector = Inspector::of(session.ok_or_else(ApiError::signed_out)?, cookie);
    if asks_for("CsrfToken") && !is_own {
        return Err(forged(
            "X-CSRF-Token is missing or is not this session's; read the session again, and send its csrf_token",
        ));
    }
    Ok(Some(inspector))
}

/// Refuses what a browser sends for another site. Who is no browser sends no `Origin`.
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

fn origin(headers: &HeaderMap) -> Option<Url> {
    single(headers, header::ORIGIN)?.parse().ok()
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
