//! Keys: made, rotated, revoked; what they may do, and how often.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use partner_api::db::DbError;
use partner_api::generated::operations::OPERATIONS;
use partner_api::secrets::new_key;
use partner_api_signing::{Environment, KeyId, Secret};
use serde::Serialize;
use uuid::Uuid;

use crate::failure::Failure;
use crate::names::{self, alike, quoted};
use crate::output::{Output, Row, list, to_json};
use crate::query::Query;
use crate::session::{Change, Changed, Session};
use crate::when;

partner_api::statement! {
    CREATE = "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext, scopes, rate_limit, \
                allowlist, allowlist_mode, expires_at) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    LIST = "SELECT k.key_id, p.name AS partner, k.environment, k.scopes, k.rate_limit, k.allowlist, k.allowlist_mode, \
              k.created_at, k.expires_at, k.revoked_at, \
              CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= now() THEN 'expired' \
                   WHEN NOT p.is_enabled THEN 'disabled' WHEN k.expires_at IS NOT NULL THEN 'expiring' ELSE 'active' END AS state \
            FROM api_keys k JOIN partners p ON p.id = k.partner_id \
            WHERE ($1::uuid IS NULL OR k.partner_id = $1) AND ($2::text IS NULL OR k.key_id = $2) \
              AND ($3 OR k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())) \
            ORDER BY p.name, k.created_at, k.key_id";
    /// Those of a partner from which one is rotated.
    ACTIVE = "SELECT key_id FROM api_keys WHERE partner_id = $1 AND environment = $2 AND revoked_at IS NULL \
              AND (expires_at IS NULL OR expires_at > now()) ORDER BY created_at";
    /// A key's expiry, held until the end of the change: two rotations at once are one after the other.
    LOCK = "SELECT key_id FROM api_keys WHERE key_id = $1 FOR NO KEY UPDATE";
    EXPIRE = "UPDATE api_keys SET expires_at = $2 WHERE key_id = $1 AND revoked_at IS NULL AND expires_at IS DISTINCT FROM $2";
    REVOKE = "UPDATE api_keys SET revoked_at = now() WHERE key_id = $1 AND revoked_at IS NULL";
    SCOPES = "UPDATE api_keys SET scopes = $2 WHERE key_id = $1 AND scopes <> $2";
    LIMIT = "UPDATE api_keys SET rate_limit = $2 WHERE key_id = $1 AND rate_limit <> $2";
}

/// Help of the group.
pub const EXAMPLES: &str = "\
KEY is a key id, or as much of its beginning as no other key begins with.

Examples:
  partner-api key create 'Acme Devices' --scope test-line:write
  partner-api key rotate 'Acme Devices' --overlap 7days    a second key; the first ends after the overlap
  partner-api key scope vip_live_ABCD… --remove test-line:write
  partner-api key limit vip_live_ABCD… 300                 requests a minute
  partner-api key revoke vip_live_ABCD…                    refused on every replica within 5 s";

/// The longest overlap of two keys (KEY-11).
const LONGEST_OVERLAP: Duration = Duration::from_secs(7 * 24 * 3600);

/// Commands on keys.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a key; its secret is shown this once
    Create(CreateArgs),
    /// Print keys
    List(ListArgs),
    /// Make a second key like the first, which ends after an overlap
    Rotate(RotateArgs),
    /// Refuse a key from now on, on every replica within 5 s; it cannot be undone
    Revoke(KeyArgs),
    /// Set when a key ends
    Expire(ExpireArgs),
    /// Say what a key may do beyond reading
    Scope(ScopeArgs),
    /// Set how many requests a minute a key may send
    Limit(LimitArgs),
}

/// The arguments of `key create`.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// The partner, by name or id
    partner: String,
    /// What it may do beyond reading, such as test-line:write
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    scope: Vec<String>,
    /// Requests a minute
    #[arg(long, value_name = "NUMBER", default_value_t = 60, value_parser = clap::value_parser!(i32).range(1..))]
    rate_limit: i32,
    /// When it ends, with offset; never, unless told
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    expires_at: Option<DateTime<Utc>>,
}

/// The options of `key list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only those of this partner, by name or id
    partner: Option<String>,
    /// Also those that are revoked or have expired
    #[arg(long)]
    all: bool,
}

/// A key.
#[derive(Args, Debug)]
pub struct KeyArgs {
    /// The key id, or its beginning
    pub(crate) key: String,
}

/// The arguments of `key rotate`.
#[derive(Args, Debug)]
pub struct RotateArgs {
    /// The key, or the partner that has one active key
    key_or_partner: String,
    /// How long the first key goes on, 0 to 7days
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = overlap)]
    overlap: Duration,
}

