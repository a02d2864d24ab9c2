//! API keys: creation, rotation, revocation, scopes and limits, and the certificates that they sign.

mod alter;
mod create;
mod rotate;
mod verify;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use partner_api::generated::operations::OPERATIONS;
use partner_api_signing::Environment;
use partner_api_store::DbError;
use serde::Serialize;
use uuid::Uuid;

use crate::failure::Failure;
use crate::names::{self, similar};
use crate::output::{Output, Row, list};
use crate::session::{Query, Session};
use crate::when;

pub use alter::{ExpireArgs, LimitArgs, ScopeArgs};
pub use create::CreateArgs;
pub use rotate::RotateArgs;
pub use verify::VerifyArgs;

partner_api_store::statement! {
    LIST = "SELECT k.key_id, p.name AS partner, k.environment, k.scopes, k.rate_limit, k.allowlist::text[], k.allowlist_mode, \
              k.created_at, k.expires_at, k.revoked_at, \
              CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= now() THEN 'expired' \
                   WHEN NOT p.is_enabled THEN 'disabled' WHEN k.expires_at IS NOT NULL THEN 'expiring' ELSE 'active' END AS state \
            FROM api_keys k JOIN partners p ON p.id = k.partner_id \
            WHERE ($1::uuid IS NULL OR k.partner_id = $1) AND ($2::text IS NULL OR k.key_id = $2) \
              AND ($3 OR k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())) \
            ORDER BY p.name, k.created_at, k.key_id";
    /// Locks a key until the end of the change, which serializes concurrent rotations.
    LOCK = "SELECT key_id FROM api_keys WHERE key_id = $1 FOR NO KEY UPDATE";
    EXPIRE = "UPDATE api_keys SET expires_at = $2 WHERE key_id = $1 AND revoked_at IS NULL AND expires_at IS DISTINCT FROM $2";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
KEY is a key ID or a unique prefix of one.

Examples:
  partner-api key create 'Acme Devices' --scope test-line:write
  partner-api key rotate 'Acme Devices' --overlap 7days    adds a second key; the first expires after the overlap
  partner-api key scope vip_live_ABCD… --remove test-line:write
  partner-api key limit vip_live_ABCD… 300                 requests per minute
  partner-api key revoke vip_live_ABCD…                    rejected on every replica within 5 s
  partner-api key verify certificate.html                  did `partner certify --listen` write this file?";

/// Commands on keys.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a key; prints its secret once
    Create(CreateArgs),
    /// List keys
    List(ListArgs),
    /// Create a second key like the first, which expires after an overlap
    Rotate(RotateArgs),
    /// Revoke a key on every replica within 5 s; cannot be undone
    Revoke(KeyArgs),
    /// Set when a key expires
    Expire(ExpireArgs),
    /// Set what a key may do beyond reading
    Scope(ScopeArgs),
    /// Set the rate limit of a key, in requests per minute
    Limit(LimitArgs),
    /// Verify the signature of a certificate that `partner certify --listen` wrote
    Verify(VerifyArgs),
}

/// The options of `key list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only of this partner, by name or ID
    partner: Option<String>,
    /// Include revoked and expired keys
    #[arg(long)]
    all: bool,
}

/// A key.
#[derive(Args, Debug)]
pub struct KeyArgs {
    /// The key ID or a unique prefix of it
    pub(crate) key: String,
}

/// A key without its secret.
#[derive(Debug, Serialize)]
pub(crate) struct Key {
    pub(crate) key_id: String,
    partner: String,
    environment: String,
    state: String,
    scopes: Vec<String>,
    rate_limit: i32,
    pub(crate) allowlist: Vec<String>,
    pub(crate) allowlist_mode: String,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
}

impl Key {
    /// One line for `partner show`.
    pub(crate) fn in_a_line(&self) -> String {
        format!(
            "{} ({}, {} per minute, {})",
            self.key_id,
            self.state,
            self.rate_limit,
            list(&self.scopes)
        )
    }
}

