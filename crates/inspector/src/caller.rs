//! The caller of a request: an inspector's session, the client's address, and the deadline.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use http::{HeaderMap, header};
use partner_api_store::deadline::Deadline;
use rand::TryRngCore;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::error::{self, ApiError};

/// The cookie's name.
const COOKIE: &str = "inspector_session";

/// A branch that an inspector works at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its ID.
    pub id: Uuid,
    /// Its code, as devices send it.
    pub code: String,
    /// Its name.
    pub name: String,
}

/// A session that is valid.
#[derive(Clone, Debug)]
pub struct Session {
    /// Whose session it is.
    pub inspector_id: Uuid,
    /// The inspector's organization.
    pub organization_id: Uuid,
    /// The inspector's name.
    pub name: String,
    /// The latest time at which the session ends.
    pub ends_at: DateTime<Utc>,
    /// The active branches that the token is bound to, by code.
    pub branches: Vec<Branch>,
}

/// An inspector who is signed in. Only a session constructs one.
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
    /// The inspector of a session.
    pub(crate) fn of(session: Session, cookie: Cookie) -> Self {
        Inspector {
            id: session.inspector_id,
            organization_id: session.organization_id,
            name: session.name,
            branches: session.branches,
            ends_at: session.ends_at,
            cookie,
        }
    }

    /// The inspector's ID.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The organization that the inspector works for.
    pub fn organization_id(&self) -> Uuid {
        self.organization_id
    }

    /// The name, which appears in reports and histories.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The active branches that the token is bound to.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// The latest time at which the session ends.
    pub fn ends_at(&self) -> DateTime<Utc> {
        self.ends_at
    }

    /// The IDs of the branches.
    pub fn branch_ids(&self) -> Vec<Uuid> {
        self.branches.iter().map(|branch| branch.id).collect()
    }

    /// The token that each write of the session must carry.
    pub fn csrf_token(&self) -> String {
        self.cookie.csrf_token()
    }

    /// The session's cookie.
    pub(crate) fn cookie(&self) -> &Cookie {
        &self.cookie
    }
}

/// A session's secret, 256 random bits. The database keeps one digest of it; another digest is the CSRF token.
#[derive(Clone)]
pub(crate) struct Cookie(String);

impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cookie")
    }
}

impl Cookie {
    /// A new secret.
    pub fn new() -> Result<Self, ApiError> {
        let mut random = [0; 32];
        OsRng.try_fill_bytes(&mut random).map_err(|error| {
            tracing::error!(%error, "failed to get random numbers from the operating system");
            ApiError::internal()
        })?;
        Ok(Cookie(HEXLOWER.encode(&random)))
    }

    /// The secret in a request's cookie. Two cookies with this name count as none, because it is unclear which one is valid.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
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

    /// The digest of the secret, which the database stores.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(format!("inspector session {}", self.0)).into()
    }

    /// The CSRF token.
    pub fn csrf_token(&self) -> String {
        BASE64URL_NOPAD.encode(&Sha256::digest(format!("inspector csrf {}", self.0)))
    }

    /// The value of `Set-Cookie`: scripts and other sites cannot use the cookie, and one that was set over TLS is sent over TLS only.
    pub fn set(&self, is_secure: bool, seconds: i64) -> String {
        let secure = if is_secure { "; Secure" } else { "" };
        format!(
            "{COOKIE}={}; Path=/inspector; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}",
            self.0
        )
    }
}

/// The caller of a request, and the request's deadline.
#[derive(Clone, Debug)]
pub struct Caller {
    inspector: Option<Inspector>,
    deadline: Deadline,
    address: IpAddr,
    is_secure: bool,
}

impl Caller {
    /// The caller of a request that has just been admitted.
    pub(crate) fn admitted(inspector: Option<Inspector>, deadline: Deadline, address: IpAddr, is_secure: bool) -> Self {
        Caller {
            inspector,
            deadline,
            address,
            is_secure,
        }
    }

    /// The inspector. The gateway admits nobody without a session to an operation that requires one.
    ///
    /// # Errors
    /// 401 if nobody is signed in.
    pub fn inspector(&self) -> Result<&Inspector, ApiError> {
        self.inspector.as_ref().ok_or_else(error::signed_out)
    }

    /// The time until which the request waits for the database.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The same caller with a new deadline, after the request has waited for something other than the database.
    pub(crate) fn with_new_deadline(&self) -> Self {
        Caller {
            deadline: Deadline::begin(),
            ..self.clone()
        }
    }

    /// The client's address.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether the browser uses TLS, perhaps with a proxy in front.
    pub(crate) fn is_secure(&self) -> bool {
        self.is_secure
    }
}