/// The arguments of `key expire`.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("end").required(true).args(["at", "within", "never"])))]
pub struct ExpireArgs {
    /// The key id, or its beginning
    key: String,
    /// The moment, with offset
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    at: Option<DateTime<Utc>>,
    /// So long from now, such as 24h
    #[arg(long = "in", value_name = "TIME", value_parser = when::span)]
    within: Option<Duration>,
    /// Not at all
    #[arg(long)]
    never: bool,
}

/// The arguments of `key scope`.
#[derive(Args, Debug)]
pub struct ScopeArgs {
    /// The key id, or its beginning
    key: String,
    /// What it may do from now on
    #[arg(long, value_name = "SCOPE", value_parser = scope, required_unless_present = "remove")]
    add: Vec<String>,
    /// What it may no longer do
    #[arg(long, value_name = "SCOPE")]
    remove: Vec<String>,
}

/// The arguments of `key limit`.
#[derive(Args, Debug)]
pub struct LimitArgs {
    /// The key id, or its beginning
    key: String,
    /// Requests a minute
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    limit: i32,
}

/// A key as it stands, without its secret.
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
    /// For the page of its partner.
    pub(crate) fn in_a_line(&self) -> String {
        format!(
            "{} ({}, {} a minute, {})",
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

/// A key that was just made: the one time that its secret is shown.
#[derive(Serialize)]
struct NewKey {
    #[serde(flatten)]
    key: Key,
    secret: String,
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Create(args) => create(session, args).await,
            Self::List(args) => {
                let connection = session.read().await?;
                let partner = match &args.partner {
                    Some(text) => Some(names::partner(&connection, text).await?.id),
                    None => None,
                };
                let none = if args.all {
                    "There are no keys."
                } else {
                    "There are no active keys; --all prints the others."
                };
                Ok(Output::rows(&load(&connection, partner, None, args.all).await?, none))
            }
            Self::Rotate(args) => rotate(session, &args).await,
            Self::Revoke(args) => revoke(session, &args.key).await,
            Self::Expire(args) => expire(session, &args).await,
            Self::Scope(args) => scopes(session, &args).await,
            Self::Limit(args) => limit(session, &args).await,
        }
    }
}

/// Keys, of one partner or all, or the one of an id; only the active ones unless `all`.
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

/// The key of an id that was just found.
pub(crate) async fn one(query: &impl Query, id: &str) -> Result<Key, Failure> {
    let gone = || Failure::Refused(format!("the key {id} was removed meanwhile"));
    load(query, None, Some(id), true).await?.pop().ok_or_else(gone)
}

/// What a new key is given.
struct Given<'a> {
    partner: Uuid,
    scopes: &'a [String],
    rate_limit: i32,
    allowlist: &'a [String],
    allowlist_mode: &'a str,
    expires_at: Option<DateTime<Utc>>,
}

/// Seals and stores a new key.
async fn insert(session: &Session, change: &Change<'_>, given: &Given<'_>) -> Result<(KeyId, Secret), Failure> {
    let environment = session.config.environment;
    let (id, secret) = new_key(&session.config.key_prefix, environment)?;
    let (nonce, ciphertext) = session.master_key()?.seal(id.as_str(), &secret)?;
    let inserted = change
        .execute(
            CREATE,
            &[
                &id.as_str(),
                &given.partner,
                &environment.as_str(),
                &nonce.as_slice(),
                &ciphertext,
                &given.scopes,
                &given.rate_limit,
                &given.allowlist,
                &given.allowlist_mode,
                &given.expires_at,
            ],
        )
        .await;
    inserted.map_err(|error| two_already(error, environment))?;
    Ok((id, secret))
}

/// The database's own word for the limit of two.
fn two_already(error: DbError, environment: Environment) -> Failure {
    let DbError::Query(cause) = &error else {
        return error.into();
    };
    if cause.as_db_error().and_then(|refusal| refusal.constraint()) == Some("at_most_two_active_keys") {
        return Failure::Refused(format!(
            "the partner has two active {environment} keys already, and no partner has more: end one with \
             `partner-api key revoke KEY` first (partner-api key list PARTNER shows them)"
        ));
    }
    error.into()
}

fn shown(key: &Key, secret: &Secret) -> Vec<(&'static str, String)> {
    vec![
        ("key id", key.key_id.clone()),
        ("secret", secret.expose().to_owned()),
        (
            "",
            "shown this once: hand it over by a way of its own, and keep no copy".to_owned(),
        ),
        ("scopes", list(&key.scopes)),
        ("requests a minute", key.rate_limit.to_string()),
        ("ends", when::at_or_none(key.expires_at)),
    ]
}