impl Row for Key {
    const COLUMNS: &'static [&'static str] = &[
        "KEY",
        "PARTNER",
        "STATE",
        "SCOPES",
        "A MINUTE",
        "ALLOWLIST",
        "CREATED",
        "ENDS",
    ];

    fn cells(&self) -> Vec<String> {
        let allowlist = match self.allowlist.as_slice() {
            [] => "-".to_owned(),
            some => format!("{} ({})", some.join(", "), self.allowlist_mode),
        };
        vec![
            self.key_id.clone(),
            self.partner.clone(),
            self.state.clone(),
            list(&self.scopes),
            self.rate_limit.to_string(),
            allowlist,
            when::at(self.created_at),
            when::at_or_none(self.revoked_at.or(self.expires_at)),
        ]
    }
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Create(args) => create::create(session, args).await,
            Self::List(args) => {
                let connection = session.read().await?;
                let partner = match &args.partner {
                    Some(text) => Some(names::partner(&connection, text).await?.id),
                    None => None,
                };
                let none = if args.all {
                    "There are no keys."
                } else {
                    "There are no active keys; use --all to list the others."
                };
                Ok(Output::rows(&load(&connection, partner, None, args.all).await?, none))
            }
            Self::Rotate(args) => rotate::rotate(session, &args).await,
            Self::Revoke(args) => alter::revoke(session, &args.key).await,
            Self::Expire(args) => alter::expire(session, &args).await,
            Self::Scope(args) => alter::scopes(session, &args).await,
            Self::Limit(args) => alter::limit(session, &args).await,
            Self::Verify(args) => verify::certificate(session, &args).await,
        }
    }
}

/// Loads keys of one partner, of all, or the one with an ID; only active ones unless `all`.
pub(crate) async fn load(
    query: &impl Query,
    partner: Option<Uuid>,
    id: Option<&str>,
    all: bool,
) -> Result<Vec<Key>, DbError> {
    let rows = query.query(LIST, &[&partner, &id, &all]).await?;
    rows.iter()
        .map(|row| {
            Ok(Key {
                key_id: row.try_get("key_id")?,
                partner: row.try_get("partner")?,
                environment: row.try_get("environment")?,
                state: row.try_get("state")?,
                scopes: row.try_get("scopes")?,
                rate_limit: row.try_get("rate_limit")?,
                allowlist: row.try_get("allowlist")?,
                allowlist_mode: row.try_get("allowlist_mode")?,
                created_at: row.try_get("created_at")?,
                expires_at: row.try_get("expires_at")?,
                revoked_at: row.try_get("revoked_at")?,
            })
        })
        .collect()
}

/// Loads the key with this ID.
pub(crate) async fn load_one(query: &impl Query, id: &str) -> Result<Key, Failure> {
    let removed = || Failure::Rejected(format!("the key {id} was removed in the meantime"));
    load(query, None, Some(id), true).await?.pop().ok_or_else(removed)
}

/// Translates the database's error about the limit of two keys.
fn too_many_keys(error: DbError, environment: Environment) -> Failure {
    let DbError::Query(cause) = &error else {
        return error.into();
    };
    if cause.as_db_error().and_then(|rejection| rejection.constraint()) == Some("at_most_two_active_keys") {
        return Failure::Rejected(format!(
            "the partner already has two active {environment} keys, the maximum; expire or revoke one with \
             `partner-api key revoke KEY` first (partner-api key list PARTNER shows them)"
        ));
    }
    error.into()
}

/// Parses a scope that some operation of the API requires.
fn scope(text: &str) -> Result<String, String> {
    let known: Vec<String> = OPERATIONS
        .iter()
        .filter_map(|operation| operation.extension("x-required-scope"))
        .map(str::to_owned)
        .collect();
    if known.iter().any(|scope| scope == text) {
        return Ok(text.to_owned());
    }
    let hint = similar(text, &known).into_iter().next();
    Err(match hint {
        Some(like) => format!("no operation requires this scope; did you mean `{like}`?"),
        None => format!("no operation requires this scope; the scopes are: {}", known.join(", ")),
    })
}