async fn create(session: &Session, args: CreateArgs) -> Result<Output, Failure> {
    if args.expires_at.is_some_and(|at| at <= Utc::now()) {
        return Err(Failure::Usage("--expires-at: that has passed".to_owned()));
    }
    session
        .change("key create", async |change| {
            let partner = names::partner(change, &args.partner).await?;
            let given = Given {
                partner: partner.id,
                scopes: &args.scope,
                rate_limit: args.rate_limit,
                allowlist: &[],
                allowlist_mode: "enforce",
                expires_at: args.expires_at,
            };
            let (id, secret) = insert(session, change, &given).await?;
            let key = one(change, id.as_str()).await?;
            let what = format!("A {} key was made for partner `{}`.", key.environment, partner.name);
            Ok(made(key, &secret, what).undo(format!("partner-api key revoke {}", id.as_str())))
        })
        .await
}

/// A change that made a key: the secret goes to who asked for it, not into the log.
fn made(key: Key, secret: &Secret, what: String) -> Changed<NewKey> {
    let facts = shown(&key, secret);
    let after = to_json(&key);
    let id = key.key_id.clone();
    let new = NewKey {
        secret: secret.expose().to_owned(),
        key,
    };
    let mut changed = Changed::of("key", id, what, new).facts(facts);
    changed.after = Some(after);
    changed
}

/// The key that is meant: one of the id, or the only active one of the partner.
async fn rotated(session: &Session, change: &Change<'_>, text: &str) -> Result<names::Key, Failure> {
    let no_key = match names::key(change, text).await {
        Ok(key) => return Ok(key),
        Err(no_key @ Failure::NotFound { .. }) => no_key,
        Err(other) => return Err(other),
    };
    let partner = match names::partner(change, text).await {
        Ok(partner) => partner,
        // What has the shape of a key id was meant as one.
        Err(Failure::NotFound { .. }) if text.contains("_test_") || text.contains("_live_") => return Err(no_key),
        Err(other) => return Err(other),
    };
    let environment = session.config.environment;
    let rows = change.query(ACTIVE, &[&partner.id, &environment.as_str()]).await?;
    match rows.as_slice() {
        [row] => Ok(names::Key {
            id: row.try_get("key_id")?,
            partner,
        }),
        [] => Err(Failure::Refused(format!(
            "partner `{0}` has no active {environment} key; make one with: partner-api key create {1}",
            partner.name,
            quoted(&partner.name)
        ))),
        _ => Err(Failure::Usage(format!(
            "partner `{}` has two active {environment} keys: say which is to be rotated (partner-api key list {})",
            partner.name,
            quoted(&partner.name)
        ))),
    }
}

async fn rotate(session: &Session, args: &RotateArgs) -> Result<Output, Failure> {
    session
        .change("key rotate", async |change| {
            let found = rotated(session, change, &args.key_or_partner).await?;
            change.query(LOCK, &[&found.id]).await?;
            let old = one(change, &found.id).await?;
            if old.state == "revoked" || old.state == "expired" {
                return Err(Failure::Refused(format!(
                    "the key {} is {}: make a new one with: partner-api key create {}",
                    old.key_id,
                    old.state,
                    quoted(&found.partner.name)
                )));
            }
            if old.environment != session.config.environment.as_str() {
                return Err(Failure::Refused(format!(
                    "the key {} is for {}, and this deployment is configured as {}",
                    old.key_id, old.environment, session.config.environment
                )));
            }
            let ends = Utc::now() + args.overlap;
            // A key that ends sooner anyway is left to.
            let ends = old.expires_at.map_or(ends, |at| at.min(ends));
            change.execute(EXPIRE, &[&old.key_id, &ends]).await?;
            let given = Given {
                partner: found.partner.id,
                scopes: &old.scopes,
                rate_limit: old.rate_limit,
                allowlist: &old.allowlist,
                allowlist_mode: &old.allowlist_mode,
                expires_at: None,
            };
            let (id, secret) = insert(session, change, &given).await?;
            let key = one(change, id.as_str()).await?;
            let what = format!(
                "{} takes the place of {}, which ends at {}.",
                key.key_id,
                old.key_id,
                when::at(ends)
            );
            let back = match old.expires_at {
                Some(at) => format!("--at {}", at.to_rfc3339()),
                None => "--never".to_owned(),
            };
            let undo = format!(
                "partner-api key revoke {} && partner-api key expire {} {back}",
                id.as_str(),
                old.key_id
            );
            Ok(made(key, &secret, what).before(&old).undo(undo))
        })
        .await
}

async fn revoke(session: &Session, text: &str) -> Result<Output, Failure> {
    session
        .change("key revoke", async |change| {
            let found = names::key(change, text).await?;
            let before = one(change, &found.id).await?;
            let changed = change.execute(REVOKE, &[&found.id]).await? > 0;
            let after = one(change, &found.id).await?;
            if !changed {
                let since = when::at_or_none(after.revoked_at);
                let what = format!("The key {} is revoked already, since {since}.", found.id);
                return Ok(Changed::nothing("key", found.id, what, after));
            }
            let what = format!(
                "The key {} of partner `{}` was revoked: it is refused on every replica within 5 s.",
                found.id, found.partner.name
            );
            let undo = format!(
                "not possible, for a secret that was let go is not trusted again; make another: partner-api key create {}",
                quoted(&found.partner.name)
            );
            Ok(Changed::of("key", found.id, what, after).before(&before).undo(undo))
        })
        .await
}

async fn expire(session: &Session, args: &ExpireArgs) -> Result<Output, Failure> {
    let ends = args.at.or_else(|| args.within.map(|span| Utc::now() + span));
    session
        .change("key expire", async |change| {
            let found = names::key(change, &args.key).await?;
            let before = one(change, &found.id).await?;
            if before.state == "revoked" {
                return Err(Failure::Refused(format!(
                    "the key {} is revoked: it has ended",
                    found.id
                )));
            }
            let environment = session.config.environment;
            let changed = change.execute(EXPIRE, &[&found.id, &ends]).await;
            let changed = changed.map_err(|error| two_already(error, environment))? > 0;
            let after = one(change, &found.id).await?;
            let when = ends.map_or_else(|| "never ends".to_owned(), |at| format!("ends at {}", when::at(at)));
            let what = format!("The key {} of partner `{}` {when}.", found.id, found.partner.name);
            if !changed {
                return Ok(Changed::nothing("key", found.id, what, after));
            }
            let back = match before.expires_at {
                Some(at) => format!("--at {}", at.to_rfc3339()),
                None => "--never".to_owned(),
            };
            let undo = format!("partner-api key expire {} {back}", found.id);
            Ok(Changed::of("key", found.id, what, after).before(&before).undo(undo))
        })
        .await
}

async fn scopes(session: &Session, args: &ScopeArgs) -> Result<Output, Failure> {
    session
        .change("key scope", async |change| {
            let found = names::key(change, &args.key).await?;
            change.query(LOCK, &[&found.id]).await?;
            let before = one(change, &found.id).await?;
            let mut scopes = before.scopes.clone();
            scopes.retain(|scope| !args.remove.contains(scope));
            scopes.extend(args.add.iter().filter(|scope| !before.scopes.contains(scope)).cloned());
            scopes.sort();
            scopes.dedup();
            let changed = change.execute(SCOPES, &[&found.id, &scopes]).await? > 0;
            let after = one(change, &found.id).await?;
            let what = match scopes.is_empty() {
                true => format!("The key {} may read, and nothing else.", found.id),
                false => format!("The key {} may read, and {}.", found.id, scopes.join(", ")),
            };
            if !changed {
                return Ok(Changed::nothing("key", found.id, what, after));
            }
            let gone = before.scopes.iter().filter(|scope| !scopes.contains(scope));
            let come = scopes.iter().filter(|scope| !before.scopes.contains(scope));
            let back: String = gone
                .map(|scope| format!(" --add {scope}"))
                .chain(come.map(|scope| format!(" --remove {scope}")))
                .collect();
            let undo = format!("partner-api key scope {}{back}", found.id);
            Ok(Changed::of("key", found.id, what, after).before(&before).undo(undo))
        })
        .await
}

async fn limit(session: &Session, args: &LimitArgs) -> Result<Output, Failure> {
    session
        .change("key limit", async |change| {
            let found = names::key(change, &args.key).await?;
            let before = one(change, &found.id).await?;
            let changed = change.execute(LIMIT, &[&found.id, &args.limit]).await? > 0;
            let after = one(change, &found.id).await?;
            let what = format!("The key {} may send {} requests a minute.", found.id, args.limit);
            if !changed {
                return Ok(Changed::nothing("key", found.id, what, after));
            }
            let undo = format!("partner-api key limit {} {}", found.id, before.rate_limit);
            Ok(Changed::of("key", found.id, what, after).before(&before).undo(undo))
        })
        .await
}

/// A scope that an operation of the document asks for.
fn scope(text: &str) -> Result<String, String> {
    let known: Vec<String> = OPERATIONS
        .iter()
        .filter_map(|operation| operation.extension("x-required-scope"))
        .map(str::to_owned)
        .collect();
    if known.iter().any(|scope| scope == text) {
        return Ok(text.to_owned());
    }
    let hint = alike(text, &known).into_iter().next();
    Err(match hint {
        Some(like) => format!("no operation asks for it; did you mean `{like}`?"),
        None => format!("no operation asks for it; there are: {}", known.join(", ")),
    })
}

fn overlap(text: &str) -> Result<Duration, String> {
    let span = when::span(text)?;
    if span > LONGEST_OVERLAP {
        return Err("two keys overlap for 7days at most".to_owned());
    }
    Ok(span)
}
